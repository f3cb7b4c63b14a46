"""A damaged run folder is refused with one sentence that names the file and says what to do."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nodepiece as library

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece, Outcome

FILES = (
    "config.toml",
    "model.safetensors",
    "facts/train.npy",
    "facts/valid.npy",
    "facts/test.npy",
    "names/nodes.arrow",
    "vocabulary/vocabulary.json",
    "vocabulary/tokens/anchors.npy",
)


def ask(nodepiece: Nodepiece, run: Path) -> Outcome:
    return nodepiece("predict", run, "--head", "Kenya", "--relation", "borders")


def refused(ran: Outcome) -> str:
    """The one sentence."""
    assert ran.status == 2, ran.err
    assert ran.out == ""
    (sentence,) = ran.err.splitlines()
    assert sentence.startswith("error: ")
    return sentence


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_named(nodepiece: Nodepiece, run: Path, file: str) -> None:
    (run / file).unlink()

    sentence = refused(ask(nodepiece, run))

    assert file.split("/")[0].partition(".")[0] in sentence
    assert "again" in sentence or "nodepiece train" in sentence


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("file", FILES)
def test_a_file_that_was_cut_off_is_named(
    nodepiece: Nodepiece, run: Path, file: str, share: float
) -> None:
    whole = (run / file).read_bytes()
    (run / file).write_bytes(whole[: int(len(whole) * share)])

    sentence = refused(ask(nodepiece, run))

    assert file.split("/")[0].partition(".")[0] in sentence
    assert "again" in sentence


def test_settings_that_were_edited_do_not_go_with_the_weights(
    nodepiece: Nodepiece, run: Path
) -> None:
    config = run / "config.toml"
    config.write_text(config.read_text().replace('kind = "complex"', 'kind = "distmult"'))

    assert "config.toml is not the one that model.safetensors was trained with" in refused(
        ask(nodepiece, run)
    )


def test_a_vocabulary_of_another_graph_is_refused(
    nodepiece: Nodepiece, run: Path, vocabulary: Path
) -> None:
    shutil.rmtree(run / "vocabulary")
    shutil.copytree(vocabulary, run / "vocabulary")

    sentence = refused(ask(nodepiece, run))

    assert "run/vocabulary is damaged or of another run" in sentence
    assert "made for another graph" in sentence


def test_facts_that_name_nobody_are_refused(nodepiece: Nodepiece, run: Path) -> None:
    np.save(run / "facts" / "test.npy", np.array([[0, 0, 831]], np.int32))

    assert "test.npy is damaged or of another run (1 triples" in refused(ask(nodepiece, run))


def test_the_weights_of_another_model_are_refused(
    nodepiece: Nodepiece, run: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    library.train("countries", other, overrides=["training.epochs=1", "encoder.dim=8"])
    shutil.copy(other / "model.safetensors", run)

    assert "is not the one that model.safetensors was trained with" in refused(ask(nodepiece, run))


def test_a_folder_that_is_not_a_run_is_refused(nodepiece: Nodepiece, vocabulary: Path) -> None:
    for command in ("predict", "evaluate"):
        sentence = refused(nodepiece(command, vocabulary))
        assert "is not a run (there is no config.toml in it)" in sentence
        assert "nodepiece train EXPERIMENT -o" in sentence
