from collections import Counter, defaultdict

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.training.batches import (
    FactBatches,
    QueryBatches,
    TargetChoice,
    subsampling_weights,
)
from nodepiece.training.links import between_nodes_of_degree, query_batches
from nodepiece.training.settings import OneVsAllSettings

NUM_NODES, NUM_RELATIONS = 6, 4

facts = st.sets(
    st.tuples(
        st.integers(0, NUM_NODES - 1),
        st.integers(0, NUM_RELATIONS - 1),
        st.integers(0, NUM_NODES - 1),
    ),
    min_size=1,
    max_size=40,
)
Fact = tuple[int, int, int]


def edges_of(triples: set[Fact]) -> Tensor:
    shuffle = torch.randperm(len(triples), generator=seeded())
    return torch.tensor(sorted(triples), dtype=torch.int32)[shuffle]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def taken(batches: QueryBatches, step: int) -> list[tuple[tuple[int, int], list[int]]]:
    """The queries of a batch, each with its answers; what has no weight says nothing."""
    batch = batches.take(torch.tensor([step]))
    answers: dict[int, list[int]] = defaultdict(list)
    assert batch.edges is not None
    assert ((batch.edges < len(batches.order)) == (batch.sample_weight > 0)).all()
    for row, node, weight in zip(
        *batch.answers.tolist(), batch.sample_weight.tolist(), strict=True
    ):
        assert weight in (0.0, 1.0)
        if weight:
            answers[row].append(node)
    queries = zip(batch.heads.tolist(), batch.relations.tolist(), strict=True)
    return [(query, sorted(answers[row])) for row, query in enumerate(queries)]


@settings(deadline=None)
@given(facts, st.integers(1, 9))
def test_answers_are_known_as_training_edges(triples: set[Fact], batch_size: int) -> None:
    edges = edges_of(triples)
    batches = QueryBatches(edges, NUM_RELATIONS, batch_size)
    batches.start_epoch(generator=seeded())
    for step in range(batches.num_batches):
        batch = batches.take(torch.tensor([step]))
        assert batch.edges is not None
        is_answer = batch.sample_weight > 0
        row, tail = batch.answers.long()[:, is_answer]
        stated = torch.stack([batch.heads[row], batch.relations[row], tail], dim=1)
        assert torch.equal(edges[batch.edges[is_answer]].long(), stated)


@settings(deadline=None)
@given(facts, st.integers(1, 9))
def test_an_epoch_has_every_query_once_with_all_its_answers(
    triples: set[Fact], batch_size: int
) -> None:
    tails: dict[tuple[int, int], list[int]] = defaultdict(list)
    for head, relation, tail in sorted(triples):
        tails[head, relation].append(tail)
    batches = QueryBatches(edges_of(triples), NUM_RELATIONS, batch_size)
    for seed in range(2):
        batches.start_epoch(generator=seeded(seed))
        queries = [pair for step in range(batches.num_batches) for pair in taken(batches, step)]
        assert len(queries) == batches.num_batches * batch_size
        assert dict(queries[: len(tails)]) == dict(tails)
        # The last batch is filled up from the start of the same shuffle.
        filled = queries[len(tails) :]
        assert filled == [queries[slot % len(tails)] for slot in range(len(filled))]
        assert len(filled) < batch_size


def test_epochs_are_shuffled_by_the_generator() -> None:
    batches = QueryBatches(torch.tensor([[n, 0, 0] for n in range(50)]), 1, 50)

    def order(seed: int) -> list[int]:
        batches.start_epoch(generator=seeded(seed))
        return batches.take(torch.tensor([0])).heads.tolist()

    assert order(0) == order(0) != order(1)
    assert sorted(order(1)) == list(range(50))


