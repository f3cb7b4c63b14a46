"""One run of `benchmarks.budget`: a contender on a dataset, trained for some minutes and ranked."""

import argparse
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.budget import GENERATED, OURS
from benchmarks.budget_pykeen import PykeenSettings, all_tails, train_pykeen
from benchmarks.measure import peak_memory
from benchmarks.planted_graphs import SIZES, planted_split
from torch import Tensor

import nodepiece
from nodepiece.data.benchmarks import locate_benchmark
from nodepiece.data.dataset import Dataset
from nodepiece.data.open import open_dataset
from nodepiece.data.random_split import split_facts
from nodepiece.evaluation.known_answers import known_tails
from nodepiece.evaluation.metrics import report_links
from nodepiece.evaluation.ranking import ScoreAll, rank_links
from nodepiece.files import write_json
from nodepiece.graph.arrays import IntArray
from nodepiece.settings import load_experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.run_weights import load_trained
from nodepiece.tasks.train import train_experiment
from nodepiece.training.memory import keep_freed_memory

WD50K_SHARES = {"valid": 0.05, "test": 0.05}
FEW_NODES = 1_000_000  # up to these all test facts are ranked, and VALIDATION_FACTS validate
VALIDATION_FACTS, VALIDATION_FACTS_OF_MANY, TEST_FACTS_OF_MANY = 1_000, 200, 1_000
NUM_VALIDATIONS = 12  # of PyKEEN's models
MEMORY_BUDGET = 2**28  # bytes for scores


def run(options: argparse.Namespace) -> None:
    """Train, validate, write what is known so far, then rank the test facts and write it all."""

    started = time.perf_counter()
    dataset = open_graph(options.dataset)
    read_seconds = time.perf_counter() - started
    train = run_ours if options.contender == OURS else run_pykeen
    scores, found = train(options, dataset)
    evaluate = evaluator_of(dataset)
    result = {
        "dataset": options.dataset,
        "nodes": dataset.num_nodes,
        "facts": dataset.train.num_triples,
        "relations": dataset.train.num_relations,
        "contender": options.contender,
        "minutes": options.minutes,
        **found,
        "valid": evaluate(scores, first_facts(dataset, "valid")),
        "test": None,
        "read_seconds": round(read_seconds, 1),
        "peak_memory_mib": round(peak_memory()),
        "threads": options.threads,
        "cores": options.cores or None,
        "cpus": os.cpu_count(),
        "versions": versions(options.contender),
        "command": shlex.join(["python", "-m", "benchmarks.budget", *sys.argv[1:]]),
    }
    write_json(options.out, result)
    if not options.no_test:
        result["test"] = evaluate(scores, first_facts(dataset, "test", options.test_facts))
        write_json(options.out, result)
    parts = {name: part for name in ("valid", "test") if (part := result[name])}
    values = [f"{name} {part['mrr']:.4f} / {part['hits@10']:.4f}" for name, part in parts.items()]
    sizes = f"{result['parameters']:,} parameters, {result['steps']:,} steps"
    print(f"{options.dataset} {options.contender}: {', '.join(values)}, {sizes}")


def open_graph(name: str) -> Dataset:
    """A dataset by name, or from a folder with train, valid and test."""

    if name in GENERATED:
        return planted_split(SIZES[GENERATED[name]], seed=0)
    if name == "wd50k":  # as `nodepiece split EDGES --valid 0.05 --test 0.05` does
        whole = open_dataset(str(locate_benchmark("wd50k-nc", data=None).files["edges"]))
        return split_facts(whole, WD50K_SHARES, rng=np.random.default_rng(0))
    return open_dataset(name)


def pykeen_settings(options: argparse.Namespace) -> PykeenSettings:

    _, model, loop = options.contender.split("-")
    return PykeenSettings(
        model,
        loop,
        dim=options.dim,
        learning_rate=options.lr,
        batch_size=options.batch,
        num_negatives=options.negatives,
        loss=options.loss,
        margin=options.margin,
        norm=options.norm,
        decay=options.decay,
        label_smoothing=options.smoothing,
        seed=options.seed,
    )


