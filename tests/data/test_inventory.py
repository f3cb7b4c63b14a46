import gzip
import json
from pathlib import Path

import pytest

from nodepiece.data import inventory
from nodepiece.data.benchmarks import BENCHMARKS, cache_folder
from nodepiece.data.inventory import BenchmarkStatus, list_benchmarks, verify_benchmarks
from nodepiece.data.releases import Source
from nodepiece.errors import InputError

FACT = b"a\tlikes\tb\n"


@pytest.fixture(autouse=True)
def no_other_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODEPIECE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def status(data: Path, name: str) -> BenchmarkStatus:
    return next(found for found in list_benchmarks(data) if found.name == name)


def states(names: list[str], data: Path) -> dict[str, str]:
    return {check.path.name: check.state for check in verify_benchmarks(names, data)}


def test_all_benchmarks_are_listed_found_or_not(tmp_path: Path) -> None:
    found = list_benchmarks(tmp_path)
    assert [one.name for one in found] == list(BENCHMARKS)
    assert all(one.folder is None and one.sizes == {} for one in found)


def test_facts_are_counted_with_or_without_a_last_newline(tmp_path: Path) -> None:
    write(tmp_path / "umls/train.tsv.gz", FACT * 3)
    write(tmp_path / "umls/valid.txt", FACT * 2 + FACT.strip())
    write(tmp_path / "umls/test.tsv", b"")
    umls = status(tmp_path, "umls")
    assert umls.folder == tmp_path / "umls"
    assert umls.sizes == {"train": 3, "valid": 3, "test": 0}
    assert umls.problems == ()


def test_facts_of_unseen_nodes_and_labelled_nodes_are_counted(tmp_path: Path) -> None:
    unseen = json.dumps({"n": [["n", "r", "a"], ["a", "r", "n"]], "m": [["m", "r", "a"]]}).encode()
    write(tmp_path / "own18rr/train.tsv", FACT)
    write(tmp_path / "own18rr/valid.json.gz", unseen)
    write(tmp_path / "own18rr/test.json", unseen)
    write(tmp_path / "wd50k-nc/train_labels.json", b'{"a": ["x", "y"], "b": []}')
    assert status(tmp_path, "own18rr").sizes == {"train": 1, "valid": 3, "test": 3}
    assert status(tmp_path, "wd50k-nc").sizes == {"train_labels": 2}


def test_missing_and_damaged_files_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "umls/train.tsv.gz", FACT)
    (tmp_path / "umls/valid.tsv.gz").write_bytes(gzip.compress(FACT)[:12])
    umls = status(tmp_path, "umls")
    assert umls.sizes == {"train": 1}
    assert umls.problems[0] == "lacks test"
    assert umls.problems[1].startswith("valid.tsv.gz cannot be read")


def test_a_benchmark_that_is_not_there_is_verified_as_missing(tmp_path: Path) -> None:
    assert set(states(["umls"], tmp_path).values()) == {"missing"}
    assert states([], tmp_path) == {}  # without names only what is found is verified


def test_an_unknown_name_is_not_verified(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean umls"):
        verify_benchmarks(["uml"], tmp_path)


def test_a_file_with_the_content_of_the_release_is_ok_compressed_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # git hash-object of "a<TAB>likes<TAB>b<NEWLINE>"
    blob = "0701f0678c3a75326c49d607fc56d8fdff2f944c"
    rows = [Source("", blob, None, f"{part}.tsv") for part in ("train", "valid", "test")]
    monkeypatch.setattr(inventory, "load_sources", lambda: {"codex-s": rows})
    write(tmp_path / "codex-s/train.tsv", FACT)
    write(tmp_path / "codex-s/valid.tsv.gz", FACT)
    write(tmp_path / "codex-s/test.txt", FACT * 2)
    assert states(["codex-s"], tmp_path) == {
        "train.tsv": "ok",
        "valid.tsv.gz": "ok",
        "test.txt": "changed",
    }


def test_our_copy_is_held_against_its_sha256(tmp_path: Path) -> None:
    write(tmp_path / "umls/train.tsv.gz", FACT)
    write(tmp_path / "umls/valid.txt", FACT)
    assert states(["umls"], tmp_path) == {
        "train.tsv.gz": "changed",
        "valid.txt": "unchecked",  # unpacked by hand from an archive whose members have no sums
        "test.tsv.gz": "missing",
    }


def test_a_changed_file_is_reported_with_both_sums(tmp_path: Path) -> None:
    write(tmp_path / "umls/train.tsv.gz", FACT)
    [changed] = [c for c in verify_benchmarks(["umls"], tmp_path) if c.state == "changed"]
    assert "expected sha256 11e8e7be6f08605a" in changed.remark
    assert "found sha256 " in changed.remark


def test_a_fetched_file_is_held_against_its_receipt(tmp_path: Path) -> None:
    folder = cache_folder() / "umls"
    for part in ("train", "valid", "test"):
        write(folder / f"{part}.txt", FACT)
    # sha256sum of "a<TAB>likes<TAB>b<NEWLINE>"
    checksum = "e346fb0987b45fd1d402b08e2412b30badd24e676f18b1e9f1fa1dfec5061f85"
    sums = {"train.txt": checksum, "valid.txt": "0" * 64}
    receipt = {"sha256": sums, "unchecked": []}
    (folder / "fetched.json").write_text(json.dumps(receipt))
    assert states([], tmp_path) == {
        "train.txt": "ok",
        "valid.txt": "changed",
        "test.txt": "unchecked",
    }


@pytest.mark.data
def test_the_real_copies_have_the_known_counts(benchmark_data: Path) -> None:
    found = [one for one in list_benchmarks(benchmark_data) if one.folder is not None]
    assert {one.name: one.sizes for one in found} == {
        one.name: one.benchmark.sizes for one in found
    }


@pytest.mark.data
def test_the_real_copies_are_unchanged(benchmark_data: Path) -> None:
    checks = verify_benchmarks(["umls", "own18rr", "inductive/wn18rr-v1"], benchmark_data)
    assert [check for check in checks if check.state != "ok"] == []
