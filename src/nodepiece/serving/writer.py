"""The one thread that changes the graph of a run.

Updates wait in a bounded queue. The thread takes all that wait, commits those that do not affect
each other as one batch, and acknowledges an update when its batch is on disk and the new snapshot
answers queries. An update that is refused fails alone.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, Full, Queue
from threading import Lock, Thread
from time import monotonic, sleep

from nodepiece.errors import InputError
from nodepiece.inference import graph_updates
from nodepiece.inference.graph_updates import UpdateUnderWay, last_number
from nodepiece.inference.links import LinkRun
from nodepiece.inference.update import Compacted, use_base, write_compacted
from nodepiece.inference.update_groups import (
    Committed,
    GraphUpdate,
    commit_group,
    groups_of,
)
from nodepiece.serving.problems import Problem

log = logging.getLogger("nodepiece")

GROUP_SECONDS = 0.015  # between the starts of two commits: later updates are committed together
IDLE_SECONDS = 0.1  # without updates, until those of other processes are read
MANY = 20  # times as many batches as an update without a server compacts
LOCK_SECONDS = 20.0  # to wait for a process that updates the same run


@dataclass(frozen=True, eq=False)
class Waiting:
    """An update in the queue."""

    update: GraphUpdate
    result: "Future[Committed]"


class GraphWriter:
    """Commits updates of a run, in the order in which they were submitted."""

    def __init__(
        self,
        run: LinkRun,
        *,
        capacity: int,
        on_commit: Callable[[int, float], None],
        on_publish: Callable[[], None] = lambda: None,
    ) -> None:
        self.run = run
        self._queue: Queue[Waiting | None] = Queue(capacity)
        self._on_commit = on_commit  # gets the number of updates of a batch, and its seconds
        self._on_publish = on_publish  # called when there is another snapshot
        self._last_commit = -GROUP_SECONDS  # when it started
        self._lock = Lock()
        self._is_closed = False
        self._background = ThreadPoolExecutor(1, "nodepiece-compaction")
        self._compaction: Future[Compacted] | None = None
        self._thread = Thread(target=self._work, name="nodepiece-writer", daemon=True)
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        return self._queue.qsize()

    def submit(self, update: GraphUpdate) -> "Future[Committed]":
        """Accept an update; refused when the queue is full, or the server stops."""
        waiting = Waiting(update, Future())
        with self._lock:  # nothing follows the mark at the end
            if self._is_closed:
                raise Problem(503, "the server stops", headers={"Retry-After": "5"})
            try:
                self._queue.put_nowait(waiting)
            except Full:
                raise Problem(
                    503,
                    f"{self._queue.maxsize} updates are waiting already; try again in a second",
                    headers={"Retry-After": "1"},
                ) from None
        return waiting.result

    def close(self) -> None:
        """Commit what was accepted, and end the thread."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._queue.put(None)
        self._thread.join()
        self._background.shutdown()

    def _work(self) -> None:
        is_last = False
        while not is_last:
            waiting, is_last = self._take()
            try:
                self._finish_compaction(wait=False)
                for group in groups_of([each.update for each in waiting]):
                    self._commit(group, [waiting.pop(0).result for _ in group])
                self._start_compaction()
            except Exception as error:  # the thread goes on, whatever is wrong
                log.error("the writer failed: %s", error, exc_info=error)
                for each in waiting:
                    each.result.set_exception(error)
        self._finish_compaction(wait=True)

    def _start_compaction(self) -> None:
        """Write a new base in another thread, if there are many batches.

        There may be some times as many as for a run that is opened for each update.
        """
        updates = self.run.updates
        if self._compaction is not None or updates is None:
            return
        num_batches, few = len(updates.state.batches), graph_updates.COMPACT_AFTER
        patched = self.run.snapshot.patched
        has_many_rows = len(patched.nodes) * graph_updates.COMPACT_SHARE > len(patched.base)
        if num_batches >= few and (num_batches >= MANY * few or has_many_rows):
            self._compaction = self._background.submit(write_compacted, self.run, self.run.snapshot)

    def _finish_compaction(self, *, wait: bool) -> None:
        """Use the base that the other thread wrote."""
        if self._compaction is None or not (wait or self._compaction.done()):
            return
        try:
            use_base(self.run, self._compaction.result())
        except Exception as error:  # the batches are there, and are compacted another time
            log.warning("the updates of %s were not compacted: %s", self.run.folder, error)
        finally:
            self._compaction = None

    def _take(self) -> tuple[list[Waiting], bool]:
        """The updates that wait, and whether these are the last."""
        try:
            taken = [self._queue.get(timeout=IDLE_SECONDS)]
        except Empty:
            self._refresh()
            return [], False
        sleep(max(0.0, self._last_commit + GROUP_SECONDS - monotonic()))
        self._last_commit = monotonic()
        while True:
            try:
                taken.append(self._queue.get_nowait())
            except Empty:
                return [each for each in taken if each is not None], taken[-1] is None

    def _refresh(self) -> None:
        """Read what other processes have updated; this thread alone replaces the snapshot."""
        try:
            if not self.run.is_up_to_date(last_number(self.run.folder)):
                self.run.refresh()
                self._on_publish()
        except Exception as error:  # the thread goes on, and reads them the next time
            log.warning("the updates of %s were not read: %s", self.run.folder, error)

    def _commit(
        self, updates: Sequence[GraphUpdate], results: "Sequence[Future[Committed]]"
    ) -> None:
        start = monotonic()
        try:
            found = self._when_free(updates)
        except BaseException as error:
            is_busy = isinstance(error, UpdateUnderWay)  # as it would be for each of them
            if len(updates) > 1 and isinstance(error, InputError) and not is_busy:
                for update, result in zip(updates, results, strict=True):
                    self._commit([update], [result])
                return
            if not isinstance(error, InputError):
                log.error("an update failed: %s", error, exc_info=error)
            for result in results:
                result.set_exception(error)
            return
        self._on_publish()
        self._on_commit(len(updates), monotonic() - start)
        for each, result in zip(found, results, strict=True):
            if isinstance(each, InputError):
                result.set_exception(each)
            else:
                result.set_result(each)

    def _when_free(self, updates: Sequence[GraphUpdate]) -> list[Committed | InputError]:
        """Commit a group, when no other process updates the run."""
        end = monotonic() + LOCK_SECONDS
        while True:
            try:
                return commit_group(self.run, updates)
            except UpdateUnderWay:
                if monotonic() > end:
                    raise
                sleep(0.005)
