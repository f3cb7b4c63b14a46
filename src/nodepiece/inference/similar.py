"""The nodes with the most similar vectors: of one node, of some, or of all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.evaluation.top_scores import TopScores, top_scores
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.names import Names
from nodepiece.inference.computed_once import computed_once
from nodepiece.inference.neighbour_index import IndexPlace, NeighbourIndex, nearest_by_index
from nodepiece.inference.patched_vectors import PatchedVectors

SIMILAR_SCHEMA = pa.schema(
    [
        ("node", pa.string()),
        ("neighbour", pa.string()),
        ("similarity", pa.float32()),
        ("rank", pa.int32()),
    ]
)
CELLS_AT_ONCE = 1 << 24  # similarities in memory
MAX_ROWS = 1024  # nodes whose similarities are computed at once
MAX_PAIRS = 10**10  # that are computed without an index, such as all pairs of 100,000 nodes
INDEXED_SHARE = 4  # an index is used while at most one row in this many has changed since


@dataclass(frozen=True, eq=False)
class NodeVectors:
    """The vectors of the nodes of a graph, and their names."""

    patched: PatchedVectors
    names: pa.LargeStringArray  # (num_nodes,)
    is_present: NDArray[np.bool_]  # (num_nodes,): False for removed nodes
    place: IndexPlace | None = None  # of the index of `patched.base`; None: it is not stored

    @property
    def vectors(self) -> Tensor:
        """(num_nodes, dim)."""
        return self.patched.whole

    @computed_once
    def nodes(self) -> LongArray:
        """The nodes that were not removed, ascending."""
        return np.flatnonzero(self.is_present)

    @computed_once
    def scale(self) -> Tensor:
        """(num_nodes,): 1 / length, and 0 for a vector of length 0."""
        lengths = torch.linalg.vector_norm(self.vectors, dim=1)
        return torch.where(lengths > 0, 1 / lengths, 0.0)

    def ids(self, nodes: Sequence[str]) -> LongArray:
        """The ids of nodes by name; unknown and removed ones are refused."""
        ids = Names(self.names, self.names[:0]).node_ids(nodes)
        if not self.is_present[ids].all():
            name = nodes[int(np.flatnonzero(~self.is_present[ids])[0])]
            raise InputError(f"node {name!r} was removed from the graph; choose another one")
        return ids


def similar_in_batches(
    table: NodeVectors,
    nodes: LongArray,
    top: int,
    *,
    exact: bool | None = None,
    progress: Progress | None = None,
) -> Iterator[pa.Table]:
    """Tables of SIMILAR_SCHEMA: the `top` nearest of each node, nearest first, in their order.

    The similarity is the cosine of the vectors. A node is not its own neighbour. `exact`: compute
    all similarities, or use an index; None: an index where there are more than MAX_PAIRS of them.
    """
    if exact is None:
        exact = len(nodes) * len(table.vectors) <= MAX_PAIRS
    found = nearest_exactly(table, nodes, top) if exact else nearest(table, nodes, top, progress)
    num_done = 0
    for some, best in found:
        yield pa.table(
            [
                table.names.take(pa.array(some[best.row])).cast(pa.string()),
                table.names.take(pa.array(best.candidate)).cast(pa.string()),
                pa.array(best.score),
                pa.array(best.place),
            ],
            schema=SIMILAR_SCHEMA,
        )
        num_done += len(some)
        if progress is not None:
            progress(num_done, len(nodes))


def nearest(
    table: NodeVectors, nodes: LongArray, top: int, progress: Progress | None
) -> Iterator[tuple[LongArray, TopScores]]:
    """Some nodes at a time, and the nearest of each, by an index."""
    patched, place = table.patched, table.place
    if INDEXED_SHARE * len(patched.nodes) > len(table.vectors):  # too many rows have changed
        patched, place = PatchedVectors.of(patched.whole), None
    index = NeighbourIndex(patched.base, place)
    index.prepare(progress)
    changed, present = patched.nodes.numpy(), table.is_present
    return nearest_by_index(index, table.vectors, nodes, top, changed=changed, is_present=present)


def nearest_exactly(
    table: NodeVectors, nodes: LongArray, top: int
) -> Iterator[tuple[LongArray, TopScores]]:
    """Some nodes at a time, and the nearest of each, by all cosines."""
    vectors, absent = table.vectors, torch.from_numpy(np.flatnonzero(~table.is_present))
    at_once = min(MAX_ROWS, max(1, CELLS_AT_ONCE // max(1, len(vectors))))
    for start in range(0, len(nodes), at_once):
        some = nodes[start : start + at_once]
        rows = torch.from_numpy(some).to(vectors.device)
        scores = (vectors[rows] * table.scale[rows, None]) @ vectors.T
        scores *= table.scale
        scores[:, absent] = -torch.inf
        scores[torch.arange(len(some)), rows] = -torch.inf
        yield some, top_scores(scores, top)
