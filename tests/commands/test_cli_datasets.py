"""nodepiece datasets: list, fetch and verify, without a network."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nodepiece.data.fetch import FetchProgress, FetchReport

if TYPE_CHECKING:
    from tests.commands.conftest import Nodepiece


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with a copy of umls that is too short."""
    folder = tmp_path / "data" / "umls"
    folder.mkdir(parents=True)
    for part in ("train", "valid", "test"):
        (folder / f"{part}.tsv.gz").write_bytes(gzip.compress(b"a\tr\tb\n"))
    return folder.parent


def test_plain_datasets_lists_what_is_known_and_where_it_is(
    nodepiece: Nodepiece, data: Path
) -> None:
    ran = nodepiece("datasets", "--data", data)

    assert ran.status == 0
    lines = {line.split()[0]: line for line in ran.out.splitlines() if line.strip()}
    assert "14,505" in lines["fb15k-237"] and lines["fb15k-237"].rstrip().endswith("-")
    assert "(1)" in lines["umls"]
    assert f"(1) {data}" in ran.out
    assert "expected" in ran.out  # umls has too few rows
    assert "nodepiece datasets fetch NAME" in ran.out


def test_the_list_as_json_is_json_and_nothing_else(nodepiece: Nodepiece, data: Path) -> None:
    ran = nodepiece("datasets", "list", "--json", "--data", data)

    rows = {row["name"]: row for row in json.loads(ran.out)}
    assert rows["umls"]["folder"] == str(data / "umls")
    assert rows["umls"]["sizes_found"] == {"train": 1, "valid": 1, "test": 1}
    assert rows["wn18rr"]["folder"] is None
    assert rows["wn18rr"]["num_nodes"] == 40_559


def test_some_can_be_listed_by_name(nodepiece: Nodepiece, data: Path) -> None:
    ran = nodepiece("datasets", "list", "umls", "nations", "--json", "--data", data)

    assert [row["name"] for row in json.loads(ran.out)] == ["umls", "nations"]


def test_verify_tells_changed_files_and_fails(nodepiece: Nodepiece, data: Path) -> None:
    ran = nodepiece("datasets", "verify", "umls", "--data", data)

    assert ran.status == 2
    assert f"changed   {data / 'umls' / 'train.tsv.gz'}" in ran.out
    assert "3 of 3 files are not as published" in ran.err


def test_verify_without_any_benchmark_says_so(nodepiece: Nodepiece) -> None:
    ran = nodepiece("datasets", "verify")

    assert ran.status == 2
    assert "no benchmark was found to verify" in ran.err


@pytest.mark.data
def test_verify_finds_nothing_changed_in_the_published_files(
    nodepiece: Nodepiece, benchmark_data: Path
) -> None:
    ran = nodepiece("datasets", "verify", "umls", "nations", "--data", benchmark_data)

    assert ran.status == 0
    assert "6 ok" in ran.out


def test_fetch_reports_files_remarks_and_the_end(
    nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(name: str, *, into: Path, progress: object, unchecked: bool) -> FetchReport:
        assert callable(progress)
        for num_bytes in (0, 500, 1000):
            progress(FetchProgress(name, "train.txt", 1, 2, num_bytes, 1000))
        progress(FetchProgress(name, "test.txt", 2, 2, 0, 500, "timed out; trying again in 1 s"))
        return FetchReport(name, into / name, 1500, ("http://there/test.txt",), was_there=False)

    monkeypatch.setattr("nodepiece.data.fetch.fetch_benchmark", fetch)

    ran = nodepiece("datasets", "fetch", "umls", "--data", tmp_path)

    assert ran.status == 0
    assert ran.out == f"fetched umls: 1.5 kB into {tmp_path / 'umls'}\n"
    assert ran.err.count("umls 1/2: train.txt") == 1
    assert "timed out; trying again in 1 s" in ran.err
    assert "caution: no checksum is published for http://there/test.txt" in ran.err


def test_fetch_without_a_name_is_refused(nodepiece: Nodepiece) -> None:
    ran = nodepiece("datasets", "fetch")

    assert ran.status == 2
    assert "name what to fetch" in ran.err
