"""Download of one file: resumed after an interruption, checked, and moved when complete."""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nodepiece.data.releases import BLOCK, Source, git_blob_of
from nodepiece.errors import InputError

TRANSIENT_STATUS = (408, 425, 429, 500, 502, 503, 504)  # worth another try
CONNECTION_ERRORS = (OSError, http.client.HTTPException)  # URLError and timeouts are OSErrors


@dataclass(frozen=True)
class RetryPolicy:
    """How often, and how long, a download is tried again."""

    tries: int = 5  # in a row without a new byte
    first_wait: float = 1.0  # seconds before the second try; doubled before each further one
    timeout: float = 30.0  # seconds without an answer
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Downloaded:
    path: Path
    num_bytes: int
    is_checked: bool  # False: no checksum is known, so only the announced length was checked


@dataclass(frozen=True)
class Attempt:
    """The result of one request."""

    num_bytes: int  # in the partial file now
    announced: int | None  # length of the whole file according to the server
    problem: str | None  # why it ended early; None: the response was complete


def download(
    source: Source,
    target: Path,
    *,
    report: Callable[[int, int | None, str], None],
    retry: RetryPolicy,
) -> Downloaded:
    """Download to `target`; `report` gets bytes so far, bytes in all if known, and a remark.

    The downloaded bytes are kept in TARGET.partial, also after Ctrl-C or a lost connection, and
    the next call requests only the rest. If the git blob id matches, the file is complete,
    whatever length the server announced; if it does not match and no byte is missing, the partial
    file is removed.
    """
    with disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    max_bytes, num_idle = _size(partial), 0
    while True:
        attempt = _request_rest(source, partial, report=report, timeout=retry.timeout)
        if _is_whole(source, partial, attempt):
            partial.replace(target)
            return Downloaded(target, attempt.num_bytes, source.git_blob is not None)
        # A server that cannot resume always starts over. So that this ends, only bytes beyond the
        # furthest point so far count as progress.
        num_idle = 0 if attempt.num_bytes > max_bytes else num_idle + 1
        max_bytes = max(max_bytes, attempt.num_bytes)
        problem = attempt.problem or "the connection ended early"
        if num_idle >= retry.tries:
            raise InputError(
                f"{source.url} could not be downloaded after {retry.tries} tries: {problem}; "
                f"{attempt.num_bytes:,} bytes are kept in {partial}: run the command again to "
                "continue"
            )
        wait = retry.first_wait * 2**num_idle
        report(attempt.num_bytes, attempt.announced, f"{problem}; trying again in {wait:g} s")
        retry.sleep(wait)


def _is_whole(source: Source, partial: Path, attempt: Attempt) -> bool:
    """Whether the file is complete; False: bytes are missing. Wrong bytes are an error."""
    expected = source.num_bytes if source.num_bytes is not None else attempt.announced
    found = None
    if source.git_blob is not None and partial.exists():
        with partial.open("rb") as file:
            found = git_blob_of(file, attempt.num_bytes)
        if found == source.git_blob:
            return True
    if expected is not None and attempt.num_bytes < expected:
        return False
    if expected is None and attempt.problem is not None:
        return False
    if source.git_blob is None and (expected is None or attempt.num_bytes == expected):
        return True
    partial.unlink(missing_ok=True)
    raise InputError(
        f"{source.url} is not the file that was published: expected git blob "
        f"{source.git_blob or 'unknown'}{_bytes(expected)}, found {found or 'unknown'}"
        f"{_bytes(attempt.num_bytes)}; the download was removed: run the command again, and if it "
        "happens twice, look for a proxy that changes files, or report it to the maintainers of "
        "nodepiece"
    )


def _bytes(count: int | None) -> str:
    return "" if count is None else f" of {count:,} bytes"


