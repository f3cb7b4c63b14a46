"""Ranking against nodes drawn at random, beside doing it by hand."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.evaluation.known_answers import known_tails
from nodepiece.evaluation.ranking import LinkRanks, rank_links
from nodepiece.evaluation.sampled_negatives import (
    LEFT_OUT,
    rank_among_sampled,
    report_sampled,
    sample_negatives,
    sample_with_known,
)
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

NUM_NODES, NUM_RELATIONS = 30, 3


def random_facts(number: int, seed: int = 0) -> IntArray:
    limits = (NUM_NODES, NUM_RELATIONS, NUM_NODES)
    facts = np.random.default_rng(seed).integers(limits, size=(number, 3))
    return np.unique(facts, axis=0).astype(np.int32)


def queries_of(facts: IntArray) -> IntArray:
    return with_inverses(KnowledgeGraph(facts, NUM_NODES, NUM_RELATIONS))


def test_negatives_are_uniform_over_the_nodes_that_are_no_answers() -> None:
    facts = random_facts(150)
    known, queries = known_tails(facts, NUM_NODES, NUM_RELATIONS), queries_of(facts)
    drawn = sample_negatives(queries, known, (40, 25), rng=np.random.default_rng(1))
    assert drawn.shape == (len(queries), 40, 25)
    for (head, relation, _), negatives in zip(queries, drawn, strict=True):
        is_same = (queries[:, 0] == head) & (queries[:, 1] == relation)
        others = np.setdiff1d(np.arange(NUM_NODES), queries[is_same, 2])
        counts = np.bincount(negatives.ravel(), minlength=NUM_NODES)
        assert counts.sum() == counts[others].sum() == 1000
        expected = 1000 / len(others)
        assert (np.abs(counts[others] - expected) < 6 * np.sqrt(expected)).all()


def test_nothing_can_be_drawn_where_every_node_is_an_answer() -> None:
    facts = np.array([[0, 0, tail] for tail in range(NUM_NODES)], np.int32)
    known = known_tails(facts, NUM_NODES, NUM_RELATIONS)
    with pytest.raises(InputError, match=r"all nodes are known answers to \[0, 0\]"):
        sample_negatives(facts, known, (1, 5), rng=np.random.default_rng(0))


def test_known_answers_that_are_drawn_are_left_out_as_published() -> None:
    facts = np.random.default_rng(4).permutation(random_facts(300))
    graph, test = facts[:150], facts[150:]
    known, queries = known_tails(facts, NUM_NODES, NUM_RELATIONS), queries_of(test)
    edges, in_graph = queries_of(graph), known_tails(graph, NUM_NODES, NUM_RELATIONS)
    drawn = sample_with_known(queries, known, in_graph, (40, 25), rng=np.random.default_rng(1))
    everything = queries_of(facts)
    num_left_out = 0
    for (head, relation, tail), negatives in zip(queries, drawn, strict=True):
        stated, in_any = (
            set(some[(some[:, 0] == head) & (some[:, 1] == relation), 2].tolist())
            for some in (edges, everything)
        )
        found = set(negatives.ravel().tolist()) - {LEFT_OUT}
        assert found == set(range(NUM_NODES)) - in_any
        share = len(in_any - stated - {tail}) / (NUM_NODES - len(stated | {tail}))
        left_out = int((negatives == LEFT_OUT).sum())
        assert abs(left_out - 1000 * share) <= 6 * np.sqrt(1000 * share)
        num_left_out += left_out
    assert num_left_out > 0


def test_what_is_left_out_is_never_ranked_higher() -> None:
    facts = random_facts(40)
    known = known_tails(facts, NUM_NODES, NUM_RELATIONS)
    negatives = np.full((2 * len(facts), 1, 3), LEFT_OUT, np.int32)

    def score(heads: Tensor, relations: Tensor) -> Tensor:
        return torch.zeros(len(heads), NUM_NODES)

    (draw,), _ = rank_among_sampled(
        score, facts, negatives, known, memory_budget=2**20, device="cpu"
    )
    assert (draw.head == 1).all() and (draw.tail == 1).all()


@pytest.mark.parametrize("memory_budget", [1, 2**20])
def test_ranks_are_those_counted_one_by_one(memory_budget: int) -> None:
    facts = random_facts(40)
    known, queries = known_tails(facts, NUM_NODES, NUM_RELATIONS), queries_of(facts)
    table = np.random.default_rng(2).integers(5, size=(NUM_NODES, 6, NUM_NODES))  # many ties
    negatives = sample_negatives(queries, known, (3, 7), rng=np.random.default_rng(3))

    def score(heads: Tensor, relations: Tensor) -> Tensor:
        return torch.tensor(table)[heads, relations].float()

    draws, among_all = rank_among_sampled(
        score, facts, negatives, known, memory_budget=memory_budget, device="cpu"
    )

    for draw, ranks in enumerate(draws):
        found = np.concatenate([ranks.tail, ranks.head])
        for row, (head, relation, tail) in enumerate(queries):
            scores = table[head, relation]
            others = scores[negatives[row, draw]]
            true = scores[tail]
            assert found[row] == 1 + (others > true).sum() + (others == true).sum() / 2
        np.testing.assert_array_equal(ranks.relation, facts[:, 1])
    apart = rank_links(score, facts, known, memory_budget=memory_budget, device="cpu")
    np.testing.assert_array_equal(among_all.head, apart.head)
    np.testing.assert_array_equal(among_all.tail, apart.tail)


def test_every_query_is_scored_once_for_all_draws_and_answers() -> None:
    facts = random_facts(40)
    known, queries = known_tails(facts, NUM_NODES, NUM_RELATIONS), queries_of(facts)
    negatives = sample_negatives(queries, known, (3, 7), rng=np.random.default_rng(3))
    asked: list[tuple[int, int]] = []

    def score(heads: Tensor, relations: Tensor) -> Tensor:
        asked.extend(zip(heads.tolist(), relations.tolist(), strict=True))
        return torch.zeros(len(heads), NUM_NODES)

    rank_among_sampled(score, facts, negatives, known, memory_budget=2**20, device="cpu")
    assert asked == [tuple(query) for query in np.unique(queries[:, :2], axis=0).tolist()]


def test_a_report_is_the_mean_over_draws_and_how_far_they_are_apart() -> None:
    relation = np.array([0], np.int32)
    draws = [
        LinkRanks(np.array([1.0]), np.array([2.0]), relation),
        LinkRanks(np.array([11.0]), np.array([2.0]), relation),
    ]
    report = report_sampled(draws)
    assert report.scores["hits@10"] == 0.75  # all of the first draw, half of the second
    assert report.parts["head"]["hits@10"] == 0.5
    assert report.parts["tail"]["hits@10"] == 1
    assert report.scores["count"] == 2
    assert report.parts["spread"]["hits@10"] == pytest.approx(np.sqrt(0.125))  # of 1 and 1/2
    assert report_sampled(draws[:1]).parts["spread"]["hits@10"] == 0
