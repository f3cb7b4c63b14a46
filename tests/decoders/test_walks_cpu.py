"""Walks query by query against matrices, and against the steps that a GPU takes."""

from dataclasses import replace

import numba
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nodepiece.decoders.path_scorers import QueryEdges
from nodepiece.decoders.walk_graph import WalkGraph
from nodepiece.decoders.walks_cpu import can_walk, walk
from nodepiece.encoders.edge_index import EdgeIndex

NUM_NODES, NUM_RELATIONS, NUM_STEPS = 6, 4, 3
few = settings(max_examples=60, deadline=None)

nodes = st.integers(0, NUM_NODES - 1)
some_edges = st.lists(st.tuples(nodes, st.integers(0, NUM_RELATIONS - 1), nodes), max_size=24).map(
    lambda edges: torch.tensor(edges, dtype=torch.int64).reshape(-1, 3)
)
some_heads = st.lists(nodes, min_size=1, max_size=5).map(torch.tensor)


def numbers(heads: Tensor) -> tuple[Tensor, Tensor]:
    """Preferences and mix, all of them different."""
    generator = torch.Generator().manual_seed(0)
    shape = (NUM_STEPS, NUM_RELATIONS, len(heads))
    preferences = torch.rand(shape, generator=generator, dtype=torch.float64) * 2
    mix = torch.rand(NUM_STEPS, len(heads), generator=generator, dtype=torch.float64)
    return preferences.requires_grad_(), mix.requires_grad_()


def ground_of(edges: Tensor, heads: Tensor) -> WalkGraph:
    """Every fourth edge is hidden."""
    weight = (torch.arange(len(edges)) % 4 != 3).double()
    return WalkGraph(EdgeIndex(edges, NUM_NODES, NUM_RELATIONS), weight, len(heads))


def slow_walk(heads: Tensor, preferences: Tensor, mix: Tensor, edges: Tensor) -> Tensor:
    """By a matrix for every query and step."""
    visible = [edge for index, edge in enumerate(edges.tolist()) if index % 4 != 3]
    degree = [max(1, sum(head == node for head, _, _ in visible)) for node in range(NUM_NODES)]
    columns = []
    for row, start in enumerate(heads.tolist()):
        chance = torch.eye(NUM_NODES, dtype=torch.float64)[start]
        total = torch.zeros(NUM_NODES, dtype=torch.float64)
        for step in range(NUM_STEPS):
            matrix = torch.zeros(NUM_NODES, NUM_NODES, dtype=torch.float64)
            for head, relation, tail in visible:
                carried = torch.zeros_like(matrix)
                carried[head, tail] = 1 / degree[tail]
                matrix = matrix + carried * preferences[step, relation, row]
            chance = matrix @ chance
            total = total + mix[step, row] * chance
        columns.append(total * (torch.arange(NUM_NODES) != start))
    return torch.stack(columns, dim=1)


@few
@given(some_edges, some_heads)
def test_walks_are_products_of_matrices_and_so_are_gradients(edges: Tensor, heads: Tensor) -> None:
    preferences, mix = numbers(heads)
    walk_graph = ground_of(edges, heads)
    assert can_walk(preferences, mix, walk_graph)
    slopes = torch.arange(NUM_NODES * len(heads)).view(NUM_NODES, -1).double() - 3
    expected = slow_walk(heads, preferences, mix, edges)
    wanted = torch.autograd.grad((expected * slopes).sum(), (preferences, mix), allow_unused=True)
    for found in (
        walk(heads, preferences, mix, walk_graph),
        walk_graph.walk(heads, preferences, mix),
    ):
        torch.testing.assert_close(found, expected)
        gradients = torch.autograd.grad((found * slopes).sum(), (preferences, mix))
        for gradient, other in zip(gradients, wanted, strict=True):
            none = torch.zeros_like(gradient)  # where the slow way found nothing to differentiate
            torch.testing.assert_close(gradient, none if other is None else other)


@few
@given(some_edges, some_heads, st.integers(1, 4))
def test_a_largest_degree_ends_walks_as_it_does_on_a_gpu(
    edges: Tensor, heads: Tensor, max_degree: int
) -> None:
    preferences, mix = numbers(heads)
    walk_graph = replace(ground_of(edges, heads), max_degree=max_degree)
    assert can_walk(preferences, mix, walk_graph)
    slopes = torch.arange(NUM_NODES * len(heads)).view(NUM_NODES, -1).double() - 3
    expected = walk_graph.walk(heads, preferences, mix)
    found = walk(heads, preferences, mix, walk_graph)
    torch.testing.assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad((found * slopes).sum(), (preferences, mix)),
        torch.autograd.grad((expected * slopes).sum(), (preferences, mix)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_one_thread_and_two_give_the_same_bytes() -> None:
    generator = torch.Generator().manual_seed(1)
    edges = torch.stack(
        [torch.randint(size, (200,), generator=generator) for size in (50, NUM_RELATIONS, 50)], 1
    )
    heads = torch.arange(33)
    found = []
    for num_threads in (1, min(2, numba.get_num_threads())):
        before = numba.get_num_threads()
        numba.set_num_threads(num_threads)
        try:
            preferences, mix = (each.detach().float().requires_grad_() for each in numbers(heads))
            walk_graph = WalkGraph(EdgeIndex(edges, 50, NUM_RELATIONS), torch.ones(200), len(heads))
            total = walk(heads, preferences, mix, walk_graph)
            found.append((total, *torch.autograd.grad(total.log1p().sum(), (preferences, mix))))
        finally:
            numba.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_edges_of_single_queries_and_short_numbers_take_the_other_way() -> None:
    heads = torch.tensor([0])
    preferences, mix = numbers(heads)
    walk_graph = ground_of(torch.tensor([[0, 0, 1]]), heads)
    assert can_walk(preferences, mix, walk_graph)
    assert not can_walk(preferences.bfloat16(), mix.bfloat16(), walk_graph)
    assert not can_walk(preferences, mix.float(), walk_graph)
    none = torch.empty(0, dtype=torch.int64)
    own = WalkGraph(
        walk_graph.edge_index, walk_graph.edge_mask, 1, QueryEdges(none, none, none, none)
    )
    assert not can_walk(preferences, mix, own)
