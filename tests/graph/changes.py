"""Random graphs, and random batches of facts that come and go."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph

Facts = set[tuple[int, int, int]]
NUM_RELATIONS = 3


@dataclass(frozen=True)
class Batch:
    """Facts to insert, which are not there, facts to remove, which are, and nodes to add before."""

    inserted: IntArray
    removed: IntArray
    num_new_nodes: int


def as_facts(facts: Facts) -> IntArray:
    return np.array(sorted(facts), np.int32).reshape(-1, 3)


def random_facts(num_nodes: int, number: int, rng: np.random.Generator) -> Facts:
    limits = (num_nodes, NUM_RELATIONS, num_nodes)
    return set(map(tuple, rng.integers(limits, size=(number, 3)).tolist()))


@st.composite
def histories(
    draw: st.DrawFn, *, max_nodes: int = 40
) -> tuple[KnowledgeGraph, list[Batch], np.random.Generator]:
    """A graph, sparse enough to fall into parts, and what happens to it, batch by batch."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_nodes = draw(st.integers(1, max_nodes))
    present = random_facts(num_nodes, draw(st.integers(0, 2 * num_nodes)), rng)
    graph = KnowledgeGraph(as_facts(present), num_nodes, NUM_RELATIONS)
    batches = []
    for _ in range(draw(st.integers(1, 5))):
        num_new = draw(st.sampled_from([0, 0, 1, 3]))
        num_nodes += num_new
        share = draw(st.sampled_from([0.0, 0.05, 0.4, 1.0]))
        removed = {fact for fact in sorted(present) if rng.random() < share}
        inserted = random_facts(num_nodes, draw(st.integers(0, 6)), rng) - present
        present = (present - removed) | inserted
        batches.append(Batch(as_facts(inserted), as_facts(removed), num_new))
    return graph, batches, rng
