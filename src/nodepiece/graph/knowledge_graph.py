"""The record of a graph, from which every later stage starts."""

from dataclasses import dataclass

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, read_only
from nodepiece.graph.names import Names


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """Facts (head, relation, tail) over consecutive node and relation ids."""

    triples: IntArray  # (num_triples, 3), direct facts only
    num_nodes: int
    num_relations: int  # without inverses; relation r has the inverse r + num_relations
    names: Names | None = None  # None: nodes and relations are known by their ids

    def __post_init__(self) -> None:
        if self.triples.ndim != 2 or self.triples.shape[1] != 3:
            raise InputError(f"triples must have shape (num_triples, 3), got {self.triples.shape}")
        if not np.issubdtype(self.triples.dtype, np.integer):
            raise InputError(f"triples must be whole numbers, got {self.triples.dtype}")
        if len(self.triples):
            limits = (self.num_nodes, self.num_relations, self.num_nodes)
            if self.triples.min() < 0 or (self.triples.max(axis=0) >= limits).any():
                self._refuse_outside(limits)
        if self.names is not None:
            sizes = (len(self.names.nodes), len(self.names.relations))
            if sizes != (self.num_nodes, self.num_relations):
                raise InputError(
                    f"{sizes[0]} node and {sizes[1]} relation names do not fit a graph of "
                    f"{self.num_nodes} nodes and {self.num_relations} relations"
                )
        triples = np.ascontiguousarray(self.triples, dtype=np.int32)
        object.__setattr__(self, "triples", read_only(triples))

    def _refuse_outside(self, limits: tuple[int, int, int]) -> None:
        outside = ((self.triples < 0) | (self.triples >= limits)).any(axis=1)
        example = self.triples[outside][0].tolist()
        raise InputError(
            f"{outside.sum()} triples, such as {example}, name ids outside the graph of "
            f"{self.num_nodes} nodes and {self.num_relations} relations"
        )

    @property
    def num_triples(self) -> int:
        return len(self.triples)

    @property
    def fingerprint(self) -> str:
        """A hash of all names in order, or of the sizes of a graph without names."""
        if self.names is None:
            return f"{self.num_nodes} nodes, {self.num_relations} relations"
        return self.names.fingerprint

    def node_name(self, node_id: int) -> str:
        return str(node_id) if self.names is None else self.names.node(node_id)

    def relation_name(self, relation_id: int) -> str:
        return str(relation_id) if self.names is None else self.names.relation(relation_id)


def with_inverses(graph: KnowledgeGraph) -> IntArray:
    """Every fact and (tail, inverse of relation, head): (2 * num_triples, 3)."""
    head, relation, tail = graph.triples.T
    inverse = np.stack([tail, relation + np.int32(graph.num_relations), head], axis=1)
    return np.concatenate([graph.triples, inverse])
