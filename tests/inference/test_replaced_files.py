"""A run that is open while another one takes its place in the folder."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.inference.fresh_vectors import fresh_vectors
from tests.tasks.couples import couples, experiment

from nodepiece.errors import InputError
from nodepiece.inference import run as opening
from nodepiece.inference.graph_updates import UPDATES_FOLDER
from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.inference.update import keep_vectors, update_run
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.run_folder import read_config
from nodepiece.tasks.runner import RunOptions, run_experiment

NEW = [("Ida", "lives in", "town 1"), ("Ida", "married to", "person 3")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, `old` and `new`, with other weights and other tokens."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seed in (("old", 1), ("new", 2)):
        task = LinkPrediction(replace(experiment(epochs=2), seed=seed), couples())
        run_experiment(task, RunOptions(folder / name, torch.device("cpu")))
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained / "old", tmp_path / "run")


def put_in_place(new: Path, folder: Path) -> None:
    """As a training run does that has finished: by a rename."""
    partial = shutil.copytree(new, folder.with_name("partial"))
    folder.rename(folder.with_name("earlier"))
    partial.rename(folder)
    shutil.rmtree(folder.with_name("earlier"))


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("write", [lambda run: update_run(run, add=NEW), keep_vectors])
@pytest.mark.parametrize("is_updated", [False, True])
def test_an_update_of_a_run_that_was_replaced_is_refused_and_writes_nothing(
    folder: Path, trained: Path, write: Callable[[LinkRun], object], is_updated: bool
) -> None:
    run = load_links(folder)
    if is_updated:
        update_run(run, add=[("Jo", "lives in", "town 0")])
    put_in_place(trained / "new", folder)
    before = files_in(folder)
    with pytest.raises(InputError, match=r"were replaced since it was opened; open it again"):
        write(run)
    assert files_in(folder) == before and not (folder / UPDATES_FOLDER).exists()


@pytest.mark.parametrize("is_updated", [False, True])
def test_an_open_run_goes_on_to_answer_by_the_files_it_opened(
    folder: Path, trained: Path, is_updated: bool
) -> None:
    if is_updated:
        update_run(load_links(folder), add=[("Jo", "lives in", "town 0")])
    expected = load_links(folder).with_facts(NEW).node_vectors.clone()
    run = load_links(folder)
    put_in_place(trained / "new", folder)
    assert torch.equal(run.with_facts(NEW).node_vectors, expected)
    assert not torch.equal(load_links(folder).with_facts(NEW).node_vectors[:44], expected[:44])


def test_a_folder_that_is_replaced_while_it_is_opened_is_opened_again(
    folder: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int] = []

    def replaced_after(path: Path) -> object:
        config = read_config(path)
        if not times:
            put_in_place(trained / "new", folder)
        times.append(1)
        return config

    monkeypatch.setattr(opening, "read_config", replaced_after)
    run = load_links(folder)
    assert len(times) == 2 and run.experiment.seed == 2
    torch.testing.assert_close(run.node_vectors, fresh_vectors(run))


def test_the_same_weights_written_again_are_the_same_run(folder: Path, trained: Path) -> None:
    run = load_links(folder)
    put_in_place(trained / "old", folder)
    update_run(run, add=NEW)
    torch.testing.assert_close(load_links(folder).node_vectors, fresh_vectors(run))
