"""The same minutes on the same two cores for nodepiece and for PyKEEN.

    python -m benchmarks.budget run --dataset fb15k-237 --contender pykeen-complex-lcwa \
        --minutes 10 --lr 0.01 --batch 512 -o complex.json
    python -m benchmarks.budget run --dataset fb15k-237 --contender nodepiece -o ours.json
    python -m benchmarks.budget collect *.json

`run` is one contender on one dataset, in this process, with two threads. The same code ranks for
all contenders: filtered MRR and Hits@10 of all test facts, heads and tails, ties count half.
PyKEEN's minutes are those of its training steps alone: validation, reading and evaluation do not
count. Ours are those of the whole run, from the tokens to the evaluation. `collect` writes
results/budget.json and draws results/budget.svg; of PyKEEN's runs with the most minutes, the one
with the best validation is the opponent, and shorter ones are its search.
"""

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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from nodepiece.data.dataset import Dataset
    from nodepiece.evaluation.ranking import ScoreAll
    from nodepiece.graph.arrays import IntArray

OURS = "nodepiece"
REAL = ("fb15k-237", "wn18rr", "codex-m", "wd50k")
GENERATED = {"planted-75k": "sparse", "planted-150k": "medium", "planted-2.5m": "large"}
WD50K_SHARES = {"valid": 0.05, "test": 0.05}
FEW_NODES = 1_000_000  # up to these all test facts are ranked, and VALIDATION_FACTS validate
VALIDATION_FACTS, VALIDATION_FACTS_OF_MANY, TEST_FACTS_OF_MANY = 1_000, 200, 1_000
NUM_VALIDATIONS = 12  # of PyKEEN's models
MEMORY_BUDGET = 2**28  # bytes for scores


def main() -> None:
    options = parse_options()
    if options.command == "collect":
        from benchmarks.budget_results import collect

        collect(options.files, options.out)
        return
    limit_cores(options.threads, options.cores)
    run(options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The same minutes for nodepiece and for PyKEEN.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="train and evaluate one contender on one dataset")
    one.add_argument("--dataset", required=True, help=f"a folder, or {', '.join(names())}")
    one.add_argument("--contender", required=True, help="nodepiece, or pykeen-MODEL-LOOP")
    one.add_argument("--minutes", type=float, default=10.0)
    one.add_argument("--threads", type=int, default=2)
    one.add_argument("--cores", default="", help="processors to run on, such as 0,1; else any")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--no-test", action="store_true", help="validate only, for a search")
    one.add_argument("--test-facts", type=int, default=0, help="0: all, of many nodes 1,000")
    one.add_argument("-o", "--out", type=Path, required=True)
    ours = one.add_argument_group("nodepiece")
    ours.add_argument("--experiment", default="", help="in place of the automatic choice")
    ours.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    ours.add_argument("--folder", type=Path, help="of the run; else it is removed")
    theirs = one.add_argument_group("PyKEEN")
    theirs.add_argument("--dim", type=int, default=100, help="complex numbers count once")
    theirs.add_argument("--lr", type=float, default=1e-3)
    theirs.add_argument("--batch", type=int, default=1024)
    theirs.add_argument("--negatives", type=int, default=16)
    theirs.add_argument("--loss", default="", help="in place of the model's usual one")
    theirs.add_argument("--margin", type=float, default=0.0)
    theirs.add_argument("--norm", type=int, default=1, choices=(1, 2), help="of TransE")
    theirs.add_argument("--decay", action="store_true", help="the rate falls to 0 in the end")
    theirs.add_argument("--smoothing", type=float, default=0.0, help="of labels, with lcwa")
    several = commands.add_parser("collect", help="write results/budget.json and its figure")
    several.add_argument("files", type=Path, nargs="+")
    several.add_argument("--out", type=Path, default=Path("results/budget.json"))
    return parser.parse_args()


def names() -> tuple[str, ...]:
    return (*REAL, *GENERATED)


def limit_cores(threads: int, cores: str) -> None:
    """Use so many threads, and only the given processors; before NumPy and PyTorch are imported."""
    for name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    import torch

    import nodepiece.threads

    nodepiece.threads.stop_spinning()
    torch.set_num_threads(threads)


