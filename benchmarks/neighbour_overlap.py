"""A rule without training for out-of-sample nodes: neighbours of a node are the likeliest answers.

    python -m benchmarks.neighbour_overlap -o results/neighbour-overlap.json

A fact of an unseen node is left out, and its neighbour in it is predicted, as in out-of-sample link
prediction. The rule scores a node by the number of other facts that join it with the unseen node.
So it finds the neighbour if the fact has a twin: another fact between the same two nodes.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodepiece.data.open import open_out_of_sample
from nodepiece.data.out_of_sample import UnseenEdges, edges_of_unseen
from nodepiece.evaluation.known_answers import known_tails_of
from nodepiece.evaluation.metrics import summarize
from nodepiece.evaluation.ranking import rank_queries
from nodepiece.files import write_json

DATASETS = ("fb15k-237", "own18rr")
MEMORY = 2**28  # bytes for scores


def evaluate_rule(edges: UnseenEdges, num_nodes: int, num_relations: int) -> dict[str, Any]:
    queries = np.stack([edges.owners, edges.relations, edges.neighbours], axis=1)
    owners = torch.tensor(edges.owners).long()
    neighbours = torch.tensor(edges.neighbours).long()
    offsets = torch.tensor(edges.offsets).long()

    def score(asked: Tensor, _: Tensor) -> Tensor:
        """How many other facts of the node name each node: (batch, num_nodes)."""
        scores = torch.zeros(len(asked), num_nodes)
        for row, edge in enumerate(asked.tolist()):
            own = slice(int(offsets[owners[edge]]), int(offsets[owners[edge] + 1]))
            scores[row].index_add_(0, neighbours[own], torch.ones(own.stop - own.start))
            scores[row, neighbours[edge]] -= 1
        return scores

    known = known_tails_of(queries, num_nodes, num_relations)
    ranks = rank_queries(score, queries, known, memory_budget=MEMORY, device="cpu")
    pairs = edges.owners.astype(np.int64) * num_nodes + edges.neighbours
    _, place, count = np.unique(pairs, return_inverse=True, return_counts=True)
    return {**summarize(ranks).to_json(), "share_with_twin": float(np.mean(count[place] > 1))}


def main() -> None:
    parser = argparse.ArgumentParser(description="What the facts of unseen nodes give away.")
    parser.add_argument("-o", "--out", type=Path, help="a JSON file; printed as well")
    options = parser.parse_args()
    content: dict[str, Any] = {"command": "python -m benchmarks.neighbour_overlap"}
    for name in DATASETS:
        dataset = open_out_of_sample(name)
        edges, graph = edges_of_unseen(dataset, "test"), dataset.train
        content[name] = evaluate_rule(edges, graph.num_nodes, graph.num_relations)
    print(json.dumps(content, indent=1))
    if options.out is not None:
        write_json(options.out, content)


if __name__ == "__main__":
    main()
