"""How good are explanations? What right answers lose without the facts that explain them.

As in Kelpie (Rossi et al., 2022): over test facts whose tail the model ranks first, the necessary
facts that `run.explain` names are removed, at most 4 of each answer and those of all answers at
once, and beside that as many random facts of the same two nodes. Of an answer that does not fall
without the facts named, none is necessary and none is removed, in either case. Ranks of these
answers are then measured in the model as it is (tokens and vectors computed again) and after
training again without the facts, with the same settings and seed. Known answers of the whole
dataset are left out of the ranks throughout, removed facts included.

    python -m benchmarks.explanations FOLDER --experiment codex-s-best --device cuda

runs all stages, and a stage that is done is not repeated. Each can be run by itself, also on
another machine, given FOLDER: the runs are needed by their own stages alone, the rest is JSON.

    ... --stage train --variant base          trains on the whole graph: FOLDER/base
    ... --stage choose                        explains right answers: FOLDER/chosen.json
    ... --stage train --variant explained     trains without the necessary facts, and ranks
    ... --stage train --variant random        trains without random facts, and ranks
    ... --stage train --variant control       trains on the whole graph with another seed, and ranks
    ... --stage evaluate                      FOLDER/result.json

`control` is optional: it shows how many of these answers another training loses by chance.
"""

import argparse
import json
import shlex
import sys
import time
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

VARIANTS = ("base", "explained", "random", "control")
STAGES = ("train", "choose", "evaluate", "all")
WARM_UP = 2  # explanations that are not timed: kernels are compiled, indices built


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--stage", choices=STAGES, default="all")
    parser.add_argument("--variant", choices=VARIANTS, action="append")
    parser.add_argument("--number", type=int, default=100, help="of right answers")
    parser.add_argument("--facts", type=int, default=4, help="at most, of an answer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2, help="of explanations")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    variants = options.variant or ["base", "explained", "random"]
    if options.stage in ("train", "all") and "base" in variants:
        train(options, "base")
    if options.stage in ("choose", "all") and not (options.folder / "chosen.json").is_file():
        write_json(options.folder / "chosen.json", choose(options))
    if options.stage in ("train", "all"):
        for variant in variants:
            if variant != "base" and not ranks_file(options, variant).is_file():
                write_json(ranks_file(options, variant), ranks_after(options, variant))
    if options.stage in ("evaluate", "all"):
        result = evaluate(options)
        print(json.dumps(result, indent=1))
        write_json(options.folder / "result.json", result)


def ranks_file(options: argparse.Namespace, variant: str) -> Path:
    return options.folder / f"ranks-{variant}.json"


def train(options: argparse.Namespace, variant: str) -> LinkRun:
    """The run of a variant: trained on the facts that it keeps, unless it is there already."""
    place = options.folder / variant
    if not (place / "metrics.json").is_file():
        settings = load_experiment(options.experiment, options.overrides)
        data: Dataset | None = None
        if variant == "control":
            settings = replace(settings, seed=settings.seed + 1)
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
    with torch.no_grad():
        ranks = score_facts(snapshot, run.dataset.test.astype(np.int64), 2**30).tail_rank
    right = rng.permutation(np.flatnonzero(ranks == 1))[: options.number]
    names, answers, seconds = run.dataset.names, [], []
    for place, row in enumerate(run.dataset.test[right].tolist()):
        asked = (names.node(row[0]), names.relation(row[1]), names.node(row[2]))
        for _ in range(WARM_UP if place == 0 else 1):
            start = time.perf_counter()
            found = run.explain(
                head=asked[0], relation=asked[1], tail=asked[2], facts=options.facts
            )
            seconds.append(time.perf_counter() - start)
        falls = found.rank_without_all is not None and found.rank_without_all > found.rank
        explained = [each.fact for each in found.necessary] if falls else []
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


def ranks_after(options: argparse.Namespace, variant: str) -> dict[str, Any]:
    """The ranks of the chosen answers after training again, and the test scores of the new run."""
    chosen, after = read(options), train(options, variant)
    whole = nodepiece.open_dataset(load_experiment(options.experiment, options.overrides).dataset)
    known = replace(after.dataset, train=whole.train)
    if known.names.fingerprint != after.dataset.names.fingerprint:
        raise SystemExit("the two datasets have different names")
    filters = replace(after.snapshot.candidates, dataset=known)
    rows = fact_ids(after.dataset.names, [tuple(each["fact"]) for each in chosen["answers"]])
    queries = []
    for head, relation, tail in rows.tolist():
        start, count = filters.known_tails.find(np.array([head]), np.array([relation]))
        answers = filters.known_tails.answers[start[0] : start[0] + count[0]].astype(np.int64)
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
    again = {
        variant: json.loads(ranks_file(options, variant).read_text())
        for variant in VARIANTS[1:]
        if ranks_file(options, variant).is_file()
    }
    settings = load_experiment(options.experiment, options.overrides)
    trained = {name: lost(np.array(found["ranks"])) for name, found in again.items()}
    as_it_is = {name: lost(np.array(ranks)) for name, ranks in chosen["as it is"].items()}
    result: dict[str, Any] = {
        "command": "python -m benchmarks.explanations FOLDER "
        + shlex.join(argument for argument in sys.argv[1:] if argument != str(options.folder)),
        "experiment": options.experiment,
        "dataset": settings.dataset,
        "answers": len(answers),
        "answers with necessary facts": sum(number > 0 for number in numbers),
        "facts": {"mean": float(np.mean(numbers)), "removed": {
            variant: len(removed_facts(chosen, variant)) for variant in ("explained", "random")
        }},
        "milliseconds": {
            "mean": float(milliseconds.mean()),
            "median": float(np.median(milliseconds)),
            "p95": float(np.percentile(milliseconds, 95)),
            "threads": chosen["threads"],
        },
        "lost as it is": as_it_is,
        "lost after training again": trained,
        "test": {name: found["test"] for name, found in again.items()},
    }  # fmt: skip
    for name in ("lost as it is", "lost after training again"):
        found = result[name]
        if {"explained", "random"} <= set(found):
            chance = found["random"]["mrr"]
            found["factor"] = found["explained"]["mrr"] / chance if chance else None
    return result


def lost(ranks: FloatArray) -> dict[str, float]:
    """What MRR and Hits@1 lose from 1; ties counted half."""
    return {"mrr": float(1 - (1 / ranks).mean()), "hits@1": float(1 - (ranks <= 1).mean())}


if __name__ == "__main__":
    main()
