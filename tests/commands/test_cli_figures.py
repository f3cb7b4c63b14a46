"""nodepiece figures and nodepiece sweep on the command line."""

import json
from pathlib import Path

import pytest
from tests.commands.conftest import Nodepiece

GRID = ("--anchors", 20, "--anchors-per-node", 4)
FEW = ("--set", "training.epochs=1", "--set", "encoder.dim=8", "--set", "training.validate_every=0")
SWEEP = ("sweep", "countries", *FEW, "--anchors", "8")


def test_three_figures_and_their_numbers_are_written(nodepiece: Nodepiece) -> None:
    outcome = nodepiece(
        "figures", "countries", *GRID, "--grid-anchors", "5,20", "--grid-per-node", "2,4"
    )

    assert outcome.status == 0, outcome.err
    assert "wrote figures: strategies.svg, numbers.svg, grid.svg, anchors.json" in outcome.out
    text = Path("figures/grid.svg").read_text(encoding="utf-8")
    assert "Anchors and anchors per node: countries" in text  # as text, not as paths
    numbers = json.loads(Path("figures/anchors.json").read_text(encoding="utf-8"))
    assert numbers["num_nodes"] == 831 and len(numbers["grid"]) == 4


@pytest.mark.parametrize("given", ["5,x", "", "0,5"])
def test_numbers_that_are_none_are_refused(given: str, nodepiece: Nodepiece) -> None:
    outcome = nodepiece("figures", "countries", "--grid-anchors", given)
    assert outcome.status == 2 and "--grid-anchors takes numbers" in outcome.err


def test_a_sweep_keeps_finished_runs_and_trains_the_others(nodepiece: Nodepiece) -> None:
    kept = Path("sweep/8-2/metrics.json")  # of an earlier, interrupted sweep
    kept.parent.mkdir(parents=True)
    seconds = {"seconds": {"train": 1.0}, "command": "", "device": "CPU"}
    kept.write_text(
        json.dumps(dict.fromkeys(("mrr", "hits@10", "parameters", "epochs"), 0) | seconds)
    )

    outcome = nodepiece(*SWEEP, "--anchors-per-node", "2,4", "--device", "cpu", "--jobs", 2)

    assert outcome.status == 0, outcome.err
    assert "8 anchors, 4 per node" in outcome.err and "8 anchors, 2 per node" not in outcome.err
    numbers = json.loads(Path("sweep/sweep.json").read_text(encoding="utf-8"))
    assert [cell["anchors_per_node"] for cell in numbers["cells"]] == [2, 4]
    assert numbers["cells"][1]["mrr"] > 0 and Path("sweep/sweep.svg").is_file()
    assert "tokenizer.anchors_per_node=4" in numbers["cells"][1]["command"]


def test_a_run_that_fails_is_named_with_its_log(nodepiece: Nodepiece) -> None:
    outcome = nodepiece(*SWEEP, "--anchors-per-node", "2", "--device", "nowhere")
    assert outcome.status == 2 and "the first log is sweep/8-2.log" in outcome.err
    assert "nowhere" in Path("sweep/8-2.log").read_text(encoding="utf-8")
