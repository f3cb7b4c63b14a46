"""Take the golden values of the present version: PYTHONPATH=src python -m tests.golden.write

`--runs` writes the folders of `runs-VERSION/` too, which later versions must be able to open.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.golden.cases import (
    ADDED,
    REMOVED,
    RUNS,
    STORED,
    TOKENS,
    read_ids,
    stored_values,
    token_digests,
    train_case,
    train_run,
)
from tests.golden.graphs import write_graphs

import nodepiece

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden.json"
STORED_RUNS = HERE / "runs-0.1"


def golden_values(graphs: Path, folder: Path) -> dict[str, Any]:
    facts = graphs / "labelled" / "edges.tsv"
    return {
        "platform": platform(),
        "ids": read_ids(facts),
        "tokens": {
            name: token_digests(facts, changes, folder / "tokens")
            for name, changes in TOKENS.items()
        },
        "runs": {name: train_case(name, graphs, folder / "run") for name in RUNS},
        "stored": stored_values(STORED_RUNS),
        "pieces": [nodepiece.load_tokens(STORED_RUNS / "vocabulary").pieces(n) for n in range(3)],
    }


def write_stored(graphs: Path) -> None:
    """Run folders without their checkpoints, one of them updated, and a vocabulary folder."""
    for name, chosen in STORED.items():
        run = train_run(*chosen, graphs=graphs, folder=STORED_RUNS / name)
        if name == "updated":
            nodepiece.update_run(run, add=ADDED, remove=REMOVED)
        (STORED_RUNS / name / "checkpoint.safetensors").unlink()
        (STORED_RUNS / name / "live" / "lock").unlink(missing_ok=True)
    settings = nodepiece.TokenizerSettings(
        num_anchors=8, anchors_per_node=4, relations_per_node=3, ties="global"
    )
    graph = nodepiece.read_graph(graphs / "links" / "train.tsv")
    rng = np.random.default_rng(7)
    vocabulary = nodepiece.fit_vocabulary(graph, settings, rng=rng)
    table = nodepiece.tokenize(graph, vocabulary, rng=rng)
    nodepiece.save_tokens(table, STORED_RUNS / "vocabulary")


def platform() -> dict[str, str]:
    """What decides the last digits of a sum."""
    return {"torch": torch.__version__, "cpu": torch.backends.cpu.get_cpu_capability()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        graphs = Path(temporary) / "graphs"
        write_graphs(graphs)
        if "--runs" in sys.argv:
            write_stored(graphs)
        values = golden_values(graphs, Path(temporary))
    GOLDEN.write_text(json.dumps(values, indent=1) + "\n")
