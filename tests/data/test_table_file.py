"""Tables in the format of the file's ending."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from nodepiece.data.table_file import check_ending, write_table
from nodepiece.errors import InputError

TABLE = pa.table(
    {
        "node": ["Kenya", 'the "Gambia", river'],
        "vector": pa.array([[0.1, 2.0], [3.0, 4.5]], pa.list_(pa.float32(), 2)),
        "anchors": pa.array([["a,b", "c"], []], pa.list_(pa.string())),
    }
)


def written(path: Path) -> Path:
    write_table(TABLE.schema, TABLE.to_batches(), path)
    return path


def test_parquet_gives_the_table_back(tmp_path: Path) -> None:
    assert pq.read_table(written(tmp_path / "t.parquet")).equals(TABLE)


def test_json_lines_have_an_object_a_row_and_the_digits_of_single_precision(tmp_path: Path) -> None:
    lines = written(tmp_path / "t.jsonl").read_text().splitlines()

    assert [json.loads(line) for line in lines] == [
        {"node": "Kenya", "vector": [0.1, 2.0], "anchors": ["a,b", "c"]},
        {"node": 'the "Gambia", river', "vector": [3.0, 4.5], "anchors": []},
    ]


@pytest.mark.parametrize(("ending", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_csv_has_a_column_for_each_element_of_a_vector_and_json_for_other_lists(
    tmp_path: Path, ending: str, delimiter: str
) -> None:
    options = pa_csv.ParseOptions(delimiter=delimiter)

    read = pa_csv.read_csv(written(tmp_path / f"t.{ending}"), parse_options=options)

    assert read.to_pydict() == {
        "node": ["Kenya", 'the "Gambia", river'],
        "vector_0": [0.1, 3.0],
        "vector_1": [2.0, 4.5],
        "anchors": ['["a,b", "c"]', "[]"],
    }


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_without_rows_is_a_file_without_rows(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"

    write_table(TABLE.schema, [], path)

    assert len(path.read_bytes().splitlines()) == {"csv": 1, "jsonl": 0}.get(ending, 1) or (
        pq.read_table(path).num_rows == 0
    )


@pytest.mark.parametrize("name", ["v.xlsx", "v", "v.npy"])
def test_an_ending_that_is_no_format_is_refused_with_the_formats(name: str) -> None:
    with pytest.raises(InputError, match=r"use one of \.parquet, \.csv, \.tsv, \.jsonl$"):
        check_ending(Path(name))
    check_ending(Path("v.npy"), ".npy")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder; name a file"):
        check_ending(tmp_path)
