import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodepiece.evaluation import known_answers as module
from nodepiece.evaluation.known_answers import KnownAnswers, known_relations, known_tails
from nodepiece.graph.arrays import IntArray

NUM_NODES, NUM_RELATIONS = 4, 2
FACTS = st.lists(
    st.tuples(
        st.integers(0, NUM_NODES - 1),
        st.integers(0, NUM_RELATIONS - 1),
        st.integers(0, NUM_NODES - 1),
    ),
    max_size=12,
)
Facts = list[tuple[int, int, int]]


def as_triples(facts: Facts) -> IntArray:
    return np.array(facts, dtype=np.int32).reshape(-1, 3)


def answers_to(known: KnownAnswers, first: int, second: int) -> list[int]:
    start, count = known.find(np.array([first], np.int32), np.array([second], np.int32))
    return known.answers[start[0] : start[0] + count[0]].tolist()


@given(FACTS)
def test_tails_are_found_in_both_directions(facts: Facts) -> None:
    known = known_tails(as_triples(facts), NUM_NODES, NUM_RELATIONS)
    for node in range(NUM_NODES):
        for relation in range(NUM_RELATIONS):
            tails = {t for h, r, t in facts if (h, r) == (node, relation)}
            heads = {h for h, r, t in facts if (t, r) == (node, relation)}
            assert answers_to(known, node, relation) == sorted(tails)
            assert answers_to(known, node, relation + NUM_RELATIONS) == sorted(heads)


@given(FACTS)
def test_relations_are_found_in_both_directions_or_in_one(facts: Facts) -> None:
    both = known_relations(as_triples(facts), NUM_NODES, NUM_RELATIONS)
    direct = known_relations(as_triples(facts), NUM_NODES, NUM_RELATIONS, direct_only=True)
    for head in range(NUM_NODES):
        for tail in range(NUM_NODES):
            there = {r for h, r, t in facts if (h, t) == (head, tail)}
            back = {r + NUM_RELATIONS for h, r, t in facts if (t, h) == (head, tail)}
            assert answers_to(direct, head, tail) == sorted(there)
            assert answers_to(both, head, tail) == sorted(there | back)


def test_pairs_too_large_for_one_number_are_sorted_all_the_same() -> None:
    query, answer = np.array([7, 3, 7, 7, 3]), np.array([1, 2, 0, 1, 5], dtype=np.int32)
    for num_candidates in (6, 2**62):  # the second leaves no room for a query beside the answer
        queries, offsets, answers = module._compress(query, answer, num_candidates)
        assert queries.tolist() == [3, 7]
        assert offsets.tolist() == [0, 2, 4]
        assert answers.tolist() == [2, 5, 0, 1]


def test_nobody_can_change_them() -> None:
    known = known_tails(np.array([[0, 0, 1]], np.int32), 2, 1)
    for name in ("queries", "offsets", "answers"):
        assert not getattr(known, name).flags.writeable
