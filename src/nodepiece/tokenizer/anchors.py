"""Anchor selection (section 3.1 and its appendix)."""

from collections.abc import Mapping

import numpy as np

from nodepiece.graph.adjacency import Adjacency, components
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.pagerank import pagerank
from nodepiece.tokenizer.settings import ANCHOR_STRATEGIES


def select_anchors(
    adjacency: Adjacency, num_anchors: int, mix: Mapping[str, float], *, rng: np.random.Generator
) -> IntArray:
    """Exactly `num_anchors` distinct nodes: the top by degree, then PageRank, then at random.

    Each strategy skips nodes that an earlier one selected and continues with its next best; equal
    nodes are ordered by id. The order of the result is the global order of anchors.
    """
    is_taken = np.zeros(adjacency.num_nodes, np.bool_)
    selected = []
    for strategy, count in split_count(num_anchors, mix).items():
        if count:
            order = STRATEGIES[strategy](adjacency, rng)
            chosen = order[~is_taken[order]][:count]
            is_taken[chosen] = True
            selected.append(chosen)
    return np.concatenate([np.empty(0, np.int32), *selected]).astype(np.int32)


def split_count(count: int, mix: Mapping[str, float]) -> dict[str, int]:
    """Whole numbers that follow the shares and add up to `count`; largest remainders round up."""
    whole = sum(mix.values())  # 1, except for rounding
    exact = {strategy: mix.get(strategy, 0.0) / whole * count for strategy in ANCHOR_STRATEGIES}
    counts = {strategy: int(share + 1e-9) for strategy, share in exact.items()}
    by_remainder = sorted(exact, key=lambda strategy: counts[strategy] - exact[strategy])
    for strategy in by_remainder[: count - sum(counts.values())]:
        counts[strategy] += 1
    return counts


def by_degree(adjacency: Adjacency, rng: np.random.Generator) -> IntArray:
    return np.argsort(-adjacency.degrees, kind="stable").astype(np.int32)


def by_pagerank(adjacency: Adjacency, rng: np.random.Generator) -> IntArray:
    # Equal nodes add up equal shares in different orders: their ranks differ in the last bits of
    # float64, which float32 drops; it still separates all that the power iteration does.
    rank = pagerank(adjacency).astype(np.float32)
    return np.argsort(-rank, kind="stable").astype(np.int32)


def at_random(adjacency: Adjacency, rng: np.random.Generator) -> IntArray:
    return rng.permutation(adjacency.num_nodes).astype(np.int32)


STRATEGIES = {"degree": by_degree, "pagerank": by_pagerank, "random": at_random}


def anchors_of_unreached_components(adjacency: Adjacency, anchors: IntArray) -> IntArray:
    """The node of highest degree of every component that has no anchor."""
    component = components(adjacency.offsets, adjacency.neighbours)
    has_anchor = np.zeros(component.max(initial=-1) + 1, np.bool_)
    has_anchor[component[anchors]] = True
    lost = np.flatnonzero(~has_anchor[component]).astype(np.int32)
    by_size = lost[np.argsort(-adjacency.degrees[lost], kind="stable")]
    _, first = np.unique(component[by_size], return_index=True)
    return by_size[np.sort(first)]
