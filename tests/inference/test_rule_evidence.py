"""What rules add to the odds of a fact, against rules counted one by one."""

import resource

import numpy as np
import pytest

from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.inference.rule_evidence import (
    MAX_CONFIDENCE,
    MAX_HEADS,
    PRIOR,
    Support,
    rule_support,
)

NUM_NODES, NUM_RELATIONS = 8, 2


def a_graph(seed: int) -> KnowledgeGraph:
    rng = np.random.default_rng(seed)
    facts = rng.integers(0, [NUM_NODES, NUM_RELATIONS, NUM_NODES], (24, 3)).astype(np.int32)
    facts = facts[facts[:, 0] != facts[:, 2]]
    return KnowledgeGraph(np.unique(facts, axis=0), NUM_NODES, NUM_RELATIONS)


def added(cases: list[bool], share: float) -> float:
    """By how much the odds exceed those of the share, as a factor less 1."""
    confidence = min((sum(cases) + PRIOR * share) / (len(cases) + PRIOR), MAX_CONFIDENCE)
    return max(0.0, confidence / (1 - confidence) / (share / (1 - share)) - 1)


def flipped(kind: int) -> int:
    return (kind + NUM_RELATIONS) % (2 * NUM_RELATIONS)


def expected(
    graph: KnowledgeGraph, head: int, relation: int, tail: int
) -> tuple[dict[int, float], dict[tuple[int, int], float]]:
    """What rules add, by the facts that ground them: one fact, or a pair of them."""
    edges = [(int(h), int(r), int(t)) for h, r, t in with_inverses(graph)]
    num_facts = graph.num_triples  # an edge and its inverse are the same fact
    of_facts: dict[int, float] = {}
    of_paths: dict[tuple[int, int], float] = {}

    def share(node: int, kind: int, answer: int) -> float:
        others = [x for x, label, y in edges if (label, y) == (kind, answer) and x != node]
        return min(
            (len(others) + 0.1) / (len({x for x, r, _ in edges if r == kind}) + 1), MAX_CONFIDENCE
        )

    def by_constants(node: int, kind: int, answer: int) -> None:
        having = {x for x, label, _ in edges if label == kind}
        for place, (start, label, end) in enumerate(edges):
            if start != node:
                continue
            of_facts.setdefault(place % num_facts, 0.0)
            if (label, end) == (kind, answer):
                continue  # the fact itself
            same = [x for x, r, y in edges if (r, y) == (label, end) and x != node and x in having]
            cases = [(x, kind, answer) in edges for x in same]
            of_facts[place % num_facts] += added(cases, share(node, kind, answer))

    by_constants(head, relation, tail)
    by_constants(tail, flipped(relation), head)
    others = [edge for edge in edges if edge[0] != head]
    for place, (start, first, middle) in enumerate(edges):
        if start != head:
            continue
        if middle == tail and first != relation:
            pairs = [(x, y) for x, label, y in others if label == first]
            cases = [(x, relation, y) in edges for x, y in pairs]
            of_facts[place % num_facts] += added(cases, share(head, relation, tail))
        for second_place, (z, second, end) in enumerate(edges):
            if middle in (head, tail) or (z, end) != (middle, tail):
                continue
            pairs = [
                (x, y)
                for x, label, z in others
                if label == first
                for other_start, other, y in edges
                if other_start == z and other == second and y != x
            ]
            cases = [(x, relation, y) in edges for x, y in pairs]
            found = added(cases, share(head, relation, tail))
            if found > 0:
                key = (place % num_facts, second_place % num_facts)
                of_paths[key] = found
    return of_facts, of_paths


def facts_of(graph: KnowledgeGraph, node: int) -> np.ndarray:
    return np.flatnonzero((graph.triples[:, 0] == node) | (graph.triples[:, 2] == node))


def support_of(graph: KnowledgeGraph, head: int, relation: int, tail: int) -> Support:
    positions = facts_of(graph, head), facts_of(graph, tail)
    return rule_support(build_adjacency(graph), head, relation, tail, positions)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("relation", [0, 1, 3])
def test_support_is_that_of_rules_counted_one_by_one(seed: int, relation: int) -> None:
    graph = a_graph(seed)
    found = support_of(graph, 1, relation, 2)
    of_facts, of_paths = expected(graph, 1, relation, 2)
    assert found.facts.tolist() == sorted(of_facts)
    wanted = [of_facts[fact] for fact in found.facts.tolist()]
    np.testing.assert_allclose(found.of_facts.sum(axis=0), wanted)
    pairs = [tuple(pair) for pair in found.facts[found.paths].tolist()]
    np.testing.assert_allclose(found.of_paths, [of_paths[pair] for pair in pairs])
    assert set(pairs) == set(of_paths)


