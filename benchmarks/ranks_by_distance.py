"""Where an inductive model is right: its scores by the distance between the nodes of a test fact.

    nodepiece train inductive-wn18rr-v4-best --device cuda -o RUN
    python -m benchmarks.ranks_by_distance RUN [RUN ...] [--device cuda]

The distance is that in the graph of the queries, where the test facts are not. Scores are those of
`nodepiece evaluate`: among nodes drawn at random, mean over the draws, and among all nodes. Writes
results/ranks-by-distance.json, a record for each experiment.
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.tokenization import ROOT
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from nodepiece.errors import InputError
from nodepiece.evaluation.metrics import summarize
from nodepiece.evaluation.ranking import LinkRanks
from nodepiece.files import write_json
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.inference.inductive import InductiveRun
from nodepiece.inference.run import load
from nodepiece.tasks.run_folder import read_metrics

OUTPUT = ROOT / "results" / "ranks-by-distance.json"
LIMITS = {"1": 1, "2": 2, "3": 3, "4 to 6": 6, "more": np.finfo(float).max, "not connected": np.inf}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--device", default="cpu", help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="(results/)")
    options = parser.parse_args()
    for folder in options.runs:
        run = load(folder, device=options.device)
        if not isinstance(run, InductiveRun):
            raise InputError(f"{folder} is no run of inductive link prediction")
        record = about(folder) | {"distances": measure(run)}
        print(record["experiment"], json.dumps(record["distances"]), flush=True)
        content: dict[str, Any] = {
            "what": "scores of inductive models by the distance of head and tail",
            "runs": {},
        }
        if options.output.exists():
            content = json.loads(options.output.read_text("utf-8"))
        content["runs"][record["experiment"]] = record
        write_json(options.output, content)


def about(folder: Path) -> dict[str, Any]:
    """How a run was trained; its scores by distance are added."""
    metrics = read_metrics(folder)
    trained = metrics["command"].partition(" -o ")[0] + " -o RUN"
    return {
        "experiment": metrics["experiment"],
        "command": f"{trained}; python -m benchmarks.ranks_by_distance RUN",
        **{name: metrics[name] for name in ("device", "steps", "seed")},
    }


def measure(run: InductiveRun) -> dict[str, dict[str, float]]:
    evaluator, device = run.evaluator, run.snapshot.device
    run.model.eval()
    with torch.no_grad():
        draws, among_all = evaluator.rank(
            evaluator.scorer(run.model), "test", evaluator.settings.test_facts, device
        )
    distances = distances_of(evaluator.dataset.test, evaluator.dataset.train)
    if len(distances) != len(among_all.tail):
        raise InputError("the run ranks a part of the test facts; set evaluation.test_facts = 0")
    return by_distance(distances, draws, among_all)


def distances_of(facts: IntArray, graph: KnowledgeGraph) -> FloatArray:
    """The length of the shortest path between head and tail of each fact, whatever the direction.

    inf: they are not connected.
    """
    head, _, tail = graph.triples.T
    edges = coo_array((np.ones(len(head)), (head, tail)), shape=(graph.num_nodes,) * 2)
    heads, place = np.unique(facts[:, 0], return_inverse=True)
    paths = shortest_path(edges.tocsr(), directed=False, unweighted=True, indices=heads)
    found: FloatArray = paths[place, facts[:, 2]]
    return found


def by_distance(
    distances: FloatArray, draws: list[LinkRanks], among_all: LinkRanks
) -> dict[str, dict[str, float]]:
    """Scores of each class of distances that has facts: means over the draws, MRR among all."""
    found = {}
    for (_, before), (name, limit) in pairwise([("", -1.0), *LIMITS.items()]):
        chosen = (distances > before) & (distances <= limit)
        if not chosen.any():
            continue
        of_draws = [summarize(both(ranks, chosen)).to_json() for ranks in draws]
        found[name] = {
            "facts": int(chosen.sum()),
            "hits@10": float(np.mean([each["hits@10"] for each in of_draws])),
            "mrr": float(np.mean([each["mrr"] for each in of_draws])),
            "mrr, all nodes": summarize(both(among_all, chosen)).to_json()["mrr"],
        }
    return found


def both(ranks: LinkRanks, chosen: np.ndarray) -> FloatArray:
    """The ranks of some facts, of both sides."""
    return np.concatenate([ranks.head[chosen], ranks.tail[chosen]])


if __name__ == "__main__":
    main()
