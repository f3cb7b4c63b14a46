"""The pairs of highest score between many queries and many nodes: exact, without all products.

The score of a query vector q and a node vector t is their product, or their negative distance. Both
grow with q.t - a(q) - b(t), where a = b = 0 for products, and a, b = |q|^2 / 2, |t|^2 / 2 for
distances. In a rotated basis, whose first axes carry most of the lengths, q.t is at most q1.t1 +
|q2| |t2|, where q1 are the first coordinates of q and q2 the others. So a product of a few
coordinates shows which pairs can be among the best. Blocks are sorted by length, so that those
whose lengths alone exclude them are not computed at all.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.graph.arrays import FloatArray, LongArray
from nodepiece.inference.search_progress import SearchProgress

ROWS, COLUMNS = 1024, 2048  # of a block: its products stay in the cache of a CPU
NUM_FIRST = (16, 32, 64, 128)  # coordinates of the bound, to choose from
SAMPLE = 256  # queries and nodes by which the number is chosen
DENSE = 16  # one pair in this many: then the products of all pairs are computed, not of these
SLACK = 2e-5  # of the product of lengths: more than float32 rounds
NOTHING = np.empty((0, 3), np.int64)

Allowed = Callable[[LongArray], NDArray[np.bool_]]  # triples (num, 3) -> (num,)


@dataclass
class Best:
    """The facts of highest score so far, up to `most`; others must exceed the score `least`."""

    most: int
    least: float = -np.inf
    scores: FloatArray = field(default_factory=lambda: np.empty(0))
    triples: LongArray = field(default_factory=lambda: NOTHING)
    _waiting: list[tuple[FloatArray, LongArray]] = field(default_factory=list)
    _num_waiting: int = 0

    @property
    def is_full(self) -> bool:
        """Whether a fact has to exceed others to be among the best."""
        return len(self.scores) == self.most

    def add(self, scores: FloatArray, triples: LongArray) -> None:
        """Add facts that are not there yet."""
        self._waiting.append((scores, triples))
        self._num_waiting += len(scores)
        if self._num_waiting >= self.most:
            self.settle()

    def settle(self) -> None:
        """Sort the facts that were added among the best, and drop those that are not."""
        scores = np.concatenate([self.scores, *(scores for scores, _ in self._waiting)])
        triples = np.concatenate([self.triples, *(triples for _, triples in self._waiting)])
        self._waiting, self._num_waiting = [], 0
        order = np.lexsort((*triples.T[::-1], -scores))[: self.most]
        self.scores, self.triples = scores[order], triples[order]
        if len(order) == self.most:
            self.least = max(self.least, float(self.scores[-1]))


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of some queries with some nodes, for one relation."""

    relation: int
    heads: LongArray  # (num_queries,) whose queries they are
    tails: LongArray  # (num_tails,)
    queries: Tensor  # (num_queries, dim)
    nodes: Tensor  # (num_tails, dim)
    is_distance: bool

    @property
    def count(self) -> int:
        return len(self.heads) * len(self.tails)

    def score(self, product: Tensor) -> Tensor:
        """Scores from q.t - a(q) - b(t)."""
        return -(-2 * product).clamp_min(0).sqrt() if self.is_distance else product

    def product(self, score: float) -> float:
        """q.t - a(q) - b(t) of a score."""
        if not self.is_distance:
            return score
        return -(score**2) / 2 if score < 0 else 0.0

    def halves(self, vectors: Tensor) -> Tensor:
        """a or b of vectors: (num_vectors,)."""
        if not self.is_distance:
            return vectors.new_zeros(len(vectors))
        return vectors.square().sum(dim=1) / 2


def sample_pairs(pairs: Pairs, best: Best, allowed: Allowed) -> None:
    """Add the best pairs of the longest queries and nodes: a search begins with their `least`."""
    part = _taken(pairs, _longest(pairs.queries), _longest(pairs.nodes))
    scores = pairs.score(
        part.queries @ part.nodes.T
        - pairs.halves(part.queries)[:, None]
        - pairs.halves(part.nodes)[None]
    )
    _add(part, best, allowed, scores > best.least, scores)


