"""The shape of a graph: what the rules of the automatic choice read of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nodepiece.compiled import njit
from nodepiece.encoders.compressed_rows import rows_by_source
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.tasks.memory_estimate import Sizes

FAR = 1000  # nodes, among which a node has its nearest anchors: 20 of 2 % of the nodes
NUM_STARTS = 16  # nodes that a search begins at
WALK_STEPS, WALK_DEGREE = 3, 1000  # of walks; they end at nodes with more edges
NUM_WALKS = 64  # that are followed to count their edges
MANY_EDGES = 10**8  # of all of these walks: enough to know


@dataclass(frozen=True)
class GraphShape:
    """What the rules read of a graph."""

    num_nodes: int
    num_facts: int  # of training
    num_relations: int  # without inverses
    num_queries: int  # distinct (head, relation) pairs, inverses included
    two_way: float  # the share of facts whose ends are also linked the other way
    num_hops: int = 5  # from a node until FAR nodes are reached: about as far as its anchors
    # edges that a walk from the head of a fact follows in 1, 2 and WALK_STEPS steps, on average
    walk_edges: tuple[float, ...] = (0.0, 0.0, 0.0)

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
    edges = with_inverses(graph)
    offsets, neighbours, _ = rows_by_source(edges, graph.num_nodes)
    rng = np.random.default_rng(0)
    hops = hops_to_reach(offsets, neighbours, FAR, rng=rng)
    heads = edges[rng.integers(len(edges), size=NUM_WALKS), 2] if len(edges) else edges[:, 2]
    return GraphShape(
        graph.num_nodes,
        graph.num_triples,
        graph.num_relations,
        sum(num_distinct(each) for each in queries),
        two_way,
        hops,
        edges_followed(offsets, neighbours, heads),
    )


def hops_to_reach(
    offsets: LongArray, neighbours: IntArray, number: int, *, rng: np.random.Generator
) -> int:
    """The median number of hops from a few random nodes until so many nodes are reached, or all.

    offsets, neighbours: those of `rows_by_source`.
    """
    hops = []
    for start in rng.integers(len(offsets) - 1, size=NUM_STARTS):
        seen, reached, num_hops = {int(start)}, [start], 0
        while reached and len(seen) < number:
            rows = [neighbours[offsets[node] : offsets[node + 1]] for node in reached]
            reached = [node for node in np.unique(np.concatenate(rows)) if int(node) not in seen]
            seen.update(map(int, reached))
            num_hops += 1
        hops.append(num_hops)
    return int(np.median(hops))


def edges_followed(offsets: LongArray, neighbours: IntArray, heads: IntArray) -> tuple[float, ...]:
    """The mean number of edges that walks from `heads` follow, after each of their steps."""
    by_step, num_walks = _count_edges(offsets, neighbours, heads, WALK_STEPS, WALK_DEGREE)
    return tuple(np.cumsum(by_step / max(1, num_walks)).tolist())


@njit(cache=True)
def _count_edges(offsets, neighbours, heads, num_steps, max_degree):  # type: ignore[no-untyped-def]
    """The edges that walks follow in each step, and how many walks were followed."""
    by_step = np.zeros(num_steps, np.int64)
    num_nodes = len(offsets) - 1
    reached_at = np.zeros(num_nodes, np.int32)  # the number of the step that reached a node last
    here, there = np.empty(num_nodes, np.int32), np.empty(num_nodes, np.int32)
    number, num_walks = 0, 0
    for head in heads:
        if by_step.sum() > MANY_EDGES:
            break
        num_walks += 1
        here[0], num_here = head, 1
        for step in range(num_steps):
            number += 1
            num_there = 0
            for node in here[:num_here]:
                start, end = offsets[node], offsets[node + 1]
                if step > 0 and end - start > max_degree:
                    continue
                by_step[step] += end - start
                for edge in range(start, end):
                    if reached_at[neighbours[edge]] != number:
                        reached_at[neighbours[edge]] = number
                        there[num_there] = neighbours[edge]
                        num_there += 1
            here, there, num_here = there, here, num_there
            if offsets[head + 1] - offsets[head] > max_degree:
                break  # from there walks have one step
    return by_step, num_walks


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
