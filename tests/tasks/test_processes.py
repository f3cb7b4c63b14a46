"""Two processes on the CPU train one model together."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.tasks.couples import couples, experiment
from tests.tasks.distributed_training import MEANS, model_of_couples, run, sampled

from nodepiece.errors import InputError
from nodepiece.settings import to_toml
from nodepiece.training.batches import QueryBatch
from nodepiece.training.distribution import Processes, own_gpu
from nodepiece.training.objectives import one_vs_all_loss

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `tests.tasks.distributed_training` leaves behind, and what it says."""
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    place = tmp_path_factory.mktemp("together")
    write_experiment(place)
    command = [*TORCHRUN, "-m", "tests.tasks.distributed_training", str(place)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    (place / "output").write_text(done.stdout)
    return place


def write_experiment(place: Path) -> None:
    """The couples as files, for the command."""
    dataset = couples()
    (place / "couples").mkdir()
    for part in ("train", "valid", "test"):
        facts = dataset.part(part).tolist()
        lines = [f"n{head}\tr{relation}\tn{tail}\n" for head, relation, tail in facts]
        (place / "couples" / f"{part}.tsv").write_text("".join(lines))
    chosen = replace(experiment(epochs=2), dataset=str(place / "couples"))
    (place / "experiment.toml").write_text(to_toml(chosen))


def losses(folder: Path) -> list[float]:
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [json.loads(line)["loss"] for line in lines]


def metrics_in(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return content


def test_the_curves_of_one_and_two_processes_lie_together(folder: Path, tmp_path: Path) -> None:
    run(sampled(), tmp_path / "alone")
    one, two = losses(tmp_path / "alone"), losses(folder / "whole")
    assert len(one) == len(two) == 8
    assert one[-1] < one[0] / 2
    # Another seed of one process is as far away.
    assert two == pytest.approx(one, rel=0.25)
    assert np.mean(two) == pytest.approx(np.mean(one), rel=0.1)


def test_a_run_of_two_processes_is_resumed_to_the_same_weights(folder: Path) -> None:
    names = ("whole", "resumed")
    whole, resumed = (load_file(folder / name / "model.safetensors") for name in names)
    torch.testing.assert_close(resumed, whole, rtol=0, atol=0)
    assert losses(folder / "resumed") == losses(folder / "whole")


@pytest.mark.parametrize(("name", "count"), [("whole", 10), ("against all", 10), ("relations", 5)])
def test_every_fact_is_ranked_once_whatever_the_task(folder: Path, name: str, count: int) -> None:
    metrics = metrics_in(folder / name)
    assert (metrics["count"], metrics["processes"]) == (count, 2)


def test_two_processes_replace_an_earlier_run(folder: Path) -> None:
    assert len(losses(folder / "replaced")) == metrics_in(folder / "replaced")["epochs"] == 2
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".replaced")]


@pytest.mark.parametrize("name", MEANS)
def test_the_gradient_of_two_processes_is_that_of_their_batches_together(
    folder: Path, name: str
) -> None:
    parts = [torch.load(folder / f"{name} {rank}.pt") for rank in range(2)]
    num_answers = [float(part["weight"].sum()) for part in parts]
    assert num_answers[0] != num_answers[1]
    size = len(parts[0]["heads"])
    rows = torch.cat([part["answers"][0] + rank * size for rank, part in enumerate(parts)])
    batch = QueryBatch(
        torch.cat([part["heads"] for part in parts]),
        torch.cat([part["relations"] for part in parts]),
        torch.stack([rows, torch.cat([part["answers"][1] for part in parts])]),
        torch.cat([part["weight"] for part in parts]),
    )
    model, chosen = model_of_couples(), experiment(**MEANS[name])

    one_vs_all_loss(model, batch, chosen.training, chosen.one_vs_all).backward()  # type: ignore[no-untyped-call]

    expected = [parameter.grad for parameter in model.parameters()]
    for part in parts:
        torch.testing.assert_close(part["gradients"], expected)


def test_two_processes_choose_one_weight_of_walks(folder: Path) -> None:
    metrics = metrics_in(folder / "walks")
    assert metrics["valid"]["mrr"] == max(metrics["coefficients_tried"]["walks"].values())
    saved = load_file(folder / "walks" / "model.safetensors")
    assert float(saved["scorers.walks.coefficient"]) == metrics["coefficients"]["walks"]


def test_the_command_under_torchrun_speaks_once(folder: Path) -> None:
    assert (folder / "output").read_text().count("parameters;") == 1
    command = metrics_in(folder / "command")["command"]
    assert command.startswith("torchrun --nproc-per-node 2 -m nodepiece train")


def test_a_batch_that_cannot_be_shared_is_refused() -> None:
    assert Processes(1, 4).share(512) == 128
    with pytest.raises(InputError, match="make it a multiple of 3"):
        Processes(0, 3).share(512)


@pytest.mark.parametrize(
    ("number", "device", "words"),
    [("2", "cuda", "--nproc-per-node 2"), ("0", "cuda:1", "use --device cuda")],
)
def test_a_process_without_a_gpu_of_its_own_is_refused(
    number: str, device: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", number)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    with pytest.raises(InputError, match=words):
        own_gpu(torch.device(device))


def test_every_process_and_epoch_has_its_own_seed() -> None:
    seeds = {Processes(rank, 4).seed(0, epoch) for rank in range(4) for epoch in range(50)}
    assert len(seeds) == 200
    assert all(0 <= seed < 2**63 for seed in seeds)
