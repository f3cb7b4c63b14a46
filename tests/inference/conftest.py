"""A small run after one epoch, for tests of its folder and of updates."""

import shutil
from pathlib import Path

import pytest
import torch
from tests.tasks.couples import couples, experiment

from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    task = LinkPrediction(experiment(epochs=1), couples())
    run_experiment(task, RunOptions(folder, torch.device("cpu")))
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> LinkRun:
    return load_links(shutil.copytree(trained, tmp_path / "run"))
