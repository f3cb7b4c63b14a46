"""Generated graphs have the sizes asked for, and the rules that they are said to have."""

import numpy as np
import pytest
from benchmarks.planted_graphs import GraphSizes, planted_graph, planted_split

from nodepiece.graph.knowledge_graph import KnowledgeGraph

SIZES = GraphSizes(num_nodes=3_000, num_facts=15_000, num_relations=24)


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return planted_graph(SIZES, rng=np.random.default_rng(0))


def test_it_has_exactly_the_sizes_asked_for(graph: KnowledgeGraph) -> None:
    head, _, tail = graph.triples.T
    assert len(np.unique(graph.triples, axis=0)) == SIZES.num_facts
    assert len(np.union1d(head, tail)) == graph.num_nodes == SIZES.num_nodes
    assert (head != tail).all()


def test_most_facts_of_an_inverse_relation_are_facts_of_the_one_before_it(
    graph: KnowledgeGraph,
) -> None:
    known = set(map(tuple, graph.triples.tolist()))
    inverse = [fact for fact in graph.triples.tolist() if fact[1] % 8 == 2]
    assert len(inverse) > 100
    held = sum((tail, relation - 1, head) in known for head, relation, tail in inverse)
    assert held / len(inverse) > 0.8


def test_the_same_seed_gives_the_same_split_and_every_test_node_is_in_training() -> None:
    one, other = (planted_split(SIZES, seed=1) for _ in range(2))
    assert np.array_equal(one.test, other.test)
    assert len(one.test) == len(one.valid) == 750
    trained = np.unique(one.train.triples[:, [0, 2]])
    assert np.isin(one.test[:, [0, 2]], trained).all()
