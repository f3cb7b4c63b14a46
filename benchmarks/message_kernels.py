"""Milliseconds of the kernels of propagation on a GPU, by how much each of their programs takes.

    python -m benchmarks.message_kernels [--dataset fb15k-237]

One layer over the training graph for 32 queries of 32 numbers in bfloat16: the moments of all
messages, their gradients, and the sums of these gradients by source and by relation. The sizes that
the kernels have are among those that are tried; results do not depend on them, but for rounding.

Writes results/message-kernels.json.
"""

import argparse
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from benchmarks.tokenization import ROOT

from nodepiece.data.load import load_benchmark
from nodepiece.encoders import edge_products_cuda, message_moments_cuda
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.edge_products import add_products
from nodepiece.files import write_json
from nodepiece.graph.knowledge_graph import with_inverses
from nodepiece.tasks.run_metrics import describe_device

NUM_QUERIES, DIM = 32, 32
TURNS = 8
PROGRAMS = [  # edges and columns at once, and warps
    (edges, columns, warps)
    for edges in (1, 2, 4, 8, 16)
    for columns in (64, 128, 256)
    for warps in (1, 2, 4)
    if 4 <= edges * columns // (32 * warps) <= 64
]
SUMS = [(edges, columns) for edges in (4, 8, 16, 32) for columns in (64, 128, 256, 512)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dataset", default="fb15k-237", help="(%(default)s)")
    options = parser.parse_args()
    graph = load_benchmark(options.dataset, None).train
    facts = torch.tensor(with_inverses(graph)).cuda()
    edges = EdgeIndex(facts, graph.num_nodes, 2 * graph.num_relations, "target")
    content = {
        "command": f"python -m benchmarks.message_kernels --dataset {options.dataset}",
        "device": describe_device(torch.device("cuda")),
        "dataset": options.dataset,
        **measure(edges),
    }
    write_json(ROOT / "results" / "message-kernels.json", content)


def measure(edges: EdgeIndex) -> dict[str, Any]:
    generator = torch.Generator("cuda").manual_seed(0)

    def random(rows: int, *shape: int) -> torch.Tensor:
        size = (rows, NUM_QUERIES, *shape, DIM)
        return torch.randn(size, device="cuda", generator=generator).bfloat16()

    states, relations = random(edges.num_nodes), random(edges.num_relations)
    boundary, gradient = random(1)[0], random(edges.num_nodes, 5)
    heads = torch.arange(NUM_QUERIES, device="cuda") * 7 % edges.num_nodes
    mask = torch.ones(edges.num_edges, device="cuda")
    kernels = message_moments_cuda
    given = (states, relations, boundary, heads, mask, edges)
    found, count = kernels.moments(*given)
    back = (states, relations, mask, found, count, gradient, edges)
    of_messages = kernels.message_gradients(*back).flatten(start_dim=1)
    programs, sums = [], []
    for at_once, columns, warps in PROGRAMS:
        numbers = at_once * columns
        with patch.multiple(
            kernels,
            COLUMNS_AT_ONCE=columns,
            NUMBERS_AT_ONCE=numbers,
            GRADIENTS_AT_ONCE=numbers,
            WARPS=warps,
        ):
            milliseconds = {
                "moments": time_of(lambda: kernels.moments(*given)),
                "gradients": time_of(lambda: kernels.message_gradients(*back)),
            }
        sizes = {"edges_at_once": at_once, "columns_at_once": columns, "warps": warps}
        programs.append(sizes | {"ms": milliseconds})
        print(programs[-1])
    each = (of_messages, None)
    through = (relations.flatten(start_dim=1), edges.relation.rows)
    leaving = (states.flatten(start_dim=1), edges.source.rows)
    for at_once, columns in SUMS:
        with patch.multiple(
            edge_products_cuda,
            EDGES_AT_ONCE=at_once,
            _columns=lambda dim, how, block=columns: (dim, block),
        ):
            milliseconds = {
                "by source": time_of(lambda: add_products(each, through, edges.source.edges)),
                "by relation": time_of(lambda: add_products(each, leaving, edges.relation.edges)),
            }
        sums.append({"edges_at_once": at_once, "columns_at_once": columns, "ms": milliseconds})
        print(sums[-1])
    return {"programs": programs, "sums": sums}


def time_of(work: Callable[[], object]) -> float:
    """Milliseconds of a turn, after two for warm-up."""
    for _ in range(2):
        work()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(TURNS):
        work()
    end.record()
    torch.cuda.synchronize()
    return round(start.elapsed_time(end) / TURNS, 4)


if __name__ == "__main__":
    main()
