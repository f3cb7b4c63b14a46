"""What Prometheus reads: requests, their seconds, batches, updates and the versions of graphs."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The counts of one process."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        self._requests = Counter(
            "nodepiece_requests", "Requests", ("method", "path", "status"), registry=registry
        )
        self._seconds = Histogram(
            "nodepiece_request_seconds",
            "Seconds from a request to its answer",
            ("path",),
            buckets=SECONDS,
            registry=registry,
        )
        self._batches = Histogram(
            "nodepiece_batch_queries", "Queries scored together", buckets=SIZES, registry=registry
        )
        self._commits = Histogram(
            "nodepiece_commit_seconds",
            "Seconds to commit a batch of updates",
            buckets=SECONDS,
            registry=registry,
        )
        self._updates = Counter("nodepiece_updates", "Updates in commits", registry=registry)
        self._waiting = Gauge("nodepiece_requests_waiting", "Requests", registry=registry)
        self._queued = Gauge("nodepiece_updates_waiting", "Updates", ("run",), registry=registry)
        self._version = Gauge("nodepiece_version", "Of a graph", ("run",), registry=registry)

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """path: the template, so that there are few different ones."""
        self._requests.labels(method, path, status).inc()
        self._seconds.labels(path).observe(seconds)

    def count_batch(self, num_queries: int) -> None:
        self._batches.observe(num_queries)

    def count_commit(self, num_updates: int, seconds: float) -> None:
        self._commits.observe(seconds)
        self._updates.inc(num_updates)

    def to_text(
        self, *, num_waiting: int, queued: Mapping[str, int], versions: Mapping[str, int]
    ) -> bytes:
        self._waiting.set(num_waiting)
        for run, number in queued.items():
            self._queued.labels(run).set(number)
        for run, version in versions.items():
            self._version.labels(run).set(version)
        text: bytes = generate_latest(self._registry)
        return text
