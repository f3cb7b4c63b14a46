"""`nodepiece tokenize` and `nodepiece embed` on a Spark cluster."""

import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tests.commands.conftest import Nodepiece
from tests.tasks.couples import couples, experiment

from nodepiece.engines.spark_session import check_java
from nodepiece.errors import InputError
from nodepiece.inference.run import load
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tokenizer.export import export_tokens

SIZES = ("--anchors", "20", "--anchors-per-node", "4", "--mix", "degree=1", "--seed", "1")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "couples"
    task = LinkPrediction(experiment(epochs=1), couples())
    run_experiment(task, RunOptions(folder, torch.device("cpu")))
    return folder


def test_the_command_writes_the_folder_that_it_writes_on_one_machine(
    spark: Any,
    nodepiece: Nodepiece,
    tmp_path: Path,
) -> None:
    done = nodepiece("tokenize", "countries", "-o", "cluster", "--engine", "spark", *SIZES)
    assert done.status == 0, done.err
    assert "hop 1 ..." in done.err and "anchors accepted" in done.err
    assert nodepiece("tokenize", "countries", "-o", "here", *SIZES).status == 0
    for path in (tmp_path / "here").rglob("*.npy"):
        other = tmp_path / "cluster" / path.relative_to(tmp_path / "here")
        assert path.read_bytes() == other.read_bytes()
    assert nodepiece("inspect", "cluster").status == 0


def test_vectors_are_those_of_one_machine(
    spark: Any,
    nodepiece: Nodepiece,
    run_folder: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / "thesis.txt").write_text("years of work")
    done = nodepiece("embed", run_folder, "-o", tmp_path / "vectors", "--engine", "spark")
    assert done.status == 2 and "vectors exists and is not a result of Spark" in done.err
    assert not (tmp_path / "vectors.tokens").exists()
    (tmp_path / "vectors" / "thesis.txt").rename(tmp_path / "thesis.txt")
    options = ("--engine", "spark", "--work", tmp_path)  # with a file in it that stays
    done = nodepiece("embed", run_folder, "-o", tmp_path / "vectors", *options)
    assert done.status == 0, done.err
    assert (tmp_path / "thesis.txt").exists() and not (tmp_path / "tokens.parquet").exists()
    rows = pq.read_table(tmp_path / "vectors").to_pydict()
    expected = load(run_folder).vectors()
    found = dict(zip(rows["node"], rows["vector"], strict=True))
    assert set(found) == set(expected.names)
    np.testing.assert_allclose([found[n] for n in expected.names], expected.values, atol=1e-6)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("relations", ["rents"], "the relation 'rents' of 'person 0' is none of those that"),
        ("anchors", ["nobody"], "the anchor 'nobody' of 'person 0' is none of those that"),
        ("anchors", [], "none of the 1 nodes in"),
    ],
)
def test_tokens_that_the_run_does_not_know_are_refused(
    spark: Any,
    nodepiece: Nodepiece,
    run_folder: Path,
    column: str,
    value: list[str],
    words: str,
) -> None:
    export_tokens(load(run_folder).opened.table, "own.parquet")
    table = pq.read_table("own.parquet")[:1]
    row = {name: table[name].to_pylist() for name in table.column_names} | {column: [value]}
    if column == "anchors":
        row["distances"] = [[1] * len(value)]
    pq.write_table(pa.table(row, schema=table.schema), "other.parquet")
    done = nodepiece(
        *("embed", run_folder, "-o", "vectors", "--engine", "spark", "--tokens", "other.parquet")
    )
    assert done.status == 2 and words in done.err, done.err
    assert not list(Path.cwd().glob("vectors*"))


def test_tokens_of_a_run_are_not_written_to_a_folder_named_as_an_address(
    nodepiece: Nodepiece, run_folder: Path
) -> None:
    done = nodepiece("embed", run_folder, "-o", "hdfs:///vectors", "--engine", "spark")
    assert done.status == 2 and "hdfs:///vectors.tokens is none; give one" in done.err, done.err
    assert not list(Path.cwd().iterdir())


def test_other_files_in_the_folder_of_work_stay(
    nodepiece: Nodepiece, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.engines.spark_session.open_session", lambda options: None)
    monkeypatch.setattr("nodepiece.engines.spark_watch.watched_workers", nullcontext)
    monkeypatch.setattr("nodepiece.engines.spark_vectors.write_vectors", lambda *arguments: 3)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "other.txt").write_text("mine")
    done = nodepiece("embed", run_folder, "-o", "vectors", "--engine", "spark", "--work", "work")
    assert done.status == 0, done.err
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["other.txt"]


def test_options_of_spark_need_it(nodepiece: Nodepiece) -> None:
    done = nodepiece("tokenize", "countries", "-o", "v", "--master", "local[2]")
    assert done.status == 2 and "--master goes with --engine spark" in done.err
    done = nodepiece("tokenize", "countries", "-o", "v", "--engine", "flink")
    assert done.status == 2 and "--engine is native or spark, got 'flink'" in done.err


def test_a_machine_without_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="Spark needs Java, and there is no program java"):
        check_java()


def test_spark_without_pyspark_is_one_sentence(
    nodepiece: Nodepiece,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    done = nodepiece("tokenize", "countries", "-o", "v", "--engine", "spark")
    assert done.status == 2 and "pip install 'nodepiece[spark]'" in done.err


def test_a_session_leaves_the_handler_of_ctrl_c(spark: Any) -> None:
    handler = signal.getsignal(signal.SIGINT)
    assert "pyspark" not in getattr(handler, "__module__", "")


def test_ctrl_c_prints_where_it_continues(
    spark: Any, nodepiece: Nodepiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nodepiece.engines.spark_tokenize.tokenize_on_spark", stop)
    done = nodepiece("tokenize", "countries", "-o", "v", "--engine", "spark", *SIZES)
    assert done.status == 130 and ".v.spark, and the same command continues" in done.err
