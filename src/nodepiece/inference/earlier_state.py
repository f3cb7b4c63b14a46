"""A change of an earlier state of a graph, as a change of the current one.

Tokens depend on the current facts alone. So those of an earlier state follow from the graph as it
is now, with the later updates undone.
"""

from collections.abc import Sequence

import numpy as np

from nodepiece.graph.arrays import IntArray
from nodepiece.inference.graph_update import StoredBatch
from nodepiece.tokenizer.changing_graph import Change, ChangingGraph
from nodepiece.tokenizer.changing_tokens import NO_FACTS, Batch
from nodepiece.tokenizer.token_rows import TokenRows, keep_latest

Fact = tuple[int, int, int]


def rows_after(
    graph: ChangingGraph, nodes: IntArray, change: Change, later: Sequence[StoredBatch]
) -> TokenRows:
    """The tokens that some nodes, by ascending ids, would have after a change.

    The change is one of the state before the batches `later`, the last of which led to `graph`.
    """
    batch = as_of_now(change, later, graph.num_nodes)
    changed = graph.tokens.changed_by(batch)
    below = graph.tokens.rows_of(nodes[nodes < graph.num_nodes])
    return keep_latest([below, changed.part(np.isin(changed.nodes, nodes))])


def changed_by(graph: ChangingGraph, change: Change, later: Sequence[StoredBatch]) -> TokenRows:
    """The tokens after a change, of all nodes that have others than before it.

    Rows that are not different may be among them.
    """
    if not later:
        return graph.changed_by(change)
    num_nodes = number_before(graph.num_nodes, later) + change.batch.num_new_nodes
    batch = as_of_now(change, later, graph.num_nodes)
    changed = graph.tokens.changed_by(batch)
    nodes = np.unique(np.concatenate([changed.nodes, *(each.tokens.nodes for each in later)]))
    nodes = nodes[nodes < num_nodes].astype(np.int32)
    below = graph.tokens.rows_of(nodes[nodes < graph.num_nodes])
    return keep_latest([below, changed.part(np.isin(changed.nodes, nodes))])


def number_before(num_nodes: int, later: Sequence[StoredBatch]) -> int:
    """The number of nodes before some batches."""
    return num_nodes - sum(len(each.change.new_nodes) for each in later)


def as_of_now(change: Change, later: Sequence[StoredBatch], num_nodes: int) -> Batch:
    """The batch that leads from the graph after `later` to the earlier one with a change.

    Nodes that were added later stay, without edges; the new nodes of the change have their ids.
    """
    batch = change.batch
    was: dict[Fact, bool] = {}  # before the later batches
    now: dict[Fact, bool] = {}
    for each in later:
        for fact, is_added in facts_of(each.change.batch):
            was.setdefault(fact, not is_added)
            now[fact] = is_added
    wanted = dict(was)
    for fact, is_added in facts_of(batch):
        now.setdefault(fact, not is_added)
        wanted[fact] = is_added
    added = [fact for fact, is_wanted in wanted.items() if is_wanted and not now[fact]]
    removed = [fact for fact, is_wanted in wanted.items() if now[fact] and not is_wanted]
    num_wanted = number_before(num_nodes, later) + batch.num_new_nodes
    return Batch(as_array(added), as_array(removed), max(0, num_wanted - num_nodes))


def facts_of(batch: Batch) -> list[tuple[Fact, bool]]:
    """The facts of a batch, and whether each is added."""
    parts = ((batch.removed, False), (batch.added, True))
    return [(tuple(fact), is_added) for part, is_added in parts for fact in part.tolist()]


def as_array(facts: list[Fact]) -> IntArray:
    return np.array(facts, np.int32).reshape(-1, 3) if facts else NO_FACTS
