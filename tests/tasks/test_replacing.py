"""A run folder has one writer, and a run is replaced only by a finished one."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tasks.couples import couples, experiment

import nodepiece
from nodepiece import files, locks
from nodepiece.errors import InputError
from nodepiece.files import temporary_sibling
from nodepiece.inference.graph_updates import write_lock
from nodepiece.inference.run import Prediction, Run, load
from nodepiece.inference.update import update_run
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment

EARLIER, LATER = experiment(epochs=2), experiment(epochs=3)


def train(chosen: Experiment, folder: Path, **options: Any) -> dict[str, Any] | None:
    run_options = RunOptions(folder, torch.device("cpu"), **options)
    return run_experiment(LinkPrediction(chosen, couples()), run_options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished run of EARLIER."""
    train(EARLIER, tmp_path / "run")
    return tmp_path / "run"


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def num_epochs(folder: Path) -> int:
    metrics: dict[str, int] = json.loads((folder / "metrics.json").read_text())
    return metrics["epochs"]


def ask(run: Run) -> list[Prediction]:
    return run.predict(head="person 0", relation="lives in")


def after_first_epoch(do: Callable[[], object], *, stop: bool = False) -> Callable[[], bool]:
    """To be asked after every epoch whether to stop; `do` is called the first time."""
    is_first = iter([True, *[False] * 100])

    def ask() -> bool:
        if next(is_first):
            do()
            return stop
        return False

    return ask


def stop_at_once() -> Callable[[], bool]:
    return after_first_epoch(lambda: None, stop=True)


def test_a_run_is_replaced_by_a_finished_one(folder: Path) -> None:
    train(LATER, folder, overwrite=True)
    assert num_epochs(folder) == 3
    assert {path.name for path in folder.parent.iterdir()} == {"run"}
    assert "live" not in files_in(folder) and ".pending" not in files_in(folder)


def test_a_run_that_diverges_leaves_the_earlier_one_and_nothing_else(folder: Path) -> None:
    before = files_in(folder)
    with pytest.raises(InputError, match="training diverged"):
        train(experiment(learning_rate=1e30), folder, overwrite=True)
    assert files_in(folder) == before
    assert {path.name for path in folder.parent.iterdir()} == {"run"}


def test_the_earlier_run_answers_while_the_new_one_trains(folder: Path) -> None:
    opened = load(folder)
    before = ask(opened)
    answers: list[object] = []

    def look() -> None:
        answers.extend([ask(load(folder)), ask(opened)])

    train(LATER, folder, overwrite=True, should_stop=after_first_epoch(look))
    assert answers == [before, before]
    assert ask(load(folder)) != before


def test_an_unfinished_run_that_replaces_another_is_resumed(folder: Path, tmp_path: Path) -> None:
    before = files_in(folder)
    assert train(LATER, folder, overwrite=True, should_stop=stop_at_once()) is None
    assert files_in(folder) == before
    train(LATER, folder, resume=True)
    train(LATER, tmp_path / "whole")
    assert num_epochs(folder) == 3
    for name in ("model.safetensors", "config.toml", "vocabulary/anchors.npy"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"run", "whole"}


def test_what_a_process_left_that_was_killed_at_the_start_goes_though_another_run_is_resumed(
    folder: Path,
) -> None:
    name = temporary_sibling(folder.with_name(".run.unfinished")).name
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = folder.with_name(name.replace(f"-{os.getpid()}-", f"-{ended.pid}-"))
    left.mkdir()
    train(EARLIER, folder, resume=True)
    assert not left.exists()


def test_the_earlier_run_can_be_resumed_beside_an_unfinished_one(folder: Path) -> None:
    before = (folder / "model.safetensors").read_bytes()
    train(LATER, folder, overwrite=True, should_stop=stop_at_once())
    train(EARLIER, folder, resume=True)
    assert (folder / "model.safetensors").read_bytes() == before
    train(LATER, folder, resume=True)
    assert num_epochs(folder) == 3


