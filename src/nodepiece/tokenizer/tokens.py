"""Every node as a short sequence of pieces (section 3.2)."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.arrays import IntArray, read_only
from nodepiece.graph.hashing import draw_salt
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.nearest import (
    UNREACHED,
    Distances,
    choose_at_random,
    distances_to_chosen,
    nearest_sources,
)
from nodepiece.graph.neighbours import Neighbours
from nodepiece.graph.short_text import few, plural, short
from nodepiece.tokenizer.context import RelationSets, relation_sets
from nodepiece.tokenizer.token_values import find_invalid_token
from nodepiece.tokenizer.vocabulary import Vocabulary

NO_DISTANCE = UNREACHED  # of [PAD] and [DISCONNECTED], and of all in the ablation without distances


@dataclass(frozen=True)
class Salts:
    """The salts of all random choices of a tokenization: the same salts give the same tokens."""

    relations: np.uint64  # which m relations a node keeps
    anchors: np.uint64  # which equidistant anchors it keeps, or which k at random

    @staticmethod
    def draw(rng: np.random.Generator) -> "Salts":
        return Salts(draw_salt(rng), draw_salt(rng))


@dataclass(frozen=True, eq=False)
class TokenTable:
    """The tokens of every node: k anchors, nearest first, their distances, and m relations."""

    vocabulary: Vocabulary
    anchors: IntArray  # (num_nodes, k) token ids
    distances: Distances  # (num_nodes, k) hops, NO_DISTANCE where there is no anchor
    relations: IntArray  # (num_nodes, m) token ids in `relation_order`, [PAD] last
    relation_sets: RelationSets  # all relations, from which `relations` was sampled
    salts: Salts | None = None  # None: not known, so the table cannot be updated

    def __post_init__(self) -> None:
        for field in ("anchors", "distances", "relations"):
            object.__setattr__(self, field, read_only(getattr(self, field)))

    def __repr__(self) -> str:
        first = f"; {short(self.vocabulary.node_name(0))} is " if self.num_nodes else ""
        pieces = few(self.pieces(0)) if self.num_nodes else ""
        nodes, anchors = plural(self.num_nodes, "node"), plural(self.anchors_per_node, "anchor")
        relations = plural(self.relations_per_node, "relation")
        return f"TokenTable({nodes} as {anchors} and {relations} each{first}{pieces})"

    @cached_property
    def invalid_value(self) -> str | None:
        """A description of an invalid value in the table; None if all are valid."""
        return find_invalid_token(self.vocabulary, self.anchors, self.distances, self.relations)

    def check(self) -> None:
        """Refuse a damaged table, as kernels use its values as indices; it is read once."""
        if self.invalid_value is not None:
            raise InputError(
                f"the tokens are damaged ({self.invalid_value}); run nodepiece tokenize again"
            )

    @cached_property
    def max_distance(self) -> int:
        """The largest distance, 0 where there is none; all are read once."""
        return int(self.distances.max(initial=0))

    def as_checked(self, max_distance: int) -> "TokenTable":
        """This table for a process that reads only the rows it needs.

        Another process has checked the same files, and found this largest distance.
        """
        table = replace(self)
        table.__dict__.update(invalid_value=None, max_distance=max_distance)
        return table

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.anchors)

    @property
    def anchors_per_node(self) -> int:
        """k, the anchors of a node."""
        return self.anchors.shape[1]

    @property
    def relations_per_node(self) -> int:
        """m, the relations of a node."""
        return self.relations.shape[1]

    def pieces(self, node: int) -> list[str]:
        """The pieces of a node by name: anchors as "name@distance", then relations."""
        name = self.vocabulary.token_name
        anchors = [
            name(token) if distance == NO_DISTANCE else f"{name(token)}@{distance}"
            for token, distance in zip(
                self.anchors[node].tolist(), self.distances[node].tolist(), strict=True
            )
        ]
        return anchors + [name(token) for token in self.relations[node].tolist()]


def tokenize(
    graph: KnowledgeGraph,
    vocabulary: Vocabulary,
    *,
    rng: np.random.Generator,
    adjacency: Adjacency | None = None,
) -> TokenTable:
    """The tokens of every node of a graph, by the settings of the vocabulary.

    `adjacency` saves building it again where the caller has it.
    """
    vocabulary.check_fits(graph)
    return tokenize_by(Salts.draw(rng), adjacency or build_adjacency(graph), vocabulary)


def tokenize_by(salts: Salts, adjacency: Adjacency, vocabulary: Vocabulary) -> TokenTable:
    """The token table for given salts."""
    settings = vocabulary.settings
    sets = relation_sets(adjacency)
    relations = sets.sample_by(
        salts.relations,
        settings.relations_per_node,
        vocabulary.num_relations,
        ascending=settings.relation_order == "ascending",
    )
    nearest, distances = assign_anchors(adjacency, vocabulary, salts.anchors)
    anchors = vocabulary.anchor_tokens(nearest)
    if not settings.distances:
        distances[:] = NO_DISTANCE
    tokens = vocabulary.relation_tokens(relations)  # maps the fill value to the padding token
    return TokenTable(vocabulary, anchors, distances, tokens, sets, salts)


def assign_anchors(
    adjacency: Neighbours, vocabulary: Vocabulary, salt: np.uint64
) -> tuple[IntArray, Distances]:
    """k anchors of every node and their distances, nearest first, UNREACHED where there is none."""
    settings = vocabulary.settings
    k = settings.anchors_per_node
    if settings.select == "nearest":
        by_node = salt if settings.ties == "per-node" else None
        return nearest_sources(adjacency, vocabulary.anchors, k, salt=by_node)
    chosen = choose_at_random(adjacency.num_nodes, vocabulary.num_anchors, k, salt)
    distances = distances_to_chosen(adjacency, vocabulary.anchors, chosen)
    chosen[distances == UNREACHED] = UNREACHED
    # Without their sign, distances sort as they are and UNREACHED, -1, comes last.
    order = np.argsort(distances.view(np.uint16), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, 1), np.take_along_axis(distances, order, 1)


def stored_anchors(table: TokenTable, adjacency: Neighbours) -> tuple[IntArray, Distances]:
    """The result of `assign_anchors` for a table: positions of anchors and their true distances.

    They are computed again where the table does not store distances.
    """
    vocabulary = table.vocabulary
    if not vocabulary.settings.distances:
        if table.salts is None:
            raise InputError("the table has neither distances nor salts; tokenize again")
        return assign_anchors(adjacency, vocabulary, table.salts.anchors)
    anchors = np.asarray(table.anchors)
    nearest = np.where(anchors < vocabulary.num_anchors, anchors, np.int32(UNREACHED))
    distances = np.asarray(table.distances)
    if ((nearest < 0) != (distances < 0)).any():
        raise InputError(
            "the tokens are damaged (some anchors have no distance, or distances no anchor); run "
            "nodepiece tokenize again"
        )
    return nearest, distances
