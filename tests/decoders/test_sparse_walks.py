"""Losses and scores from the nodes that walks reach, against those of all nodes."""

from dataclasses import replace

import numba
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy

from nodepiece.decoders.path_scorers import PathGraph, QueryEdges
from nodepiece.decoders.sparse_walks import WalkWeights, walk_loss
from nodepiece.decoders.walks import Walks, WalkSettings
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.settings import Experiment, load_experiment
from nodepiece.tasks.memory_estimate import Sizes, graph_bytes, path_numbers
from nodepiece.tasks.path_coefficients import FEW_TO_CHOOSE, facts_to_choose

NUM_NODES, NUM_RELATIONS, DIM = 7, 3, 4
TWO_STEPS = WalkSettings(2, counts=False)
few = settings(max_examples=60, deadline=None)
nodes = st.integers(0, NUM_NODES - 1)
some_facts = st.lists(
    st.tuples(nodes, st.integers(0, NUM_RELATIONS - 1), nodes), min_size=1, max_size=20
).map(torch.tensor)
some_settings = st.builds(
    WalkSettings,
    steps=st.integers(1, 3),
    counts=st.just(False),
    max_degree=st.integers(0, 4),
    coefficient=st.sampled_from([1.0, 2.5]),
)


def with_inverses(facts: Tensor) -> Tensor:
    heads, relations, tails = facts.T
    return torch.cat([facts, torch.stack([tails, relations + NUM_RELATIONS, heads], dim=1)])


def graph_of(edges: Tensor, mask: Tensor | None = None) -> PathGraph:
    vectors = torch.randn(2 * NUM_RELATIONS, DIM, generator=torch.Generator().manual_seed(0))
    index = EdgeIndex(edges, NUM_NODES, 2 * NUM_RELATIONS)
    return PathGraph(index, vectors.requires_grad_(), mask)


