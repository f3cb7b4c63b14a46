"""The public releases of benchmarks: addresses, sizes and checksums of their files."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, Any

BLOCK = 1 << 20  # bytes read at a time
DEFAULT_LIMIT = 100_000_000  # bytes of a file or of what an archive holds, unless its row says more


@dataclass(frozen=True)
class Source:
    """One file of a public release, pinned to a commit where the release is a repository."""

    url: str
    git_blob: str | None  # git's hash of the content; None: no checksum is published
    num_bytes: int | None  # None: unknown
    stored_as: str | None  # path in the benchmark's folder; None: an archive to unpack
    max_bytes: int = DEFAULT_LIMIT  # accepted where num_bytes is not known
    max_unpacked: int = DEFAULT_LIMIT  # bytes that all files of the archive may have together

    @property
    def limit(self) -> int:
        """The largest number of bytes to download."""
        return self.max_bytes if self.num_bytes is None else self.num_bytes

    @property
    def file_name(self) -> str:
        """The name of the download until the benchmark is complete."""
        return self.stored_as or self.url.rsplit("/", 1)[-1]


def load_sources() -> dict[str, tuple[Source, ...]]:
    """Benchmark -> the files of its public release."""
    return {
        name: tuple(_source(row) for row in rows)
        for name, rows in _load_json("sources.json").items()
    }


def _source(row: Mapping[str, Any]) -> Source:
    return Source(
        row["url"],
        row["git_blob"],
        row["bytes"],
        row["as"],
        row.get("max_bytes", DEFAULT_LIMIT),
        row.get("max_unpacked", DEFAULT_LIMIT),
    )


def load_checksums() -> Mapping[str, str]:
    """Path below the data folder, such as umls/train.tsv.gz -> sha256 of the file."""
    return _load_json("checksums.json")


def _load_json(name: str) -> dict[str, Any]:
    return json.loads(resources.files("nodepiece.data").joinpath(name).read_text("utf-8"))


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_blob_of(content: IO[bytes], num_bytes: int) -> str:
    """Git's blob id of a file of `num_bytes` bytes: SHA-1 of a short header and the content."""
    digest = hashlib.sha1(b"blob %d\0" % num_bytes, usedforsecurity=False)
    while block := content.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()
