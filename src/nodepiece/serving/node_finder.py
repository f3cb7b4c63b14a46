"""Nodes by the beginning of their names or by a part, in a graph to which nodes are added."""

from threading import Lock, Thread

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nodepiece.inference.facts import FactRun
from nodepiece.inference.patched_counts import PatchedCounts
from nodepiece.serving.answers import State
from nodepiece.serving.name_search import NameSearch
from nodepiece.serving.node_record import absent, graph_of, names_of

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
        counts, gone = num_facts(state), absent(state.run)
        more = limit + len(gone)
        names, search = names_of(state.run).nodes, self._search
        if not text:
            first = search.nodes[:more]  # by their facts when the index was built
            nodes = np.unique(np.concatenate([first[first < len(names)], counts.nodes]))
            kept = np.setdiff1d(nodes, gone)
            order = np.lexsort((kept, -counts.at(kept)))
            return kept[order][:limit].tolist()
        found: list[int] = []
        for at_start in (True, False):
            nodes = np.array(matching(search, names, text, more, at_start=at_start), np.int64)
            kept = nodes[~np.isin(nodes, gone)]
            found += kept[np.argsort(-counts.at(kept), kind="stable")].tolist()
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
    return NameSearch.of(names, num_facts(state).whole()[: len(names)])


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


def num_facts(state: State) -> PatchedCounts:
    """The facts of each node."""
    if isinstance(state.run, FactRun):
        return state.run.snapshot.candidates.num_facts
    graph = graph_of(state.run)
    ends = graph.triples[:, ::2].ravel()
    return PatchedCounts.of(np.bincount(ends, minlength=graph.num_nodes))
