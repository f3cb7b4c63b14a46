"""Baselines without training on the test facts of every benchmark, and shortcuts of models.

    python -m benchmarks.baselines                       datasets that results/ does not have yet
    python -m benchmarks.baselines --datasets wn18rr codex-s
    python -m benchmarks.baselines --evaluated FILE...   the output of
                                                         nodepiece evaluate RUN --baselines --json

Popularity, half-links and personalized PageRank are ranked like a model: among all nodes, for
inductive benchmarks also among nodes drawn at random. Of a model, the last form keeps the scores of
queries that half-links answer right, and of the others. Writes results/baselines.json.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from benchmarks.tokenization import ROOT

from nodepiece.data.dataset import Dataset
from nodepiece.data.load import load_benchmark, load_inductive
from nodepiece.evaluation.baselines import (
    HALF_LINKS,
    WITH_SHORTCUT,
    WITHOUT_SHORTCUT,
    baselines_of,
)
from nodepiece.evaluation.known_answers import known_tails
from nodepiece.evaluation.metrics import report_links
from nodepiece.evaluation.ranking import LinkRanks, rank_links
from nodepiece.evaluation.sampled_negatives import report_sampled
from nodepiece.files import write_json
from nodepiece.settings import load_experiment
from nodepiece.tasks.inductive_evaluator import InductiveEvaluator

OUTPUT = ROOT / "results" / "baselines.json"
LINKS = ("codex-s", "wn18rr", "codex-m", "fb15k-237")
GRAPHS = ("fb15k-237", "wn18rr", "nell-995")
INDUCTIVE = tuple(f"inductive/{graph}-v{version}" for graph in GRAPHS for version in range(1, 5))
MEMORY = 2**28  # bytes for scores
KEPT = ("mrr", "hits@1", "hits@10", "count")
ALL_NODES, DRAWN = "all nodes", "50 nodes drawn at random"
Ranks = dict[str, dict[str, LinkRanks | list[LinkRanks]]]  # by baseline, and among which nodes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datasets", nargs="*", help="(those without a record)")
    parser.add_argument("--baselines", nargs="*", help="names; those of a record are kept (all)")
    parser.add_argument("--evaluated", nargs="*", type=Path, default=(), help="JSON files")
    options = parser.parse_args()
    content = read_output()
    for path in options.evaluated:
        record = shortcuts_of(json.loads(path.read_text(encoding="utf-8")))
        content["models"][record["experiment"]] = record
    names = options.datasets
    if names is None:
        done = content["datasets"]
        names = [] if options.evaluated else [n for n in (*LINKS, *INDUCTIVE) if n not in done]
    for name in names:
        before = content["datasets"].get(name, {}).get("baselines", {})
        record = measure(name, options.baselines)
        record["baselines"] = before | record["baselines"]
        content["datasets"][name] = content["datasets"].get(name, {}) | record
        print(name, json.dumps(content["datasets"][name]))
        write_json(OUTPUT, content)
    write_json(OUTPUT, content)


def read_output() -> dict[str, Any]:
    if OUTPUT.exists():
        return dict(json.loads(OUTPUT.read_text(encoding="utf-8")))
    return {
        "what": "baselines without training on test facts, and models with and without shortcuts",
        "command": "python -m benchmarks.baselines",
        "datasets": {},
        "models": {},
    }


def measure(name: str, baselines: list[str] | None) -> dict[str, Any]:
    """The scores of some baselines (None: all), and the share of queries with a shortcut."""
    start = perf_counter()
    if name in INDUCTIVE:
        found = rank_inductive(load_inductive(name, None).inference, name)
    else:
        found = rank_all(load_benchmark(name, None), baselines)
    record: dict[str, Any] = {
        "baselines": {
            key: {among: scores_of(ranks) for among, ranks in each.items()}
            for key, each in found.items()
        },
        "seconds": round(perf_counter() - start, 1),
    }
    half_links = found.get(HALF_LINKS, {}).get(ALL_NODES)
    if isinstance(half_links, LinkRanks):
        right = np.concatenate([half_links.tail, half_links.head]) == 1
        record["share_with_shortcut"] = float(right.mean())
    return record


def rank_all(dataset: Dataset, baselines: list[str] | None) -> Ranks:
    graph = dataset.train
    known = known_tails(dataset.all_triples(), graph.num_nodes, graph.num_relations)
    return {
        name: {
            ALL_NODES: rank_links(score, dataset.test, known, memory_budget=MEMORY, device="cpu")
        }
        for name, score in baselines_of(graph).items()
        if baselines is None or name in baselines
    }


def rank_inductive(inference: Dataset, name: str) -> Ranks:
    """The ranks among the same drawn nodes as those of the `-best` recipe, and among all nodes."""
    experiment = load_experiment(f"{name.replace('/', '-')}-best")
    evaluator = InductiveEvaluator(experiment, inference, inference.train.num_relations)
    found: Ranks = {}
    for key, score in baselines_of(inference.train).items():
        draws, ranks = evaluator.rank(score, "test", 0, torch.device("cpu"))
        found[key] = {DRAWN: draws, ALL_NODES: ranks}
    return found


def scores_of(ranks: LinkRanks | list[LinkRanks]) -> dict[str, Any]:
    if isinstance(ranks, LinkRanks):
        scores = report_links(ranks).both.to_json()
    else:
        scores = report_sampled(ranks).scores
    return {key: scores[key] for key in KEPT}


def shortcuts_of(evaluated: dict[str, Any]) -> dict[str, Any]:
    """What a model has with and without shortcuts, from `nodepiece evaluate --baselines --json`.

    Among all nodes, also of inductive runs, whose own scores are among drawn nodes.
    """
    parts = {
        key: {kept: evaluated["baselines"][key][kept] for kept in KEPT}
        for key in (WITH_SHORTCUT, WITHOUT_SHORTCUT)
    }
    about = {key: evaluated[key] for key in ("experiment", "dataset", "split")}
    ranked = evaluated.get(ALL_NODES, evaluated)
    return about | {key: ranked[key] for key in ("mrr", "hits@10")} | parts


if __name__ == "__main__":
    main()
