"""The relational context of nodes: which relations leave them (section 3.2)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nodepiece.compiled import njit, prange
from nodepiece.errors import InputError
from nodepiece.graph.adjacency import Adjacency, distinct_relations
from nodepiece.graph.arrays import IntArray, LongArray, read_only
from nodepiece.graph.hashing import draw_salt, mix
from nodepiece.graph.neighbours import cuts_of_offsets


@dataclass(frozen=True, eq=False)
class RelationSets:
    """All distinct outgoing relations of every node, inverses included, ascending."""

    offsets: LongArray  # (num_nodes + 1,)
    values: IntArray  # (total,) relation ids

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", read_only(self.offsets))
        object.__setattr__(self, "values", read_only(self.values))

    @cached_property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest relation."""
        return int(self.values.min(initial=0)), int(self.values.max(initial=0))

    def check(self, num_relations: int) -> None:
        """Refuse relation ids outside the graph, which a damaged file may contain."""
        low, high = self.limits
        if len(self.values) and not 0 <= low <= high < num_relations:
            wrong = low if low < 0 else high
            raise InputError(
                f"the relation sets are damaged ({wrong:,} among the relations is out of range); "
                "run nodepiece tokenize again"
            )

    def of(self, node: int) -> IntArray:
        return self.values[self.offsets[node] : self.offsets[node + 1]]

    def sample(
        self, m: int, padding: int, *, rng: np.random.Generator, ascending: bool = True
    ) -> IntArray:
        """m distinct relations of every node without replacement: (num_nodes, m).

        `padding` fills the end of rows of nodes with fewer than m. A node keeps the m relations
        with the smallest hashes, which is a uniform sample and the same for any thread count. They
        are ascending, or in the order of these hashes.
        """
        return self.sample_by(draw_salt(rng), m, padding, ascending=ascending)

    def sample_by(
        self,
        salt: np.uint64,
        m: int,
        padding: int,
        *,
        ascending: bool = True,
        first_node: int = 0,  # the id of the first node, where the sets are those of a block
    ) -> IntArray:
        """The sample for a given salt, so that it can be repeated."""
        chunks = cuts_of_offsets(self.offsets)
        sample = np.full((len(self.offsets) - 1, m), padding, np.int32)
        _sample(self.offsets, self.values, chunks, first_node, salt, ascending, sample)
        return sample


def relation_sets(adjacency: Adjacency) -> RelationSets:
    return RelationSets(*distinct_relations(adjacency))


@njit(parallel=True, cache=True)
def _sample(offsets, values, chunks, first_node, salt, ascending, sample):  # type: ignore[no-untyped-def]
    for chunk in prange(len(chunks) - 1):
        for row in range(chunks[chunk], chunks[chunk + 1]):
            candidates = values[offsets[row] : offsets[row + 1]]
            sample_row(candidates, first_node + row, salt, ascending, sample[row])


@njit(cache=True)
def sample_row(candidates, node, salt, ascending, row):  # type: ignore[no-untyped-def]
    """Write as many distinct relations of a node as fit to the beginning of its row.

    `candidates` are ascending.
    """
    m = len(row)
    if ascending and len(candidates) <= m:
        row[: len(candidates)] = candidates
        return
    keys = np.empty(len(candidates), np.uint64)
    for i in range(len(candidates)):
        keys[i] = mix(salt, node, candidates[i])
    chosen = candidates[np.argsort(keys)[:m]]
    if ascending:
        chosen.sort()
    row[: len(chosen)] = chosen
