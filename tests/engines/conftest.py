"""A Spark cluster of two workers for all tests of this folder, and a session on it."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from benchmarks.spark_cluster import Cluster, missing_parts
from tests.commands.conftest import nodepiece

__all__ = ["cluster", "nodepiece", "spark"]

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # little compilation, as jobs are short
SETTINGS = {
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "600m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if reason := missing_parts():
        pytest.skip(reason)
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.start(num_workers=2)
        yield started
    finally:
        started.stop()
        shutil.rmtree(started.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[Any]:
    from nodepiece.engines.spark_session import SparkOptions, open_session

    session = open_session(SparkOptions(cluster.url, SETTINGS))
    yield session
    session.stop()
