"""Checks of the values in a live folder, before kernels use them as indices."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.inference.graph_update import StoredBatch, Vectors
from nodepiece.tokenizer.token_values import find_invalid_token
from nodepiece.tokenizer.tokens import TokenTable


def check_base(
    facts: IntArray, is_present: NDArray[np.bool_], vectors: Vectors, table: TokenTable
) -> None:
    """Refuse arrays of a wrong type or shape in a base. The graph checks the ids of facts."""
    _expect("facts.npy", facts, (len(facts), 3), np.int32)
    _expect("present.npy", is_present, (table.num_nodes,), np.bool_)
    _expect("vectors.npy", vectors, (table.num_nodes, *vectors.shape[1:2]), np.float32)
    if vectors.ndim != 2:
        raise InputError(f"vectors.npy has {vectors.ndim} dimensions instead of 2")


def check_batch(batch: StoredBatch, num_before: int, dim: int, table: TokenTable) -> int:
    """Refuse invalid ids, tokens and rows; returns the number of nodes after the batch.

    num_before: nodes before the batch; table: of the base.
    """
    change, tokens, vectors = batch.change, batch.tokens, batch.vectors
    num_nodes = num_before + len(change.new_nodes)
    num_direct = table.vocabulary.num_relations // 2
    for name, facts in (("added", change.batch.added), ("removed", change.batch.removed)):
        _expect(name, facts, (len(facts), 3), np.int32)
        limits = (num_nodes, num_direct, num_nodes)
        if len(facts) and (facts.min() < 0 or (facts.max(axis=0) >= limits).any()):
            raise InputError(f"it has facts with ids outside the graph, {name}")
    for name, nodes in (("gone", change.removed_nodes), ("back", change.restored_nodes)):
        _expect(name, nodes, (len(nodes),), np.int32)
        if len(nodes) and (nodes.min() < 0 or nodes.max() >= num_nodes):
            raise InputError(f"it names nodes outside the graph, {name}")
    for name, nodes in (("nodes", tokens.nodes), ("vector_nodes", vectors.nodes)):
        _expect(name, nodes, (len(nodes),), np.int32)
        _check_rows(name, nodes, num_before, num_nodes)
    num_rows = len(tokens.nodes)
    _expect("anchors", tokens.anchors, (num_rows, table.anchors_per_node), np.int32)
    _expect("distances", tokens.distances, (num_rows, table.anchors_per_node), np.int16)
    _expect("relations", tokens.relations, (num_rows, table.relations_per_node), np.int32)
    _expect("vectors", vectors.vectors, (len(vectors.nodes), dim), np.float32)
    if invalid := find_invalid_token(table.vocabulary, *tokens[1:]):
        raise InputError(invalid)
    return num_nodes


def _check_rows(name: str, nodes: IntArray, num_before: int, num_nodes: int) -> None:
    """Refuse ids that do not ascend, are outside the graph, or lack a new node."""
    if len(nodes) and (nodes[0] < 0 or nodes[-1] >= num_nodes or (np.diff(nodes) <= 0).any()):
        raise InputError(f"{name} do not ascend within the graph")
    if np.count_nonzero(nodes >= num_before) != num_nodes - num_before:
        raise InputError(f"{name} lack new nodes")


def _expect(name: str, array: NDArray[Any], shape: tuple[int, ...], dtype: DTypeLike) -> None:
    if array.shape != shape or array.dtype != dtype:
        raise InputError(
            f"{name} is {array.shape} of {array.dtype} instead of {shape} of {np.dtype(dtype)}"
        )
