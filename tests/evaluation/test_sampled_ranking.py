"""Ranking among given candidates."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.evaluation.metrics import report_links
from nodepiece.evaluation.sampled_ranking import rank_links_among, ranks_of_first
from nodepiece.graph.arrays import IntArray


def test_ties_count_half() -> None:
    scores = torch.tensor([[2.0, 1.0, 3.0, 2.0, 2.0], [5.0, 1, 1, 1, 1], [0.0, 0, 0, 0, 0]])
    assert ranks_of_first(scores).tolist() == [3.0, 1.0, 3.0]


def ogb_ranks(positive: Tensor, negative: Tensor) -> Tensor:
    """How OGB's evaluator defines a rank: between the first and the last of those that tie."""
    optimistic = (negative > positive[:, None]).sum(dim=1)
    pessimistic = (negative >= positive[:, None]).sum(dim=1)
    return 0.5 * (optimistic + pessimistic) + 1


def test_ranks_are_those_of_ogbs_evaluator() -> None:
    scores = torch.randint(6, (200, 12), generator=torch.Generator().manual_seed(0)).float()
    expected = ogb_ranks(scores[:, 0], scores[:, 1:])
    torch.testing.assert_close(ranks_of_first(scores), expected.double())


NUM_NODES, NUM_RELATIONS = 9, 2
TABLE = torch.rand(NUM_NODES, 2 * NUM_RELATIONS, NUM_NODES, generator=torch.Generator())


def look_up(heads: Tensor, relations: Tensor, candidates: Tensor) -> Tensor:
    return TABLE[heads[:, None], relations[:, None], candidates]


def drawn(seed: int, count: int) -> tuple[IntArray, IntArray, IntArray]:
    rng = np.random.default_rng(seed)
    triples = np.stack(
        [rng.integers(limit, size=count) for limit in (NUM_NODES, NUM_RELATIONS, NUM_NODES)], axis=1
    ).astype(np.int32)
    negatives = rng.integers(NUM_NODES, size=(2, count, 5), dtype=np.int32)
    return triples, negatives[0], negatives[1]


@pytest.mark.parametrize("memory_budget", [1, 200, 10**6])
def test_each_side_is_ranked_among_its_own_negatives_in_batches_of_any_size(
    memory_budget: int,
) -> None:
    triples, heads, tails = drawn(seed=1, count=23)
    ranks = rank_links_among(
        look_up,
        triples,
        heads,
        tails,
        NUM_RELATIONS,
        memory_budget=memory_budget,
        bytes_per_candidate=4,
        device="cpu",
    )
    for i, (head, relation, tail) in enumerate(triples.tolist()):
        of_tails, of_heads = TABLE[head, relation], TABLE[tail, relation + NUM_RELATIONS]
        expected = ogb_ranks(of_tails[tail][None], of_tails[tails[i]][None])
        assert ranks.tail[i] == expected.item()
        expected = ogb_ranks(of_heads[head][None], of_heads[heads[i]][None])
        assert ranks.head[i] == expected.item()
    assert report_links(ranks).both.count == 46


def test_progress_reaches_the_number_of_queries() -> None:
    seen: list[tuple[int, int]] = []
    rank_links_among(
        look_up,
        *drawn(seed=2, count=10),
        NUM_RELATIONS,
        memory_budget=100,
        bytes_per_candidate=4,
        device="cpu",
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == sorted(seen)
    assert seen[-1] == (20, 20)


def test_what_is_not_a_number_is_refused() -> None:
    triples, heads, tails = drawn(seed=3, count=4)
    with pytest.raises(InputError, match="not a number"):
        rank_links_among(
            lambda h, r, c: torch.full(c.shape, torch.nan),
            triples,
            heads,
            tails,
            NUM_RELATIONS,
            memory_budget=10**6,
            bytes_per_candidate=4,
            device="cpu",
        )


@pytest.mark.parametrize("num_rows", [3, 0])
def test_negatives_that_do_not_go_with_the_facts_are_refused(num_rows: int) -> None:
    triples, heads, tails = drawn(seed=4, count=4)
    with pytest.raises(InputError, match="do not fit 4 facts"):
        rank_links_among(
            look_up,
            triples,
            heads[:num_rows],
            tails,
            NUM_RELATIONS,
            memory_budget=10**6,
            bytes_per_candidate=4,
            device="cpu",
        )
