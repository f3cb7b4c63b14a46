"""Baselines without training on the test facts of every benchmark, and shortcuts of models.

    python -m benchmarks.baselines                       what results/ does not have yet
    python -m benchmarks.baselines --datasets wn18rr codex-s
    python -m benchmarks.baselines --experiments own18rr-best
    python -m benchmarks.baselines --evaluated FILE...   the output of
                                                         nodepiece evaluate RUN --baselines --json

Popularity, half-links and personalized PageRank are ranked like a model: among all nodes, for
inductive benchmarks also among nodes drawn at random. The baselines of other tasks belong to an
experiment, which has the data. Of a model, the last form keeps the scores of queries that
half-links answer right, and of the others. Writes results/baselines.json.
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
from nodepiece.errors import InputError
from nodepiece.evaluation.baselines import (
    HALF_LINKS,
    WITH_SHORTCUT,
    WITHOUT_SHORTCUT,
    baselines_of,
)
from nodepiece.evaluation.known_answers import known_tails
from nodepiece.evaluation.metrics import report_links, summarize
from nodepiece.evaluation.ranking import LinkRanks, rank_links
from nodepiece.evaluation.report import Scores
from nodepiece.evaluation.sampled_negatives import report_sampled
from nodepiece.files import write_json
from nodepiece.settings import load_experiment
from nodepiece.tasks.inductive_evaluator import InductiveEvaluator
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.node_classification import NodeClassification
from nodepiece.tasks.out_of_sample import OutOfSample
from nodepiece.tasks.registry import task_record

OUTPUT = ROOT / "results" / "baselines.json"
LINKS = ("codex-s", "wn18rr", "codex-m", "fb15k-237")
GRAPHS = ("fb15k-237", "wn18rr", "nell-995")
SPLITS = tuple(f"inductive/{graph}-v{version}" for graph in GRAPHS for version in range(1, 5))
INDUCTIVE = (*SPLITS, "inductive/ilpc-small")
EXPERIMENTS = (  # one for each dataset of the other tasks
    *("fb15k-237-relations-best", "wn18rr-relations-best", "fb15k-237-oos-best", "own18rr-best"),
    *("wd50k-5-paper", "wd50k-10-paper", "wd50k-100-paper"),
)
MEMORY = 2**28  # bytes for scores
KEPT = ("mrr", "hits@1", "hits@10", "count")
ALL_NODES = "all nodes"
Ranks = dict[str, dict[str, LinkRanks | list[LinkRanks]]]  # by baseline, and among which nodes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datasets", nargs="*", help="(those without a record)")
    parser.add_argument("--experiments", nargs="*", help="(those without a record)")
    parser.add_argument("--baselines", nargs="*", help="names; those of a record are kept (all)")
    parser.add_argument("--evaluated", nargs="*", type=Path, default=(), help="JSON files")
    options = parser.parse_args()
    content = read_output()
    for path in options.evaluated:
        record = shortcuts_of(json.loads(path.read_text(encoding="utf-8")))
        if record is None:
            raise InputError(f"{path} has no scores with and without shortcuts")
        content["models"][record["experiment"]] = record
    datasets, experiments = options.datasets, options.experiments
    if datasets is None and experiments is None and not options.evaluated:
        datasets = [name for name in (*LINKS, *INDUCTIVE) if name not in content["datasets"]]
        experiments = [name for name in EXPERIMENTS if name not in content["tasks"]]
    for name in datasets or ():
        before = content["datasets"].get(name, {}).get("baselines", {})
        record = measure(name, options.baselines)
        record["baselines"] = before | record["baselines"]
        content["datasets"][name] = content["datasets"].get(name, {}) | record
        print(name, json.dumps(content["datasets"][name]))
        write_json(OUTPUT, content)
    for name in experiments or ():
        content["tasks"][name] = measure_task(name)
        print(name, json.dumps(content["tasks"][name]))
        write_json(OUTPUT, content)
    write_json(OUTPUT, content)


def read_output() -> dict[str, Any]:
    if OUTPUT.exists():
        return {"tasks": {}} | json.loads(OUTPUT.read_text(encoding="utf-8"))
    return {
        "what": "baselines without training on test facts, and models with and without shortcuts",
        "command": "python -m benchmarks.baselines",
        "datasets": {},
        "tasks": {},
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
        record["share_with_shortcut"] = float(np.mean(half_links.both == 1))
    return record


def measure_task(name: str) -> dict[str, Any]:
    """The scores of all baselines on the task and the data of an experiment."""
    start, experiment = perf_counter(), load_experiment(name)
    task = task_record(experiment).task.open(experiment, None)
    found: dict[str, Scores]
    if isinstance(task, NodeClassification):
        found = task.evaluate_baselines("test")
    else:
        assert isinstance(task, LinkPrediction | OutOfSample)
        ranks = task.evaluator.rank_baselines("test")
        scores = {key: summarize(each).to_json() for key, each in ranks.items()}
        found = {key: {kept: each[kept] for kept in KEPT} for key, each in scores.items()}
    about = {key: getattr(experiment, key) for key in ("task", "dataset")}
    if isinstance(task, NodeClassification):
        about["label_share"] = experiment.classifier.label_share
    return about | {"baselines": found, "seconds": round(perf_counter() - start, 1)}


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
        drawn = f"{experiment.evaluation.num_negatives:,} nodes drawn at random"
        found[key] = {drawn: draws, ALL_NODES: ranks}
    return found


def scores_of(ranks: LinkRanks | list[LinkRanks]) -> dict[str, Any]:
    if isinstance(ranks, LinkRanks):
        scores = report_links(ranks).both.to_json()
    else:
        scores = report_sampled(ranks).scores
    return {key: scores[key] for key in KEPT}


def shortcuts_of(evaluated: dict[str, Any]) -> dict[str, Any] | None:
    """What a model has with and without shortcuts, from `nodepiece evaluate --baselines --json`.

    Among all nodes, also of inductive runs, whose own scores are among drawn nodes. None where one
    of the two is missing: classes have no shortcuts, and all queries may have one, or none.
    """
    if not {WITH_SHORTCUT, WITHOUT_SHORTCUT} <= evaluated["baselines"].keys():
        return None
    parts = {
        key: {kept: evaluated["baselines"][key][kept] for kept in KEPT}
        for key in (WITH_SHORTCUT, WITHOUT_SHORTCUT)
    }
    about = {key: evaluated[key] for key in ("experiment", "task", "dataset", "split")}
    ranked = evaluated.get(ALL_NODES, evaluated)
    return about | {key: ranked[key] for key in ("mrr", "hits@10")} | parts


if __name__ == "__main__":
    main()