def part_of(pairs: Pairs, share: float) -> Pairs:
    """The pairs of a share of the queries: the longest, which have the largest products.

    A distance does not depend on the length in this way: then they are drawn at random.
    """
    number = num_in_part(len(pairs.heads), share)
    if number == len(pairs.heads):
        return pairs
    if pairs.is_distance:
        rows = torch.randperm(len(pairs.heads), generator=torch.Generator().manual_seed(0))[:number]
    else:
        rows = torch.linalg.vector_norm(pairs.queries, dim=1).topk(number).indices
    return _taken(pairs, rows, torch.arange(len(pairs.tails)))


def num_in_part(num_queries: int, share: float) -> int:
    return math.ceil(share * num_queries)


def some_of(pairs: Pairs, number: int) -> Pairs:
    """The pairs of so many queries of all lengths."""
    order = torch.linalg.vector_norm(pairs.queries, dim=1).argsort(descending=True)
    places = torch.linspace(0, len(order) - 1, number).long().to(order.device)
    return _taken(pairs, order[places], torch.arange(len(pairs.tails)))


def search_pairs(pairs: Pairs, best: Best, allowed: Allowed, progress: SearchProgress) -> int:
    """Add the pairs whose score exceeds `best.least`; returns how many products were computed.

    `progress` counts queries; if it is stopped, the pairs so far are added.
    """
    if not pairs.count:
        progress.add(len(pairs.heads))
        return 0
    order_q, order_t = (
        torch.linalg.vector_norm(vectors, dim=1).argsort(descending=True)
        for vectors in (pairs.queries, pairs.nodes)
    )
    pairs = _taken(pairs, order_q, order_t)
    bounds = _Bounds(pairs, best.least)
    num_computed = 0
    for rows in _slices(len(pairs.heads), ROWS):
        for columns in _slices(len(pairs.tails), COLUMNS):
            if progress.is_stopped:
                return num_computed
            least = pairs.product(best.least)
            if not bounds.may_exceed(rows, columns, least):
                if not pairs.is_distance:
                    break  # what follows is shorter still
                continue
            num_computed += (rows.stop - rows.start) * (columns.stop - columns.start)
            _search_block(pairs, bounds, rows, columns, best, allowed)
        progress.add(rows.stop - rows.start)
    return num_computed


class _Bounds:
    """Vectors whose products are bounds of the products of pairs."""

    def __init__(self, pairs: Pairs, least: float) -> None:
        queries, nodes = pairs.queries, pairs.nodes
        self.query_lengths, self.node_lengths = (
            torch.linalg.vector_norm(vectors, dim=1).cpu().numpy() for vectors in (queries, nodes)
        )
        self.is_distance = pairs.is_distance
        axes = _axes(queries, nodes)
        turned = queries @ axes, nodes @ axes
        first = _choose_first(pairs, turned, least)
        self.of_queries, self.of_nodes = _bounding(pairs, turned, first)

    def may_exceed(self, rows: slice, columns: slice, least: float) -> bool:
        """Whether a pair of the block may have a larger product, by its lengths alone."""
        q_low, q_high = self.query_lengths[rows.stop - 1], self.query_lengths[rows.start]
        t_low, t_high = self.node_lengths[columns.stop - 1], self.node_lengths[columns.start]
        slack = float(SLACK * q_high * t_high)
        if self.is_distance:
            gap = max(0.0, float(q_low - t_high), float(t_low - q_high))
            return -(gap**2) / 2 + slack > least
        return float(q_high * t_high) + slack > least

    def slack(self, rows: slice, columns: slice) -> float:
        return float(SLACK * self.query_lengths[rows.start] * self.node_lengths[columns.start])


def _search_block(
    pairs: Pairs, bounds: _Bounds, rows: slice, columns: slice, best: Best, allowed: Allowed
) -> None:
    least = pairs.product(best.least) - bounds.slack(rows, columns)
    limits = bounds.of_queries[rows] @ bounds.of_nodes[columns].T
    few = torch.nonzero(limits.amax(dim=1) > least)[:, 0]
    if not len(few):
        return
    is_possible = limits[few] > least
    block = _taken(pairs, few + rows.start, torch.arange(columns.start, columns.stop))
    if int(is_possible.sum()) * DENSE > is_possible.numel():
        products = block.queries @ block.nodes.T
        products -= pairs.halves(block.queries)[:, None] + pairs.halves(block.nodes)[None]
        scores = pairs.score(products)
        _add(block, best, allowed, scores > best.least, scores)
        return
    row, column = torch.nonzero(is_possible, as_tuple=True)
    queries, nodes = block.queries[row], block.nodes[column]
    products = (queries * nodes).sum(dim=1) - pairs.halves(queries) - pairs.halves(nodes)
    scores = pairs.score(products)
    kept = scores > best.least
    _add_found(block, best, allowed, row[kept], column[kept], scores[kept])


