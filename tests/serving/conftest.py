"""Runs of the couples, trained once."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import torch
from tests.serving.live_server import client_of
from tests.tasks.couples import couples, experiment

from nodepiece.inference.links import LinkRun
from nodepiece.inference.run import load_links
from nodepiece.serving.settings import ServeSettings
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "couples"
    task = LinkPrediction(experiment(epochs=3), couples())
    run_experiment(task, RunOptions(folder, torch.device("cpu")))
    return folder


@pytest.fixture(scope="module")
def run(trained: Path) -> LinkRun:
    """A run that no test updates."""
    return load_links(trained)


@pytest.fixture(scope="module")
def client(run: LinkRun) -> Iterator[httpx.Client]:
    """A client of a server of `run`, which is read-only."""
    with client_of(run) as client:
        yield client


@pytest.fixture
def own_run(trained: Path, tmp_path: Path) -> LinkRun:
    """A copy of the run, which a test may update."""
    return load_links(shutil.copytree(trained, tmp_path / "couples"))


@pytest.fixture
def writing(own_run: LinkRun) -> Iterator[httpx.Client]:
    """A client that may update `own_run`."""
    with client_of(own_run, settings=ServeSettings(writable=True)) as client:
        yield client
