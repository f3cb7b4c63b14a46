"""Facts from anything that Spark reads have the ids that one machine gives them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from nodepiece.data.blocks import ReadOptions
from nodepiece.data.read import read_graph
from nodepiece.engines.node_blocks import blocks_for
from nodepiece.engines.spark_names import collect_names, encode_facts, write_name_chunks
from nodepiece.engines.spark_session import as_sentence, quiet_imports, spark_errors
from nodepiece.engines.spark_source import format_of, read_facts
from nodepiece.engines.work_folder import WorkFolder
from nodepiece.errors import InputError
from nodepiece.graph.names import Names


def ids_on_spark(
    spark: Any, source: str, folder: Path, **options: Any
) -> tuple[set[tuple[int, int, int]], Names, int]:
    """The facts by id, the names, and how many facts were literals."""
    kind, by_ids = options.pop("kind", None), options.pop("by_ids", False)
    with quiet_imports(), spark_errors():
        facts = read_facts(spark, source, ReadOptions(**options), kind=kind, by_ids=by_ids)
        work = WorkFolder(spark, (folder / "work").as_uri())
        encoded = encode_facts(work, facts.table)
        write_name_chunks(work, blocks_for(encoded.num_nodes, 2))
        names = collect_names(work, encoded.relations or [])
        rows = {(row.head, row.relation, row.tail) for row in encoded.table.collect()}
    return rows, names, encoded.num_literals


def assert_as_on_one_machine(spark: Any, path: Path, folder: Path, **options: Any) -> None:
    rows, names, _ = ids_on_spark(spark, str(path), folder, **options)
    options.pop("kind", None)
    graph = read_graph(path, **options)
    assert graph.names is not None
    assert rows == {(h, r, t) for h, r, t in graph.triples.tolist()}
    assert names.fingerprint == graph.names.fingerprint


def test_text_is_read_as_on_one_machine(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text('subject,predicate,object\n"b, c",r,a\na,s,"d ""e"""\n')
    assert_as_on_one_machine(spark, tmp_path / "facts.csv", tmp_path)


def test_json_lines_are_read_as_on_one_machine(spark: Any, tmp_path: Path) -> None:
    rows = [{"subject": "b", "predicate": "r", "object": "a", "year": 1}]
    rows += [{"subject": "a", "predicate": "s", "object": "ü", "year": 2}]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (tmp_path / "facts.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert_as_on_one_machine(spark, tmp_path / "facts.jsonl", tmp_path)


def test_orc_has_the_ids_of_parquet(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"head": ["b", "c"], "relation": ["r", "s"], "tail": ["a", "b"]})
    orc.write_table(table, tmp_path / "facts.orc")
    _, names, _ = ids_on_spark(spark, str(tmp_path / "facts.orc"), tmp_path)
    assert names.nodes.to_pylist() == ["b", "a", "c"]


def test_ntriples_are_read_as_on_one_machine(spark: Any, tmp_path: Path) -> None:
    lines = ["<http://x/b> <http://x/r> <http://x/a> .", "# a comment", ""]
    lines += ['<http://x/a> <http://x/r> "a text" .', "_:n1 <http://x/s> <http://x/b> ."]
    (tmp_path / "facts.nt").write_text("\n".join(lines) + "\n")
    assert_as_on_one_machine(spark, tmp_path / "facts.nt", tmp_path)


def test_files_of_a_folder_are_read_in_the_order_of_their_names(spark: Any, tmp_path: Path) -> None:
    table = pa.table(
        {"head": ["b", "c", "a"], "relation": ["r", "s", "r"], "tail": ["a", "b", "z"]}
    )
    (tmp_path / "facts").mkdir()
    pq.write_table(table[:1], tmp_path / "facts" / "1.parquet")
    pq.write_table(table[1:], tmp_path / "facts" / "2.parquet")  # larger, so Spark reads it first
    _, names, _ = ids_on_spark(spark, str(tmp_path / "facts"), tmp_path)
    assert names.nodes.to_pylist() == ["b", "a", "c", "z"]


def test_a_table_without_files_gets_ids_in_the_order_of_names(spark: Any, tmp_path: Path) -> None:
    rows = [("b", "s", "a"), ("c", "r", "b")]
    spark.createDataFrame(
        rows, "head string, relation string, tail string"
    ).createOrReplaceTempView("facts_of_a_test")
    found, names, _ = ids_on_spark(spark, "facts_of_a_test", tmp_path, kind="table")
    assert names.nodes.to_pylist() == ["a", "b", "c"]
    assert found == {(1, 1, 0), (2, 0, 1)}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("facts.tsv", "a\tr\tb\n" * 3 + "a\tb\n", "a line does not have 3 columns"),
        ("facts.nt", "<http://x/a> <http://x/r> .\n", "is no line of N-Triples"),
        ("facts.nt", '<http://x/a> <http://x/r> "1" .\n', "all 1 objects are literals"),
        ("facts.tsv", "a\tr\tb\na\t\tb\n", "the relation of 1 facts is empty"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    spark: Any, tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        ids_on_spark(spark, str(tmp_path / name), tmp_path)


def test_ids_below_0_are_refused(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"h": [-1], "r": [0], "t": [1]}), tmp_path / "facts.parquet")
    with pytest.raises(InputError, match="ids count from 0"), quiet_imports():
        read_facts(spark, str(tmp_path / "facts.parquet"), ReadOptions(), kind=None, by_ids=True)


def test_a_format_that_spark_does_not_read_is_refused() -> None:
    assert format_of("facts.tsv.gz", None) == "tsv"
    with pytest.raises(InputError, match=r"facts\.ttl as ttl; give --format, one of tsv, csv, nt"):
        format_of("facts.ttl", None)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("java.io.IOException: No space left on device", OSError, "no space left on a disk"),
        ("ExecutorLostFailure (executor 1 exited)", InputError, "cannot reach its workers"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03", InputError, "file:/x"),
        ("x\nnodepiece.errors.InputError: fix it\n at y", InputError, "fix it"),
        ("ModuleNotFoundError: No module named 'numba'", InputError, "have no numba"),
        ("something else\nat z", RuntimeError, "Spark: something else"),
    ],
)
def test_an_error_of_spark_is_one_sentence(text: str, kind: type[Exception], words: str) -> None:
    error = as_sentence(text, "; run it again")
    assert type(error) is kind and words in str(error) and "\n" not in str(error)
