"""What all requests share: the runs by name, and a bounded number of threads that compute."""

from collections.abc import Sequence

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
        self.is_ready = False

    def run(self, name: str) -> ServedRun:
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
        for served in self.runs.values():
            served.prepare()
        self.is_ready = True

    def close(self) -> None:
        """Finish the updates that were accepted, and end all threads."""
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
