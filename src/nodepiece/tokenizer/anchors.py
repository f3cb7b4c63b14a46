"""Anchor selection (section 3.1 and its appendix)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodepiece.graph.adjacency import components
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.neighbours import Neighbours
from nodepiece.graph.pagerank import pagerank
from nodepiece.tokenizer.settings import ANCHOR_STRATEGIES


def select_anchors(
    adjacency: Neighbours, num_anchors: int, mix: Mapping[str, float], *, rng: np.random.Generator
) -> IntArray:
    """Exactly `num_anchors` distinct nodes: the top by degree, then PageRank, then at random.

    Each strategy skips nodes that an earlier one selected and continues with its next best; equal
    nodes are ordered by id. The order of the result is the global order of anchors.
    """
    is_taken = np.zeros(adjacency.num_nodes, np.bool_)
    selected = []
    for strategy, count in split_count(num_anchors, mix).items():
        if count:
            order = STRATEGIES[strategy](adjacency, num_anchors, rng)  # enough, if some are taken
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


def by_degree(adjacency: Neighbours, num: int, rng: np.random.Generator) -> IntArray:
    return largest(adjacency.degrees, num)


def by_pagerank(adjacency: Neighbours, num: int, rng: np.random.Generator) -> IntArray:
    # Equal nodes add up equal shares in different orders: their ranks differ in the last bits of
    # float64, which float32 drops; it still separates all that the power iteration does.
    return largest(pagerank(adjacency).astype(np.float32), num)


def at_random(adjacency: Neighbours, num: int, rng: np.random.Generator) -> IntArray:
    order = np.arange(adjacency.num_nodes, dtype=np.int32)
    rng.shuffle(order)  # as rng.permutation, in half of its memory
    return order[:num].copy()


def largest(values: NDArray[Any], num: int) -> IntArray:
    """The positions of the `num` largest values, largest first, equal ones by position.

    The beginning of a stable sort of all values, which would take several times their memory.
    """
    if num < len(values):
        place = len(values) - num
        least = np.partition(values, place)[place]
        above, equal = np.flatnonzero(values > least), np.flatnonzero(values == least)
        chosen = np.concatenate([above, equal[: num - len(above)]])
    else:
        chosen = np.arange(len(values))
    return chosen[np.argsort(-values[chosen], kind="stable")].astype(np.int32)


STRATEGIES = {"degree": by_degree, "pagerank": by_pagerank, "random": at_random}


def anchors_of_unreached_components(adjacency: Neighbours, anchors: IntArray) -> IntArray:
    """The node of highest degree of every component that has no anchor."""
    component = components(adjacency.offsets, adjacency.neighbours)
    has_anchor = np.zeros(component.max(initial=-1) + 1, np.bool_)
    has_anchor[component[anchors]] = True
    lost = np.flatnonzero(~has_anchor[component]).astype(np.int32)
    by_size = lost[np.argsort(-adjacency.degrees[lost], kind="stable")]
    _, first = np.unique(component[by_size], return_index=True)
    return by_size[np.sort(first)]
