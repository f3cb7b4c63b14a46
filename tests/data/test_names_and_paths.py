"""What is both a path here and the name of a known dataset."""

from pathlib import Path

import pytest
from tests.data.written_facts import written

from nodepiece.data.blocks import DETECT_EVERYTHING
from nodepiece.data.open import (
    open_dataset,
    open_graph,
    open_inductive,
    open_labelled,
    open_out_of_sample,
)
from nodepiece.errors import InputError

REFUSAL = r"countries is a folder here and also the name of a known dataset; write \./countries for"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the current one with the name of a known dataset."""
    (tmp_path / "countries").mkdir()
    written(tmp_path / "countries", "a\tlikes\tb\n", "train.tsv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "read",
    [
        open_dataset,
        open_inductive,
        open_labelled,
        open_out_of_sample,
        lambda source: open_graph(source, options=DETECT_EVERYTHING, data=None),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_folder_with_the_name_of_a_known_dataset_is_refused(read: object) -> None:
    with pytest.raises(InputError, match=REFUSAL):
        read("countries")  # type: ignore[operator]


@pytest.mark.usefixtures("folder")
def test_with_a_dot_and_a_slash_the_folder_is_read() -> None:
    assert open_dataset("./countries").train.num_triples == 1


def test_with_the_folder_of_datasets_the_known_one_is_read(folder: Path) -> None:
    assert open_dataset("countries", data=folder).train.num_triples > 1000
