"""A graph that changes, by name: facts and nodes are added and removed, ids do not change."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.data.any_graph import graph as read_graph
from nodepiece.errors import InputError
from nodepiece.graph.adjacency import Adjacency, build_adjacency
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.changing_adjacency import SPARE_SHARE, with_capacity
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.graph.short_text import few, plural
from nodepiece.graph.suggestions import near_names
from nodepiece.tokenizer.changing_tokens import NO_FACTS, Batch, ChangingTokens, Consequences
from nodepiece.tokenizer.token_rows import TokenRows, keep_latest
from nodepiece.tokenizer.tokens import TokenTable

NamedFact = tuple[str, str, str]  # head, relation, tail
NamedFacts = Iterable[NamedFact] | KnowledgeGraph  # or another graph that `nodepiece.graph` reads


@dataclass(frozen=True, eq=False)
class Change:
    """A batch by ids, planned or applied, and the number of facts left out of it."""

    batch: Batch
    new_nodes: tuple[str, ...]  # names, in the order of their ids
    removed_nodes: IntArray  # (num_removed,)
    restored_nodes: IntArray  # (num_restored,) removed before, and now added again without facts
    num_known: int  # facts to add that exist already
    num_absent: int  # facts to remove that do not exist

    @staticmethod
    def removing(facts: IntArray) -> "Change":
        """The change that removes existing facts, (num_facts, 3) ids, each given once."""
        nothing = np.empty(0, np.int32)
        return Change(Batch(NO_FACTS, facts), (), nothing, nothing, 0, 0)

    def without(self, facts: IntArray) -> "Change":
        """This change with some more facts removed, of those that exist after it; each once."""
        kept = without(self.batch.added, facts)
        others = without(facts, self.batch.added)
        removed = np.concatenate([self.batch.removed, others])
        return replace(self, batch=Batch(kept, removed, self.batch.num_new_nodes))

    @property
    def is_empty(self) -> bool:
        """Whether the change has no effect."""
        facts, nodes = (self.batch.added, self.batch.removed), (self.removed_nodes, self.new_nodes)
        return not any(len(part) for part in (*facts, *nodes, self.restored_nodes))

    def on(self, graph: KnowledgeGraph) -> KnowledgeGraph:
        """The graph with this change applied to its facts."""
        if graph.names is None:
            raise InputError("the graph has no names; change its ChangingTokens by ids")
        names = with_nodes(graph.names, self.new_nodes)
        facts = without(graph.triples, self.batch.removed)
        facts = np.concatenate([facts, self.batch.added])
        return KnowledgeGraph(facts, len(names.nodes), graph.num_relations, names)

    def absence(self, absent: LongArray) -> LongArray:
        """The removed nodes after the change, ascending, from those before."""
        back = np.concatenate([self.batch.added[:, ::2].ravel(), self.restored_nodes])
        return np.union1d(np.setdiff1d(absent, back), self.removed_nodes).astype(np.int64)

    def presence(self, is_present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which nodes are present, after the change: (num_nodes,) -> (num_nodes + new nodes,)."""
        after = with_capacity(is_present, len(self.new_nodes), fill=True)
        self.write_presence(after)
        return after

    def write_presence(self, is_present: NDArray[np.bool_]) -> None:
        """Write which nodes are present after the change; (at least num_nodes + new nodes,)."""
        is_present[self.batch.added[:, ::2]] = True
        is_present[self.restored_nodes] = True
        is_present[self.removed_nodes] = False


