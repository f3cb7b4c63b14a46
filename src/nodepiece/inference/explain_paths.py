"""The best paths from a head to a tail, by what they add to the score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nodepiece.decoders.propagation import Propagation
from nodepiece.decoders.propagation_paths import best_propagated
from nodepiece.decoders.reached_edges import IN_ORDER, cut_out
from nodepiece.decoders.walk_paths import ScoredPath, ScoredPaths, best_walks, flows, k_best
from nodepiece.decoders.walks import Walks
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.inference.explained import Explainable, named_fact
from nodepiece.inference.explanation import ExplainedPath

BY_WALKS = "what the path adds to the score of walks; the parts of all paths sum up to the total"
BY_PROPAGATION = (
    "the mean gradient of the score by the weights of the path's edges (NBFNet's beam search)"
)
BY_REMOVAL = "what the score loses without the facts of the path"

NUM_SHORT = 12  # short paths that are compared by removing their facts
LENGTH = 3  # the longest of these
SHORTER = 0.1  # the factor of each additional step, where short paths are searched for

Losses = Callable[[Sequence[IntArray]], Sequence[float]]
"""What the score loses without each of some sets of facts."""


@dataclass(frozen=True, eq=False)
class FoundPaths:
    """Paths, best first, and what the facts of the graph do for the scores of path scorers."""

    paths: tuple[ExplainedPath, ...]
    by: str
    total: float | None  # None: the scores of paths are no parts of a whole
    losses: FloatArray | None  # (num_facts,) without each fact, estimated; None: no path scorers


def explain_paths(
    snapshot: Explainable, head: int, relation: int, tail: int, *, top: int, losses: Losses
) -> FoundPaths:
    """The best paths from head to tail, as the model of the run allows to find them."""
    found: list[ScoredPath] = []
    by: list[str] = []
    total, lost = 0.0, np.zeros(snapshot.dataset.train.num_triples)
    is_whole = True
    for scorer in snapshot.scorers.values():
        graph, row = snapshot.path_graph(), snapshot.path_relation(relation)
        if isinstance(scorer, Walks):
            scored, terms = best_walks(scorer, head, row, tail, graph, top=top)
            facts, of_edge = np.unique(
                fact_places(snapshot, terms.reached.edges), return_inverse=True
            )
            both = [np.bincount(of_edge, flow, len(facts)).tolist() for flow in flows(terms)]
            scale = float(scorer.coefficient)
            lost[facts] += [scale * terms.loss(*pair) for pair in zip(*both, strict=True)]
            by.append(BY_WALKS)
        elif isinstance(scorer, Propagation):
            scored, importance = best_propagated(scorer, head, row, tail, graph, top=top)
            lost += by_fact(snapshot, importance)
            by.append(BY_PROPAGATION)
            is_whole = False
        else:
            continue  # a scorer whose paths are not known
        found += scored.paths
        total += scored.total
    if not by:
        return by_removal(snapshot, head, tail, top=top, losses=losses)
    found.sort(key=lambda path: -path.score)
    paths = named_paths(snapshot, found[:top])
    return FoundPaths(paths, "; ".join(by), total if is_whole else None, lost)


def by_removal(
    snapshot: Explainable, head: int, tail: int, *, top: int, losses: Losses
) -> FoundPaths:
    """Short paths along rare relations, by what the score loses without their facts."""
    scored = short_paths(snapshot, head, tail)
    facts = [edge_facts(snapshot, path.edges, by_node=True) for path in scored.paths]
    loss = losses([np.unique(each, axis=0) for each in facts])
    order = sorted(range(len(facts)), key=lambda place: -loss[place])[:top]
    names = snapshot.dataset.names
    paths = tuple(
        ExplainedPath(float(loss[place]), tuple(named_fact(names, fact) for fact in facts[place]))
        for place in order
    )
    scorers = None if not snapshot.scorers else np.zeros(snapshot.dataset.train.num_triples)
    return FoundPaths(paths, BY_REMOVAL, None, scorers)


def short_paths(snapshot: Explainable, head: int, tail: int) -> ScoredPaths:
    """Paths of up to LENGTH facts, without a node twice: short ones first, then rare relations.

    The value of a path is the product of 1 / (neighbours of a node * sqrt(facts of the relation)).
    """
    adjacency = snapshot.adjacency
    if head == tail:
        return ScoredPaths((), 0.0)
    number = np.bincount(snapshot.dataset.train.triples[:, 1], minlength=1).clip(min=1)
    number = np.resize(number, adjacency.num_relations)  # inverses are as frequent
    weights = np.tile(number**-0.5, (LENGTH, 1))
    rows = adjacency.offsets, adjacency.neighbours, adjacency.relations
    reached = cut_out(rows, IN_ORDER, (head, tail), LENGTH)
    mix = SHORTER ** np.arange(1.0, LENGTH + 1)
    shares = reached.shares()
    kinds = (weights, shares, mix), (weights, shares, np.zeros_like(mix))
    found = k_best(reached, kinds, (1.0, 0.0), top=NUM_SHORT, is_simple=True)
    return ScoredPaths(tuple(ScoredPath(value, edges) for value, edges in found), 0.0)


def named_paths(snapshot: Explainable, paths: Sequence[ScoredPath]) -> tuple[ExplainedPath, ...]:
    names = snapshot.dataset.names
    return tuple(
        ExplainedPath(
            path.score, tuple(named_fact(names, fact) for fact in edge_facts(snapshot, path.edges))
        )
        for path in paths
    )


def edge_facts(snapshot: Explainable, edges: Sequence[int], *, by_node: bool = False) -> IntArray:
    """The facts that edges are: (num_edges, 3). `by_node`: edges are positions in `adjacency`."""
    graph = snapshot.dataset.train
    if not by_node:
        return graph.triples[fact_places(snapshot, np.array(edges, np.int64))]
    adjacency, facts = snapshot.adjacency, []
    for edge in edges:
        node = int(np.searchsorted(adjacency.offsets, edge, side="right")) - 1
        other, relation = int(adjacency.neighbours[edge]), int(adjacency.relations[edge])
        is_inverse = relation >= graph.num_relations
        direct = relation % graph.num_relations
        facts.append((other, direct, node) if is_inverse else (node, direct, other))
    return np.array(facts, np.int32).reshape(-1, 3)


def by_fact(snapshot: Explainable, of_edges: FloatArray) -> FloatArray:
    """Values of edges, summed over both edges of each fact: (num_edges,) -> (num_facts,)."""
    number = snapshot.dataset.train.num_triples
    place = fact_places(snapshot, np.arange(len(of_edges)))
    return np.bincount(place, weights=of_edges, minlength=number).astype(np.float64)


def fact_places(snapshot: Explainable, edges: LongArray) -> LongArray:
    """The position of the fact that each of some edges of `path_graph` is, in either direction."""
    given = snapshot.path_graph().edge_index.given(edges)
    return given % max(1, snapshot.dataset.train.num_triples)
