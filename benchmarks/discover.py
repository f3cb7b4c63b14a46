"""The likeliest missing facts of a graph: how long the search takes, and whether it misses any.

    python -m benchmarks.planted_graphs --nodes 82000 --facts 500000 --relations 40 -o g
    nodepiece train g -o RUN --minutes 5 --set walks.steps=0 --set one_vs_all.path_queries=0 \\
        --set sampled.path_queries=0
    python -m benchmarks.discover --run RUN --check 8 -o results/discover-82k.json

Without walks the search of vectors is measured. With them candidates are searched where all queries
would take long, or with --approximate. The recall is that of the best facts of some relations,
drawn at random, against all scores of these relations, computed by the model; --heads N does so for
N heads of each.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch

from nodepiece.files import write_json
from nodepiece.graph.arrays import FloatArray
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.candidate_search import Plan, plan_of, search_candidates
from nodepiece.inference.discover import BY_CANDIDATES, DiscoverSettings, discover_facts, scope_of
from nodepiece.inference.fact_search import (
    Limits,
    Scope,
    allowed_facts,
    scores_queries,
    search,
    search_queries,
)
from nodepiece.inference.pair_search import NOTHING, Best
from nodepiece.inference.run import load_links
from nodepiece.inference.search_progress import SearchProgress

SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--top", type=int, default=1000)
    parser.add_argument("--check", type=int, default=5, help="relations computed in full")
    parser.add_argument("--heads", type=int, default=0, help="of a checked relation; 0: all")
    parser.add_argument("--exact", action="store_true", default=None)
    parser.add_argument("--approximate", dest="exact", action="store_false")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    snapshot = load_links(options.run).snapshot
    start, cpu = perf_counter(), process_time()
    settings = DiscoverSettings(top=options.top, exact=options.exact)
    table = discover_facts(snapshot, settings)
    seconds, cpu_seconds = perf_counter() - start, process_time() - cpu
    plan = None
    if (table.schema.metadata or {})[b"search"] == BY_CANDIDATES.encode():
        plan = plan_of(snapshot, scope_of(snapshot, settings), options.top)
    metrics = json.loads((options.run / "metrics.json").read_text(encoding="utf-8"))
    measured: dict[str, Any] = {
        "test_mrr": metrics["mrr"],
        "training_seconds": metrics["seconds"]["train"],
        "by_query": scores_queries(snapshot) and plan is None,
        "plan": None if plan is None else plan._asdict(),
        "nodes": snapshot.dataset.num_nodes,
        "relations": snapshot.dataset.train.num_relations,
        "facts": snapshot.dataset.train.num_triples,
        "candidates": num_candidates(snapshot),
        "top": options.top,
        "found": len(table),
        "threads": torch.get_num_threads(),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        **check(snapshot, plan, options),
    }
    print(json.dumps(measured, indent=1))
    if options.output is not None:
        command = f"python -m benchmarks.discover --run RUN --check {options.check}"
        command += f" --heads {options.heads}" if options.heads else ""
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


def check(snapshot: Scoring, plan: Plan | None, options: argparse.Namespace) -> dict[str, Any]:
    """The recall of the best facts of some relations against all of their scores."""
    top, rng, names = options.top, np.random.default_rng(SEED), snapshot.dataset.names
    relations = rng.permutation(snapshot.dataset.train.num_relations)[: options.check]
    limits = Limits(top, -np.inf, DiscoverSettings().memory_budget)
    recalls, cpu = {}, process_time()
    for relation in relations.tolist():
        scope = some_heads(snapshot, relation, options.heads, rng)
        if plan is None:
            found = search(snapshot, scope, limits, NOTHING, SearchProgress())
        else:
            found = search_candidates(snapshot, scope, limits, plan, NOTHING, SearchProgress())
        best = Best(top)
        search_queries(
            snapshot,
            scope,
            relation,
            best,
            allowed_facts(snapshot, NOTHING),
            memory_budget=limits.memory_budget,
            progress=SearchProgress(),
        )
        best.settle()
        recalls[names.relation(relation)] = round(recall(found.scores, best.scores), 4)
    return {
        "checked_relations": len(relations),
        "checked_heads": options.heads or "all",
        "recall": float(np.mean(list(recalls.values()))),
        "recall_by_relation": recalls,
        "check_cpu_seconds": round(process_time() - cpu, 2),
    }


def some_heads(snapshot: Scoring, relation: int, number: int, rng: np.random.Generator) -> Scope:
    """The facts of a relation with so many heads, drawn at random; 0: with all heads."""
    scope = replace(scope_of(snapshot, DiscoverSettings()), relations=[relation])
    heads = scope.heads(snapshot, relation)
    if not 0 < number < len(heads):
        return scope
    is_head = np.zeros_like(scope.is_head)
    is_head[rng.choice(heads, number, replace=False)] = True
    return replace(scope, is_head=is_head)


def recall(found: FloatArray, exact: FloatArray) -> float:
    """The share of the exact best that was found; scores are equal up to rounding."""
    least = exact[-1] - 1e-4 * (1 + abs(exact[-1]))
    return float(min(1.0, np.count_nonzero(found >= least) / len(exact)))


if __name__ == "__main__":
    main()
