"""The ids of names among millions, in microseconds and little memory."""

from threading import Lock

import numpy as np
import pyarrow as pa

from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.names import INVERSE_PREFIX, Names

Part = str | None


class NameIds:
    """Looks up nodes and relations; nodes that updates add are found too.

    Ids of nodes never change, and names are only added: names that later states of the graph have
    are kept beside the sorted hashes of the first ones.
    """

    def __init__(self, names: Names) -> None:
        hashes = np.fromiter(map(hash, names.nodes.to_pylist()), np.int64, len(names.nodes))
        order = np.argsort(hashes)
        self._hashes: LongArray = hashes[order]
        self._nodes: IntArray = order.astype(np.int32)
        self._later: dict[str, int] = {}
        self._number, self._lock = len(names.nodes), Lock()
        relations = names.relations.to_pylist()
        inverses = {INVERSE_PREFIX + name: len(relations) + n for n, name in enumerate(relations)}
        self._relations = inverses | {name: number for number, name in enumerate(relations)}

    def relation(self, name: Part) -> int:
        """The id of a relation or of an inverse; -1: there is none."""
        return self._relations.get(name or "", -1)

    def node(self, name: Part, names: pa.LargeStringArray) -> int:
        """The id of a node; -1: it is not one of these names."""
        if name is None:
            return -1
        code = hash(name)
        place = int(np.searchsorted(self._hashes, code))
        while place < len(self._hashes) and self._hashes[place] == code:
            node = int(self._nodes[place])
            if names[node].as_py() == name:
                return node
            place += 1
        if len(names) > self._number:
            self._read(names)
        node = self._later.get(name, -1)
        return node if node < len(names) else -1

    def _read(self, names: pa.LargeStringArray) -> None:
        """Remember the names that were added since the last time."""
        with self._lock:
            for node, name in enumerate(names[self._number :].to_pylist(), start=self._number):
                self._later[name] = node
            self._number = max(self._number, len(names))
