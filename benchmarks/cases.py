"""The graphs and sizes that tokenization is measured on, and their files.

python -m benchmarks.cases CASE FOLDER

writes what all measurements of a case start from: FOLDER/inputs.npz with the facts and the anchors
(ours, by the paper's mix) and, where reading is measured too, FOLDER/graph.tsv. It prints the sizes
of the graph as one line of JSON.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.generate import HUB_SHARE, generate_graph, write_graph

from nodepiece.data.benchmarks import locate_benchmark
from nodepiece.data.read import read_graph
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.anchors import select_anchors
from nodepiece.tokenizer.settings import PAPER_MIX, TokenizerSettings

SEED = 0


@dataclass(frozen=True)
class Case:
    """A graph, and the numbers of anchors and relations per node."""

    num_anchors: int
    anchors_per_node: int  # k
    relations_per_node: int  # m
    benchmark: str | None = None  # a public benchmark by name, or
    generated: tuple[int, int, int] | None = None  # nodes, edges and relations of a generated graph
    num_repeats: int = 1  # of each measurement; the median counts
    reads_file: bool = False  # measure reading the graph from a TSV file as well
    with_pykeen: bool = True  # False: a table of all nodes by all anchors does not fit in memory

    @property
    def settings(self) -> TokenizerSettings:
        return TokenizerSettings(
            num_anchors=self.num_anchors,
            anchors_per_node=self.anchors_per_node,
            relations_per_node=self.relations_per_node,
        )


CASES = {
    "fb15k-237": Case(1_000, 20, 15, benchmark="fb15k-237", num_repeats=3),
    "wn18rr": Case(500, 50, 4, benchmark="wn18rr", num_repeats=3),
    "123k": Case(10_000, 20, 5, generated=(123_000, 1_080_000, 37)),
    "2.5m": Case(
        20_000,
        20,
        12,
        generated=(2_500_000, 16_000_000, 535),
        reads_file=True,
        with_pykeen=False,
    ),
}


@dataclass(frozen=True, eq=False)
class Inputs:
    """The graph and the anchors of a measurement."""

    case: Case
    graph: KnowledgeGraph  # without names
    anchors: IntArray  # (num_anchors,)
    folder: Path


def prepare(case: Case, folder: Path) -> dict[str, int]:
    """Write the files; the sizes of the graph."""
    graph = make_graph(case)
    rng = np.random.default_rng(SEED)
    anchors = select_anchors(build_adjacency(graph), case.num_anchors, PAPER_MIX, rng=rng)
    sizes = [graph.num_nodes, graph.num_relations]
    np.savez(folder / "inputs.npz", triples=graph.triples, anchors=anchors, sizes=sizes)
    if case.reads_file:
        write_graph(graph, folder / "graph.tsv")
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_triples,
        "num_relations": graph.num_relations,
    }


def make_graph(case: Case) -> KnowledgeGraph:
    if case.benchmark is not None:
        return read_graph(locate_benchmark(case.benchmark, data=None).folder)
    if case.generated is None:
        raise ValueError("a case is a benchmark or a generated graph")
    num_nodes, num_edges, num_relations = case.generated
    hub_degree, rng = round(HUB_SHARE * num_edges), np.random.default_rng(SEED)
    return generate_graph(num_nodes, num_edges, num_relations, hub_degree=hub_degree, rng=rng)


def load_inputs(case: Case, folder: Path) -> Inputs:
    with np.load(folder / "inputs.npz") as arrays:
        num_nodes, num_relations = arrays["sizes"].tolist()
        graph = KnowledgeGraph(arrays["triples"], num_nodes, num_relations)
        return Inputs(case, graph, arrays["anchors"], folder)


if __name__ == "__main__":
    print(json.dumps(prepare(CASES[sys.argv[1]], Path(sys.argv[2]))))
