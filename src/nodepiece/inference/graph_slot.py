"""A changing graph that many threads may read, or one may change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Lock

from nodepiece.tokenizer.changing_graph import ChangingGraph


class GraphSlot:
    """The graph of the latest snapshot, passed on from snapshot to snapshot.

    An update changes it in place, as a copy would be slow, and increments `version`: a snapshot of
    an earlier version must open another copy of the graph.
    """

    def __init__(self) -> None:
        self.version = 0
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

    def drop(self) -> None:
        """Discard the graph, which may be in any state, and invalidate its version."""
        self._graph = None
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
