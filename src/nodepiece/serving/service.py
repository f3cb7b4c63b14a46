"""What all requests share: the runs by name, and a bounded number of threads that compute."""

from collections.abc import Sequence
from threading import Event

from nodepiece.inference.opened_run import Run
from nodepiece.serving.metrics import Metrics
from nodepiece.serving.problems import Problem
from nodepiece.serving.served_run import ServedRun
from nodepiece.serving.service_pool import ComputePool
from nodepiece.serving.settings import ServeSettings


class Service:
    """The runs of a server and its threads."""

    def __init__(self, runs: Sequence[Run], settings: ServeSettings) -> None:
        self.settings = settings
        self.pool = ComputePool(settings.threads, settings.limits)
        self.metrics = Metrics()
        names = distinct_names([run.folder.absolute().name for run in runs])
        self.runs = {
            name: ServedRun(name, run, settings, self.pool, self.metrics)
            for name, run in zip(names, runs, strict=True)
        }
        self.prepared = Event()  # set when the runs are prepared, or cannot be
        self.failure: Exception | None = None  # why they cannot be
        self.is_closing = False

    @property
    def is_ready(self) -> bool:
        return self.prepared.is_set() and self.failure is None and not self.is_closing

    def check_prepared(self) -> None:
        """Refuse requests before the runs are prepared."""
        if not self.prepared.is_set() or self.failure is not None:
            raise Problem(503, "the runs are being prepared", headers={"Retry-After": "1"})

    def run(self, name: str) -> ServedRun:
        self.check_prepared()
        found = self.runs.get(name)
        if found is None:
            raise Problem(
                404,
                f"there is no run {name!r}; GET /v1/runs lists them",
                suggestions=list(self.runs),
            )
        return found

    def prepare(self) -> None:
        """Compute what the first requests would wait for."""
        try:
            for served in self.runs.values():
                served.prepare()
        except Exception as error:  # which the server reports when it has ended
            self.failure = error
        finally:
            self.prepared.set()

    def close(self) -> None:
        """Finish the updates that were accepted, and end all threads."""
        self.is_closing = True
        for served in self.runs.values():
            served.close()
        self.pool.close()


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, with -2, -3, ... added to those that were there before."""
    found: list[str] = []
    for name in names:
        number, distinct = 1, name
        while distinct in found:
            number += 1
            distinct = f"{name}-{number}"
        found.append(distinct)
    return found