class ChangingGraph:
    """Facts by name, and the tokens of all nodes, which are always those of the current graph.

    A node never changes its id. A removed node keeps it too, without edges, and returns when it is
    added, or with the next fact that names it. Anchors stay in the vocabulary, even if their node
    is removed. Any number of threads may plan changes and call `changed_by` while none applies one.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        table: TokenTable,
        *,
        adjacency: Adjacency | None = None,  # saves building it again where the caller has it
        is_present: NDArray[np.bool_] | None = None,  # (num_nodes,) None: all nodes are there
    ) -> None:
        table.vocabulary.check_fits(graph)
        if graph.names is None:
            raise InputError("this graph has no names; change its ChangingTokens by ids")
        self._relations, self._base = graph.names.relations, graph.names.nodes
        self._more: list[str] = []  # names of nodes that were added later
        self.tokens = ChangingTokens(adjacency or build_adjacency(graph), table)
        present = np.ones(graph.num_nodes, np.bool_) if is_present is None else is_present
        self._present = with_capacity(present, graph.num_nodes // SPARE_SHARE + 1024, fill=True)

    def __repr__(self) -> str:
        present, more = int(self.is_present.sum()), len(self._more)
        return (
            f"ChangingGraph({plural(present, 'node')}, {plural(len(self._relations), 'relation')}; "
            f"{plural(more, 'node')} added, {self.num_nodes - present:,} removed)"
        )

    @property
    def num_nodes(self) -> int:
        """The number of ids in use, removed nodes included."""
        return self.tokens.num_nodes

    @property
    def is_present(self) -> NDArray[np.bool_]:
        """(num_nodes,): False for removed nodes."""
        return self._present[: self.num_nodes]

    @property
    def names(self) -> Names:
        """The names of all nodes, added and removed ones included, and of the relations."""
        return with_nodes(Names(self._base, self._relations), self._more)

    def add(self, facts: NamedFacts = (), *, nodes: Sequence[str] = ()) -> TokenRows:
        """Add facts, and nodes without facts; returns the tokens that are new or different."""
        return self.apply(self.plan(add=facts, add_nodes=nodes))

    def remove(self, facts: NamedFacts = (), *, nodes: Sequence[str] = ()) -> TokenRows:
        """Remove facts, and nodes with all their facts; returns the tokens that are different."""
        return self.apply(self.plan(remove=facts, remove_nodes=nodes))

    def plan(
        self,
        *,
        add: NamedFacts = (),
        remove: NamedFacts = (),
        add_nodes: Sequence[str] = (),
        remove_nodes: Sequence[str] = (),
    ) -> Change:
        """Plan a batch by ids. A relation that training has not seen is refused.

        Facts to add that exist, and facts to remove that do not, are left out and counted.
        """
        new: dict[str, int] = {}
        added = _distinct(self._encode(add, new))
        named = np.array([self._node_id(name, new) for name in add_nodes], np.int32)
        restored = np.array([node for node in named if self._was_removed(node)], np.int32)
        removed = _distinct(self._encode(remove, None))
        _refuse_both(added, removed, self)
        is_there = self._contains(removed)
        gone = np.unique(np.array([self._node_id(name) for name in remove_nodes], np.int32))
        all_removed = _distinct(np.concatenate([removed[is_there], self._facts_of(gone)]))
        _refuse_gone(np.append(added[:, ::2], named), gone, self)
        is_known = self._contains(added)
        batch = Batch(added[~is_known], all_removed, len(new))
        num_absent = int(np.count_nonzero(~is_there))
        num_known = int(np.count_nonzero(is_known))
        return Change(batch, tuple(new), gone, restored, num_known, num_absent)

    def apply(self, change: Change) -> TokenRows:
        """Apply a planned change; returns the tokens that are new or different."""
        found = self.tokens.consequences(change.batch)  # first, as it may refuse
        self.write(change, found)
        return found.rows

    def write(self, change: Change, found: Consequences) -> None:
        """Write a planned change, with what `tokens.consequences` has found for its batch."""
        self.tokens.write(change.batch, found)
        for name in change.new_nodes:
            self._ids[name] = len(self._ids)
        self._more += change.new_nodes
        missing = self.num_nodes - len(self._present)
        if missing > 0:
            spare = missing + len(self._present) // SPARE_SHARE
            self._present = with_capacity(self._present, spare, fill=True)
        change.write_presence(self._present)

    def facts_about(self, name: str) -> set[NamedFact] | None:
        """The facts of a node by name; None: it was removed, or never there."""
        node = self._ids.get(name)
        if node is None or not self.is_present[node]:
            return None
        facts = self._facts_of(np.array([node], np.int32)).tolist()
        return {
            (self.node_name(head), self._relations[relation].as_py(), self.node_name(tail))
            for head, relation, tail in facts
        }

    def was_removed(self, name: str) -> bool:
        """Whether the graph had a node that it does not have now."""
        return name in self._ids and self._was_removed(self._ids[name])

    def has_fact(self, fact: NamedFact) -> bool:
        """Whether the graph has a fact now, by name."""
        head, relation, tail = fact
        ids = self._ids.get(head), self._relation_ids.get(relation), self._ids.get(tail)
        return None not in ids and bool(self._contains(np.array([ids], np.int32))[0])

    def changed_by(self, change: Change) -> TokenRows:
        """The tokens that a planned change would make new or different; nothing is written."""
        return self.tokens.changed_by(change.batch)

    def rows_after(self, nodes: IntArray, change: Change) -> TokenRows:
        """The tokens that some nodes, by ascending ids, would have; nothing is written.

        The nodes may be new ones of the change.
        """
        changed = self.changed_by(change)
        is_old = nodes < self.num_nodes
        below = self.tokens.rows_of(nodes[is_old])
        return keep_latest([below, changed.part(np.isin(changed.nodes, nodes))])

    def graph(self) -> KnowledgeGraph:
        """The current facts."""
        names = self.names
        facts = self.tokens.adjacency.facts()
        return KnowledgeGraph(facts, self.num_nodes, len(names.relations), names)

    def table(self) -> TokenTable:
        """The current tokens of all nodes, for a vocabulary that has all their names."""
        names = self.names
        vocabulary = replace(
            self.tokens.vocabulary,
            num_nodes=self.num_nodes,
            fingerprint=names.fingerprint,
            names=names,
        )
        return self.tokens.table(vocabulary)

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The id of every node name; built at the first use, as it is slow."""
        return {name: node for node, name in enumerate(self._base.to_pylist() + self._more)}

    @cached_property
    def _relation_ids(self) -> dict[str, int]:
        return {name: relation for relation, name in enumerate(self._relations.to_pylist())}

    def _encode(self, facts: NamedFacts, new: dict[str, int] | None) -> IntArray:
        """(num_facts, 3) ids; unknown nodes get the next ones in `new`, or are refused."""
        rows = [
            (self._node_id(head, new), self._relation_id(relation), self._node_id(tail, new))
            for head, relation, tail in by_name(facts)
        ]
        return np.array(rows, np.int32).reshape(-1, 3)

    def _node_id(self, name: str, new: dict[str, int] | None = None) -> int:
        node = self._ids.get(name)
        if node is not None:
            return node
        if new is None:
            return self.names.node_id(name)  # its error suggests similar names
        if not name:
            raise InputError("a node needs a name, and this one is empty; name it, or leave it out")
        return new.setdefault(name, self.num_nodes + len(new))

    def _was_removed(self, node: int) -> bool:
        return node < self.num_nodes and not self.is_present[node]

    def _relation_id(self, name: str) -> int:
        relation = self._relation_ids.get(name)
        if relation is not None:
            return relation
        known = list(self._relation_ids)
        close = " or ".join(map(repr, near_names(name, pa.array(known, pa.large_string()))))
        raise InputError(
            f"relation {name!r} was not seen in training, and there is no piece for it"
            + (f" (did you mean {close}?)" if close else "")
            + f"; leave its facts out, or train again with them (known are {few(known, 5)})"
        )

    def _contains(self, facts: IntArray) -> NDArray[np.bool_]:
        """Whether each fact exists; a fact of a new node does not."""
        is_old = np.asarray((facts[:, ::2] < self.num_nodes).all(axis=1))
        is_old[is_old] = self.tokens.adjacency.contains(facts[is_old])
        return is_old

    def _facts_of(self, nodes: IntArray) -> IntArray:
        num_direct = len(self._relations)
        edges = self.tokens.adjacency.edges_of(nodes)
        is_direct = edges[:, 1] < num_direct
        turned = edges[~is_direct][:, ::-1] - np.array([0, num_direct, 0], np.int32)
        return np.concatenate([edges[is_direct], turned])

    def fact_name(self, fact: Sequence[int]) -> str:
        """A fact by ids, as head — relation — tail."""
        head, relation, tail = fact
        parts = [self.node_name(head), self._relations[relation].as_py(), self.node_name(tail)]
        return " — ".join(parts)

    def node_name(self, node: int) -> str:
        """The name of a node by its id."""
        if node < len(self._base):
            return self._base[node].as_py()
        return self._more[node - len(self._base)]


