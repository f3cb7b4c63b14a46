"""A batch is committed completely or not at all, whenever the process is killed."""

import os
import subprocess
import sys
from pathlib import Path

import torch
from tests.tasks.couples import couples, experiment

from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment

ROOT = Path(__file__).parents[2]


def test_after_every_kill_the_run_is_at_the_end_of_some_batch(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    task = LinkPrediction(experiment(epochs=1), couples())
    run_experiment(task, RunOptions(folder, torch.device("cpu")))
    command = [sys.executable, "-m", "tests.inference.killed_updates", str(folder), "15"]
    # One thread everywhere: threads do not survive a fork.
    alone = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "NUMBA_THREADING_LAYER": "workqueue"}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | alone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    num_batches, num_states, base = done.stdout.split()
    assert int(num_batches) > 8 and int(num_states) > 4 and base > "base-000003"
