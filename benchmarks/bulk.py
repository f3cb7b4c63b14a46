"""Queries in bulk beside ranking: the same queries, the ten best answers by name, or the ranks.

    python -m benchmarks.bulk --run RUN --facts 2000 -o results/bulk-fb15k-237.json
    python -m benchmarks.bulk --nodes 2500000 --edges 5000000 --facts 64 -o results/bulk-2.5m.json

Ranks the tails and heads of test facts (`rank_links`), and answers the same queries, by name, as
`predict_many` does, so that names are looked up and a table is made. With --nodes, a generated
graph and random vectors of 200 numbers: the time does not depend on their values. Both are repeated
in turn, and the medians are compared, of seconds and of processor seconds, which other programs on
the machine disturb less.
"""

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from benchmarks.generate import HUB_SHARE, generate_graph

from nodepiece.data.dataset import Dataset
from nodepiece.data.query_rows import numbered
from nodepiece.decoders.link_model import DecoderSettings, LinkModel
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.lookup_embedding import LookupEmbedding
from nodepiece.evaluation.ranking import rank_links
from nodepiece.files import write_json
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.inference.bulk import AnswerSettings, Scoring, answer_in_batches
from nodepiece.inference.run import load_links
from nodepiece.inference.snapshot import Snapshot
from nodepiece.tokenizer.tokens import TokenTable

DIM, NUM_RELATIONS, SEED = 200, 535, 0
NO_FACTS = np.empty((0, 3), np.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", type=Path, help="a run of link prediction")
    parser.add_argument("--nodes", type=int, help="of a generated graph, in place of a run")
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--facts", type=int, default=2000, help="two queries each")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory-gigabytes", type=float, default=1.0)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    if options.run is not None:
        snapshot = load_links(options.run).snapshot
        facts = snapshot.dataset.test[: options.facts]
    else:
        snapshot = generated(options.nodes, options.edges)
        facts = snapshot.dataset.train.triples[: options.facts]
    measured = compare(snapshot, facts, options.repeats, int(options.memory_gigabytes * 2**30))
    print(json.dumps(measured, indent=1))
    if options.output is not None:
        command = f"python -m benchmarks.bulk --facts {options.facts} --repeats {options.repeats}"
        size = f" --nodes {options.nodes} --edges {options.edges}"
        command += " --run RUN" if options.run else size
        write_json(options.output, {"command": command} | measured)


def compare(snapshot: Scoring, facts: IntArray, repeats: int, budget: int) -> dict[str, Any]:
    dataset, names = snapshot.dataset, snapshot.dataset.names
    queries = [(names.node(h), names.relation(r), "?") for h, r, _ in facts.tolist()]
    queries += [("?", names.relation(r), names.node(t)) for _, r, t in facts.tolist()]
    settings = AnswerSettings(top=10, memory_budget=budget)
    known = snapshot.candidates.known_tails

    def rank() -> int:
        ranks = rank_links(
            snapshot.score_tails, facts, known, memory_budget=budget, device=snapshot.device
        )
        return len(ranks.head)

    def answer() -> int:
        tables = answer_in_batches(
            snapshot, numbered(queries), settings, on_refused=lambda refused: None
        )
        return sum(map(len, tables))

    found: dict[str, list[tuple[float, float]]] = {"ranking": [], "bulk": []}
    for _ in range(repeats + 1):  # the first one compiles, and does not count
        found["ranking"].append(timed(rank))
        found["bulk"].append(timed(answer))
    medians = {name: np.median(np.array(times[1:]), axis=0) for name, times in found.items()}
    ratio = medians["bulk"] / medians["ranking"]
    return {
        "nodes": dataset.num_nodes,
        "queries": len(queries),
        "threads": torch.get_num_threads(),
        "processor": platform.processor() or platform.machine(),
        **{
            f"{name}_{what}_per_query_ms": round(1000 * float(value) / len(queries), 4)
            for name, median in medians.items()
            for what, value in zip(("seconds", "cpu_seconds"), median, strict=True)
        },
        "ratio_seconds": round(float(ratio[0]), 3),
        "ratio_cpu_seconds": round(float(ratio[1]), 3),
    }


def timed(work: Callable[[], int]) -> tuple[float, float]:
    start, cpu = perf_counter(), process_time()
    work()
    return perf_counter() - start, process_time() - cpu


def generated(num_nodes: int, num_edges: int) -> Snapshot:
    rng, generator = np.random.default_rng(SEED), torch.Generator().manual_seed(SEED)
    graph = generate_graph(
        num_nodes, num_edges, NUM_RELATIONS, hub_degree=round(HUB_SHARE * num_edges), rng=rng
    )
    names = Names.of(
        [f"Q{node}" for node in range(num_nodes)], [f"P{each}" for each in range(NUM_RELATIONS)]
    )
    named = KnowledgeGraph(graph.triples, num_nodes, NUM_RELATIONS, names)
    model = LinkModel(
        LookupEmbedding(num_nodes, DIM, generator=generator),
        torch.empty((0, 3), dtype=torch.int64),
        2 * NUM_RELATIONS,
        DecoderSettings("complex"),
        GraphLayerSettings(),
        generator=generator,
    )
    dataset = Dataset("generated", named, NO_FACTS, NO_FACTS, {})
    table: TokenTable = None  # type: ignore[assignment]  # the graph does not change here
    return Snapshot(model.eval(), dataset, table)


if __name__ == "__main__":
    main()