def run(options: argparse.Namespace) -> None:
    """Train, validate, write what is known so far, then rank the test facts and write it all."""
    from benchmarks.measure import peak_memory

    from nodepiece.files import write_json

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


def open_graph(name: str) -> "Dataset":
    """A dataset by name, or from a folder with train, valid and test."""
    import numpy as np

    from nodepiece.data.benchmarks import locate_benchmark
    from nodepiece.data.open import open_dataset
    from nodepiece.data.random_split import split_facts

    if name in GENERATED:
        from benchmarks.planted_graphs import SIZES, planted_split

        return planted_split(SIZES[GENERATED[name]], seed=0)
    if name == "wd50k":  # as `nodepiece split EDGES --valid 0.05 --test 0.05` does
        whole = open_dataset(str(locate_benchmark("wd50k-nc", data=None).files["edges"]))
        return split_facts(whole, WD50K_SHARES, rng=np.random.default_rng(0))
    return open_dataset(name)


def run_pykeen(
    options: argparse.Namespace, dataset: "Dataset"
) -> tuple["ScoreAll", dict[str, Any]]:
    from benchmarks.budget_pykeen import PykeenSettings, all_tails, train_pykeen

    _, model, loop = options.contender.split("-")
    settings = PykeenSettings(
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


def real_parameters(model: Any) -> Iterator["Tensor"]:
    """The parameters, complex numbers as two real ones each."""
    import torch

    for each in model.parameters():
        yield torch.view_as_real(each) if each.is_complex() else each


def run_ours(options: argparse.Namespace, dataset: "Dataset") -> tuple["ScoreAll", dict[str, Any]]:
    """Train within the minutes, which count from here to the end of the run's own evaluation."""
    from nodepiece.tasks.train import train_experiment

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
            options.experiment,
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


def scores_of_run(folder: Path, dataset: "Dataset") -> "ScoreAll":
    """The scores of a run's model."""
    import torch

    from nodepiece.settings import load_experiment
    from nodepiece.tasks.link_prediction import LinkPrediction
    from nodepiece.tasks.runner import load_trained

    experiment = load_experiment(folder / "config.toml")
    model, _ = load_trained(LinkPrediction(experiment, dataset), folder)
    with torch.no_grad():
        vectors = model.node_vectors()
    return lambda heads, relations: model.score_all_tails(heads, relations, vectors)


def evaluator_of(dataset: "Dataset") -> "Callable[[ScoreAll, IntArray], dict[str, float]]":
    """The metrics of scores on some facts, known answers of all splits left out."""
    from nodepiece.evaluation.known_answers import known_tails
    from nodepiece.evaluation.metrics import report_links
    from nodepiece.evaluation.ranking import rank_links

    train = dataset.train
    known = known_tails(dataset.all_triples(), train.num_nodes, train.num_relations)

    def evaluate(scores: "ScoreAll", facts: "IntArray") -> dict[str, float]:
        ranks = rank_links(scores, facts, known, memory_budget=MEMORY_BUDGET, device="cpu")
        return report_links(ranks).both.to_json()

    return evaluate


def first_facts(dataset: "Dataset", split: str, number: int = 0) -> "IntArray":
    """The facts of a split to evaluate on: a sample of valid, all of test unless nodes are many.

    Facts of a split are in no particular order, so the first ones are a sample.
    """
    is_few = dataset.num_nodes <= FEW_NODES
    if split == "valid":
        return dataset.valid[: VALIDATION_FACTS if is_few else VALIDATION_FACTS_OF_MANY]
    return dataset.test[: number or (None if is_few else TEST_FACTS_OF_MANY)]


def versions(contender: str) -> dict[str, str]:
    import numpy
    import torch

    import nodepiece

    found = {"python": platform.python_version(), "torch": torch.__version__}
    found |= {"numpy": numpy.__version__, "nodepiece": nodepiece.__version__}
    if contender != OURS:
        from pykeen.version import get_version

        found["pykeen"] = get_version()
    return found


if __name__ == "__main__":
    main()
