"""The map of a run's vectors: computed once, in a thread of its own, and stored with the run."""

import json
import logging
from threading import Lock, Thread
from typing import Any

from nodepiece.errors import InputError
from nodepiece.files import atomic_file
from nodepiece.inference.opened_run import Run
from nodepiece.report.map import MapSettings, map_run
from nodepiece.serving.answers import current_state

log = logging.getLogger("nodepiece")

FILE = "map.json"
MAX_NODES = 40_000  # of more, a sample, so that a page draws it smoothly


class StoredMap:
    """The map of one run, which stays as it is when the graph is updated: it has its version."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._path = self._run.folder / FILE
        self._lock = Lock()
        self._thread: Thread | None = None
        self._content: dict[str, Any] | None = None
        self._error: InputError | None = None

    def content(self) -> dict[str, Any] | None:
        """The map; None while it is computed, which the first call begins."""
        with self._lock:
            if self._content is None:
                self._content = self._read()
            if self._content is not None:
                return self._content
            if self._error is not None:
                error, self._error = self._error, None  # the next call tries again
                raise error
            if self._thread is None:
                self._thread = Thread(target=self._compute, name="nodepiece-map", daemon=True)
                self._thread.start()
        return None

    def _compute(self) -> None:
        try:
            state = current_state(self._run)
            settings = MapSettings(max_nodes=MAX_NODES)
            content = {"version": state.version} | map_run(state.run, settings).to_json()
            self._store(content)
            with self._lock:
                self._content = content
        except InputError as error:
            self._error = error
        except Exception as error:
            log.error("the map of %s failed: %s", self._run.folder, error, exc_info=error)
            self._error = InputError(
                "the map could not be computed; the server's log has the cause"
            )
        finally:
            self._thread = None

    def _store(self, content: dict[str, Any]) -> None:
        stored = content | {"model_sha256": self._run.opened.files.model_hash}
        try:
            with atomic_file(self._path) as partial:
                partial.write_text(json.dumps(stored, ensure_ascii=False), encoding="utf-8")
        except OSError as error:
            log.warning("%s was not stored (%s) and will be computed again", self._path, error)

    def _read(self) -> dict[str, Any] | None:
        """The stored map, if it is one of these weights."""
        try:
            content: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
            if content.pop("model_sha256") == self._run.opened.files.model_hash:
                return content
        except (OSError, ValueError, KeyError, AttributeError):
            pass
        return None
