"""A graph after some changes, whose facts are put together when they are first needed."""

from typing import Any

import numpy as np

from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.growing_names import grown
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.inference.computed_once import computed_once
from nodepiece.tokenizer.changing_graph import Change, without


class ChangedGraph(KnowledgeGraph):
    """Facts and changes of them. Sizes and names are there at once, the array of facts is lazy.

    So a commit takes no time that grows with the graph.
    """

    def __init__(
        self,
        facts: IntArray,
        changes: tuple[Change, ...],
        names: Names,
        number: int | None = None,
    ) -> None:
        """number: of facts after the changes, if it is known."""
        if number is None:
            number = len(facts) + sum(map(num_more_facts, changes))
        values: dict[str, Any] = {
            "num_nodes": len(names.nodes),
            "num_relations": len(names.relations),
            "names": names,
            "parts": (facts, changes),
            "number": number,
        }
        self.__dict__.update(values)

    @computed_once
    def triples(self) -> IntArray:
        facts = facts_after(*self.__dict__["parts"])
        return KnowledgeGraph(facts, self.num_nodes, self.num_relations).triples  # checks the ids

    @property
    def num_triples(self) -> int:
        number: int = self.__dict__["number"]
        return number

    def __reduce__(self) -> tuple[Any, ...]:
        return KnowledgeGraph, (self.triples, self.num_nodes, self.num_relations, self.names)


def num_more_facts(change: Change) -> int:
    return len(change.batch.added) - len(change.batch.removed)


def changed(graph: KnowledgeGraph, change: Change) -> ChangedGraph:
    """The next state of a graph; the facts of neither need to be put together for it."""
    if graph.names is None:
        raise ValueError("a graph that changes has names")
    return assumed_graph(graph, change, grown(graph.names, change.new_nodes))


def assumed_graph(graph: KnowledgeGraph, change: Change, names: Names) -> ChangedGraph:
    """The graph after a change, with the names of all nodes then."""
    if isinstance(graph, ChangedGraph) and "triples" not in graph.__dict__:
        facts, changes = graph.__dict__["parts"]
        number = graph.num_triples + num_more_facts(change)
        return ChangedGraph(facts, (*changes, change), names, number)
    return ChangedGraph(graph.triples, (change,), names)


def facts_of(graph: KnowledgeGraph, node: int) -> IntArray:
    """(num_facts, 3): the facts with the node as head, then those with it as tail."""
    is_lazy = isinstance(graph, ChangedGraph) and "triples" not in graph.__dict__
    facts, changes = graph.__dict__["parts"] if is_lazy else (graph.triples, ())
    near = facts[np.flatnonzero((facts[:, 0] == node) | (facts[:, 2] == node))]
    now = facts_after(near, changes)
    is_head, is_tail = now[:, 0] == node, now[:, 2] == node
    return np.concatenate([now[is_head], now[is_tail & ~is_head]])


def relation_counts(graph: KnowledgeGraph) -> LongArray:
    """(num_relations,): the facts of each relation."""
    is_lazy = isinstance(graph, ChangedGraph) and "triples" not in graph.__dict__
    facts, changes = graph.__dict__["parts"] if is_lazy else (graph.triples, ())
    counts = np.bincount(facts[:, 1], minlength=graph.num_relations)
    for change in changes:
        np.add.at(counts, change.batch.added[:, 1], 1)
        np.subtract.at(counts, change.batch.removed[:, 1], 1)
    return counts


def facts_after(facts: IntArray, changes: tuple[Change, ...]) -> IntArray:
    """The facts with all changes applied: the last one that has a fact decides."""
    is_there: dict[tuple[int, int, int], bool] = {}
    for change in changes:
        is_there |= dict.fromkeys(map(tuple, change.batch.removed.tolist()), False)
        is_there |= dict.fromkeys(map(tuple, change.batch.added.tolist()), True)
    if not is_there:
        return facts
    touched = np.array(list(is_there), np.int32)
    added = touched[np.fromiter(is_there.values(), np.bool_)]
    return np.concatenate([without(facts, touched), added])
