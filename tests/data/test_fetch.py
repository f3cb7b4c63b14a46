"""Downloads from a small local server that can be made to misbehave."""

import gzip
import io
import tarfile
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nodepiece.data import fetch as fetch_module
from nodepiece.data.benchmarks import locate_benchmark
from nodepiece.data.download import RetryPolicy, _refuse_plain_http
from nodepiece.data.fetch import RECEIPT, FetchProgress, FetchReport, fetch_benchmark
from nodepiece.data.releases import Source, load_sources
from nodepiece.data.unpack import unpack
from nodepiece.errors import InputError

TRIPLES = b"a\tlikes\tb\n" * 500  # long enough to break off in the middle
NAMES = ("train", "valid", "test")


@dataclass
class Server:
    """The files that are served, how the server misbehaves, and the requests it received."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    break_after: list[int] = field(default_factory=list)  # bytes sent; one for each answer to come
    answers: list[int] = field(default_factory=list)  # statuses of the answers to come
    knows_ranges: bool = True
    announces: bool = True  # whether there is a Content-Length
    extra_length: int = 0  # added to the Content-Length announced
    requests: list[tuple[str, str | None]] = field(default_factory=list)  # path, Range

    @property
    def ranges(self) -> list[str]:
        return [asked for _, asked in self.requests if asked is not None]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            state.requests.append((self.path, asked))
            content = state.files.get(self.path)
            status = state.answers.pop(0) if state.answers else 200
            if content is None or status != 200:
                self.send_error(status if content is not None else 404)
                return
            start = 0
            if asked and state.knows_ranges:
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(content)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206)
                whole = f"bytes {start}-{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", whole)
            else:
                self.send_response(200)
            body = content[start:]
            announced = len(body) + state.extra_length
            if state.announces:
                self.send_header("Content-Length", str(announced))
            self.end_headers()
            limit = state.break_after.pop(0) if state.break_after else len(body)
            self.wfile.write(body[: min(limit, announced)])

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output quiet."""

    http_server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http_server.daemon_threads = True
    state.address = f"http://127.0.0.1:{http_server.server_port}"
    thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    http_server.shutdown()
    thread.join()
    http_server.server_close()


def blob(content: bytes) -> str:
    return sha1(b"blob %d\0" % len(content) + content).hexdigest()


def umls_sources(server: Server, *, size: bool = True, checksum: bool = True) -> tuple[Source, ...]:
    """UMLS as three plain files of the server: a long train, a short valid and test."""
    for name in NAMES:
        server.files[f"/{name}.txt"] = TRIPLES if name == "train" else TRIPLES[:30]
    return tuple(
        Source(
            f"{server.address}/{name}.txt",
            blob(server.files[f"/{name}.txt"]) if checksum else None,
            len(server.files[f"/{name}.txt"]) if size else None,
            f"{name}.tsv",
        )
        for name in NAMES
    )


def archive_source(server: Server, path: str, content: bytes) -> tuple[Source, ...]:
    server.files[path] = content
    return (Source(server.address + path, blob(content), len(content), None),)