def run_pykeen(options: argparse.Namespace, dataset: Dataset) -> tuple[ScoreAll, dict[str, Any]]:

    settings = pykeen_settings(options)
    evaluate, valid = evaluator_of(dataset), first_facts(dataset, "valid")
    trained = train_pykeen(
        settings,
        dataset,
        seconds=60 * options.minutes,
        validate=lambda scores: evaluate(scores, valid)["mrr"],
        validate_seconds=60 * options.minutes / NUM_VALIDATIONS,
    )
    return all_tails(settings, trained.model, dataset.train.num_relations), {
        "settings": asdict(settings) | {"loss": settings.loss_name},
        "parameters": sum(each.numel() for each in real_parameters(trained.model)),
        "steps": trained.steps,
        "epochs": round(trained.epochs, 2),
        "seconds": {"train": round(trained.seconds, 1)},
        "curve": trained.curve,
    }


def real_parameters(model: Any) -> Iterator[Tensor]:
    """The parameters, complex numbers as two real ones each."""

    for each in model.parameters():
        yield torch.view_as_real(each) if each.is_complex() else each


def run_ours(options: argparse.Namespace, dataset: Dataset) -> tuple[ScoreAll, dict[str, Any]]:
    """Train within the minutes, which count from here to the end of the run's own evaluation."""

    keep_freed_memory()  # as `nodepiece train` does
    started, curve = time.perf_counter(), list[dict[str, float]]()

    class Curve:
        def on_step(self, epoch: int, done: int, total: int) -> None:
            pass

        def on_epoch(self, record: dict[str, Any], progress: object) -> None:
            if "valid_mrr" in record:
                seconds = round(time.perf_counter() - started, 2)
                curve.append({"seconds": seconds, "mrr": record["valid_mrr"]})

    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "run"
        metrics = train_experiment(
            options.experiment or None,
            folder,
            data=dataset,
            overrides=[*options.set, f"seed={options.seed}"],
            device="cpu",
            callbacks=(Curve(),),
            minutes=options.minutes,
            started=started,
            log=print,
        )
        seconds = time.perf_counter() - started
        assert metrics is not None  # nothing stops it before the end
        return scores_of_run(folder, dataset), {
            "settings": (folder / "config.toml").read_text(encoding="utf-8"),
            "parameters": metrics["parameters"],
            "steps": metrics["steps"],
            "epochs": metrics["epochs"],
            "seconds": metrics["seconds"] | {"all": round(seconds, 1)},
            "curve": curve,
            "popularity": metrics["popularity"],
        }


def scores_of_run(folder: Path, dataset: Dataset) -> ScoreAll:
    """The scores of a run's model."""

    experiment = load_experiment(folder / "config.toml")
    model, _ = load_trained(LinkPrediction(experiment, dataset), folder)
    with torch.no_grad():
        vectors = model.node_vectors()
    return lambda heads, relations: model.score_all_tails(heads, relations, vectors)


def evaluator_of(dataset: Dataset) -> Callable[[ScoreAll, IntArray], dict[str, float]]:
    """The metrics of scores on some facts, known answers of all splits left out."""

    train = dataset.train
    known = known_tails(dataset.all_triples(), train.num_nodes, train.num_relations)

    def evaluate(scores: ScoreAll, facts: IntArray) -> dict[str, float]:
        ranks = rank_links(scores, facts, known, memory_budget=MEMORY_BUDGET, device="cpu")
        return report_links(ranks).both.to_json()

    return evaluate


def first_facts(dataset: Dataset, split: str, number: int = 0) -> IntArray:
    """The facts of a split to evaluate on: a sample of valid, all of test unless nodes are many.

    Facts of a split are in no particular order, so the first ones are a sample.
    """
    is_few = dataset.num_nodes <= FEW_NODES
    if split == "valid":
        return dataset.valid[: VALIDATION_FACTS if is_few else VALIDATION_FACTS_OF_MANY]
    return dataset.test[: number or (None if is_few else TEST_FACTS_OF_MANY)]


def versions(contender: str) -> dict[str, str]:

    found = {"python": platform.python_version(), "torch": torch.__version__}
    found |= {"numpy": np.__version__, "nodepiece": nodepiece.__version__}
    if contender != OURS:
        from pykeen.version import get_version

        found["pykeen"] = get_version()
    return found