def walks_of(chosen: WalkSettings) -> Walks:
    walks = chosen.build(2 * NUM_RELATIONS, DIM, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        walks.weigh.bias.add_(torch.tensor([-0.3, 4.0]))  # a floor that matters
    return walks


def slow_loss(walks: Walks, facts: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """The loss with all scores of every query, in a graph without its fact; and the relations."""
    relations, losses = graph_of(edges).relations, []
    for fact in facts:
        inverse = torch.stack([fact[2], (fact[1] + NUM_RELATIONS) % (2 * NUM_RELATIONS), fact[0]])
        hidden = (edges == fact).all(dim=1) | (edges == inverse).all(dim=1)
        graph = PathGraph(graph_of(edges).edge_index, relations, (~hidden).float())
        losses.append(cross_entropy(walks.scores(fact[:1], fact[1:2], graph), fact[2:]))
    return torch.stack(losses).mean(), relations


@few
@given(some_facts, some_settings)
def test_losses_and_gradients_are_those_of_all_scores(facts: Tensor, chosen: WalkSettings) -> None:
    edges, walks = with_inverses(facts), walks_of(chosen)
    expected, relations = slow_loss(walks, edges, edges)
    graph = graph_of(edges)
    heads, relation_ids, tails = edges.T
    found = walks.loss_of_facts(heads, relation_ids, tails, graph)
    assert found is not None
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    weights = list(walks.parameters())
    wanted = torch.autograd.grad(expected, [*weights, relations], allow_unused=True)
    gradients = torch.autograd.grad(found, [*weights, graph.relations], allow_unused=True)
    torch.testing.assert_close(gradients, wanted, rtol=1e-3, atol=1e-5)


@few
@given(some_facts, some_settings)
def test_scores_are_added_as_if_all_were_computed(facts: Tensor, chosen: WalkSettings) -> None:
    edges, walks = with_inverses(facts), walks_of(chosen).eval()
    heads, relations = edges[:, 0].contiguous(), edges[:, 1].contiguous()
    before = torch.randn(len(heads), NUM_NODES, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = before + walks(heads, relations, graph_of(edges))
        found = walks.add_to(before.clone(), heads, relations, graph_of(edges))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_largest_degree_ends_walks_at_hubs_and_leaves_a_hub_one_step() -> None:
    star = torch.tensor([(0, 0, leaf) for leaf in range(1, 6)] + [(5, 0, 6)])
    edges = with_inverses(star)
    walks = walks_of(WalkSettings(2, counts=False, max_degree=4)).eval()
    relation = torch.zeros(1, dtype=torch.int64)
    with torch.no_grad():
        reached = {}
        for head in (0, 1, 5):
            scores = walks.scores(torch.tensor([head]), relation, graph_of(edges))[0]
            reached[head] = {node for node, score in enumerate(scores) if score > scores.min()}
    assert reached == {0: {1, 2, 3, 4, 5}, 1: {0}, 5: {0, 6}}


def test_with_counts_or_plain_walks_every_node_has_a_score_of_its_own() -> None:
    edges = with_inverses(torch.tensor([(0, 0, 1)]))
    heads, relations, tails = edges.T
    for chosen in (WalkSettings(2), WalkSettings(2, counts=False, plain_steps=1)):
        assert walks_of(chosen).loss_of_facts(heads, relations, tails, graph_of(edges)) is None


def test_every_step_uses_the_memory_of_the_one_before() -> None:
    edges = with_inverses(torch.tensor([(0, 0, 1), (1, 1, 2)]))
    walks, index = walks_of(WalkSettings(2, counts=False)), graph_of(edges).edge_index
    used = []
    for _ in range(2):
        graph = PathGraph(index, graph_of(edges).relations)  # a new one in every step
        heads, relations, tails = edges.T
        walks.loss_of_facts(heads, relations, tails, graph)
        used.append(graph.rows().spare[0][1])
    assert used[0] is used[1]


def test_one_thread_and_two_give_the_same_bytes() -> None:
    generator = torch.Generator().manual_seed(3)
    sizes = NUM_NODES, NUM_RELATIONS, NUM_NODES
    drawn = [torch.randint(size, (30,), generator=generator) for size in sizes]
    edges = with_inverses(torch.stack(drawn, dim=1))
    rows, batch = graph_of(edges).rows(), len(edges)
    weights = WalkWeights(
        torch.rand(batch, 2, 2 * NUM_RELATIONS, generator=generator).requires_grad_(),
        torch.rand(batch, 2, generator=generator),
        torch.ones(batch),
        torch.full((batch,), 0.01),
    )
    found, before = [], numba.get_num_threads()
    for num_threads in (1, min(2, before)):
        numba.set_num_threads(num_threads)
        try:
            heads, relations, tails = edges.T
            loss = walk_loss(heads, relations, tails, weights, rows, 0)
            found.append((loss, *torch.autograd.grad(loss, [weights.preferences])))
        finally:
            numba.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_a_largest_degree_is_no_negative_number() -> None:
    with pytest.raises(ValueError, match="max_degree must be 0 or more"):
        WalkSettings(2, max_degree=-1)


def test_a_floor_that_underflows_is_no_division_by_zero() -> None:
    edges, walks = with_inverses(torch.tensor([(0, 0, 1), (1, 1, 2)])), walks_of(TWO_STEPS).eval()
    with torch.no_grad():
        walks.weigh.bias[1] = -1e4
        heads, relations, tails = edges.T
        loss = walks.loss_of_facts(heads, relations, tails, graph_of(edges))
        scores = walks.add_to(torch.zeros(4, NUM_NODES), heads, relations, graph_of(edges))
    assert loss is not None and loss.isfinite() and scores.isfinite().all()


@pytest.mark.parametrize("change", ["mask", "query edges", "float64"])
def test_scores_that_need_another_way_are_added_too(change: str) -> None:
    edges, walks = with_inverses(torch.tensor([(0, 0, 1), (1, 1, 2)])), walks_of(TWO_STEPS).eval()
    graph, scores = graph_of(edges), torch.zeros(4, NUM_NODES)
    heads, relations, _ = edges.T
    if change == "mask":
        graph = graph_of(edges, torch.tensor([1.0, 0, 1, 0]))
    elif change == "query edges":
        own = torch.tensor([[0], [3], [1], [0]])
        graph = PathGraph(graph.edge_index, graph.relations, None, QueryEdges(*own))
    else:
        scores = scores.double()
    with torch.no_grad():
        expected = scores + walks(heads, relations, graph)
        torch.testing.assert_close(walks.add_to(scores, heads, relations, graph), expected)


def test_the_cost_of_choosing_is_that_of_few_facts_on_a_cpu_alone() -> None:
    experiment = Experiment(
        name="mine", dataset="mine", walks=replace(TWO_STEPS, choose_coefficient=True)
    )
    assert facts_to_choose(experiment, 4_000, on_gpu=False) == FEW_TO_CHOOSE
    assert facts_to_choose(experiment, 4_000, on_gpu=True) == 4_000
    dense = replace(experiment, walks=replace(experiment.walks, counts=True))
    assert facts_to_choose(dense, 4_000, on_gpu=False) == 4_000


def test_memory_does_not_grow_with_queries_but_on_a_gpu() -> None:
    experiment = load_experiment("own-large", ["walks.steps=3", "walks.counts=false"])
    sizes = Sizes(10**6, 10**7, 100)
    on_cpu, on_gpu = (
        graph_bytes(experiment, each) + path_numbers(experiment, each)
        for each in (sizes, replace(sizes, on_gpu=True))
    )
    assert on_cpu < on_gpu / 4