def tar_gz(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@dataclass
class Fetch:
    """One call of fetch_benchmark with waits noted instead of waited."""

    sources: tuple[Source, ...]
    name: str = "umls"
    unchecked: bool = False
    waits: list[float] = field(default_factory=list)
    reports: list[FetchProgress] = field(default_factory=list)

    def run(self, into: Path, tries: int = 3) -> FetchReport:
        return fetch_benchmark(
            self.name,
            into=into,
            progress=self.reports.append,
            unchecked=self.unchecked,
            sources={self.name: self.sources},
            retry=RetryPolicy(tries=tries, timeout=5, sleep=self.waits.append),
        )


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_fetched_benchmark_is_found_and_holds_the_served_bytes(
    server: Server, tmp_path: Path
) -> None:
    fetch = Fetch(umls_sources(server))

    report = fetch.run(tmp_path)

    assert report == FetchReport("umls", tmp_path / "umls", len(TRIPLES) + 60, (), was_there=False)
    assert report.caution is None
    assert locate_benchmark("umls", data=tmp_path).folder == tmp_path / "umls"
    assert (tmp_path / "umls" / "train.tsv").read_bytes() == TRIPLES
    assert visible(tmp_path / "umls") == [RECEIPT, "test.tsv", "train.tsv", "valid.tsv"]
    assert list(tmp_path.iterdir()) == [tmp_path / "umls"]  # no download is left behind


def test_progress_tells_files_bytes_and_totals(server: Server, tmp_path: Path) -> None:
    fetch = Fetch(umls_sources(server))
    fetch.run(tmp_path)
    assert [report.file_number for report in fetch.reports] == [1, 1, 2, 2, 3, 3]
    last_of_train = fetch.reports[1]
    total = len(TRIPLES)
    assert last_of_train == FetchProgress("umls", "train.tsv", 1, 3, total, total)


def test_a_download_that_breaks_off_goes_on_where_it_stopped(
    server: Server, tmp_path: Path
) -> None:
    server.break_after = [1000, 700]
    fetch = Fetch(umls_sources(server))

    fetch.run(tmp_path)

    assert server.ranges == ["bytes=1000-", "bytes=1700-"]
    assert fetch.waits == [1.0, 1.0]  # each try brought something, so the wait does not grow
    assert (tmp_path / "umls" / "train.tsv").read_bytes() == TRIPLES
    assert any("trying again in 1 s" in report.remark for report in fetch.reports)


def test_giving_up_keeps_the_partial_file_and_the_next_call_resumes_it(
    server: Server, tmp_path: Path
) -> None:
    fetch = Fetch(umls_sources(server))
    server.break_after = [1000, 0, 0, 0]
    with pytest.raises(InputError, match=r"after 3 tries.*1,000 bytes are kept.*again"):
        fetch.run(tmp_path)
    assert fetch.waits == [1.0, 2.0, 4.0]
    assert visible(tmp_path) == []

    server.requests.clear()
    fetch.run(tmp_path)

    assert server.requests[0] == ("/train.txt", "bytes=1000-")
    assert (tmp_path / "umls" / "train.tsv").read_bytes() == TRIPLES


def test_ctrl_c_keeps_what_arrived_and_shows_nothing(server: Server, tmp_path: Path) -> None:
    sources = umls_sources(server)

    def interrupt(progress: FetchProgress) -> None:
        if progress.file == "valid.tsv" and progress.num_bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_benchmark("umls", into=tmp_path, progress=interrupt, sources={"umls": sources})
    assert visible(tmp_path) == []

    server.requests.clear()
    Fetch(sources).run(tmp_path)

    assert server.requests == [("/test.txt", None)]  # train was whole, valid had all its bytes
    assert (tmp_path / "umls" / "valid.tsv").read_bytes() == TRIPLES[:30]


def test_a_server_without_ranges_is_asked_from_the_start_again(
    server: Server, tmp_path: Path
) -> None:
    server.knows_ranges = False
    server.break_after = [1000]
    Fetch(umls_sources(server)).run(tmp_path)
    assert server.ranges == ["bytes=1000-"]
    assert (tmp_path / "umls" / "train.tsv").read_bytes() == TRIPLES


def test_a_server_without_ranges_that_always_breaks_off_is_given_up(
    server: Server, tmp_path: Path
) -> None:
    server.knows_ranges = False
    server.break_after = [1000] * 20
    with pytest.raises(InputError, match="after 3 tries"):
        Fetch(umls_sources(server)).run(tmp_path)
    assert len(server.requests) == 4


@pytest.mark.parametrize("size", [True, False], ids=["size known", "size unknown"])
def test_too_long_a_content_length_does_no_harm_if_the_content_is_right(
    server: Server, tmp_path: Path, size: bool
) -> None:
    server.extra_length = 100
    Fetch(umls_sources(server, size=size)).run(tmp_path)
    assert (tmp_path / "umls" / "train.tsv").read_bytes() == TRIPLES


def test_bytes_cut_off_by_too_short_a_content_length_are_asked_for_again(
    server: Server, tmp_path: Path
) -> None:
    server.extra_length = -10
    fetch = Fetch(umls_sources(server))

    # Every answer lacks its last ten bytes, so the last ten bytes never arrive.
    with pytest.raises(InputError, match="after 3 tries"):
        fetch.run(tmp_path)
    server.extra_length = 0
    fetch.run(tmp_path)

    assert (tmp_path / "umls" / "train.tsv").read_bytes() == TRIPLES


def test_too_short_a_content_length_is_a_mismatch_if_the_size_is_unknown(
    server: Server, tmp_path: Path
) -> None:
    server.extra_length = -10
    sources = umls_sources(server, size=False)
    with pytest.raises(InputError, match=f"expected git blob {sources[0].git_blob}"):
        Fetch(sources).run(tmp_path)
    assert visible(tmp_path) == []


def test_wrong_bytes_are_refused_and_not_kept(server: Server, tmp_path: Path) -> None:
    sources = umls_sources(server)
    wrong = TRIPLES.replace(b"likes", b"hates")
    server.files["/train.txt"] = wrong
    with pytest.raises(InputError) as caught:
        Fetch(sources).run(tmp_path)
    assert blob(TRIPLES) in str(caught.value)
    assert blob(wrong) in str(caught.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_longer_than_known_is_refused(server: Server, tmp_path: Path) -> None:
    sources = umls_sources(server)
    server.files["/train.txt"] = TRIPLES + b"more\n"
    with pytest.raises(InputError, match="is not the file that was published"):
        Fetch(sources).run(tmp_path)


def test_a_missing_page_is_an_error_at_once(server: Server, tmp_path: Path) -> None:
    sources = umls_sources(server)
    del server.files["/train.txt"]
    fetch = Fetch(sources)
    with pytest.raises(InputError, match=r"answered 404.*by hand"):
        fetch.run(tmp_path)
    assert fetch.waits == []


def test_a_busy_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.answers = [503, 429]
    fetch = Fetch(umls_sources(server))
    fetch.run(tmp_path)
    assert fetch.waits == [2.0, 4.0]


def test_nobody_listening_is_given_up_after_the_tries(tmp_path: Path) -> None:
    source = Source("http://127.0.0.1:9/train.txt", blob(TRIPLES), None, "train.tsv")
    with pytest.raises(InputError, match="after 3 tries"):
        Fetch((source,)).run(tmp_path)


def test_a_download_without_a_checksum_says_so(server: Server, tmp_path: Path) -> None:
    fetch = Fetch(umls_sources(server, size=False, checksum=False), unchecked=True)
    server.break_after = [1000]
    first = fetch.run(tmp_path)
    assert len(first.unchecked) == 3
    assert first.caution is not None and "could not be checked" in first.caution
    assert fetch.run(tmp_path).unchecked == first.unchecked  # remembered by the receipt


def test_a_partial_file_that_is_already_whole_is_recognised(server: Server, tmp_path: Path) -> None:
    downloads = tmp_path / ".downloads" / "umls"
    downloads.mkdir(parents=True)
    (downloads / "train.tsv.partial").write_bytes(TRIPLES)
    Fetch(umls_sources(server, size=False, checksum=False), unchecked=True).run(tmp_path)
    assert server.requests[0] == ("/train.txt", f"bytes={len(TRIPLES)}-")
    assert (tmp_path / "umls" / "train.tsv").read_bytes() == TRIPLES


def test_fetching_again_downloads_nothing_unless_a_file_changed(
    server: Server, tmp_path: Path
) -> None:
    fetch = Fetch(umls_sources(server))
    fetch.run(tmp_path)
    server.requests.clear()
    assert fetch.run(tmp_path).was_there
    assert server.requests == []

    (tmp_path / "umls" / "train.tsv").write_bytes(b"damaged")
    assert not fetch.run(tmp_path).was_there
    assert (tmp_path / "umls" / "train.tsv").read_bytes() == TRIPLES


def test_a_folder_of_the_users_own_is_not_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "umls").mkdir()
    (tmp_path / "umls" / "mine.txt").write_text("keep me")
    with pytest.raises(InputError, match="was not fetched by this command"):
        Fetch(umls_sources(server)).run(tmp_path)
    assert server.requests == []
    assert (tmp_path / "umls" / "mine.txt").read_text() == "keep me"


def test_only_the_expected_files_leave_an_archive(server: Server, tmp_path: Path) -> None:
    members = {f"UMLS/{name}.txt": TRIPLES for name in NAMES} | {"UMLS/run.sh": b"rm -rf /"}
    Fetch(archive_source(server, "/umls.tar.gz", tar_gz(members))).run(tmp_path)
    assert visible(tmp_path / "umls") == [RECEIPT, "test.txt", "train.txt", "valid.txt"]


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/outside.txt", "a/../../outside.txt"])
def test_an_archive_that_reaches_out_of_its_folder_is_refused(
    server: Server, tmp_path: Path, path: str
) -> None:
    members = {f"{name}.txt": TRIPLES for name in NAMES} | {path: b"gotcha"}
    into = tmp_path / "data"
    with pytest.raises(InputError, match="leads out of its folder"):
        Fetch(archive_source(server, "/umls.tar.gz", tar_gz(members))).run(into)
    assert visible(into) == []
    assert not list(tmp_path.rglob("outside.txt"))


def test_a_link_under_an_expected_name_is_refused(server: Server, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in NAMES:
            entry = tarfile.TarInfo(f"{name}.txt")
            entry.type = tarfile.SYMTYPE
            entry.linkname = "/etc/passwd"
            archive.addfile(entry)
    with pytest.raises(InputError, match="is not a plain file"):
        Fetch(archive_source(server, "/umls.tar.gz", buffer.getvalue())).run(tmp_path)
    assert visible(tmp_path) == []


def test_a_truncated_archive_is_refused_and_not_kept(server: Server, tmp_path: Path) -> None:
    content = tar_gz({f"{name}.txt": TRIPLES for name in NAMES})[:60]
    with pytest.raises(InputError, match="cannot be unpacked"):
        Fetch(archive_source(server, "/umls.tar.gz", content)).run(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_zip_of_ogb_is_unpacked_into_its_own_layout(server: Server, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    files = [f"split/time/{name}.pt" for name in NAMES]
    files += ["mapping/nodeidx2entityid.csv.gz", "mapping/reltype2relid.csv.gz"]
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in [*files, "raw/edge.csv.gz"]:
            archive.writestr(f"wikikg-v2/{file}", b"content")
    sources = archive_source(server, "/wikikg-v2.zip", buffer.getvalue())
    report = Fetch(sources, name="ogbl-wikikg2").run(tmp_path)
    stored = {p.relative_to(report.folder).as_posix() for p in report.folder.rglob("*.*")}
    assert stored == {*files, RECEIPT}


def test_interrupted_placing_leaves_nothing_visible_and_no_need_to_download_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = Fetch(umls_sources(server))

    def interrupted(path: Path) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(fetch_module, "sha256_of", interrupted)
        fetch.run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".downloads"]

    server.requests.clear()
    fetch.run(tmp_path)
    assert server.requests == []
    assert visible(tmp_path) == ["umls"]


def test_an_inductive_benchmark_is_stored_in_two_folders(server: Server, tmp_path: Path) -> None:
    name = "inductive/wn18rr-v1"
    sources = []
    for half in ("training", "inference"):
        for part in NAMES:
            server.files[f"/{half}/{part}.txt"] = TRIPLES
            url = f"{server.address}/{half}/{part}.txt"
            sources.append(Source(url, blob(TRIPLES), None, f"{half}/{part}.tsv"))
    Fetch(tuple(sources), name=name).run(tmp_path)
    assert locate_benchmark(name, data=tmp_path).folder == tmp_path / name
    assert [path.name for path in tmp_path.iterdir()] == ["inductive"]


def test_a_folder_that_cannot_be_written_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="choose another data folder"):
        Fetch(umls_sources(server)).run(tmp_path / "file")


def test_a_release_without_a_checksum_is_refused_unless_asked_for(
    server: Server, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="nodepiece datasets fetch umls --unchecked"):
        Fetch(umls_sources(server, checksum=False)).run(tmp_path)
    assert server.requests == []


@pytest.mark.parametrize("announces", [True, False])
def test_a_download_of_unknown_size_stops_at_its_limit(
    server: Server, tmp_path: Path, announces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.data.download.BLOCK", 100)
    server.announces = announces
    (source, *_) = umls_sources(server, size=False)
    with pytest.raises(InputError, match=r"and 1,000 at most were expected"):
        Fetch((replace(source, max_bytes=1000),)).run(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def bomb(kind: str) -> bytes:
    """An archive whose train.txt is 20 MB of zeros, in some 20 kB."""
    members = {f"{name}.txt": bytes(20_000_000 if name == "train" else 9) for name in NAMES}
    if kind == "tar.gz":
        return tar_gz(members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_an_archive_that_unpacks_to_more_than_stated_writes_nothing(
    tmp_path: Path, kind: str
) -> None:
    archive = tmp_path / f"umls.{kind}"
    archive.write_bytes(bomb(kind))
    assert archive.stat().st_size < 50_000
    wanted = {name: (f"{name}.txt",) for name in NAMES}
    (tmp_path / "into").mkdir()
    with pytest.raises(InputError, match=r"more than the 1,000,000 bytes that were expected"):
        unpack(archive, wanted, tmp_path / "into", max_bytes=1_000_000)
    assert not any((tmp_path / "into").iterdir())


def test_an_unwanted_member_is_skipped_up_to_the_stated_size(tmp_path: Path) -> None:
    archive = tmp_path / "umls.tar.gz"
    archive.write_bytes(tar_gz({"notes": bytes(20_000_000), "train.txt": b"a"}))
    with pytest.raises(InputError, match="more than the 1,000,000 bytes"):
        unpack(archive, {"train": ("train.txt",)}, tmp_path / "into", max_bytes=1_000_000)


def test_an_archive_that_leads_before_its_beginning_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "umls.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("train.txt", b"a")
        made.getinfo("train.txt").header_offset = 2**32 - 2
    with pytest.raises(InputError, match="cannot be unpacked"):
        unpack(archive, {"train": ("train.txt",)}, tmp_path / "into", max_bytes=1_000_000)


def test_an_archive_of_too_many_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.data.unpack.MAX_MEMBERS", 3)
    archive = tmp_path / "umls.tar.gz"
    archive.write_bytes(tar_gz({f"{i}.txt": b"" for i in range(4)}))
    with pytest.raises(InputError, match="more than 3 files"):
        unpack(archive, {"0": ("0.txt",)}, tmp_path / "into", max_bytes=1_000_000)


def test_an_extended_header_of_many_bytes_is_not_read_into_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 40_000_000
    archive = tmp_path / "umls.tar.gz"
    archive.write_bytes(gzip.compress(header.tobuf() + bytes(40_000_000)))
    tracemalloc.start()
    with pytest.raises(InputError):
        unpack(archive, {"0": ("0.txt",)}, tmp_path / "into", max_bytes=100_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


def test_a_redirection_from_https_to_http_is_refused() -> None:
    source = Source("https://there/train.txt", None, None, "train.tsv")
    with pytest.raises(InputError, match="is redirected to http://elsewhere"):
        _refuse_plain_http(source, "http://elsewhere/train.txt")


def test_every_source_is_encrypted_and_has_a_size_limit() -> None:
    for rows in load_sources().values():
        for row in rows:
            assert row.url.startswith("https://")
            assert 0 < row.limit < 10**10


def test_every_source_is_an_archive_or_has_a_name_to_be_stored_under() -> None:
    for name, rows in load_sources().items():
        for row in rows:
            assert row.stored_as or row.url.endswith((".tar.gz", ".zip")), name
