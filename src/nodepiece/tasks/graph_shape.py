"""The shape of a graph: what the rules of the automatic choice read of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nodepiece.encoders.compressed_rows import rows_by_source
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.tasks.memory_estimate import Sizes

FAR = 1000  # nodes, among which a node has its nearest anchors: 20 of 2 % of the nodes
NUM_STARTS = 16  # nodes that a search begins at


@dataclass(frozen=True)
class GraphShape:
    """What the rules read of a graph."""

    num_nodes: int
    num_facts: int  # of training
    num_relations: int  # without inverses
    num_queries: int  # distinct (head, relation) pairs, inverses included
    two_way: float  # the share of facts whose ends are also linked the other way
    num_hops: int = 5  # from a node until FAR nodes are reached: about as far as its anchors

    @property
    def facts_per_node(self) -> float:
        return self.num_facts / max(1, self.num_nodes)

    @property
    def relations_per_node(self) -> float:
        """The mean number of different relations of a node, inverses included."""
        return self.num_queries / max(1, self.num_nodes)


def shape_of(graph: KnowledgeGraph) -> GraphShape:
    """The shape of a graph; takes a few sorts of its facts."""
    head, relation, tail = graph.triples.astype(np.int64).T
    forwards, backwards = head * graph.num_nodes + tail, tail * graph.num_nodes + head
    queries = [node * graph.num_relations + relation for node in (head, tail)]
    two_way = float(np.isin(forwards, backwards).mean()) if len(forwards) else 0.0
    return GraphShape(
        graph.num_nodes,
        graph.num_triples,
        graph.num_relations,
        sum(num_distinct(each) for each in queries),
        two_way,
        hops_to_reach(graph, FAR, rng=np.random.default_rng(0)),
    )


def hops_to_reach(graph: KnowledgeGraph, number: int, *, rng: np.random.Generator) -> int:
    """The median number of hops from a few random nodes until so many nodes are reached, or all."""
    offsets, neighbours, _ = rows_by_source(with_inverses(graph), graph.num_nodes)
    hops = []
    for start in rng.integers(graph.num_nodes, size=NUM_STARTS):
        seen, reached, num_hops = {int(start)}, [start], 0
        while reached and len(seen) < number:
            rows = [neighbours[offsets[node] : offsets[node + 1]] for node in reached]
            reached = [node for node in np.unique(np.concatenate(rows)) if int(node) not in seen]
            seen.update(map(int, reached))
            num_hops += 1
        hops.append(num_hops)
    return int(np.median(hops))


def num_distinct(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    ordered = np.sort(numbers)
    return int((np.diff(ordered, prepend=-1) > 0).sum())


def sizes_of_shape(shape: GraphShape) -> Sizes:
    sizes = shape.num_nodes, shape.num_facts, shape.num_relations
    return Sizes(
        *sizes,
        num_test_facts=shape.num_facts // 20,
        num_queries=shape.num_queries,
        num_distances=shape.num_hops,
    )
