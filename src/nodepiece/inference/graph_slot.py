"""A changing graph that many threads may read, or one may change."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, Lock

from nodepiece.inference.graph_update import StoredBatch
from nodepiece.tokenizer.changing_graph import ChangingGraph

MAX_BATCHES = 64  # that a snapshot may be behind


class GraphSlot:
    """The graph of the latest snapshot, passed on from snapshot to snapshot.

    An update changes it in place, as a copy would be slow, and increments `version`. The last
    batches are kept, so that a snapshot of an earlier version can undo them (`earlier_state.py`).
    """

    def __init__(self) -> None:
        self.version = 0
        self._batches: deque[StoredBatch] = deque(maxlen=MAX_BATCHES)
        self._graph: ChangingGraph | None = None
        self._opening = Lock()
        self._condition = Condition()
        self._num_readers = self._num_waiting = 0
        self._is_changing = False

    def graph(self, open_graph: Callable[[], ChangingGraph]) -> ChangingGraph:
        """The graph, opened at the first use. Only while `reading` or `changing`."""
        with self._opening:
            if self._graph is None:
                self._graph = open_graph()
            return self._graph

    @property
    def is_open(self) -> bool:
        """Whether the graph was opened."""
        return self._graph is not None

    def since(self, version: int) -> Sequence[StoredBatch] | None:
        """The batches after a version, oldest first; None: they are no longer there."""
        number = self.version - version
        if not 0 <= number <= len(self._batches):
            return None
        return list(self._batches)[len(self._batches) - number :]

    def followed(self, batch: StoredBatch) -> None:
        """Record that the graph was changed by a batch. Only while `changing`."""
        self._batches.append(batch)
        self.version += 1

    def drop(self) -> None:
        """Discard the graph, which may be in any state, and invalidate its version."""
        self._graph = None
        self._batches.clear()
        self.version += 1

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a shared lock: the graph does not change in the block. Must not be nested."""
        with self._condition:
            self._condition.wait_for(lambda: not (self._is_changing or self._num_waiting))
            self._num_readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._num_readers -= 1
                self._condition.notify_all()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold an exclusive lock: no other thread reads or changes the graph in the block."""
        with self._condition:
            self._num_waiting += 1
            try:
                self._condition.wait_for(lambda: not (self._is_changing or self._num_readers))
                self._is_changing = True
            finally:
                self._num_waiting -= 1
                self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._is_changing = False
                self._condition.notify_all()
