"""How long a change of a large graph takes: one new node, one edge, a hundred thousand.

    python -m benchmarks.changes --case 2.5m

A new node has ten edges to nodes drawn by how often they are tails. Measured are, warm and on the
CPU: its tokens, its vector from them, the ten likeliest tails for it among all nodes; one edge in,
one edge out; and many at once, compared with tokenizing everything again. At the end the tokens are
compared with such a new tokenization. Weights are random, as they do not affect the time.
Writes results/changes-CASE.json.
"""

import argparse
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from benchmarks.cases import CASES, SEED, make_graph
from benchmarks.tokenization import installed_versions

from nodepiece.decoders.triple_scores import DECODERS
from nodepiece.encoders.node_embedding import EncoderSettings, NodePieceEmbedding
from nodepiece.files import write_json
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.changing_tokens import NO_FACTS, Batch, ChangingTokens
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import TokenTable, tokenize, tokenize_by
from nodepiece.tokenizer.vocabulary import fit_vocabulary

ROOT = Path(__file__).parent.parent
EDGES_OF_NEW_NODE = 10
DIM, HIDDEN = 200, 400
WARM = 20  # measurements that do not count

Measured = dict[str, float | int]


class Subject:
    """A graph with its tokens, and facts to change it by."""

    def __init__(self, name: str) -> None:
        case = CASES[name]
        self.graph: KnowledgeGraph = make_graph(case)
        self.rng = np.random.default_rng(SEED)
        adjacency = build_adjacency(self.graph)
        vocabulary = fit_vocabulary(self.graph, case.settings, rng=self.rng, adjacency=adjacency)
        self.table: TokenTable = tokenize(self.graph, vocabulary, rng=self.rng, adjacency=adjacency)
        self.tokens = ChangingTokens(adjacency, self.table)

    def facts(self, number: int) -> IntArray:
        """Distinct facts that are not there; heads, relations and tails as frequent as before."""
        triples, size = self.graph.triples, 2 * number + 10
        heads, tails = (triples[self.rng.integers(len(triples), size=size)] for _ in range(2))
        facts = np.unique(np.stack([heads[:, 0], heads[:, 1], tails[:, 2]], axis=1), axis=0)
        facts = self.rng.permutation(facts[~self.tokens.adjacency.contains(facts)])
        return np.ascontiguousarray(facts[:number])

    def new_node(self) -> Batch:
        facts = self.facts(EDGES_OF_NEW_NODE).copy()
        facts[:, 0] = self.tokens.num_nodes
        return Batch(np.unique(facts, axis=0), NO_FACTS, 1)


def main() -> None:
    options = parse_options()
    torch.set_grad_enabled(False)
    print(f"{options.case}: preparing the graph and its tokens", flush=True)
    subject = Subject(options.case)
    measured = {
        **measure_new_node(subject, options.repeats),
        **measure_edges(subject, options.repeats),
        **measure_batch(subject, options.batch),
    }
    for name, found in measured.items():
        print(f"{name}: {json.dumps(found)}")
    write_result(options, subject, measured)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case", default="2.5m", choices=CASES)
    parser.add_argument("--repeats", type=int, default=500, help="of small changes (%(default)s)")
    parser.add_argument("--batch", type=int, default=100_000, help="edges at once (%(default)s)")
    return parser.parse_args()


