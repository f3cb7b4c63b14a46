"""Files of queries: one row after the other, and a bad one does not stop the rest."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nodepiece.data.query_rows import NumberedParts, open_query_file
from nodepiece.data.read import ReadOptions
from nodepiece.errors import InputError


def rows(path: Path, **options: str) -> list[NumberedParts]:
    with open_query_file(path, ReadOptions(**options)) as file:  # type: ignore[arg-type]
        return list(file.rows)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_asked_part_is_empty_or_a_sign(tmp_path: Path) -> None:
    path = write(tmp_path / "q.tsv", "a\tr\t?\n\tr\tb\n\na\t\tb c\n")

    assert rows(path) == [
        (1, ("a", "r", "?"), ""),
        (2, ("", "r", "b"), ""),
        (4, ("a", "", "b c"), ""),
    ]


def test_a_header_chooses_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "q.csv", 'n,object,subject,predicate\n1,?,"x, y",r\n')

    assert rows(path) == [(2, ("x, y", "r", "?"), "")]
    assert rows(path, columns="2,3,1") == [(2, ("x, y", "r", "?"), "")]


def test_a_line_with_other_columns_is_bad_and_the_others_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "q.tsv", "a\tr\na\tr\t?\na\tr\t?\tz\n?\tr\ta\n")

    found = rows(path)

    assert [row.number for row in found if not row.fault] == [2, 4]
    assert found[0].fault == "expected 3 columns separated by tabs, got 2: 'a\\tr'"


def test_a_line_that_is_not_utf8_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "q.tsv"
    path.write_bytes(b"a\tr\t?\nb\xff\tr\t?\n")

    assert [row.fault for row in rows(path)] == ["", r"not UTF-8: 'b\\xff\tr\t?'"]


def test_objects_and_arrays_of_json(tmp_path: Path) -> None:
    lines = ['{"head": "a", "relation": "r"}', '["a", null, "b"]', "{", "[1, 2]", '["a", 1, "b"]']

    found = rows(write(tmp_path / "q.jsonl", "\n".join(lines)))

    assert [row.parts for row in found[:2]] == [("a", "r", None), ("a", None, "b")]
    assert [row.fault for row in found[2:]] == [
        "not JSON: '{'",
        "expected head, relation and tail, got [1, 2]",
        "names are text, got 1",
    ]


def test_parquet_with_nulls(tmp_path: Path) -> None:
    table = pa.table({"head": ["a", None], "tail": [None, "b"], "relation": ["r", "r"]})
    pq.write_table(table, tmp_path / "q.parquet")

    assert rows(tmp_path / "q.parquet") == [(1, ("a", "r", None), ""), (2, (None, "r", "b"), "")]


def test_rdf_states_facts_and_asks_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="queries are read from TSV, CSV, JSON lines or Parquet"):
        rows(write(tmp_path / "q.nt", "<a> <b> <c> .\n"))


def test_the_number_of_rows_is_known_in_advance(tmp_path: Path) -> None:
    text = "".join(json.dumps(["a", "r", "?"]) + "\n" for _ in range(10))
    with open_query_file(write(tmp_path / "q.jsonl", text), ReadOptions()) as file:
        assert len(list(file.rows)) <= file.most_rows <= 11
