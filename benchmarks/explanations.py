"""How good are explanations? What right answers lose without the facts that explain them.

As in Kelpie (Rossi et al., 2022): over test facts whose tail the model ranks first, the facts that
`run.explain` names are removed, at most 4 of each answer and those of all answers at once, and
beside that as many random facts of the same two nodes. Ranks of these answers are then measured in
the model as it is (tokens and vectors computed again) and after training again without the facts,
with the same settings. Known answers of the whole dataset are left out of the ranks throughout,
removed facts included.

Another training loses some of these answers even if no fact is removed: they were chosen because
one training had them right. So the reference is `control`, trained again on the whole graph. What
the removal loses is the MRR of control less the MRR without the facts, each the mean of some
trainings with other seeds than that of the model that was explained. The result also has what is
lost in all, control included, and a bootstrap over the answers.

    python -m benchmarks.explanations FOLDER --experiment codex-s-best --device cuda --jobs 3

runs all stages, and what is done is not repeated. Each stage can be run by itself, also on another
machine, given FOLDER: the runs are needed by `choose` and `rank` alone, the rest is JSON.

    ... --stage base         trains on the whole graph: FOLDER/base
    ... --stage choose       explains right answers: FOLDER/chosen.json
    ... --stage train        FOLDER/VARIANT-TRAINING, --jobs at a time
    ... --stage rank         FOLDER/ranks-VARIANT-TRAINING.json
    ... --stage evaluate     FOLDER/result.json
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch

import nodepiece
from nodepiece.data.dataset import Dataset
from nodepiece.files import write_json
from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.inference.answer_rank import RankedAnswer
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.links import LinkRun, fact_ids
from nodepiece.inference.run import load_links
from nodepiece.inference.score_facts import score_facts
from nodepiece.settings import load_experiment
from nodepiece.tokenizer.changing_graph import NamedFact, without

VARIANTS = ("control", "explained", "random")
STAGES = ("base", "choose", "train", "rank", "evaluate", "all")
WARM_UP = 2  # explanations that are not timed: kernels are compiled, indices built
NUM_SAMPLES = 10_000  # of the bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--stage", choices=STAGES, default="all")
    parser.add_argument("--variant", choices=VARIANTS, help="train this one alone")
    parser.add_argument("--training", type=int, default=1, help="of the variant, from 1 on")
    parser.add_argument("--trainings", type=int, default=3, help="of each variant")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--number", type=int, default=100, help="of right answers")
    parser.add_argument("--facts", type=int, default=4, help="at most, of an answer")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of answers")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2, help="of explanations")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.variant is not None:
        train(options, options.variant, options.training)
        return
    stages = STAGES[:-1] if options.stage == "all" else (options.stage,)
    if "base" in stages:
        train(options, "base", 0)
    with ThreadPoolExecutor(1) as beside:
        control = beside.submit(train_all, options, ["control"] if "train" in stages else [])
        if "choose" in stages and not (options.folder / "chosen.json").is_file():
            write_json(options.folder / "chosen.json", choose(options))
        train_all(options, ["explained", "random"] if "train" in stages else [])
        control.result()
    for variant, training in trainings(options) if "rank" in stages else ():
        place = options.folder / f"ranks-{variant}-{training}.json"
        if not place.is_file():
            write_json(place, ranks_after(options, variant, training))
    if "evaluate" in stages:
        result = evaluate(options)
        print(json.dumps(result, indent=1))
        write_json(options.folder / "result.json", result)


def trainings(options: argparse.Namespace) -> list[tuple[str, int]]:
    """The variants and the numbers of their trainings."""
    numbers = range(1, options.trainings + 1)
    return [(variant, number) for number in numbers for variant in VARIANTS]


def train_all(options: argparse.Namespace, variants: list[str]) -> None:
    """Train some variants in processes of their own, some at a time."""

    def start(job: tuple[str, int]) -> None:
        chosen = ["--stage", "train", "--variant", job[0], "--training", str(job[1])]
        command = [sys.executable, "-m", "benchmarks.explanations", *sys.argv[1:], *chosen]
        subprocess.run(command, check=True)

    wanted = [
        job
        for job in trainings(options)
        if job[0] in variants and not is_trained(place_of(options, *job))
    ]
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        list(pool.map(start, wanted))


def place_of(options: argparse.Namespace, variant: str, training: int) -> Path:
    """Where a run is; the base has no number."""
    return options.folder / (f"{variant}-{training}" if training else variant)


def is_trained(place: Path) -> bool:
    return (place / "metrics.json").is_file()


def train(options: argparse.Namespace, variant: str, training: int) -> LinkRun:
    """The run of a variant: trained on the facts that it keeps, unless it is there already."""
    place = place_of(options, variant, training)
    if not is_trained(place):
        settings = load_experiment(options.experiment, options.overrides)
        settings = replace(settings, seed=settings.seed + training)
        data: Dataset | None = None
        if variant in ("explained", "random"):
            data = reduced(options, nodepiece.open_dataset(settings.dataset), variant)
        nodepiece.train(settings, place, data=data, device=options.device, overwrite=True)
    return load_links(place)


def reduced(options: argparse.Namespace, dataset: Dataset, variant: str) -> Dataset:
    """The dataset without the facts of a variant; all nodes keep their ids."""
    removed = removed_facts(read(options), variant)
    graph = dataset.train
    less = replace(graph, triples=without(graph.triples, fact_ids(dataset.names, removed)))
    return replace(dataset, train=less)


def read(options: argparse.Namespace) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((options.folder / "chosen.json").read_text())
    return content


def removed_facts(chosen: dict[str, Any], variant: str) -> list[NamedFact]:
    """The facts of all answers that a variant removes, each once."""
    facts = [tuple(fact) for answer in chosen["answers"] for fact in answer[variant]]
    return sorted({(head, relation, tail) for head, relation, tail in facts})


def choose(options: argparse.Namespace) -> dict[str, Any]:
    """Right answers with their necessary facts and as many random ones; ranks as the model is."""
    torch.set_num_threads(options.threads)
    numba.set_num_threads(min(options.threads, numba.get_num_threads()))
    run, rng = load_links(options.folder / "base"), np.random.default_rng(options.seed)
    snapshot = run.snapshot
    right = right_answers(run, options.number, rng=rng)
    names, answers, seconds = run.dataset.names, [], []
    for place, row in enumerate(right.tolist()):
        asked = (names.node(row[0]), names.relation(row[1]), names.node(row[2]))
        for _ in range(WARM_UP if place == 0 else 1):
            start = time.perf_counter()
            found = run.explain(
                head=asked[0], relation=asked[1], tail=asked[2], facts=options.facts
            )
            seconds.append(time.perf_counter() - start)
        explained = [each.fact for each in found.necessary]
        answers.append(
            {
                "fact": asked,
                "explained": explained,
                "random": random_facts(run, row, len(explained), rng=rng),
                "rank_without": found.rank_without_all,
            }
        )
        print(f"{place + 1}/{len(right)}: {asked}, {len(explained)} facts", file=sys.stderr)
    chosen = {"answers": answers, "milliseconds": [1000 * each for each in seconds[WARM_UP:]]}
    queries = queries_of(run, chosen)
    chosen["as it is"] = {
        variant: ranks_of(
            queries, snapshot.without(fact_ids(names, removed_facts(chosen, variant)))
        )
        for variant in ("explained", "random")
    }
    chosen["threads"] = torch.get_num_threads()
    return chosen


def right_answers(run: LinkRun, number: int, *, rng: np.random.Generator) -> IntArray:
    """Random test facts whose tail is ranked first: (number, 3), or all that there are."""
    left = run.dataset.test[rng.permutation(len(run.dataset.test))]
    found = left[:0]
    while len(left) and len(found) < number:
        some, left = left[:number], left[number:]
        with torch.no_grad():
            ranks = score_facts(run.snapshot, some.astype(np.int64), 2**30).tail_rank
        found = np.concatenate([found, some[ranks == 1]])
    return found[:number]


def random_facts(
    run: LinkRun, row: list[int], number: int, *, rng: np.random.Generator
) -> list[NamedFact]:
    """Random facts of head and tail."""
    triples, names = run.dataset.train.triples, run.dataset.names
    ends = [row[0], row[2]]
    own = triples[np.isin(triples[:, 0], ends) | np.isin(triples[:, 2], ends)]
    drawn: IntArray = own[rng.permutation(len(own))[:number]]
    return [(names.node(h), names.relation(r), names.node(t)) for h, r, t in drawn.tolist()]


def queries_of(run: LinkRun, chosen: dict[str, Any]) -> list[RankedAnswer]:
    """The answers by ids, with the known answers of the whole dataset."""
    rows = fact_ids(run.dataset.names, [tuple(answer["fact"]) for answer in chosen["answers"]])
    return [RankedAnswer.of(run.snapshot, *row) for row in rows.tolist()]


def ranks_of(queries: list[RankedAnswer], snapshot: Scoring) -> list[float]:
    return [query.outcome(snapshot).rank for query in queries]


def ranks_after(options: argparse.Namespace, variant: str, training: int) -> dict[str, Any]:
    """The ranks of the chosen answers after training again, and the test scores of the new run."""
    chosen, after = read(options), load_links(place_of(options, variant, training))
    whole = nodepiece.open_dataset(load_experiment(options.experiment, options.overrides).dataset)
    known = replace(after.dataset, train=whole.train)
    if known.names.fingerprint != after.dataset.names.fingerprint:
        raise SystemExit("the two datasets have different names")
    filters = replace(after.snapshot.candidates, dataset=known)
    rows = fact_ids(after.dataset.names, [tuple(each["fact"]) for each in chosen["answers"]])
    queries = []
    for head, relation, tail in rows.tolist():
        start, count = filters.known_tails.find(np.array([head]), np.array([relation]))
        places = np.arange(start[0], start[0] + count[0])
        answers = filters.known_tails.answers_at(places).astype(np.int64)
        queries.append(RankedAnswer(head, relation, tail, answers[answers != tail]))
    metrics = json.loads((after.folder / "metrics.json").read_text())
    return {"ranks": ranks_of(queries, after.snapshot), "test": scores_in(metrics)}


def scores_in(metrics: dict[str, Any]) -> dict[str, float]:
    return {name: metrics[name] for name in ("mrr", "hits@1", "hits@10")}


def evaluate(options: argparse.Namespace) -> dict[str, Any]:
    """What MRR and Hits@1 of the chosen answers lose; both are 1 before."""
    chosen = read(options)
    answers, milliseconds = chosen["answers"], np.array(chosen["milliseconds"])
    numbers = [len(answer["explained"]) for answer in answers]
    again: dict[str, list[dict[str, Any]]] = {variant: [] for variant in VARIANTS}
    for variant in VARIANTS:
        for place in sorted(options.folder.glob(f"ranks-{variant}-*.json")):
            again[variant].append(json.loads(place.read_text()))
    ranks = {name: np.array([each["ranks"] for each in found]) for name, found in again.items()}
    as_it_is = {name: np.array([found]) for name, found in chosen["as it is"].items()}
    as_it_is["control"] = np.ones((1, len(answers)))
    settings = load_experiment(options.experiment, options.overrides)
    return {
        "what": "explanations: what right answers lose without the facts that explain them",
        "command": "python -m benchmarks.explanations FOLDER "
        + shlex.join(argument for argument in sys.argv[1:] if argument != str(options.folder)),
        "experiment": options.experiment,
        "dataset": settings.dataset,
        "answers": len(answers),
        "answers that fall without their facts": sum(
            answer["rank_without"] is not None and answer["rank_without"] > 1 for answer in answers
        ),
        "facts": {"mean": float(np.mean(numbers)), "removed": {
            variant: len(removed_facts(chosen, variant)) for variant in ("explained", "random")
        }},
        "milliseconds": {
            "mean": float(milliseconds.mean()),
            "median": float(np.median(milliseconds)),
            "p95": float(np.percentile(milliseconds, 95)),
            "threads": chosen["threads"],
        },
        "as it is": compared(as_it_is),
        "after training again": compared(ranks),
        "trainings": {name: len(found) for name, found in again.items()},
        "test mrr": {
            name: [each["test"]["mrr"] for each in found] for name, found in again.items()
        },
    }  # fmt: skip


def compared(ranks: dict[str, FloatArray]) -> dict[str, Any]:
    """MRR and Hits@1 of each variant, what removals lose beside control, and their ratio.

    ranks: (num_trainings, num_answers) of each variant. The ratio is None where removing random
    facts loses nothing. `interval` has 90 % of the bootstrap over answers.
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, ranks["control"].shape[1], (NUM_SAMPLES, ranks["control"].shape[1]))
    result: dict[str, Any] = {}
    for name, values in (
        ("mrr", {variant: (1 / found).mean(0) for variant, found in ranks.items()}),
        ("hits@1", {variant: (found <= 1).mean(0) for variant, found in ranks.items()}),
    ):
        lost = {each: values["control"] - values[each] for each in ("explained", "random")}
        explained, random = (lost[each][drawn].mean(1) for each in ("explained", "random"))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(random > 0, explained / random, np.inf)
        chance = float(lost["random"].mean())
        result[name] = {
            "after": {variant: float(found.mean()) for variant, found in values.items()},
            "lost in all": {variant: float(1 - found.mean()) for variant, found in values.items()},
            "lost by removal": {each: float(found.mean()) for each, found in lost.items()},
            "interval": {
                "explained": np.quantile(explained, [0.05, 0.95]).tolist(),
                "random": np.quantile(random, [0.05, 0.95]).tolist(),
            },
            "ratio": float(lost["explained"].mean()) / chance if chance > 0 else None,
            "ratio at least (95 % of the bootstrap)": float(np.quantile(ratios, 0.05)),
        }
    return result


if __name__ == "__main__":
    main()