def _request_rest(
    source: Source,
    partial: Path,
    *,
    report: Callable[[int, int | None, str], None],
    timeout: float,
) -> Attempt:
    """Request the missing bytes and append them; a lost connection is not an error."""
    start = _size(partial)
    if source.num_bytes is not None and start >= source.num_bytes:
        if start == source.num_bytes:
            return Attempt(start, start, None)
        partial.unlink()
        start = 0
    request = urllib.request.Request(source.url, headers={"User-Agent": "nodepiece"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    announced = None
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            _refuse_plain_http(source, response.url)
            start, announced = _content_start(response, start)
            _refuse_excess(source, partial, announced or 0)
            with disk_errors(partial):
                file = partial.open("ab" if start else "wb")
            with file:
                report(start, announced, "")
                while block := response.read(BLOCK):
                    with disk_errors(partial):
                        file.write(block)
                        file.flush()
                    report(file.tell(), announced, "")
                    if source.num_bytes is not None and file.tell() > source.num_bytes:
                        break  # too long: `_is_whole` raises the error
                    _refuse_excess(source, partial, file.tell())
        return Attempt(_size(partial), announced, None)
    except urllib.error.HTTPError as error:
        with error:
            return _handle_status(error, source, partial, start)
    except CONNECTION_ERRORS as error:
        problem = str(getattr(error, "reason", error)) or type(error).__name__
        return Attempt(_size(partial), announced, problem)


def _refuse_excess(source: Source, partial: Path, num_bytes: int) -> None:
    """Refuse a download of unknown size that is longer than its limit."""
    if source.num_bytes is None and num_bytes > source.max_bytes:
        partial.unlink(missing_ok=True)
        raise InputError(
            f"{source.url} has {num_bytes:,} bytes or more, and {source.max_bytes:,} at most were "
            "expected; the download was removed: report it to the maintainers of nodepiece"
        )


def _refuse_plain_http(source: Source, url: str) -> None:
    """Refuse a redirect from https to http, whose content anybody on the network can replace."""
    if source.url.startswith("https:") and not url.startswith("https:"):
        raise InputError(
            f"{source.url} is redirected to {url}, which is not encrypted; nothing was "
            "downloaded: report it to the maintainers of nodepiece"
        )


def _content_start(response: http.client.HTTPResponse, start: int) -> tuple[int, int | None]:
    """Where the body begins in the file, and the length of the whole file, None if unknown.

    A server that ignores the Range header sends the whole file; then the partial file is replaced.
    """
    length = response.headers.get("Content-Length", "")
    num_body = int(length) if length.isdigit() else None
    content_range = response.headers.get("Content-Range", "")  # such as "bytes 100-199/200"
    if response.status != 206:
        return 0, num_body
    if not content_range.startswith(f"bytes {start}-"):
        raise http.client.HTTPException(f"the server sent {content_range!r}, not from {start} on")
    total = content_range.rsplit("/", 1)[-1]
    if total.isdigit():
        return start, int(total)
    return start, None if num_body is None else start + num_body


def _handle_status(
    error: urllib.error.HTTPError, source: Source, partial: Path, start: int
) -> Attempt:
    if error.code in TRANSIENT_STATUS:
        return Attempt(_size(partial), None, f"the server answered {error.code} {error.reason}")
    if error.code == 416 and start:  # no bytes after ours: complete, or another file
        total = error.headers.get("Content-Range", "").rsplit("/", 1)[-1]
        if total == str(start):
            return Attempt(start, start, None)
        partial.unlink(missing_ok=True)
        return Attempt(0, None, "the server has fewer bytes than the partial file; starting over")
    raise InputError(
        f"{source.url} could not be downloaded: the server answered {error.code} {error.reason}; "
        "if the address has moved, download the files by hand into the data folder "
        "(`nodepiece datasets` lists the folders) and report it to the maintainers of nodepiece"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raise OSErrors of the disk as InputErrors, so that they do not count as a lost connection."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}; make room there or choose another data folder"
        ) from error