def test_shapes_stay_until_an_epoch_needs_more_room() -> None:
    # One query has 40 answers and nine have one: the largest batch has 41, whatever the shuffle.
    edges = torch.tensor([[0, 0, tail] for tail in range(40)] + [[n, 0, 0] for n in range(1, 10)])
    batches = QueryBatches(edges, 1, 2)
    assert batches.start_epoch(generator=seeded(0))
    assert batches.capacity == 41 + 41 // 4
    assert not batches.start_epoch(generator=seeded(1))
    places = batches.nodes.data_ptr(), batches.sample_weight.data_ptr(), batches.queries.data_ptr()
    batches.start_epoch(generator=seeded(2))
    assert places == (
        batches.nodes.data_ptr(),
        batches.sample_weight.data_ptr(),
        batches.queries.data_ptr(),
    )


def test_room_grows_when_large_queries_meet_in_one_batch() -> None:
    # Two queries of 20 answers, eighteen of one: most shuffles keep the large ones apart.
    large = [[head, 0, tail] for head in (0, 1) for tail in range(20)]
    edges = torch.tensor(large + [[n, 0, 0] for n in range(2, 20)])
    batches = QueryBatches(edges, 1, 2)
    grown = [batches.start_epoch(generator=seeded(seed)) for seed in range(1, 200)]
    assert grown.count(True) == 2
    assert batches.capacity == 40 + 10
    for step in range(batches.num_batches):
        for (head, _), answers in taken(batches, step):
            assert answers == (list(range(20)) if head < 2 else [0])


@settings(deadline=None)
@given(facts, st.integers(1, 9))
def test_an_epoch_has_every_fact_once(triples: set[Fact], batch_size: int) -> None:
    batches = FactBatches(edges_of(triples), batch_size)
    assert not batches.start_epoch(generator=seeded())
    seen = []
    for step in range(batches.num_batches):
        seen += list(
            zip(*(part.tolist() for part in batches.take(torch.tensor([step]))[:3]), strict=True)
        )
    assert sorted(seen[: len(triples)]) == sorted(triples)
    assert len(seen) == batches.num_batches * batch_size
    assert len(seen) - len(triples) < batch_size
    assert set(seen) == triples


def test_facts_are_shuffled_in_place() -> None:
    batches = FactBatches(torch.tensor([[n, 0, n] for n in range(30)]), 30)
    place = batches.chosen.data_ptr()
    orders = []
    for seed in (0, 0, 1):
        batches.start_epoch(generator=seeded(seed))
        orders.append(batches.take(torch.tensor([0])).heads.tolist())
    assert orders[0] == orders[1] != orders[2]
    assert batches.chosen.data_ptr() == place


@pytest.mark.parametrize("kind", [QueryBatches, FactBatches])
def test_a_batch_larger_than_the_graph_is_filled_up_again_and_again(kind: type) -> None:
    edges = torch.tensor([[0, 0, 1], [1, 0, 0]])
    batches = QueryBatches(edges, 1, 5) if kind is QueryBatches else FactBatches(edges, 5)
    batches.start_epoch(generator=seeded())
    heads = batches.take(torch.tensor([0])).heads.tolist()
    assert sorted(Counter(heads).values()) == [2, 3]


def test_an_epoch_of_drawn_facts_has_the_steps_asked_for_and_draws_evenly() -> None:
    edges = torch.tensor([[n, 0, n] for n in range(10)], dtype=torch.int32)
    batches = FactBatches(edges, 50, num_batches=40)
    batches.start_epoch(generator=seeded())
    heads = torch.cat([batches.take(torch.tensor([step])).heads for step in range(40)])
    share = torch.bincount(heads, minlength=10) / len(heads)
    assert len(heads) == 2000
    assert ((share - 0.1).abs() < 0.035).all()  # 5 deviations


def test_processes_that_share_an_epoch_have_fewer_batches_each() -> None:
    edges = torch.tensor([[n, 0, 0] for n in range(40)])
    assert FactBatches(edges, 5, num_processes=2).num_batches == 4
    assert QueryBatches(edges, 1, 5, num_processes=2).num_batches == 4