def with_nodes(names: Names, more: Sequence[str]) -> Names:
    """The names, followed by those of new nodes."""
    if not more:
        return names
    nodes = pa.concat_arrays([names.nodes, pa.array(more, pa.large_string())])
    return Names(nodes, names.relations)


def without(facts: IntArray, others: IntArray) -> IntArray:
    """The facts that are not in `others`, in their order."""
    if not len(others) or not len(facts):
        return facts
    near = np.flatnonzero(np.isin(facts[:, 0], others[:, 0]))  # few, so no numbers of all facts
    is_gone = np.zeros(len(facts), np.bool_)
    is_gone[near] = rows_in(facts[near], others)
    return facts[~is_gone]


def rows_in(facts: IntArray, others: IntArray) -> NDArray[np.bool_]:
    """Whether each fact is one of the others, of which there are some: (num_facts,)."""
    sizes = np.maximum(facts.max(axis=0, initial=0), others.max(axis=0)).astype(np.int64) + 1
    weights = np.array([sizes[1] * sizes[2], sizes[2], 1])
    return np.isin(facts @ weights, others @ weights)


def by_name(facts: NamedFacts) -> Iterable[NamedFact]:
    """Facts as triples of names, from anything that `nodepiece.graph` reads.

    Triples are taken as they are, one by one.
    """
    if not isinstance(facts, KnowledgeGraph):
        is_triples = isinstance(facts, list | tuple | set | frozenset | Iterator)
        return facts if is_triples else by_name(read_graph(facts))
    if facts.names is None:
        raise InputError("the facts have ids instead of names; read them with their names")
    nodes, relations = facts.names.nodes.to_pylist(), facts.names.relations.to_pylist()
    return ((nodes[head], relations[r], nodes[tail]) for head, r, tail in facts.triples.tolist())


def _distinct(facts: IntArray) -> IntArray:
    return np.unique(facts, axis=0) if len(facts) > 1 else facts


def _refuse_both(added: IntArray, removed: IntArray, graph: ChangingGraph) -> None:
    if both := set(map(tuple, added.tolist())) & set(map(tuple, removed.tolist())):
        raise InputError(
            f"the fact {graph.fact_name(min(both))} is to be added and removed at once; "
            "leave it out of one of the two"
        )


def _refuse_gone(added: IntArray, gone: IntArray, graph: ChangingGraph) -> None:
    """added: nodes that are added by name or with a fact."""
    if len(both := np.intersect1d(added, gone)):
        raise InputError(
            f"the node {graph.node_name(int(both[0]))!r} is to be removed, and it or facts about "
            "it are to be added at once; leave one of the two out"
        )
