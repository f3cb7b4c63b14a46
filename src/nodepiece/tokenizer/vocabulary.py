"""The fixed set of pieces that every node is written with."""

from dataclasses import dataclass

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, read_only
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.graph.nearest import UNREACHED
from nodepiece.graph.neighbours import Neighbours, build_neighbours
from nodepiece.graph.short_text import few, plural
from nodepiece.tokenizer.anchors import anchors_of_unreached_components, select_anchors
from nodepiece.tokenizer.settings import TokenizerSettings

PADDING_NAME = "[PAD]"
DISCONNECTED_NAME = "[DISCONNECTED]"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """All node pieces. Token ids run: anchors, relations, PADDING, DISCONNECTED.

    A vocabulary belongs to the names of one graph: its ids have no meaning for other graphs.
    """

    anchors: IntArray  # (num_anchors,) distinct node ids, in the global order of anchors
    num_relations: int  # direct and inverse
    num_nodes: int
    fingerprint: str  # of the graph's names
    settings: TokenizerSettings
    names: Names | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "anchors", read_only(self.anchors))

    def __repr__(self) -> str:
        anchors = [self.node_name(node) for node in self.anchors[:4].tolist()]
        return (
            f"Vocabulary({plural(self.num_anchors, 'anchor')}: {few(anchors)}; "
            f"{plural(self.num_relations, 'relation')} with inverses; "
            f"for {plural(self.num_nodes, 'node')})"
        )

    @property
    def num_anchors(self) -> int:
        """|A|, the number of anchors."""
        return len(self.anchors)

    @property
    def padding(self) -> int:
        """The token that fills up fewer than m relations or fewer than k anchors."""
        return self.num_anchors + self.num_relations

    @property
    def disconnected(self) -> int:
        """The token in place of the anchors of a node that reaches none."""
        return self.padding + 1

    def __len__(self) -> int:
        return self.padding + 2

    def anchor_tokens(self, nearest: IntArray) -> IntArray:
        """The tokens of anchors, given by positions in the global order or UNREACHED.

        (num_rows, k) -> (num_rows, k). The positions are overwritten, to save memory.
        """
        is_missing = nearest == UNREACHED
        nearest[is_missing] = self.padding
        nearest[is_missing.all(axis=1)] = self.disconnected
        return nearest

    def relation_tokens(self, relations: IntArray) -> IntArray:
        """The token ids of relations."""
        return relations + np.int32(self.num_anchors)

    def node_name(self, node: int) -> str:
        """The name of a node, or its id where there are no names."""
        return str(node) if self.names is None else self.names.node(node)

    def token_name(self, token: int) -> str:
        """The name of a piece: of a node or a relation, or [PAD] or [DISCONNECTED]."""
        if token < self.num_anchors:
            return self.node_name(int(self.anchors[token]))
        if token >= self.padding:
            return PADDING_NAME if token == self.padding else DISCONNECTED_NAME
        relation = token - self.num_anchors
        return str(relation) if self.names is None else self.names.relation(relation)

    def check_fits(self, graph: KnowledgeGraph) -> None:
        """Refuse a graph whose nodes or relations differ from those of this vocabulary."""
        if graph.fingerprint != self.fingerprint:
            raise InputError(
                f"this vocabulary was made for another graph ({self.num_nodes:,} nodes, "
                f"{self.num_relations // 2:,} relations) than the one given ({graph.num_nodes:,} "
                f"nodes, {graph.num_relations:,} relations), or its names come in another order; "
                "tokenize the graph you have"
            )


def fit_vocabulary(
    graph: KnowledgeGraph,
    settings: TokenizerSettings,
    *,
    rng: np.random.Generator,
    adjacency: Neighbours | None = None,
) -> Vocabulary:
    """The vocabulary of a graph: the chosen anchors and all relations, direct and inverse.

    `adjacency` saves building it again where the caller has it.
    """
    adjacency = adjacency or build_neighbours(graph)
    num_anchors = settings.anchors_in(graph.num_nodes)
    anchors = select_anchors(adjacency, num_anchors, settings.mix, rng=rng)
    if settings.disconnected == "anchor" and num_anchors:
        extra = anchors_of_unreached_components(adjacency, anchors)
        anchors = np.concatenate([anchors, extra])
    return Vocabulary(
        anchors,
        2 * graph.num_relations,
        graph.num_nodes,
        graph.fingerprint,
        settings,
        graph.names,
    )
