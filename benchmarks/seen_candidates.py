"""What it does to MRR to rank only nodes that the graph has at that end of the relation.

    nodepiece train fb15k-237-best-no-walks -o RUN
    python -m benchmarks.seen_candidates --run RUN -o results/seen-candidates.json

Filtered ranks of test facts among all nodes, and among those that training has as heads or tails of
the relation (`--seen-candidates`). An answer that training does not have there cannot be found: its
reciprocal rank is 0.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodepiece.evaluation.ranking import rank_links
from nodepiece.files import write_json
from nodepiece.graph.arrays import FloatArray
from nodepiece.inference.run import load_links

LOWEST = -1e30  # of a node that is no candidate


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, required=True, action="append")
    parser.add_argument("--facts", type=int, default=0, help="of the test split; 0: all")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    measured = [measure(run, options.facts) for run in options.run]
    print(json.dumps(measured, indent=1))
    if options.output is not None:
        command = "python -m benchmarks.seen_candidates --run RUN"
        write_json(options.output, {"command": command, "runs": measured})


def measure(folder: Path, most: int) -> dict[str, Any]:
    run = load_links(folder)
    snapshot, facts = run.snapshot, run.dataset.test[: most or None]
    candidates, num_relations = snapshot.candidates, run.dataset.train.num_relations
    is_seen = np.zeros((2 * num_relations, run.dataset.num_nodes), np.bool_)
    for relation in range(2 * num_relations):
        is_seen[relation, candidates.seen_tails(relation)] = True
    unseen = torch.from_numpy(~is_seen)

    def among_seen(heads: Tensor, relations: Tensor) -> Tensor:
        return snapshot.score_tails(heads, relations).masked_fill_(unseen[relations], LOWEST)

    head, relation, tail = facts.T
    is_there = np.concatenate([is_seen[relation, tail], is_seen[relation + num_relations, head]])
    found: dict[str, Any] = {"dataset": run.experiment.dataset, "facts": len(facts)}
    for name, score in (("all", snapshot.score_tails), ("seen", among_seen)):
        ranks = rank_links(
            score, facts, candidates.known_tails, memory_budget=2**30, device=snapshot.device
        )
        inverse = 1 / np.concatenate([ranks.tail, ranks.head])
        if name == "seen":
            inverse = np.where(is_there, inverse, 0)
        found[name] = scores(inverse)
    found["answers_seen"] = round(float(is_there.mean()), 4)
    found["candidates_seen"] = round(
        float(is_seen[np.r_[relation, relation + num_relations]].mean()), 4
    )
    return found


def scores(inverse: FloatArray) -> dict[str, float]:
    hits = {f"hits@{k}": float((inverse >= 1 / k).mean()) for k in (1, 3, 10)}
    return {
        name: round(value, 4) for name, value in ({"mrr": float(inverse.mean())} | hits).items()
    }


if __name__ == "__main__":
    main()
