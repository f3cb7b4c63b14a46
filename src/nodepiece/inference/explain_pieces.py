"""What two nodes share, and which of their pieces carry a score."""

from collections.abc import Callable

import numpy as np
from torch import Tensor

from nodepiece.graph.arrays import IntArray
from nodepiece.graph.names import Names
from nodepiece.inference.explanation import CarryingPiece, SharedPiece
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import NO_DISTANCE
from nodepiece.tokenizer.vocabulary import Vocabulary

ScoreRows = Callable[[int, TokenRows], Tensor]
"""Scores of the fact with each of some rows of tokens for one of its nodes: (num_rows,)."""


def shared_pieces(
    head: TokenRows, tail: TokenRows, vocabulary: Vocabulary, names: Names
) -> tuple[SharedPiece, ...]:
    """The pieces of both nodes, one row each: anchors, near ones first, then relations."""
    found = []
    for token in np.intersect1d(head.anchors[0], tail.anchors[0]):
        if token < vocabulary.num_anchors:
            distances = (distance_of(head, token), distance_of(tail, token))
            found.append(SharedPiece(piece_name(vocabulary, names, token), *distances))
    found.sort(key=lambda piece: (piece.head_distance or 0) + (piece.tail_distance or 0))
    for token in np.intersect1d(head.relations[0], tail.relations[0]):
        if token < vocabulary.padding:
            found.append(SharedPiece(piece_name(vocabulary, names, token), None, None))
    return tuple(found)


def carrying_pieces(
    rows: dict[int, TokenRows],
    vocabulary: Vocabulary,
    names: Names,
    *,
    score: float,
    score_rows: ScoreRows,
    top: int,
) -> tuple[CarryingPiece, ...]:
    """The pieces with the largest effect on the score, when each is left out of its node's row.

    rows: of head and tail, one row each. The row is encoded again without the piece, as that of a
    node with one piece less, and nothing is trained.
    """
    found = []
    for node, row in rows.items():
        tokens, shortened = rows_without_a_piece(row, vocabulary)
        if not tokens:
            continue
        for token, other in zip(tokens, score_rows(node, shortened).tolist(), strict=True):
            is_anchor = token < vocabulary.num_anchors
            piece = piece_name(vocabulary, names, token)
            distance = distance_of(row, token) if is_anchor else None
            found.append(CarryingPiece(names.node(node), piece, score - other, distance))
    found.sort(key=lambda piece: -abs(piece.effect))
    return tuple(found[:top])


def rows_without_a_piece(row: TokenRows, vocabulary: Vocabulary) -> tuple[list[int], TokenRows]:
    """The pieces of a node, and its row without each of them: the others move up."""
    padding = vocabulary.padding
    anchors, distances, relations = row.anchors[0], row.distances[0], row.relations[0]
    tokens: list[int] = []
    columns: tuple[list[IntArray], ...] = ([], [], [])
    for place in np.flatnonzero(anchors < vocabulary.num_anchors):
        tokens.append(int(anchors[place]))
        left = np.append(np.delete(anchors, place), padding).astype(anchors.dtype)
        if (left >= padding).all():
            left[:] = vocabulary.disconnected
        columns[0].append(left)
        columns[1].append(np.append(np.delete(distances, place), NO_DISTANCE))
        columns[2].append(relations)
    for place in np.flatnonzero(relations < padding):
        tokens.append(int(relations[place]))
        columns[0].append(anchors)
        columns[1].append(distances)
        columns[2].append(np.append(np.delete(relations, place), padding))
    if not tokens:
        return tokens, row
    types = (anchors.dtype, distances.dtype, relations.dtype)
    stacked = [np.stack(each).astype(dtype) for each, dtype in zip(columns, types, strict=True)]
    return tokens, TokenRows(np.repeat(row.nodes, len(tokens)), *stacked)


def distance_of(row: TokenRows, token: int) -> int | None:
    """The distance of an anchor of one row; None in a vocabulary without distances."""
    distance = int(row.distances[0][row.anchors[0] == token][0])
    return None if distance == NO_DISTANCE else distance


def piece_name(vocabulary: Vocabulary, names: Names, token: int) -> str:
    """The name of an anchor or a relation, by the names of the current graph."""
    if token < vocabulary.num_anchors:
        return names.node(int(vocabulary.anchors[token]))
    return names.relation(int(token) - vocabulary.num_anchors)


def one_row(rows: TokenRows, node: int) -> TokenRows:
    return rows.part(rows.nodes == node)
