"""The parts of walks: exact, against all walks enumerated one by one."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.decoders.walk_paths import best_walks, flows, walk_terms
from nodepiece.decoders.walks import DAMPING, LOG_FLOOR, PLAIN_FLOOR, Walks, WalkSettings
from nodepiece.encoders.edge_index import EdgeIndex
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses

NUM_NODES, NUM_RELATIONS, DIM = 7, 3, 6
HEAD, RELATION, TAIL = 0, 1, 5


def a_graph(seed: int, mask: list[int] | None = None) -> PathGraph:
    rng = np.random.default_rng(seed)
    facts = rng.integers(0, [NUM_NODES, NUM_RELATIONS, NUM_NODES], (12, 3)).astype(np.int32)
    graph = KnowledgeGraph(np.unique(facts, axis=0), NUM_NODES, NUM_RELATIONS)
    edges = torch.tensor(with_inverses(graph))
    vectors = torch.randn(2 * NUM_RELATIONS, DIM, generator=torch.manual_seed(seed))
    visible = torch.ones(len(edges))
    visible[mask or []] = 0.0
    return PathGraph(EdgeIndex(edges, NUM_NODES, 2 * NUM_RELATIONS), vectors, visible)


def some_walks(seed: int, settings: WalkSettings) -> Walks:
    return Walks(DIM, settings, generator=torch.manual_seed(seed)).eval()


def degrees_of(graph: PathGraph) -> list[float]:
    """The number of visible edges of every node."""
    degree = [0.0] * NUM_NODES
    for place, (target, _, _) in enumerate(graph.edge_index.edges.tolist()):
        degree[target] += float(graph.visible()[place])
    return degree


def all_walks(graph: PathGraph, length: int, max_degree: int = 0) -> Iterator[tuple[int, ...]]:
    """All sequences of visible edges from HEAD to TAIL, of up to so many edges."""
    edges = graph.edge_index.edges.tolist()  # target, relation, source
    degree = degrees_of(graph)

    def follow(node: int, walk: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if walk and node == TAIL:
            yield walk
        if len(walk) < length:
            if walk and max_degree and max(degree[node], degree[HEAD]) > max_degree:
                return
            for place, (target, _, source) in enumerate(edges):
                if source == node and graph.visible()[place]:
                    yield from follow(target, (*walk, place))

    yield from follow(HEAD, ())


def probabilities(walks: Walks, graph: PathGraph, walk: tuple[int, ...]) -> tuple[float, float]:
    """Of one walk, with preferences and the weight of its length, and without preferences."""
    edges, degree = graph.edge_index.edges.tolist(), degrees_of(graph)
    query = graph.relations[RELATION][None]
    preferences, mix = walks.step_weights(query, graph.relations)
    liked = plain = 1.0
    for step, place in enumerate(walk):
        _, relation, source = edges[place]
        plain *= DAMPING / degree[source]
        if step < len(preferences):
            liked *= float(preferences[step, relation, 0]) / degree[source]
    liked = liked * float(mix[len(walk) - 1, 0]) if len(walk) <= len(mix) else 0.0
    return liked, (1 - DAMPING) * plain if len(walk) <= walks.plain_steps else 0.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "settings",
    [
        WalkSettings(steps=3, coefficient=2.5),
        WalkSettings(steps=2, plain_steps=4),
        WalkSettings(steps=3, max_degree=4),
        WalkSettings(steps=3, max_degree=3),
    ],
)
def test_parts_of_all_walks_sum_up_to_the_whole_and_the_best_come_first(
    seed: int, settings: WalkSettings
) -> None:
    graph, walks = a_graph(seed, mask=[1, 13]), some_walks(seed, settings)
    with torch.no_grad():
        found, terms = best_walks(walks, HEAD, RELATION, TAIL, graph, top=100_000)
        each = {
            walk: probabilities(walks, graph, walk)
            for walk in all_walks(
                graph, max(settings.steps, settings.plain_steps), settings.max_degree
            )
        }
    assert terms.probability == pytest.approx(sum(liked for liked, _ in each.values()), rel=1e-4)
    rates = [settings.coefficient * rate for rate in terms.rates]
    expected = {walk: rates[0] * liked + rates[1] * plain for walk, (liked, plain) in each.items()}
    scores = {path.edges: path.score for path in found.paths}
    assert scores == pytest.approx({w: s for w, s in expected.items() if s}, rel=1e-4)
    assert sum(scores.values()) == pytest.approx(found.total, rel=1e-4)
    order = [abs(path.score) for path in found.paths]
    assert order == sorted(order, reverse=True)
    few, _ = best_walks(walks, HEAD, RELATION, TAIL, graph, top=3)
    assert [path.score for path in few.paths] == [path.score for path in found.paths[:3]]


@pytest.mark.parametrize("seed", range(3))
def test_the_total_is_what_the_score_gains_over_a_tail_that_no_walk_reaches(seed: int) -> None:
    settings = WalkSettings(steps=3, plain_steps=3, counts=False, coefficient=1.5)
    graph, walks = a_graph(seed), some_walks(seed, settings)
    with torch.no_grad():
        score = walks(torch.tensor([HEAD]), torch.tensor([RELATION]), graph)[0, TAIL].item()
        query = graph.relations[RELATION][None]
        reach, log_floor = walks.weigh(query)[0].tolist()
        assert walks.weigh_plain is not None
        plain, out = walks.weigh_plain(query)[0].tolist()
        found, _ = best_walks(walks, HEAD, RELATION, TAIL, graph, top=1)
    nothing = (1 + reach) * (LOG_FLOOR + log_floor) + (1 + plain) * math.log(PLAIN_FLOOR) + out
    assert found.total == pytest.approx(score - 1.5 * nothing, rel=1e-4)


@pytest.mark.parametrize(
    "settings", [WalkSettings(steps=3, plain_steps=2), WalkSettings(steps=3, max_degree=4)]
)
def test_the_flow_along_an_edge_is_the_sum_over_the_walks_that_follow_it(
    settings: WalkSettings,
) -> None:
    graph, walks = a_graph(0), some_walks(0, settings)
    with torch.no_grad():
        terms = walk_terms(walks, HEAD, RELATION, TAIL, graph)
        found, expected = np.zeros((2, 2, graph.edge_index.num_edges))
        found[:, terms.reached.edges] = flows(terms)
        for walk in all_walks(graph, 3, settings.max_degree):
            for edge in walk:
                expected[:, edge] += probabilities(walks, graph, walk)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-12)


def test_a_tail_that_no_walk_reaches_has_no_paths() -> None:
    graph = a_graph(0)
    cut = [
        place
        for place, (target, _, source) in enumerate(graph.edge_index.edges.tolist())
        if TAIL in (target, source)
    ]
    found, _ = best_walks(
        some_walks(0, WalkSettings(steps=3)), HEAD, RELATION, TAIL, a_graph(0, mask=cut), top=5
    )
    assert found.paths == () and found.total == 0
