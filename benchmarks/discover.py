"""The likeliest missing facts of a graph: how long the search takes, and whether it misses any.

    python -m benchmarks.planted_graphs --nodes 82000 --facts 500000 --relations 40 -o g
    nodepiece train g -o RUN --minutes 5 --set walks.steps=0 --set one_vs_all.path_queries=0 \\
        --set sampled.path_queries=0
    python -m benchmarks.discover --run RUN --check 8 -o results/discover-82k.json

Without walks, as the search of vectors is measured: with them every query is scored. The recall is
that of the best facts of some relations, drawn at random, against all scores of these relations,
computed by the decoder.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch

from nodepiece.files import write_json
from nodepiece.graph.arrays import FloatArray
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.discover import DiscoverSettings, discover_facts, scope_of
from nodepiece.inference.fact_search import allowed_facts, scores_queries, search_queries
from nodepiece.inference.pair_search import NOTHING, Best
from nodepiece.inference.run import load_links
from nodepiece.inference.search_progress import SearchProgress

SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--top", type=int, default=1000)
    parser.add_argument("--check", type=int, default=5, help="relations computed in full")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    snapshot = load_links(options.run).snapshot
    start, cpu = perf_counter(), process_time()
    table = discover_facts(snapshot, DiscoverSettings(top=options.top))
    seconds, cpu_seconds = perf_counter() - start, process_time() - cpu
    metrics = json.loads((options.run / "metrics.json").read_text(encoding="utf-8"))
    measured: dict[str, Any] = {
        "test_mrr": metrics["mrr"],
        "training_seconds": metrics["seconds"]["train"],
        "by_query": scores_queries(snapshot),
        "nodes": snapshot.dataset.num_nodes,
        "relations": snapshot.dataset.train.num_relations,
        "facts": snapshot.dataset.train.num_triples,
        "candidates": num_candidates(snapshot),
        "top": options.top,
        "found": len(table),
        "threads": torch.get_num_threads(),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        **check(snapshot, options.check, options.top),
    }
    print(json.dumps(measured, indent=1))
    if options.output is not None:
        command = f"python -m benchmarks.discover --run RUN --check {options.check}"
        about = {
            "what": "the likeliest missing facts of a graph, and the recall",
            "command": command,
        }
        write_json(options.output, about | measured)


def num_candidates(snapshot: Scoring) -> int:
    scope = scope_of(snapshot, DiscoverSettings())
    return sum(
        len(scope.heads(snapshot, relation)) * len(scope.tails(snapshot, relation))
        for relation in scope.relations
    )


def check(snapshot: Scoring, number: int, top: int) -> dict[str, Any]:
    """The recall of the best facts of some relations against all of their scores."""
    relations = np.random.default_rng(SEED).permutation(snapshot.dataset.train.num_relations)
    names, recalls, cpu = snapshot.dataset.names, [], process_time()
    for relation in relations[:number].tolist():
        settings = DiscoverSettings(top=top, relations=[names.relation(relation)])
        found = discover_facts(snapshot, settings)["score"].to_numpy()
        best = Best(top)
        allowed = allowed_facts(snapshot, NOTHING)
        scope = scope_of(snapshot, settings)
        search_queries(
            snapshot,
            scope,
            relation,
            best,
            allowed,
            memory_budget=settings.memory_budget,
            progress=SearchProgress(),
        )
        best.settle()
        recalls.append(recall(found, best.scores))
    return {
        "checked_relations": number,
        "recall": float(np.mean(recalls)),
        "check_cpu_seconds": round(process_time() - cpu, 2),
    }


def recall(found: FloatArray, exact: FloatArray) -> float:
    """The share of the exact best that was found; scores are equal up to rounding."""
    least = exact[-1] - 1e-4 * (1 + abs(exact[-1]))
    return float(min(1.0, np.count_nonzero(found >= least) / len(exact)))


if __name__ == "__main__":
    main()
