"""The groupings of edges, against loops over random graphs."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nodepiece.encoders.compgcn import CompGCN
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.encoders.edge_products import sum_products
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.segments import EdgeGroups

NUM_NODES, NUM_RELATIONS = 5, 4  # relations 2 and 3 are the inverses of 0 and 1
few = settings(max_examples=40, deadline=None)

random_edges = st.lists(
    st.tuples(
        st.integers(0, NUM_NODES - 1),
        st.integers(0, NUM_RELATIONS - 1),
        st.integers(0, NUM_NODES - 1),
    ),
    max_size=20,
).map(lambda edges: torch.tensor(edges, dtype=torch.int32).reshape(-1, 3))
orders = st.sampled_from([None, "target", "direction"])


def columns(index: EdgeIndex) -> list[tuple[int, ...]]:
    groups = (index.target, index.relation, index.source)
    return list(zip(*(group.rows.tolist() for group in groups), strict=True))


def bags_of(groups: EdgeGroups) -> list[list[int]]:
    offsets, members = groups.edges.offsets.tolist(), groups.edges.members.tolist()
    return [members[start:stop] for start, stop in pairwise(offsets)]


@few
@given(random_edges, orders)
def test_edges_are_those_given_in_the_order_that_was_asked_for(edges: Tensor, order: str) -> None:
    index = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS, order)  # type: ignore[arg-type]
    given_edges = [tuple(edge) for edge in edges.tolist()]
    keys = {
        None: lambda edge: 0,
        "target": lambda edge: edge[0],
        "direction": lambda edge: (edge[1] >= NUM_RELATIONS // 2, edge[0]),
    }
    assert columns(index) == sorted(given_edges, key=keys[order])  # stable
    assert [given_edges[place] for place in index.order.tolist()] == columns(index)


@few
@given(random_edges, orders)
def test_every_grouping_lists_the_edges_of_each_row_in_their_order(
    edges: Tensor, order: str
) -> None:
    index = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS, order)  # type: ignore[arg-type]
    groups = [index.target, index.relation, index.source, index.pairs.of_edges]
    groups += [index.pairs.relations, index.pairs.sources]
    groups += [index.target_relations.of_edges, index.target_relations.targets]
    if order == "direction":
        groups.append(index.directed_target)
    for group in groups:
        rows = group.rows.tolist()
        expected = [[i for i, row in enumerate(rows) if row == k] for k in range(group.num_rows)]
        assert bags_of(group) == expected
        assert (group.rows.dtype, group.edges.members.dtype) == (torch.int64, torch.int32)


@few
@given(random_edges, orders)
def test_pairs_are_the_distinct_ones_in_ascending_order(edges: Tensor, order: str) -> None:
    index = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS, order)  # type: ignore[arg-type]
    found, edges_in_order = index.pairs, columns(index)
    pairs = list(zip(found.relations.rows.tolist(), found.sources.rows.tolist(), strict=True))
    assert pairs == sorted({(relation, source) for _, relation, source in edges_in_order})
    of_edges = [pairs[pair] for pair in found.of_edges.rows.tolist()]
    assert of_edges == [(relation, source) for _, relation, source in edges_in_order]
    assert found.num_direct == sum(relation < NUM_RELATIONS // 2 for relation, _ in pairs)
    others = index.target_relations
    pairs = [divmod(key, NUM_RELATIONS + 1) for key in others.key.tolist()]
    assert pairs == sorted({(target, relation) for target, relation, _ in edges_in_order})
    assert others.targets.rows.tolist() == [target for target, _ in pairs]
    of_edges = [pairs[pair] for pair in others.of_edges.rows.tolist()]
    assert of_edges == [(target, relation) for target, relation, _ in edges_in_order]


@few
@given(random_edges)
def test_a_directed_target_is_a_node_in_one_direction(edges: Tensor) -> None:
    index = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS, "direction")
    half = NUM_RELATIONS // 2
    targets = [target + NUM_NODES * (r >= half) for target, r, _ in columns(index)]
    sources = [source + NUM_NODES * (r < half) for _, r, source in columns(index)]
    assert index.directed_target.rows.tolist() == targets == sorted(targets)
    assert index.directed_source().tolist() == sources
    assert index.num_direct_edges == sum(r < half for _, r, _ in columns(index))


def test_a_grouping_that_no_kernel_uses_is_not_computed() -> None:
    edges = torch.tensor([[0, 0, 1], [1, 2, 0], [0, 1, 1], [1, 3, 0]])
    nodes = torch.ones(2, 4, requires_grad=True)
    relations = torch.ones(4, 4, requires_grad=True)
    index = EdgeIndex(edges, 2, 4)
    sum_products(nodes, relations, None, index).sum().backward()  # type: ignore[no-untyped-call]
    assert {"relation", "source", "order", "target_relations", "chunks"}.isdisjoint(vars(index))
    index = EdgeIndex(edges, 2, 4, "direction")
    graph = GraphLayerSettings(kind="compgcn", layers=1)
    made = CompGCN(4, graph, generator=torch.Generator().manual_seed(0))
    made(nodes, relations, index)[0].sum().backward()
    assert {"relation", "source", "target", "target_relations", "chunks"}.isdisjoint(vars(index))


@few
@given(random_edges, random_edges)
def test_inserted_edges_come_after_those_of_their_target(edges: Tensor, more: Tensor) -> None:
    index, place = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS, "target").insert(more)
    before = EdgeIndex(edges, NUM_NODES, NUM_RELATIONS, "target")
    together = columns(before) + [tuple(edge) for edge in more.tolist()]
    assert columns(index) == sorted(together, key=lambda edge: edge[0])  # stable
    assert [together[at] for at in place.tolist()] == columns(index)
    assert bags_of(index.target) == bags_of(EdgeGroups(index.target.rows, NUM_NODES))
    assert index.order.tolist() == list(range(len(together)))


@pytest.mark.parametrize("name", ["chunks", "compressed_rows", "directed_target"])
def test_edges_in_another_order_than_a_kernel_needs_are_refused(name: str) -> None:
    index = EdgeIndex(torch.tensor([[0, 0, 1]]), 2, 2)
    with pytest.raises(ValueError, match="must be sorted by"):
        getattr(index, name)
