"""The support of rules, against rules counted one by one."""

import resource

import numpy as np
import pytest

from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.inference.rule_evidence import PRIOR, rule_support

NUM_NODES, NUM_RELATIONS = 8, 2


def a_graph(seed: int) -> KnowledgeGraph:
    rng = np.random.default_rng(seed)
    facts = rng.integers(0, [NUM_NODES, NUM_RELATIONS, NUM_NODES], (24, 3)).astype(np.int32)
    facts = facts[facts[:, 0] != facts[:, 2]]
    return KnowledgeGraph(np.unique(facts, axis=0), NUM_NODES, NUM_RELATIONS)


def confidence(cases: list[bool]) -> float:
    return sum(cases) / (len(cases) + PRIOR)


def expected(graph: KnowledgeGraph, head: int, relation: int, tail: int) -> dict[str, list[float]]:
    """The largest confidence of the rules that each edge of head and of tail grounds."""
    edges = [(int(h), int(r), int(t)) for h, r, t in with_inverses(graph)]
    inverse = (relation + NUM_RELATIONS) % (2 * NUM_RELATIONS)
    others = [edge for edge in edges if edge[0] != head]

    def flipped(kind: int) -> int:
        return (kind + NUM_RELATIONS) % (2 * NUM_RELATIONS)

    def by_constant(node: int, answer: int, kind: int, edge: tuple[int, int, int]) -> float:
        """Of the x with the same edge as the node, how many have `kind` to the answer?"""
        if (edge[1], edge[2]) == (kind, answer):
            return 0.0  # the fact itself
        same = [x for x, label, end in edges if (label, end) == edge[1:] and x != node]
        return confidence([(x, kind, answer) in edges for x in same])

    def by_pair(first: int) -> float:
        pairs = [(x, y) for x, label, y in others if label == first]
        return confidence([(x, relation, y) in edges for x, y in pairs])

    def by_path(first: int, second: int) -> float:
        pairs = [
            (x, y)
            for x, label, z in others
            if label == first
            for start, other, y in edges
            if start == z and other == second and y != x
        ]
        return confidence([(x, relation, y) in edges for x, y in pairs])

    result: dict[str, list[float]] = {"head": [], "tail": []}
    for edge in edges_of(graph, head):
        _, first, middle = edge
        found = [by_constant(head, tail, relation, edge)]
        if middle == tail and first != relation:
            found.append(by_pair(first))
        if middle not in (head, tail):
            seconds = [label for z, label, y in edges if (z, y) == (middle, tail)]
            found += [by_path(first, second) for second in seconds]
        result["head"].append(max(found))
    for edge in edges_of(graph, tail):
        _, back, middle = edge
        found = [by_constant(tail, head, inverse, edge)]
        if middle == head and flipped(back) != relation:
            found.append(by_pair(flipped(back)))
        if middle not in (head, tail):
            firsts = [label for x, label, z in edges if (x, z) == (head, middle)]
            found += [by_path(first, flipped(back)) for first in firsts]
        result["tail"].append(max(found))
    return result


def edges_of(graph: KnowledgeGraph, node: int) -> list[tuple[int, int, int]]:
    adjacency = build_adjacency(graph)
    row = slice(*adjacency.offsets[node : node + 2].tolist())
    pairs = zip(adjacency.relations[row].tolist(), adjacency.neighbours[row].tolist(), strict=True)
    return [(node, relation, other) for relation, other in pairs]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("relation", [0, 1, 3])
def test_support_is_the_largest_confidence_of_a_rule(seed: int, relation: int) -> None:
    graph = a_graph(seed)
    head, tail = 1, 2
    found = rule_support(build_adjacency(graph), head, relation, tail)
    wanted = expected(graph, head, relation, tail)
    np.testing.assert_allclose(found.of_head, wanted["head"])
    np.testing.assert_allclose(found.of_tail, wanted["tail"])


def test_speakers_of_french_are_citizens_of_france() -> None:
    """Nine of ten others with French (2) as their language are citizens (0) of France (1)."""
    french, france, ada = 10, 11, 12
    speakers = [(x, 1, french) for x in (*range(10), ada)]
    citizens = [(x, 0, france) for x in range(9)]
    graph = KnowledgeGraph(np.array(speakers + citizens, np.int32), 13, 2)
    support = rule_support(build_adjacency(graph), ada, 0, france)
    assert support.of_head.tolist() == [9 / (10 + PRIOR)]


def test_thousands_of_relations_take_memory_for_those_of_the_two_nodes() -> None:
    """A number for every pair of 8,000 relations would take 512 MB."""
    facts = [(0, 3_999, 1), (0, 5, 2), (2, 3_000, 1), (3, 3_999, 4), (3, 5, 4)]
    adjacency = build_adjacency(KnowledgeGraph(np.array(facts, np.int32), 5, 4_000))
    rule_support(build_adjacency(a_graph(0)), 1, 0, 2)  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    support = rule_support(adjacency, 0, 3_999, 1)
    assert len(support.of_head) == 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
