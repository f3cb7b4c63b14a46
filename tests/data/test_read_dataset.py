"""Folders with a file for each split."""

import gzip
from pathlib import Path

import pytest
from tests.data.written_facts import facts_of, written

from nodepiece.data.read import read_dataset, read_dataset_with_reports, read_graph
from nodepiece.errors import InputError
from nodepiece.tasks.link_prediction import describe_dataset

TRAIN = "a\tr\tb\nb\tq\tc\n"


def test_the_splits_share_the_ids_of_train(tmp_path: Path) -> None:
    written(tmp_path, TRAIN, "train.tsv")
    written(tmp_path, "c\tr\ta\n", "valid.tsv")
    written(tmp_path, "b\tr\ta\nc\tq\tb\n", "test.tsv")
    dataset = read_dataset(tmp_path)
    assert dataset.train.triples.tolist() == [[0, 0, 1], [1, 1, 2]]
    assert dataset.valid.tolist() == [[2, 0, 0]]
    assert dataset.test.tolist() == [[1, 0, 0], [2, 1, 1]]
    assert dataset.num_unseen == {"valid": 0, "test": 0}


def test_facts_with_names_that_train_lacks_are_dropped_and_counted(tmp_path: Path) -> None:
    written(tmp_path, TRAIN, "train.tsv")
    written(tmp_path, "a\tr\tnew\na\tq\tc\n", "valid.tsv")
    written(tmp_path, "a\tnew\tb\nnew\tr\tb\n", "test.tsv")
    dataset = read_dataset(tmp_path)
    assert dataset.valid.tolist() == [[0, 1, 2]]
    assert dataset.test.shape == (0, 3)
    assert dataset.num_unseen == {"valid": 1, "test": 2}


def test_formats_may_differ_between_splits(tmp_path: Path) -> None:
    written(tmp_path, gzip.compress(TRAIN.encode()), "train.txt.gz")
    written(tmp_path, "head,relation,tail\na,r,c\n", "test.csv")
    assert read_dataset(tmp_path).test.tolist() == [[0, 0, 2]]


@pytest.mark.parametrize("stem", ["valid", "validation", "dev"])
def test_valid_goes_by_several_names(tmp_path: Path, stem: str) -> None:
    written(tmp_path, TRAIN, "train.tsv")
    written(tmp_path, "a\tr\tc\n", f"{stem}.tsv")
    assert len(read_dataset(tmp_path).valid) == 1


def test_missing_splits_are_empty(tmp_path: Path) -> None:
    written(tmp_path, TRAIN, "train.tsv")
    dataset = read_dataset(tmp_path)
    assert dataset.valid.shape == dataset.test.shape == (0, 3)


def test_a_single_file_is_all_train(tmp_path: Path) -> None:
    dataset = read_dataset(written(tmp_path, TRAIN, "my.graph.tsv.gz"))
    assert (dataset.name, dataset.train.num_triples, len(dataset.test)) == ("my.graph", 2, 0)


def test_a_dataset_is_named_after_its_folder(tmp_path: Path) -> None:
    (tmp_path / "countries").mkdir()
    written(tmp_path / "countries", TRAIN, "train.tsv")
    assert read_dataset(tmp_path / "countries").name == "countries"


def test_the_graph_of_a_folder_is_its_training_part(tmp_path: Path) -> None:
    written(tmp_path, TRAIN, "train.tsv")
    written(tmp_path, "x\ty\tz\n", "test.tsv")
    assert facts_of(read_graph(tmp_path)) == [("a", "r", "b"), ("b", "q", "c")]


@pytest.mark.parametrize(
    ("first", "second", "split"),
    [
        ("train.csv", "train.tsv", "train"),
        ("dev.tsv", "valid.tsv", "valid"),
        ("test.tsv", "test.tsv.gz", "test"),
    ],
)
def test_two_files_for_one_split_are_an_error_that_names_both(
    tmp_path: Path, first: str, second: str, split: str
) -> None:
    for name in {"train.tsv", first, second}:
        written(tmp_path, TRAIN, name)
    with pytest.raises(InputError, match=f"two files for the {split} split: {first} and {second}"):
        read_dataset(tmp_path)


def test_a_folder_without_train_is_an_error(tmp_path: Path) -> None:
    written(tmp_path, TRAIN, "test.tsv")
    with pytest.raises(InputError, match=r"has no training file; name it one of train\.tsv"):
        read_dataset(tmp_path)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_dataset(tmp_path / "nowhere")


def test_every_split_has_a_report(tmp_path: Path) -> None:
    written(tmp_path, TRAIN, "train.tsv")
    written(tmp_path, "a\tr\tc\na\tr\tc\n", "test.tsv")
    dataset, reports = read_dataset_with_reports(tmp_path)
    assert list(reports) == ["train", "test"]
    assert (len(dataset.test), reports["test"].num_duplicates) == (1, 1)


def test_facts_stated_twice_are_counted_over_all_splits_and_reported_before_training(
    tmp_path: Path,
) -> None:
    written(tmp_path, TRAIN + TRAIN, "train.tsv")
    written(tmp_path, "c\tr\ta\nc\tr\ta\n", "test.tsv")
    dataset = read_dataset(tmp_path)
    assert dataset.num_repeated == 3
    said = describe_dataset(dataset)
    assert "0 for valid, 1 for test; 3 stated twice are kept once; read as text" in said


def test_while_a_long_file_is_read_the_facts_so_far_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nodepiece.data.read.SECONDS_BETWEEN_LINES", -1.0)
    path = tmp_path / "graph.tsv"
    path.write_text("a\tr\tb\nb\tr\tc\n")

    with caplog.at_level("INFO", "nodepiece.reading"):
        read_graph(path)

    assert caplog.messages == [f"{path}: 2 facts so far"]
