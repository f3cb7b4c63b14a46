"""A run killed without warning, twice, ends where the uninterrupted one does."""

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import torch
from tests.tasks.couples import couples, experiment

from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment

EXPERIMENT = experiment(
    epochs=8,
    shuffle_anchors=True,
    resample_relations=True,
    validate_every=1,
    patience=6,
    metric="hits@10",
    checkpoint_seconds=0.0,
)

# Dies in the middle of epoch 3, or when epoch 5 is in the history but in no checkpoint yet.
PROGRAM = """
    import os, signal, sys
    from pathlib import Path
    import torch
    from tests.tasks.couples import couples
    from tests.tasks.test_killed import EXPERIMENT
    from nodepiece.tasks.link_prediction import LinkPrediction
    from nodepiece.tasks.runner import RunOptions, run_experiment

    class Killer:
        def on_step(self, epoch, done, total):
            if sys.argv[2] == "step" and (epoch, done) == (2, 3):
                os.kill(os.getpid(), signal.SIGKILL)

        def on_epoch(self, record, progress):
            if sys.argv[2] == "epoch" and record["epoch"] == 5:
                os.kill(os.getpid(), signal.SIGKILL)

    torch.set_num_threads(1)
    options = RunOptions(Path(sys.argv[1]), torch.device("cpu"), resume=True, callbacks=(Killer(),))
    run_experiment(LinkPrediction(EXPERIMENT, couples()), options)
"""


def run_and_be_killed(folder: Path, moment: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(folder), moment]
    root = Path(__file__).parents[2]
    assert subprocess.run(command, cwd=root, timeout=600).returncode == -signal.SIGKILL


def epochs_in_history(folder: Path) -> list[int]:
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [json.loads(line)["epoch"] for line in lines]


def test_a_run_killed_twice_ends_where_the_uninterrupted_one_does(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    task = LinkPrediction(EXPERIMENT, couples())
    expected = run_experiment(task, RunOptions(whole, torch.device("cpu")))
    assert expected is not None

    run_and_be_killed(killed, "step")
    assert epochs_in_history(killed) == [1, 2]
    run_and_be_killed(killed, "epoch")
    assert epochs_in_history(killed) == [1, 2, 3, 4, 5]
    options = RunOptions(killed, torch.device("cpu"), resume=True)
    metrics = run_experiment(task, options)

    assert metrics is not None
    for found in (metrics, expected):
        del found["seconds"], found["peak_memory"]
    assert metrics == expected
    assert epochs_in_history(killed) == epochs_in_history(whole)
    for name in ("model.safetensors", "config.toml"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