def measure_new_node(subject: Subject, repeats: int) -> dict[str, Measured]:
    tokens = subject.tokens
    batches = [subject.new_node() for _ in range(repeats)]
    generator = torch.Generator().manual_seed(SEED)
    settings = EncoderSettings(dim=DIM, hidden_dim=HIDDEN)
    encoder = NodePieceEmbedding(subject.table, settings, generator=generator).eval()
    vectors = torch.empty(subject.graph.num_nodes, DIM).normal_(generator=generator)
    relation = encoder.tables.relations[:1]

    def vector_of(rows: TokenRows) -> torch.Tensor:
        last = (rows.anchors[-1:], rows.distances[-1:], rows.relations[-1:])
        return encoder.encode_rows(*(torch.from_numpy(column) for column in last))

    def top_tails(batch: Batch) -> torch.Tensor:
        head = vector_of(tokens.changed_by(batch))
        return DECODERS["distmult"].score_all_tails(head, relation, vectors).topk(10).indices

    found = {"tokens of a new node": timed(tokens.changed_by, batches)}
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads would wait for each other longer than one vector takes
    found["tokens and vector of a new node"] = timed(
        lambda batch: vector_of(tokens.changed_by(batch)), batches
    )
    torch.set_num_threads(num_threads)
    few = batches[: max(WARM + 5, repeats // 10)]
    found["tokens, vector and top 10 tails"] = timed(top_tails, few)
    return found


def measure_edges(subject: Subject, repeats: int) -> dict[str, Measured]:
    facts = subject.facts(repeats)
    inserted = [Batch(facts[i : i + 1], NO_FACTS) for i in range(len(facts))]
    removed = [Batch(NO_FACTS, facts[i : i + 1]) for i in range(len(facts))]
    return {
        "one edge inserted": timed(subject.tokens.apply, inserted),
        "one edge removed": timed(subject.tokens.apply, removed),
    }


def measure_batch(subject: Subject, number: int) -> dict[str, Measured]:
    tokens, facts = subject.tokens, subject.facts(number)
    found: dict[str, Measured] = {}
    for name, batch in (
        ("many edges inserted", Batch(facts, NO_FACTS)),
        ("many edges removed", Batch(NO_FACTS, facts)),
    ):
        start = perf_counter()
        rows = tokens.apply(batch)
        seconds = perf_counter() - start
        found[name] = {
            "edges": len(facts),
            "seconds": round(seconds, 3),
            "edges_per_second": round(len(facts) / seconds),
            "rows_changed": len(rows.nodes),
        }
    start = perf_counter()
    adjacency = tokens.adjacency.compact()
    fresh = tokenize_by(tokens.salts, adjacency, tokens.vocabulary)
    found["everything tokenized again"] = {"seconds": round(perf_counter() - start, 3)}
    now = tokens.rows_of(np.arange(tokens.num_nodes, dtype=np.int32))
    columns = ((now.anchors, fresh.anchors), (now.distances, fresh.distances))
    for mine, theirs in (*columns, (now.relations, fresh.relations)):
        if not np.array_equal(mine, theirs):
            raise AssertionError("the tokens are not those of a fresh tokenization")
    return found


def timed(call: Callable[[Any], object], arguments: list[Any]) -> Measured:
    """Microseconds of single calls, after some that warm up."""
    seconds = []
    for argument in arguments:
        start = perf_counter()
        call(argument)
        seconds.append(perf_counter() - start)
    micros = 1e6 * np.array(seconds[min(WARM, len(seconds) // 2) :])
    return {
        "median_us": round(float(np.median(micros)), 1),
        "p90_us": round(float(np.quantile(micros, 0.9)), 1),
        "max_us": round(float(micros.max()), 1),
        "count": len(micros),
    }


def write_result(
    options: argparse.Namespace, subject: Subject, measured: dict[str, Measured]
) -> None:
    settings = subject.tokens.vocabulary.settings
    result = {
        "case": options.case,
        "command": f"python -m benchmarks.changes --case {options.case}",
        "num_nodes": subject.graph.num_nodes,
        "num_edges": subject.graph.num_triples,
        "num_anchors": settings.num_anchors,
        "anchors_per_node": settings.anchors_per_node,
        "relations_per_node": settings.relations_per_node,
        "edges_of_new_node": EDGES_OF_NEW_NODE,
        "dim": DIM,
        "cpus": os.cpu_count(),
        "versions": {"python": platform.python_version()} | installed_versions(),
        "measurements": measured,
    }
    write_json(ROOT / "results" / f"changes-{options.case}.json", result)


if __name__ == "__main__":
    main()