def test_speakers_of_french_are_citizens_of_france() -> None:
    """Nine of ten others with French (2) as their language are citizens of France (1).

    Of 19 citizens of any country nine are citizens of France.
    """
    french, france, ada, spain = 20, 21, 22, 23
    speakers = [(x, 1, french) for x in (*range(10), ada)]
    citizens = [(x, 0, france if x < 9 else spain) for x in range(19)]
    graph = KnowledgeGraph(np.array(speakers + citizens, np.int32), 24, 2)
    found = support_of(graph, ada, 0, france)
    share = 9.1 / 20
    by_french = found.of_facts[0, found.facts == speakers.index((ada, 1, french))]
    assert by_french == pytest.approx(added([True] * 9 + [False], share))


def test_the_share_of_an_answer_is_no_evidence() -> None:
    """All have relation 0 to node 9, so that a node has relation 1 to node 8 adds nothing."""
    facts = [(x, 0, 9) for x in range(6)] + [(x, 1, 8) for x in (0, 1, 2, 6)]
    graph = KnowledgeGraph(np.array(facts, np.int32), 10, 2)
    assert support_of(graph, 6, 0, 9).of_facts[0].max() < 1


def test_a_fact_with_a_substitute_is_worth_less_than_both_together() -> None:
    of_facts = np.array([[9.0, 9.0, 0.0], [0.0, 0.0, 0.0]])
    support = Support(np.array([3, 5, 8]), of_facts, np.empty((0, 2), np.int64), np.empty(0))
    nothing, one = np.empty(0, np.int64), np.array([3])
    assert support.losses(nothing).tolist() == pytest.approx([np.log(1.9), np.log(1.9), 0])
    assert support.losses(one).tolist() == pytest.approx([0, np.log(10), 0])
    assert support.log_odds(np.array([3, 5])) == 0


def test_a_path_supports_with_both_of_its_facts() -> None:
    support = Support(np.array([3, 5]), np.zeros((2, 2)), np.array([[0, 1]]), np.array([4.0]))
    assert support.losses(np.empty(0, np.int64)).tolist() == pytest.approx([np.log(5)] * 2)
    assert support.log_odds(np.array([5])) == 0


def test_a_fact_of_the_head_is_not_worth_less_where_the_tail_has_much_support() -> None:
    of_facts = np.array([[9.0, 0.0, 0.0], [0.0, 500.0, 500.0]])
    support = Support(np.array([3, 5, 8]), of_facts, np.empty((0, 2), np.int64), np.empty(0))
    lost = support.losses(np.empty(0, np.int64))
    assert lost.tolist() == pytest.approx([np.log(10), np.log(1001 / 501), np.log(1001 / 501)])


def test_thousands_of_relations_take_memory_for_those_of_the_two_nodes() -> None:
    """A number for every pair of 8,000 relations would take 512 MB."""
    facts = [(0, 3_999, 1), (0, 5, 2), (2, 3_000, 1), (3, 3_999, 4), (3, 5, 4)]
    graph = KnowledgeGraph(np.array(facts, np.int32), 5, 4_000)
    support_of(a_graph(0), 1, 0, 2)  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(support_of(graph, 0, 3_999, 1).facts) == 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


def test_no_path_is_left_out_however_many_there_are() -> None:
    """0 - z - 1 for 20,050 nodes z, and 2 - 3 - 4 with the fact that the rule has as its head."""
    middle = np.arange(5, 20_055)
    first = np.stack([0 * middle, 0 * middle, middle], axis=1)
    second = np.stack([middle, 0 * middle + 1, 0 * middle + 1], axis=1)
    shown = np.array([[2, 0, 3], [3, 1, 4], [2, 2, 4]])
    triples = np.concatenate([first, second, shown]).astype(np.int32)
    graph = KnowledgeGraph(triples, 20_055, 3)
    facts_of = tuple(
        np.flatnonzero((triples[:, 0] == node) | (triples[:, 2] == node)) for node in (0, 1)
    )

    support = rule_support(build_adjacency(graph), 0, 2, 1, (facts_of[0], facts_of[1]))

    assert len(support.paths) == len(np.unique(support.paths, axis=0)) == 20_050


@pytest.mark.parametrize("num_heads", [MAX_HEADS, MAX_HEADS + 1])
def test_more_cases_than_are_counted_are_said(num_heads: int) -> None:
    """0 has relation 1 to node 1, as so many other heads have, each to a node of its own."""
    others = 2 + np.arange(num_heads)
    shown = np.stack([others, 0 * others + 1, others + num_heads], axis=1)
    triples = np.concatenate([[[0, 1, 1]], shown]).astype(np.int32)
    graph = KnowledgeGraph(triples, 2 + 2 * num_heads, 2)

    assert support_of(graph, 0, 0, 1).is_limited == (num_heads > MAX_HEADS)