def test_facts_of_frequent_pairs_weigh_less() -> None:
    # Three facts of node 0 with relation 0, one of node 1: 1 / sqrt(11) and 1 / sqrt(9).
    edges = torch.tensor([[0, 0, 1], [1, 0, 0], [0, 0, 2], [0, 0, 3]])
    weight = subsampling_weights(edges, 1)
    assert weight.mean().item() == pytest.approx(1)
    assert (weight[1] / weight[0]).item() == pytest.approx((11 / 9) ** 0.5)
    assert len(set(weight[[0, 2, 3]].tolist())) == 1
    batches = FactBatches(edges, 4, sample_weight=weight)
    batches.start_epoch(generator=seeded())
    batch = batches.take(torch.tensor([0]))
    assert batch.sample_weight is not None
    for head, counts in zip(batch.heads.tolist(), batch.sample_weight.tolist(), strict=True):
        assert counts == weight[head].item()


@settings(deadline=None)
@given(
    facts,
    st.integers(1, 9),
    st.sampled_from([0.3, 0.5, 1.0]),
    st.integers(0, 3),
    st.sampled_from([None, 2, 3, NUM_NODES]),
)
def test_some_answers_are_targets_and_the_others_are_known_as_answers(
    triples: set[Fact], batch_size: int, share: float, most: int, divisor: int | None
) -> None:
    edges = edges_of(triples)
    targets = TargetChoice(share, most, balance=0.5)
    # Facts whose tail is a multiple of the divisor are no targets.
    may_be_target = None if divisor is None else edges[:, 2] % divisor > 0
    asked, tails_of = defaultdict(set), defaultdict(set)
    for head, relation, tail in triples:
        tails_of[head, relation].add(tail)
        if divisor is None or tail % divisor:
            asked[head, relation].add(tail)
    assume(asked)
    batches = QueryBatches(
        edges, NUM_RELATIONS, batch_size, targets=targets, may_be_target=may_be_target
    )
    batches.start_epoch(generator=seeded())
    assert batches.num_batches == -(-len(asked) // batch_size)
    for step in range(batches.num_batches):
        batch = batches.take(torch.tensor([step]))
        assert batch.edges is not None
        rows, nodes = batch.answers.tolist()
        known, trained = defaultdict(set), defaultdict(list)
        for row, node, weight, edge in zip(
            rows, nodes, batch.sample_weight.tolist(), batch.edges.tolist(), strict=True
        ):
            known[row].add(node)
            assert (edge < len(edges)) == (weight > 0)
            if weight:
                trained[row].append((node, weight))
                assert edges[edge, 2] == node
        for row, query in enumerate(zip(batch.heads.tolist(), batch.relations.tolist())):  # noqa: B905
            assert known[row] == tails_of[query]
            number = max(1, round(share * len(asked[query])))
            number = min(number, most or number)
            assert {node for node, _ in trained[row]} <= asked[query]
            assert [weight for _, weight in trained[row]] == pytest.approx([number**-0.5] * number)
            assert len({node for node, _ in trained[row]}) == number


def test_other_targets_are_chosen_in_another_epoch() -> None:
    edges = torch.tensor([[0, 0, tail] for tail in range(1, 6)])
    batches = QueryBatches(edges, NUM_RELATIONS, 1, targets=TargetChoice(0.4))
    generator, chosen = seeded(), set()
    for _ in range(20):
        batches.start_epoch(generator=generator)
        batch = batches.take(torch.tensor([0]))
        chosen |= set(batch.answers[1][batch.sample_weight > 0].tolist())
    assert chosen == {1, 2, 3, 4, 5}


@settings(deadline=None)
@given(facts, st.integers(2, 3))
def test_targets_may_be_facts_between_nodes_of_other_facts_alone(
    triples: set[Fact], least: int
) -> None:
    edges = edges_of(triples)
    facts_of = Counter(node for head, _, tail in triples for node in {head, tail})
    expected = [facts_of[head] >= least <= facts_of[tail] for head, _, tail in edges.tolist()]
    both_ways = torch.cat([edges, edges.flip(1)])
    if any(expected):
        assert between_nodes_of_degree(least, both_ways).tolist() == expected * 2
    else:
        with pytest.raises(InputError, match="target_degree"):
            between_nodes_of_degree(least, both_ways)


def test_the_degree_of_targets_is_a_setting() -> None:
    #  0 -r0-> 1 -r0-> 2 -r1-> 0     and 3, which has one fact: 3 -r0-> 0
    facts = torch.tensor([[0, 0, 1], [1, 0, 2], [2, 1, 0], [3, 0, 0]])
    edges = torch.cat([facts, torch.stack([facts[:, 2], facts[:, 1] + 2, facts[:, 0]], dim=1)])
    for least, targets in ((1, {0, 1, 2, 3}), (2, {0, 1, 2}), (3, set())):
        settings = OneVsAllSettings(target_degree=least)
        if not targets:
            with pytest.raises(InputError, match="target_degree = 3 leaves no targets"):
                query_batches(edges, 4, 2, settings)
            continue
        batches = query_batches(edges, 4, 2, settings)
        batches.start_epoch(generator=seeded())
        steps = [batches.take(torch.tensor([step])) for step in range(batches.num_batches)]
        edge_ids = torch.cat([batch.edges for batch in steps if batch.edges is not None])
        found = {edge % 4 for edge in edge_ids.tolist() if edge < 8}
        assert found == targets


def test_an_epoch_may_be_a_number_of_batches_of_queries_drawn_at_random() -> None:
    edges = torch.tensor([[head, 0, 0] for head in range(6)])
    batches = QueryBatches(edges, NUM_RELATIONS, 2, num_batches=2)
    generator, seen = seeded(), set()
    for _ in range(20):
        batches.start_epoch(generator=generator)
        heads = torch.cat([batches.take(torch.tensor([step])).heads for step in range(2)])
        assert len(set(heads.tolist())) == 4
        seen |= set(heads.tolist())
    assert seen == set(range(6))


@pytest.mark.parametrize("num_batches", [None, 5])
def test_the_batches_of_two_processes_together_are_those_of_one(num_batches: int | None) -> None:
    edges = torch.tensor([[n, 0, (n * 7) % 23] for n in range(23)])
    parts = []
    for rank in range(2):
        batches = FactBatches(edges, 3, num_batches=num_batches, num_processes=2, rank=rank)
        batches.start_epoch(generator=seeded())
        parts.append([batches.take(torch.tensor([step])) for step in range(batches.num_batches)])
    alone = FactBatches(edges, 6, num_batches=num_batches)
    alone.start_epoch(generator=seeded())
    for step in range(alone.num_batches):
        whole, (first, second) = alone.take(torch.tensor([step])), [part[step] for part in parts]
        assert torch.cat([first.edges, second.edges]).equal(whole.edges)
        assert first.other_tails is not None and first.other_tails.equal(second.tails)


@pytest.mark.parametrize("excluded", [None, 3])
def test_the_queries_and_targets_of_two_processes_together_are_those_of_one(
    excluded: int | None,
) -> None:
    edges = torch.tensor([[n % 11, 0, n] for n in range(60)])
    targets = TargetChoice(share=0.5)
    may_be_target = None if excluded is None else edges[:, 2] % excluded > 0
    parts = []
    for rank in range(2):
        batches = QueryBatches(
            edges, 1, 2, targets=targets, may_be_target=may_be_target, num_processes=2, rank=rank
        )
        batches.start_epoch(generator=seeded())
        parts.append([batches.take(torch.tensor([step])) for step in range(batches.num_batches)])
    alone = QueryBatches(edges, 1, 4, targets=targets, may_be_target=may_be_target)
    alone.start_epoch(generator=seeded())
    for step in range(alone.num_batches):
        whole, both = alone.take(torch.tensor([step])), [part[step] for part in parts]
        assert torch.cat([part.heads for part in both]).equal(whole.heads)
        chosen = [part.answers[1][part.sample_weight > 0].tolist() for part in both]
        assert chosen[0] + chosen[1] == whole.answers[1][whole.sample_weight > 0].tolist()
