"""Milliseconds of one query by propagation on a CPU, beside the least that the machine needs.

    python -m benchmarks.propagation_query [--threads 2] [--queries 1]
    python -m benchmarks.propagation_query --train --queries 32 [--dataset inductive/wn18rr-v1]

Scores of all nodes for queries (head, relation, ?) over the training graph, without a gradient;
with --train one step forwards and backwards. The weights are random, which takes as long. The
fastest turn counts, of the kernels and of plain PyTorch. As other programs may use the machine, the
load is recorded, and beside the milliseconds that passed those that the processors spent.

The floor is counted, not measured: rows of states and relations that are read for every edge and
layer, at the rate at which a copy of the states moves bytes; and the multiplications and additions
of the linear maps, at the rate of a large matrix product. Rates are those of a second that one
processor spends, so the floor is one of `processor_ms`; on idle cores the least time that passes is
that over the number of threads.

Writes results/propagation-query.json, with a record for each combination of options.
"""

import argparse
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import nodepiece  # noqa: F401  (before PyTorch, so that waiting threads sleep)

# isort: split
import numba
import torch
from benchmarks.tokenization import ROOT

from nodepiece.data.load import load_benchmark, load_inductive
from nodepiece.decoders.propagation import NUM_SCALERS, Propagation, PropagationSettings
from nodepiece.encoders import message_moments_cpu
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.message_moments import NUM_MOMENTS
from nodepiece.files import write_json
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.tasks.run_metrics import describe_device
from nodepiece.training.memory import keep_freed_memory

SETTINGS = PropagationSettings(layers=6, dim=32, rank=12)
OUTPUT = ROOT / "results" / "propagation-query.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dataset", default="fb15k-237", help="(%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU (%(default)s)")
    parser.add_argument("--queries", type=int, default=1, help="answered together (%(default)s)")
    parser.add_argument("--train", action="store_true", help="also backwards")
    parser.add_argument("--turns", type=int, default=20, help="of the kernels (%(default)s)")
    parser.add_argument("--plain-turns", type=int, default=1, help="of PyTorch (%(default)s)")
    options = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    numba.set_num_threads(options.threads)
    record = measure(load_graph(options.dataset), options)
    print(json.dumps(record, indent=2))
    key = ("dataset", "threads", "queries", "train")
    kept = json.loads(OUTPUT.read_text())["measurements"] if OUTPUT.exists() else []
    kept = [other for other in kept if any(other[name] != record[name] for name in key)]
    device = describe_device(torch.device("cpu"))
    command = "python -m benchmarks.propagation_query, with the options of each record"
    write_json(OUTPUT, {"command": command, "device": device, "measurements": [*kept, record]})


def load_graph(name: str) -> KnowledgeGraph:
    if name.startswith("inductive/"):
        return load_inductive(name, None).training.train
    return load_benchmark(name, None).train


def measure(graph: KnowledgeGraph, options: argparse.Namespace) -> dict[str, Any]:
    num_relations, num_queries = 2 * graph.num_relations, options.queries
    facts = torch.tensor(with_inverses(graph)[:, [2, 1, 0]])
    edges = EdgeIndex(facts, graph.num_nodes, num_relations, "target")
    model = Propagation(num_relations, SETTINGS, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(edges.num_edges)
    heads = torch.arange(num_queries) * 7 % graph.num_nodes
    relations = torch.arange(num_queries) * 3 % num_relations

    def step() -> None:
        with torch.set_grad_enabled(options.train):
            scores = model.score_tails(heads, relations, edges, mask)
            if options.train:
                model.zero_grad()
                scores.sum().backward()  # type: ignore[no-untyped-call]

    load_before = os.getloadavg()[0]
    step()  # compiles, and builds the groupings of the edges
    kernels = fastest(step, options.turns, nullcontext())
    no_kernel = patch.object(message_moments_cpu, "has_kernel", lambda *values: False)
    plain = fastest(step, options.plain_turns, no_kernel) if options.plain_turns else None
    return {
        "dataset": options.dataset,
        "nodes": edges.num_nodes,
        "edges": edges.num_edges,
        "relations": num_relations,
        "threads": options.threads,
        "queries": num_queries,
        "train": options.train,
        "kernels": kernels,
        "plain_pytorch": plain,
        "floor": floor_of(edges, num_queries, train=options.train),
        "load_average": [round(load_before, 1), round(os.getloadavg()[0], 1)],
        "turns": [options.turns, options.plain_turns],
    }


def fastest(
    step: Callable[[], object], turns: int, context: AbstractContextManager[object]
) -> dict[str, float]:
    """Milliseconds that passed, and that the processors spent on all threads."""
    passed, spent = [], []
    with context:
        for _ in range(turns):
            start, processor = perf_counter(), process_time()
            step()
            passed.append(perf_counter() - start)
            spent.append(process_time() - processor)
    return {"ms": round(1000 * min(passed), 3), "processor_ms": round(1000 * min(spent), 3)}


def floor_of(edges: EdgeIndex, num_queries: int, *, train: bool) -> dict[str, float]:
    """The least work of all layers, the rates of this machine, and the milliseconds they give."""
    dim, layers = SETTINGS.dim, SETTINGS.layers
    row = 4 * dim * num_queries
    rows_of_edge = 2 + 6 * train  # backwards two are read again, two sums are read and written
    num_bytes = layers * edges.num_edges * (rows_of_edge * row + (1 + train) * 12)
    products = edges.num_nodes * num_queries * (NUM_MOMENTS + 1) * dim * NUM_SCALERS * dim
    operations = 2 * layers * products * (3 if train else 1)
    states, square = torch.ones(edges.num_nodes, dim), torch.ones(1024, 1024)
    copied = torch.empty_like(states)
    copy = fastest(lambda: copied.copy_(states), 50, nullcontext())["processor_ms"] / 1000
    product = fastest(lambda: square @ square, 50, nullcontext())["processor_ms"] / 1000
    bytes_a_second = 2 * states.numel() * 4 / copy
    operations_a_second = 2 * 1024**3 / product
    seconds = num_bytes / bytes_a_second + operations / operations_a_second
    return {
        "megabytes": round(num_bytes / 1e6),
        "gigabytes_a_second": round(bytes_a_second / 1e9, 1),
        "million_operations": round(operations / 1e6),
        "gigaflops": round(operations_a_second / 1e9, 1),
        "processor_ms": round(1000 * seconds, 1),
    }


if __name__ == "__main__":
    main()
