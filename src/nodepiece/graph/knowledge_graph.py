"""The record of a graph, from which every later stage starts."""

from dataclasses import dataclass
from operator import ge
from typing import TYPE_CHECKING, Any

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, read_only
from nodepiece.graph.fact_blocks import fact_blocks
from nodepiece.graph.names import Names
from nodepiece.graph.short_text import plural, short

if TYPE_CHECKING:
    import pyarrow as pa


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
            ranges = [
                (int(block.min()), [int(column.max()) for column in block.T])  # faster than axis=0
                for block in fact_blocks(self.triples)
            ]
            largest = [max(column) for column in zip(*(high for _, high in ranges), strict=True)]
            if min(low for low, _ in ranges) < 0 or any(map(ge, largest, limits)):
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
        """The number of facts."""
        return len(self.triples)

    @property
    def fingerprint(self) -> str:
        """A hash of all names in order, or of the sizes of a graph without names."""
        if self.names is None:
            return f"{self.num_nodes} nodes, {self.num_relations} relations"
        return self.names.fingerprint

    def node_name(self, node_id: int) -> str:
        """The name of a node, or its id where there are no names."""
        return str(node_id) if self.names is None else self.names.node(node_id)

    def relation_name(self, relation_id: int) -> str:
        """The name of a relation, or its id where there are no names."""
        return str(relation_id) if self.names is None else self.names.relation(relation_id)

    def __repr__(self) -> str:
        example = ""
        if len(self.triples):
            head, relation, tail = self.triples[0].tolist()
            parts = (self.node_name(head), self.relation_name(relation), self.node_name(tail))
            example = f", such as {' - '.join(short(part) for part in parts)}"
        counts = (
            plural(self.num_nodes, "node"),
            plural(self.num_relations, "relation"),
            plural(self.num_triples, "fact"),
        )
        return f"KnowledgeGraph({', '.join(counts)}{example})"

    def to_arrow(self) -> "pa.Table":
        """An Arrow table of the facts, by name: head, relation, tail."""
        from nodepiece.graph import conversions

        return conversions.to_arrow(self)

    def to_pandas(self) -> Any:
        """A pandas DataFrame of the facts, by name: head, relation, tail."""
        from nodepiece.graph import conversions

        return conversions.to_pandas(self)

    def to_polars(self) -> Any:
        """A polars DataFrame of the facts, by name: head, relation, tail."""
        from nodepiece.graph import conversions

        return conversions.to_polars(self)

    def to_networkx(self) -> Any:
        """A networkx MultiDiGraph; the relation is the key of an edge and an attribute of it."""
        from nodepiece.graph import conversions

        return conversions.to_networkx(self)

    def to_pyg(self) -> Any:
        """`Data` of PyTorch Geometric, with edge_index, edge_type and the names."""
        from nodepiece.graph import conversions

        return conversions.to_pyg(self)

    def to_pykeen(self, *, create_inverse_triples: bool = False) -> Any:
        """PyKEEN's TriplesFactory with the ids and names of the graph."""
        from nodepiece.graph import conversions

        return conversions.to_pykeen(self, create_inverse_triples=create_inverse_triples)

    def to_rdflib(self, *, namespace: str | None = None) -> Any:
        """An RDFLib graph; names that are no IRIs become such after `namespace`."""
        from nodepiece.graph import conversions

        return conversions.to_rdflib(self, namespace=namespace)


def with_inverses(graph: KnowledgeGraph) -> IntArray:
    """Every fact and (tail, inverse of relation, head): (2 * num_triples, 3)."""
    head, relation, tail = graph.triples.T
    inverse = np.stack([tail, relation + np.int32(graph.num_relations), head], axis=1)
    return np.concatenate([graph.triples, inverse])