def _add(block: Pairs, best: Best, allowed: Allowed, is_kept: Tensor, scores: Tensor) -> None:
    row, column = torch.nonzero(is_kept, as_tuple=True)
    _add_found(block, best, allowed, row, column, scores[row, column])


def _add_found(
    block: Pairs, best: Best, allowed: Allowed, row: Tensor, column: Tensor, scores: Tensor
) -> None:
    heads, tails = block.heads[row.cpu().numpy()], block.tails[column.cpu().numpy()]
    triples = np.stack([heads, np.full(len(heads), block.relation), tails], axis=1)
    is_allowed = allowed(triples)
    best.add(scores.double().cpu().numpy()[is_allowed], triples[is_allowed])


def _axes(queries: Tensor, nodes: Tensor) -> Tensor:
    """An orthonormal basis, (dim, dim), whose first axes carry most of both lengths."""
    total = queries.new_zeros(queries.shape[1], queries.shape[1], dtype=torch.float64)
    for vectors in (queries, nodes):
        gram = (vectors.T @ vectors).double()
        total += gram / gram.trace().clamp_min(1e-30)
    if not total.isfinite().all():
        raise InputError(
            "vectors have values that are not finite, or too large: training diverged, or the run "
            "is damaged; train it again"
        )
    return torch.linalg.eigh(total).eigenvectors.flip(1).to(queries.dtype)


def _choose_first(pairs: Pairs, turned: tuple[Tensor, Tensor], least: float) -> int:
    """The number of coordinates with the least work, by the bounds of some random pairs."""
    dim = pairs.queries.shape[1]
    generator = torch.Generator().manual_seed(0)
    sampled = tuple(
        vectors[torch.randint(len(vectors), (SAMPLE,), generator=generator)] for vectors in turned
    )
    work = {dim: float(dim)}
    for first in (number for number in NUM_FIRST if number + 3 < dim):
        queries, nodes = _bounding(pairs, (sampled[0], sampled[1]), first)
        share = float(((queries @ nodes.T) > pairs.product(least)).float().mean())
        work[first] = first + 3 + dim * min(1.0, DENSE * share)
    return min(work, key=lambda first: work[first])


def _bounding(pairs: Pairs, turned: tuple[Tensor, Tensor], first: int) -> tuple[Tensor, Tensor]:
    """Vectors whose products are at least q.t - a(q) - b(t): (num, first + 3) each."""
    queries, nodes = turned
    rests = (torch.linalg.vector_norm(vectors[:, first:], dim=1) for vectors in turned)
    rest_of_queries, rest_of_nodes = rests
    ones = queries.new_ones
    return (
        torch.column_stack(
            [queries[:, :first], rest_of_queries, -pairs.halves(queries), -ones(len(queries))]
        ),
        torch.column_stack(
            [nodes[:, :first], rest_of_nodes, ones(len(nodes)), pairs.halves(nodes)]
        ),
    )


def _longest(vectors: Tensor) -> Tensor:
    lengths = torch.linalg.vector_norm(vectors, dim=1)
    return lengths.topk(min(SAMPLE, len(vectors))).indices


def _taken(pairs: Pairs, rows: Tensor, columns: Tensor) -> Pairs:
    """The pairs of some of the queries and some of the nodes, by position."""
    rows, columns = rows.to(pairs.queries.device), columns.to(pairs.queries.device)
    return Pairs(
        pairs.relation,
        pairs.heads[rows.cpu().numpy()],
        pairs.tails[columns.cpu().numpy()],
        pairs.queries[rows],
        pairs.nodes[columns],
        pairs.is_distance,
    )


def _slices(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]
