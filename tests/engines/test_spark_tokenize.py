"""Tokens from a Spark cluster are those of one machine, byte for byte."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Timer
from time import monotonic, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.spark_cluster import Cluster
from tests.engines.graphs import GRAPHS
from tests.engines.small_disk import small_disk

from nodepiece.data.npy import read_mapped_graph
from nodepiece.data.read import read_graph
from nodepiece.engines import spark_tokenize, spark_watch, work_lock
from nodepiece.engines.spark_session import quiet_imports, spark_errors
from nodepiece.engines.spark_tokenize import SparkJob, tokenize_on_spark
from nodepiece.engines.spark_watch import watched_workers
from nodepiece.engines.work_lock import stored_lock
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.locks import sole_writer
from nodepiece.tokenizer.export import export_tokens
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.storage import load_tokens, save_tokens
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

SETTINGS = TokenizerSettings(
    num_anchors=30,
    anchors_per_node=6,
    relations_per_node=4,
    mix={"degree": 0.5, "random": 0.5},
)


# Many anchors all along the chains, so that there are some 10 hops and not hundreds.
OF_CHAINS = replace(SETTINGS, num_anchors=60, anchors_per_node=2, mix={"random": 1.0})


@contextmanager
def silent(doing: str) -> Iterator[list[str]]:
    yield []


def on_spark(spark: Any, job: SparkJob, stage: Any = silent) -> None:
    with quiet_imports(), spark_errors():
        tokenize_on_spark(spark, job, stage)


def job_for(folder: Path, source: Path, settings: TokenizerSettings = SETTINGS) -> SparkJob:
    return SparkJob(str(source), folder / "spark", settings, 3, str(folder / "work of it"))


def on_one_machine(graph: KnowledgeGraph, settings: TokenizerSettings, folder: Path) -> Path:
    rng = np.random.default_rng(3)
    vocabulary = fit_vocabulary(graph, settings, rng=rng)
    save_tokens(tokenize(graph, vocabulary, rng=rng), folder / "native")
    return folder / "native"


def assert_same_files(one: Path, other: Path) -> None:
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file())
    assert [
        file for file in files if (one / file).read_bytes() != (other / file).read_bytes()
    ] == []


both_ties = pytest.mark.parametrize("ties", ["per-node", "global"])


@both_ties
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_by_ids_has_the_tokens_of_one_machine(
    spark: Any, tmp_path: Path, name: str, ties: str
) -> None:
    facts = GRAPHS[name](np.random.default_rng(0))
    np.save(tmp_path / "facts.npy", facts)
    source = str(tmp_path / "facts.parquet")
    columns = {"h": facts[:, 0], "r": facts[:, 1], "t": facts[:, 2]}
    pq.write_table(pa.table(columns), source)
    settings = replace(OF_CHAINS if name == "chains" else SETTINGS, ties=ties)

    on_spark(spark, replace(job_for(tmp_path, Path(source), settings), by_ids=True))

    native = on_one_machine(read_mapped_graph(tmp_path / "facts.npy"), settings, tmp_path)
    assert_same_files(native, tmp_path / "spark")


@pytest.mark.data
@both_ties
@pytest.mark.parametrize("name", ["fb15k-237", "wn18rr"])
def test_a_benchmark_has_the_tokens_of_one_machine(
    spark: Any, tmp_path: Path, benchmark_data: Path, name: str, ties: str
) -> None:
    source = benchmark_data / name / "train.tsv.gz"
    settings = replace(SETTINGS, num_anchors=500, anchors_per_node=20, ties=ties)

    on_spark(spark, job_for(tmp_path, source, settings))

    native = on_one_machine(read_graph(source), settings, tmp_path)
    assert_same_files(native, tmp_path / "spark")


def write_people(folder: Path) -> Path:
    """100 facts of people by name, some stated twice, in two files that are read in order."""
    rng = np.random.default_rng(5)
    place = folder / "some people.tsv"
    facts = [f"p {a}\tknows {r}\tp {b}\n" for a, r, b in rng.integers(30, size=(100, 3)).tolist()]
    place.write_text("".join([*facts, *facts[:10]]))
    return place


def test_anchors_by_pagerank_are_those_of_one_machine(spark: Any, tmp_path: Path) -> None:
    source = write_people(tmp_path)
    settings = TokenizerSettings(num_anchors=10, anchors_per_node=3, relations_per_node=2)

    on_spark(spark, job_for(tmp_path, source, settings))

    assert_same_files(on_one_machine(read_graph(source), settings, tmp_path), tmp_path / "spark")


def test_the_export_is_that_of_one_machine(spark: Any, tmp_path: Path) -> None:
    source = write_people(tmp_path)
    settings = replace(SETTINGS, num_anchors=5, anchors_per_node=2)

    on_spark(spark, replace(job_for(tmp_path, source, settings), export=str(tmp_path / "rows")))

    native = load_tokens(on_one_machine(read_graph(source), settings, tmp_path))
    export_tokens(native, tmp_path / "rows.parquet")
    expected = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    found = pq.read_table(tmp_path / "rows").to_pylist()
    assert sorted(found, key=str) == sorted(expected, key=str)


class Recorder:
    """Remembers stages, and acts when one begins."""

    def __init__(self, action: Any = None, at: str = "") -> None:
        self.stages: list[str] = []
        self.action, self.at = action, at

    @contextmanager
    def __call__(self, doing: str) -> Iterator[list[str]]:
        self.stages.append(doing)
        if doing == self.at:
            self.action()
        yield []


def test_a_worker_killed_in_the_middle_changes_nothing(
    spark: Any, cluster: Cluster, tmp_path: Path
) -> None:
    facts = GRAPHS["chains"](np.random.default_rng(1))
    np.save(tmp_path / "facts.npy", facts)
    columns = {"h": facts[:, 0], "r": facts[:, 1], "t": facts[:, 2]}
    pq.write_table(pa.table(columns), tmp_path / "facts.parquet")
    job = replace(job_for(tmp_path, tmp_path / "facts.parquet", OF_CHAINS), by_ids=True)
    timers = Recorder(lambda: Timer(0.3, cluster.kill, ["worker-1"]).start(), "hop 2")

    on_spark(spark, job, timers)

    assert "worker-1" not in cluster.processes and "hop 3" in timers.stages
    cluster.start_worker("worker-1")
    native = on_one_machine(read_mapped_graph(tmp_path / "facts.npy"), OF_CHAINS, tmp_path)
    assert_same_files(native, tmp_path / "spark")


def test_a_stopped_run_continues_with_the_first_missing_hop(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_people(tmp_path)
    settings = TokenizerSettings(
        num_anchors=4, anchors_per_node=4, relations_per_node=2, mix={"degree": 1.0}
    )

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_spark(spark, job_for(tmp_path, source, settings), Recorder(stop, "hop 2"))
    assert not (tmp_path / "spark").exists()
    again = Recorder()
    monkeypatch.setattr(spark_tokenize, "BLOCKS_PER_TASK", 4)  # as if the cluster were larger
    on_spark(spark, job_for(tmp_path, source, settings), again)

    assert next(doing for doing in again.stages if doing.startswith("hop")) == "hop 2"
    assert "anchors by degree" not in again.stages
    assert_same_files(on_one_machine(read_graph(source), settings, tmp_path), tmp_path / "spark")
    assert not (tmp_path / "work of it").exists()


def test_what_only_one_machine_does_is_refused(tmp_path: Path) -> None:
    job = job_for(tmp_path, tmp_path / "none.tsv", replace(SETTINGS, select="random"))
    with pytest.raises(InputError, match="--select random use --engine native"):
        tokenize_on_spark(None, job, silent)


def test_components_without_anchors_get_those_of_one_machine(spark: Any, tmp_path: Path) -> None:
    facts = GRAPHS["components"](np.random.default_rng(0))[:40]  # and nodes without facts
    np.save(tmp_path / "facts.npy", facts)
    columns = {"h": facts[:, 0], "r": facts[:, 1], "t": facts[:, 2]}
    pq.write_table(pa.table(columns), tmp_path / "facts.parquet")
    settings = replace(
        SETTINGS, num_anchors=5, anchors_per_node=2, mix={"random": 1.0}, disconnected="anchor"
    )

    on_spark(spark, replace(job_for(tmp_path, tmp_path / "facts.parquet", settings), by_ids=True))

    native = on_one_machine(read_mapped_graph(tmp_path / "facts.npy"), settings, tmp_path)
    assert_same_files(native, tmp_path / "spark")
    assert load_tokens(native).vocabulary.num_anchors > 100


def test_a_run_that_lost_all_workers_ends_with_a_sentence_and_continues(
    spark: Any, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_people(tmp_path)
    settings = replace(SETTINGS, num_anchors=4, anchors_per_node=4, mix={"degree": 1.0})
    monkeypatch.setattr(spark_watch, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(spark_watch, "POLL_SECONDS", 0.5)

    def lose_workers() -> None:
        cluster.kill("worker-0")
        cluster.kill("worker-1")

    recorder = Recorder(lose_workers, "hop 2")
    with (
        pytest.raises(InputError, match=r"Spark has lost all its workers, .*; start them; again"),
        watched_workers(spark, "; again"),
    ):
        on_spark(spark, job_for(tmp_path, source, settings), recorder)
    for name in ("worker-0", "worker-1"):
        cluster.start_worker(name)
    cluster.wait_for(2)
    again = Recorder()
    on_spark(spark, job_for(tmp_path, source, settings), again)

    assert next(doing for doing in again.stages if doing.startswith("hop")) == "hop 2"
    assert_same_files(on_one_machine(read_graph(source), settings, tmp_path), tmp_path / "spark")


def test_a_full_disk_is_one_sentence(spark: Any, tmp_path: Path) -> None:
    job = job_for(tmp_path, write_people(tmp_path))
    with small_disk(tmp_path / "disk", free=12_000) as disk:
        with pytest.raises(OSError, match="no space left on a disk of the cluster") as caught:
            on_spark(spark, replace(job, work=str(disk / "work")))
        assert "\n" not in str(caught.value)


def test_a_second_job_in_the_same_folder_is_refused(spark: Any, tmp_path: Path) -> None:
    job = job_for(tmp_path, write_people(tmp_path))
    (tmp_path / "work of it" / "plan").mkdir(parents=True)
    with (
        sole_writer(tmp_path / "work of it"),
        pytest.raises(InputError, match=r"another job uses .*work of it; wait until it has ended"),
    ):
        on_spark(spark, job)
    assert (tmp_path / "work of it" / "plan").exists() and not (tmp_path / "spark").exists()


def test_a_lock_on_a_file_system_of_the_cluster_is_one_jobs(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "steps.lock"
    with stored_lock(spark, f"file://{path}"):
        assert path.exists()
        with pytest.raises(InputError, match=r"another job uses .*steps, or was ended in the last"):
            stored_lock(spark, f"file://{path}").__enter__()
    assert not list(tmp_path.iterdir())


def test_a_lock_that_is_not_refreshed_is_taken_over(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_lock, "REFRESH_SECONDS", 0.05)
    path = tmp_path / "steps.lock"
    path.touch()
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 601))
    with stored_lock(spark, f"file://{path}"):
        first = path.stat().st_mtime_ns
        end = monotonic() + 30
        while path.stat().st_mtime_ns == first and monotonic() < end:
            sleep(0.05)
        assert path.stat().st_mtime_ns > first
    assert not list(tmp_path.glob("steps*"))


@pytest.mark.parametrize("place", ["work", "export"])
def test_folders_of_others_are_not_removed(place: str, spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "plans"
    (folder / "plan").mkdir(parents=True)
    (folder / "thesis.txt").write_text("years of work")
    job = job_for(tmp_path, write_people(tmp_path))
    changed = (
        replace(job, work=str(folder)) if place == "work" else replace(job, export=str(folder))
    )
    with pytest.raises(InputError, match=r"plans .*; choose another"):
        on_spark(spark, changed)
    assert (folder / "thesis.txt").exists()
