"""Nodes by the beginning of their names or by a part, in a graph to which nodes are added."""

from threading import Lock, Thread

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nodepiece.graph.arrays import LongArray
from nodepiece.inference.facts import FactRun
from nodepiece.serving.answers import State
from nodepiece.serving.name_search import NameSearch
from nodepiece.serving.node_record import graph_of, is_present, names_of

MAX_ADDED = 20_000  # names that are searched one by one, until an index of all is built


class NodeFinder:
    """Searches the names that a graph had when the index was built, and those added since."""

    def __init__(self, state: State) -> None:
        self._search = index_of(state)
        self._lock = Lock()
        self._is_building = False

    def find(self, state: State, text: str, limit: int) -> list[int]:
        """Nodes whose names begin with a text, then nodes that have it in their names.

        Those with the most facts come first; without a text, of all nodes.
        """
        counts, present = num_facts(state), is_present(state.run)
        more = limit if present is None else limit + int((~present).sum())
        if not text:
            found = np.argsort(-counts, kind="stable")[:more].tolist()
            return [node for node in found if present is None or present[node]][:limit]
        names, search = names_of(state.run).nodes, self._search
        found = []
        for at_start in (True, False):
            matches = matching(search, names, text, more, at_start=at_start)
            kept = [node for node in matches if present is None or present[node]]
            found += sorted(kept, key=lambda node: -counts[node])
            if len(set(found)) >= limit:
                break
        self._renew(state, len(names) - len(search.nodes))
        return list(dict.fromkeys(found))[:limit]

    def _renew(self, state: State, num_added: int) -> None:
        """Build an index with the names that were added, in another thread, if there are many."""
        with self._lock:
            if num_added <= MAX_ADDED or self._is_building:
                return
            self._is_building = True
        Thread(target=self._build, args=(state,), name="nodepiece-names", daemon=True).start()

    def _build(self, state: State) -> None:
        try:
            self._search = index_of(state)
        finally:
            self._is_building = False


def index_of(state: State) -> NameSearch:
    names = names_of(state.run).nodes
    return NameSearch.of(names, num_facts(state)[: len(names)])


def matching(
    search: NameSearch, names: pa.LargeStringArray, text: str, limit: int, *, at_start: bool
) -> list[int]:
    """Matches in an index, and among the names after it; an index may be newer than the names."""
    number = len(search.nodes)
    found = [node for node in search.find(text, limit, at_start=at_start) if node < len(names)]
    added = names[number:]
    if len(added):
        match = pc.starts_with if at_start else pc.match_substring
        is_found = match(added, text, ignore_case=True)
        places = np.flatnonzero(is_found.to_numpy(zero_copy_only=False))
        found += (places[:limit] + number).tolist()
    return found


def num_facts(state: State) -> LongArray:
    """(num_nodes,): the facts of each node."""
    if isinstance(state.run, FactRun):
        return state.run.snapshot.candidates.num_facts
    graph = graph_of(state.run)
    return np.bincount(graph.triples[:, ::2].ravel(), minlength=graph.num_nodes)
