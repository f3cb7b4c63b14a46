from pathlib import Path

import pytest

from nodepiece.data.benchmarks import (
    BENCHMARKS,
    INDUCTIVE,
    benchmark_named,
    cache_folder,
    locate_benchmark,
    search_places,
)
from nodepiece.data.releases import load_sources
from nodepiece.errors import InputError


@pytest.fixture(autouse=True)
def no_other_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own data must not help a test to pass."""
    monkeypatch.delenv("NODEPIECE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write_files(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a\tlikes\tb\n")
    return folder


def test_every_benchmark_has_a_public_release() -> None:
    assert list(load_sources()) == list(BENCHMARKS)


def test_every_file_of_a_release_is_stored_under_a_name_that_is_looked_for() -> None:
    for name, sources in load_sources().items():
        accepted = [file for names in BENCHMARKS[name].layouts[0].files.values() for file in names]
        accepted += ["valid_negatives.tsv", "test_negatives.tsv"]  # see verified_negatives.py
        for source in sources:
            assert source.stored_as is None or source.stored_as in accepted


def test_the_papers_counts_are_those_without_unseen_nodes() -> None:
    evaluated = {
        name: [BENCHMARKS[name].sizes[part] - BENCHMARKS[name].num_unseen[part] for part in parts]
        for name in ("fb15k-237", "wn18rr", "yago3-10")
        for parts in [("valid", "test")]
    }
    assert evaluated == {
        "fb15k-237": [17_526, 20_438],
        "wn18rr": [2_824, 2_924],
        "yago3-10": [4_978, 4_982],
    }


def test_places_are_the_folder_given_then_the_variable_then_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODEPIECE_DATA", "/by/variable")
    assert search_places(tmp_path) == (tmp_path, Path("/by/variable"), cache_folder())
    assert cache_folder() == tmp_path / "cache" / "nodepiece" / "datasets"


def test_without_xdg_the_cache_is_in_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert cache_folder() == Path("/home/ada/.cache/nodepiece/datasets")


@pytest.mark.parametrize("ending", ["tsv.gz", "tsv", "txt", "csv"])
def test_a_benchmark_is_found_in_its_folder(tmp_path: Path, ending: str) -> None:
    files = [f"{part}.{ending}" for part in ("train", "valid", "test")]
    folder = write_files(tmp_path / "umls", *files)
    assert locate_benchmark("umls", data=tmp_path).folder == folder


def test_a_benchmark_is_found_as_its_public_release_has_it(tmp_path: Path) -> None:
    splits = ("train.txt", "valid.txt", "test.txt")
    write_files(tmp_path / "FB15k-237", *splits)
    write_files(tmp_path / "countries" / "countries_S2", *splits)
    write_files(tmp_path / "WN18RR" / "processed", "train.txt", "valid.json", "test.json")
    write_files(
        tmp_path / "wd50k" / "triples",
        "nc_edges.txt",
        *[f"nc_{part}_so_labels.json" for part in ("train", "val", "test")],
    )
    assert locate_benchmark("fb15k-237", data=tmp_path).folder.samefile(tmp_path / "FB15k-237")
    assert (
        locate_benchmark("countries-s2", data=tmp_path).folder
        == tmp_path / "countries/countries_S2"
    )
    assert locate_benchmark("own18rr", data=tmp_path).folder == tmp_path / "WN18RR/processed"
    assert locate_benchmark("wd50k-nc", data=tmp_path).folder == tmp_path / "wd50k/triples"


def test_the_two_graphs_of_grail_are_found_side_by_side(tmp_path: Path) -> None:
    for folder in ("fb237_v1", "fb237_v1_ind"):
        write_files(tmp_path / folder, "train.txt", "valid.txt", "test.txt")
    location = locate_benchmark("inductive/fb15k-237-v1", data=tmp_path)
    assert location.files["training/valid"] == tmp_path / "fb237_v1/valid.txt"
    assert location.files["inference/test"] == tmp_path / "fb237_v1_ind/test.txt"


def test_a_complete_copy_is_preferred_to_an_incomplete_one_found_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "given" / "umls", "train.tsv")
    whole = write_files(tmp_path / "other" / "umls", "train.txt", "valid.txt", "test.txt")
    monkeypatch.setenv("NODEPIECE_DATA", str(tmp_path / "other"))
    assert locate_benchmark("umls", data=tmp_path / "given").folder == whole


def test_one_not_found_is_named_with_places_command_and_files(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        locate_benchmark("umls", data=tmp_path)
    message = str(caught.value)
    assert f"not found in {tmp_path}, {cache_folder()}" in message
    assert "`nodepiece datasets fetch umls`" in message
    assert "umls/ with train.tsv.gz, valid.tsv.gz, test.tsv.gz" in message


def test_an_incomplete_copy_is_reported_with_what_it_lacks(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "umls", "train.tsv", "test.tsv")
    with pytest.raises(InputError, match=f"{folder} lacks valid"):
        locate_benchmark("umls", data=tmp_path)


def test_an_unknown_name_brings_near_ones() -> None:
    with pytest.raises(InputError, match=r"'FB15K237'; did you mean fb15k-237 or"):
        benchmark_named("FB15K237")
    with pytest.raises(InputError, match=r"did you mean inductive/nell-995-v1"):
        benchmark_named("nell")
    with pytest.raises(InputError, match=r"known: fb15k-237, wn18rr"):
        benchmark_named("zzzz")


def test_a_data_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        locate_benchmark("umls", data=tmp_path / "typo")


def test_twelve_inductive_benchmarks_have_six_files_each() -> None:
    inductive = [b for n, b in BENCHMARKS.items() if b.task == INDUCTIVE and "ilpc" not in n]
    assert [len(b.layouts[0].files) for b in inductive] == [6] * 12
