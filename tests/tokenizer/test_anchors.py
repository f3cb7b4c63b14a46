"""Anchor selection: as many as asked for, in an order that can be worked out by hand."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.pagerank import pagerank
from nodepiece.tokenizer.anchors import (
    anchors_of_unreached_components,
    select_anchors,
    split_count,
)
from nodepiece.tokenizer.settings import PAPER_MIX, TokenizerSettings


def adjacency_of(edges: list[tuple[int, int]], num_nodes: int) -> Adjacency:
    triples = np.array([(head, 0, tail) for head, tail in edges], dtype=np.int32).reshape(-1, 3)
    return build_adjacency(KnowledgeGraph(triples, num_nodes, 1))


def random_adjacency(num_nodes: int, num_edges: int, seed: int) -> Adjacency:
    edges = np.random.default_rng(seed).integers(num_nodes, size=(num_edges, 2))
    return adjacency_of([(int(head), int(tail)) for head, tail in edges], num_nodes)


@st.composite
def mixes(draw: st.DrawFn) -> dict[str, float]:
    names = ("degree", "pagerank", "random")
    weights = [draw(st.integers(0, 20)) for _ in names]
    if not sum(weights):
        weights[draw(st.integers(0, 2))] = 1
    return {name: weight / sum(weights) for name, weight in zip(names, weights, strict=True)}


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 60), st.integers(0, 2**32 - 1), mixes(), st.data())
def test_exactly_the_number_asked_for_and_all_distinct(
    num_nodes: int, seed: int, mix: dict[str, float], data: st.DataObject
) -> None:
    adjacency = random_adjacency(num_nodes, num_nodes, seed)
    count = data.draw(st.sampled_from([0, 1, num_nodes]) | st.integers(0, num_nodes))
    anchors = select_anchors(adjacency, count, mix, rng=np.random.default_rng(seed))
    again = select_anchors(adjacency, count, mix, rng=np.random.default_rng(seed))
    assert len(anchors) == len(set(anchors.tolist())) == count
    assert anchors.dtype == np.int32 and set(anchors.tolist()) <= set(range(num_nodes))
    assert anchors.tobytes() == again.tobytes()


@settings(deadline=None)
@given(st.integers(0, 10**8), mixes(), st.floats(-9e-7, 9e-7))
def test_counts_add_up_and_are_less_than_one_away_from_their_shares(
    count: int, mix: dict[str, float], inexact: float
) -> None:
    written = {name: share * (1 + inexact) for name, share in mix.items()}  # to six digits, say
    counts = split_count(count, written)
    assert sum(counts.values()) == count
    for name, share in mix.items():
        assert abs(counts[name] - share * count) < 1 + 1e-6


def test_counts_of_the_paper() -> None:
    assert split_count(1000, PAPER_MIX) == {"degree": 400, "pagerank": 400, "random": 200}
    assert split_count(7, PAPER_MIX) == {"degree": 3, "pagerank": 3, "random": 1}
    assert split_count(10, {"random": 1.0}) == {"degree": 0, "pagerank": 0, "random": 10}


def test_degree_takes_the_best_connected_first_and_the_lower_id_of_equals() -> None:
    # 4 - 1   4 - 2   4 - 3   2 - 3   1 - 0: degrees 1 2 2 2 3
    adjacency = adjacency_of([(4, 1), (4, 2), (4, 3), (2, 3), (1, 0)], 5)
    anchors = select_anchors(adjacency, 5, {"degree": 1.0}, rng=np.random.default_rng(0))
    assert anchors.tolist() == [4, 1, 2, 3, 0]


def test_parallel_edges_and_loops_count_for_the_degree() -> None:
    # 0 - 1 twice, 2 with two loops (four edges), 3 alone
    adjacency = adjacency_of([(0, 1), (1, 0), (2, 2), (2, 2)], 4)
    anchors = select_anchors(adjacency, 4, {"degree": 1.0}, rng=np.random.default_rng(0))
    assert anchors.tolist() == [2, 0, 1, 3]


@pytest.mark.parametrize("seed", range(3))
def test_pagerank_takes_the_highest_rank_first(seed: int) -> None:
    adjacency = random_adjacency(100, 200, seed)
    anchors = select_anchors(adjacency, 100, {"pagerank": 1.0}, rng=np.random.default_rng(0))
    ranks = pagerank(adjacency)[anchors]
    assert (np.diff(ranks) <= 1e-9).all()


def test_nodes_of_equal_pagerank_go_by_id_whatever_the_order_of_their_edges() -> None:
    # Six hubs have the same five spokes of different degrees, each listed in an order of its own,
    # so that the sums of equal shares differ in their last bits.
    rng = np.random.default_rng(0)
    edges, next_node = [], 6
    for hub in range(6):
        for degree in rng.permutation(5):
            spoke, next_node = next_node, next_node + 1
            edges.append((hub, spoke))
            for _ in range(degree):
                edges.append((spoke, next_node))
                next_node += 1
    adjacency = adjacency_of(edges, next_node)
    assert len(set(pagerank(adjacency)[:6].tolist())) > 1  # the trap is there
    mix = {"pagerank": 1.0}
    anchors = select_anchors(adjacency, next_node, mix, rng=np.random.default_rng(0))
    assert [node for node in anchors.tolist() if node < 6] == [0, 1, 2, 3, 4, 5]


def test_each_strategy_goes_on_with_its_next_best_where_another_was_first() -> None:
    # a star around 0 and a path 5 - 6 - 7: degree takes 0 and 6; of the rest, equal in pagerank
    # but for the leaves of the star, pagerank takes the path's ends
    edges = [(0, 1), (0, 2), (0, 3), (0, 4), (5, 6), (6, 7)]
    mix = {"degree": 0.5, "pagerank": 0.5}
    anchors = select_anchors(adjacency_of(edges, 8), 4, mix, rng=np.random.default_rng(0))
    assert anchors.tolist() == [0, 6, 5, 7]


def test_random_anchors_are_others_for_another_seed_and_spread_evenly() -> None:
    adjacency = random_adjacency(40, 60, seed=0)
    use = np.zeros(40)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        use[select_anchors(adjacency, 10, {"random": 1.0}, rng=rng)] += 1
    assert use.min() > 60 and use.max() < 140  # 100 each on average, deviation 8.7


def test_one_anchor_for_every_component_without_the_one_of_highest_degree() -> None:
    # 0 - 1 - 2   3 - 4   5   6 - 7 - 8 - 9, with an anchor in the first part only
    edges = [(0, 1), (1, 2), (3, 4), (6, 7), (7, 8), (8, 9)]
    adjacency = adjacency_of(edges, 10)
    extra = anchors_of_unreached_components(adjacency, np.array([2], dtype=np.int32))
    assert extra.tolist() == [7, 3, 5]  # by degree, then by id


@pytest.mark.parametrize("seed", range(20))
def test_every_component_has_an_anchor_afterwards_and_none_has_two_new_ones(seed: int) -> None:
    adjacency = random_adjacency(60, 35, seed)
    reference = nx.Graph()
    reference.add_nodes_from(range(60))
    for node in range(60):
        part = slice(adjacency.offsets[node], adjacency.offsets[node + 1])
        reference.add_edges_from((node, int(other)) for other in adjacency.neighbours[part])
    anchors = select_anchors(adjacency, 5, PAPER_MIX, rng=np.random.default_rng(seed))
    extra = set(anchors_of_unreached_components(adjacency, anchors).tolist())
    for component in nx.connected_components(reference):
        assert len(component & extra) == (0 if component & set(anchors.tolist()) else 1)


def test_more_anchors_than_nodes_are_refused() -> None:
    with pytest.raises(InputError, match="of a graph of 40 nodes; lower num_anchors to 40"):
        TokenizerSettings(num_anchors=50).anchors_in(40)


def test_a_share_gives_at_least_k_anchors_and_at_most_the_nodes() -> None:
    chosen = TokenizerSettings(anchor_share=0.01, anchors_per_node=20)
    assert [chosen.anchors_in(size) for size in (100_000, 100, 20)] == [1000, 20, 20]
    with pytest.raises(InputError, match="k=20 anchors in a graph of 19 nodes; lower"):
        chosen.anchors_in(19)


@pytest.mark.parametrize(
    "mix", [{}, {"degree": 0.5}, {"degree": 1.5, "random": -0.5}, {"degree": float("nan")}]
)
def test_shares_that_do_not_add_up_to_1_are_refused(mix: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be 0 or more and add up to 1"):
        TokenizerSettings(mix=mix)


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="'closeness' in the mix; known are degree, pagerank, ran"):
        TokenizerSettings(mix={"closeness": 1.0})
