"""The automatic choice on graphs of many kinds, beside popularity.

    python -m benchmarks.variety --minutes 0.5 -o results/variety.json [--kind star]

Every kind is generated, 5 % of its facts are held out for validation and as many for test, and it
is trained for some minutes. Written are MRR of the model and of popularity, what was chosen, and
whether the run ended in time. A kind with nothing to learn but popularity is named so.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from benchmarks.planted_graphs import GraphSizes, planted_graph

from nodepiece.data.dataset import Dataset
from nodepiece.data.encode import drop_duplicates
from nodepiece.files import write_json
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.settings import changed_settings, load_experiment
from nodepiece.tasks.run_folder import CONFIG
from nodepiece.tasks.train import train_experiment
from nodepiece.training.memory import keep_freed_memory

Facts = tuple[LongArray, LongArray, LongArray]  # heads, relations, tails


def planted(nodes: int, facts: int, relations: int) -> Callable[[np.random.Generator], Facts]:
    sizes = GraphSizes(nodes, facts, relations)
    return lambda rng: tuple(planted_graph(sizes, rng=rng).triples.astype(np.int64).T)


def star(rng: np.random.Generator) -> Facts:
    """A hub and its leaves, and leaves of the same colour in a ring."""
    leaves = np.arange(1, 3_001)
    colour = leaves % 10
    following = leaves + 10 - 3_000 * (leaves > 2_990)
    heads = np.concatenate([np.zeros(3_000, np.int64), leaves])
    return heads, np.concatenate([colour, 10 + colour]), np.concatenate([leaves, following])


def chain(rng: np.random.Generator) -> Facts:
    """Nodes in a line: the next, the one after it, and the previous."""
    nodes = np.arange(2, 4_000)
    tails = [nodes + 1, nodes + 2, nodes - 1]
    relations = np.repeat(np.arange(3), len(nodes))
    return np.tile(nodes, 3), relations, np.concatenate(tails)


def one_relation(rng: np.random.Generator) -> Facts:
    """Friends of friends in groups of 20, most of them both ways."""
    heads = rng.integers(2_000, size=12_000)
    tails = heads // 20 * 20 + rng.integers(20, size=12_000)
    both = rng.random(12_000) < 0.7
    ends = np.concatenate([heads, tails[both]]), np.concatenate([tails, heads[both]])
    return ends[0], np.zeros(len(ends[0]), np.int64), ends[1]


def users_and_items(rng: np.random.Generator) -> Facts:
    """Users of 30 tastes buy items of their taste, by a power law."""
    users = rng.integers(3_000, size=30_000)
    place = (60 * rng.random(30_000) ** 2.5).astype(np.int64)
    items = 3_000 + users % 30 * 60 + place
    return users, (rng.random(30_000) < 0.2).astype(np.int64), items


def many_relations(rng: np.random.Generator) -> Facts:
    """300 relations, each from the 40 groups of nodes to the first members of groups."""
    heads, relations = rng.integers(2_000, size=6_000), rng.integers(300, size=6_000)
    maps = np.stack([rng.permutation(40) for _ in range(300)])
    return heads, relations, maps[relations, heads % 40]


def five_nodes(rng: np.random.Generator) -> Facts:
    pairs = np.arange(25)
    return np.tile(pairs // 5, 12), np.repeat(np.arange(12), 25), np.tile(pairs % 5, 12)


def loops(rng: np.random.Generator) -> Facts:
    """Each node is itself, and like its neighbour in a ring."""
    nodes = np.arange(1_500)
    tails = np.concatenate([nodes, (nodes + 1) % 1_500, (nodes - 1) % 1_500])
    return np.tile(nodes, 3), np.repeat(np.arange(3), 1_500), tails


KINDS: dict[str, Callable[[np.random.Generator], Facts]] = {
    "sparse": planted(6_000, 12_000, 24),
    "many relations": many_relations,
    "dense and small": planted(300, 9_000, 8),
    "star": star,
    "chain": chain,
    "one relation": one_relation,
    "users and items": users_and_items,
    "five nodes": five_nodes,
    "self-loops": loops,
}


def dataset_of(kind: str) -> Dataset:
    """The facts of a kind; training holds some of them out."""
    heads, relations, tails = KINDS[kind](np.random.default_rng(0))
    num_nodes, num_relations = int(max(heads.max(), tails.max())) + 1, int(relations.max()) + 1
    triples = np.stack([heads, relations, tails], axis=1).astype(np.int32)
    triples = drop_duplicates(triples, num_nodes, num_relations)
    nodes, kinds = [f"n{n}" for n in range(num_nodes)], [f"r{r}" for r in range(num_relations)]
    graph = KnowledgeGraph(triples, num_nodes, num_relations, Names.of(nodes, kinds))
    return Dataset(kind.replace(" ", "-"), graph, triples[:0], triples[:0], {"valid": 0, "test": 0})


def measure(kind: str, minutes: float) -> dict[str, Any]:
    dataset, started = dataset_of(kind), perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        metrics = train_experiment(None, folder, data=dataset, minutes=minutes, device="cpu")
        seconds = perf_counter() - started
        settings = changed_settings(load_experiment(folder / CONFIG))
    assert metrics is not None  # nothing stops it before the end
    return {
        "nodes": dataset.num_nodes,
        "facts": dataset.train.num_triples,
        "relations": dataset.train.num_relations,
        "mrr": metrics["mrr"],
        "popularity_mrr": metrics["popularity"]["mrr"],
        "parameters": metrics["parameters"],
        "steps": metrics["steps"],
        "seconds": round(seconds, 1),
        "is_in_time": seconds < 63 * minutes + 2,
        "settings": settings,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="The automatic choice on many kinds of graphs.")
    parser.add_argument("--minutes", type=float, default=0.5, help="of each graph")
    parser.add_argument("--kind", action="append", choices=tuple(KINDS), help="instead of all")
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    keep_freed_memory()  # as `nodepiece train` does
    content: dict[str, Any] = {
        "what": "the automatic choice on generated graphs of many kinds, beside popularity",
        "command": shlex.join(["python", "-m", "benchmarks.variety", *sys.argv[1:]]),
        "cpus": os.cpu_count(),
        "minutes": options.minutes,
        "kinds": {},
    }
    for kind in options.kind or KINDS:
        print(f"{kind}, {options.minutes:g} minutes at most ...", flush=True)
        found = measure(kind, options.minutes)
        content["kinds"][kind] = found
        shown = {key: found[key] for key in ("mrr", "popularity_mrr", "steps", "seconds")}
        print(kind, json.dumps(shown), flush=True)
        if options.out is not None:
            write_json(options.out, content)


if __name__ == "__main__":
    main()
