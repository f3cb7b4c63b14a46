"""What an explanation needs of a snapshot, for runs on a known graph and on any graph."""

from typing import Protocol

from nodepiece.decoders.path_scorers import PathGraph
from nodepiece.graph.adjacency import Adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.names import Names
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.similar import NodeVectors
from nodepiece.tokenizer.changing_graph import NamedFact


class Explainable(Scoring, Protocol):
    """An immutable state whose scores can be explained."""

    @property
    def adjacency(self) -> Adjacency:
        """The edges of every node, inverses included."""

    @property
    def node_table(self) -> NodeVectors:
        """The vectors of all nodes."""

    def path_graph(self) -> PathGraph:
        """The graph that path scorers follow, its edges those of `with_inverses`."""

    def path_relation(self, relation: int) -> int:
        """The id that a relation of the graph, maybe an inverse, has in `path_graph`."""

    def without(self, removed: IntArray) -> Scoring:
        """A snapshot without some facts of its graph, by ids: (num_removed, 3), each once."""


def named_fact(names: Names, fact: IntArray) -> NamedFact:
    head, relation, tail = fact.tolist()
    return names.node(head), names.relation(relation), names.node(tail)


def facts_of(snapshot: Explainable, node: int) -> IntArray:
    """The facts of the graph with a node, as head or as tail, each once: (num_facts, 3)."""
    triples = snapshot.dataset.train.triples
    return triples[(triples[:, 0] == node) | (triples[:, 2] == node)]
