"""The pieces of one node in the state from which a run answers."""

from typing import NamedTuple

import numpy as np

from nodepiece.graph.arrays import IntArray
from nodepiece.graph.nearest import Distances
from nodepiece.inference.inductive import InductiveRun
from nodepiece.inference.links import LinkRun
from nodepiece.inference.opened_run import Run
from nodepiece.inference.snapshot import HypotheticalSnapshot, Snapshot
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.tokens import TokenTable


class NodeTokens(NamedTuple):
    """The tokens of one node."""

    anchors: IntArray  # (k,)
    distances: Distances  # (k,)
    relations: IntArray  # (m,)


def tokens_of(run: Run, node: int) -> tuple[TokenTable, NodeTokens]:
    """The tokens of a node, and a table of the same vocabulary."""
    if isinstance(run, LinkRun):
        return tokens_in(run.snapshot, node)
    table = run.evaluator.table if isinstance(run, InductiveRun) else run.opened.table
    return table, _row(table, node)


def tokens_in(snapshot: Snapshot, node: int) -> tuple[TokenTable, NodeTokens]:
    if isinstance(snapshot, HypotheticalSnapshot):
        table, row = snapshot.table, _find(snapshot.tokens, node)
        return (table, row) if row is not None else tokens_in(snapshot.base, node)
    if snapshot.updates is None:
        return snapshot.table, _row(snapshot.table, node)
    state = snapshot.updates.state
    for batch in reversed(state.batches):
        row = _find(batch.tokens, node)
        if row is not None:
            return state.table, row
    return state.table, _row(state.table, node)


def _row(table: TokenTable, node: int) -> NodeTokens:
    return NodeTokens(table.anchors[node], table.distances[node], table.relations[node])


def _find(rows: TokenRows, node: int) -> NodeTokens | None:
    place = int(np.searchsorted(rows.nodes, node))
    if place == len(rows.nodes) or rows.nodes[place] != node:
        return None
    return NodeTokens(rows.anchors[place], rows.distances[place], rows.relations[place])