def test_an_unfinished_run_is_replaced_on_request_when_the_new_one_is_finished(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    train(EARLIER, folder, should_stop=stop_at_once())
    checkpoint = (folder / "checkpoint.safetensors").read_bytes()
    train(LATER, folder, overwrite=True, should_stop=stop_at_once())
    assert (folder / "checkpoint.safetensors").read_bytes() == checkpoint
    train(LATER, folder, overwrite=True)
    assert num_epochs(folder) == 3


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_run_is_not_replaced_unasked(is_finished: bool, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(EARLIER, folder, should_stop=(lambda: False) if is_finished else stop_at_once())
    before = files_in(folder)
    with pytest.raises(InputError, match=r"holds a run already; continue it .*--overwrite"):
        train(LATER, folder)
    assert files_in(folder) == before


def test_in_python_a_run_is_not_replaced_unasked_either(tmp_path: Path) -> None:
    few = ["training.epochs=1", "encoder.dim=8", "training.validate_every=0"]
    nodepiece.train("countries", tmp_path / "run", overrides=few, device="cpu")
    before = files_in(tmp_path / "run")
    with pytest.raises(InputError, match="holds a run already"):
        nodepiece.train("countries", tmp_path / "run", overrides=few, device="cpu")
    assert files_in(tmp_path / "run") == before
    other = [*few, "seed=1"]
    nodepiece.train("countries", tmp_path / "run", overrides=other, device="cpu", overwrite=True)
    assert files_in(tmp_path / "run") != before


def test_a_run_without_a_checkpoint_is_not_replaced_by_resuming(folder: Path) -> None:
    (folder / "checkpoint.safetensors").unlink()
    before = files_in(folder)
    with pytest.raises(InputError, match=r"without a checkpoint.safetensors to continue from"):
        train(EARLIER, folder, resume=True)
    assert files_in(folder) == before


def test_what_a_run_replaced_is_not_taken_for_an_unfinished_one(folder: Path) -> None:
    """As if the process had been killed just after the folders changed places."""
    train(LATER, folder.with_name("new"))
    (folder.with_name("new") / ".pending").touch()
    os.rename(folder, folder.with_name(".run.unfinished"))  # noqa: PTH104
    os.rename(folder.with_name("new"), folder)  # noqa: PTH104
    train(LATER, folder, resume=True)
    assert num_epochs(folder) == 3
    assert ".pending" not in files_in(folder)
    assert {path.name for path in folder.parent.iterdir()} == {"run"}


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}])
def test_a_second_training_of_a_folder_is_refused_and_the_first_ends_well(
    options: dict[str, bool], tmp_path: Path
) -> None:
    folder = tmp_path / "run"

    def train_too() -> None:
        with pytest.raises(InputError, match=r"another process is writing .*run; wait until"):
            train(experiment(epochs=5), folder, **options)

    metrics = train(LATER, folder, should_stop=after_first_epoch(train_too))
    assert metrics is not None
    assert metrics == json.loads((folder / "metrics.json").read_text())
    assert load(folder).evaluate().scores["mrr"] == metrics["mrr"]


def test_a_run_is_not_updated_while_another_one_is_to_replace_it(folder: Path) -> None:
    opened = load(folder)

    def update() -> None:
        with pytest.raises(InputError, match="run is being trained, and an update might be lost"):
            update_run(opened, add=[("new", "lives in", "town 1")])

    train(LATER, folder, overwrite=True, should_stop=after_first_epoch(update))
    assert num_epochs(folder) == 3


@pytest.mark.parametrize("options", [{"overwrite": True}, {"resume": True}])
def test_a_run_is_not_trained_while_it_is_updated(options: dict[str, bool], folder: Path) -> None:
    with write_lock(folder), pytest.raises(InputError, match=r"an update of .*run is under way"):
        train(EARLIER, folder, **options)


def test_a_run_on_a_mount_point_is_not_trained_to_replace_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "mount_points", lambda: {str(folder)})
    with pytest.raises(InputError, match="is a mount point, which cannot be replaced"):
        train(LATER, folder, overwrite=True)


def test_a_run_is_resumed_where_no_file_can_be_made_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    assert train(LATER, folder, should_stop=stop_at_once()) is None

    def refuse(path: Path) -> int | None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(locks, "_acquire", refuse)
    assert train(LATER, folder, resume=True) is not None
