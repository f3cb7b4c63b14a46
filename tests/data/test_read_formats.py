"""Parquet, gzip and standard input."""

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.data.written_facts import facts_of, written

from nodepiece.data.read import ReadOptions, read_graph, read_graph_with_report
from nodepiece.errors import InputError

CAPITALS = [("Berlin", "capital_of", "Germany"), ("Paris", "capital_of", "France")]
TSV = b"Berlin\tcapital_of\tGermany\nParis\tcapital_of\tFrance\n"

JSON_LINES = b'["Berlin", "capital_of", "Germany"]\n'


def complaint(path: Path) -> str:
    """What is said about the file, after its path."""
    with pytest.raises(InputError) as caught:
        read_graph(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).strip()


def write_parquet(folder: Path, columns: dict[str, object], name: str = "facts.parquet") -> Path:
    pq.write_table(pa.table(columns), folder / name)
    return folder / name


def give_on_standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_parquet_columns_are_found_by_their_names(tmp_path: Path) -> None:
    columns = {"object": ["Germany", "France"], "subject": ["Berlin", "Paris"], "year": [1, 2]}
    path = write_parquet(tmp_path, {**columns, "predicate": ["capital_of"] * 2})
    assert facts_of(read_graph(path)) == CAPITALS


def test_parquet_columns_of_other_usual_names_are_not_read_by_position(tmp_path: Path) -> None:
    columns = {"dst": ["Germany", "France"], "src": ["Berlin", "Paris"]}
    path = write_parquet(tmp_path, {**columns, "label": ["capital_of"] * 2})
    assert facts_of(read_graph(path)) == CAPITALS


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("x", "y", "z"), "among 'x', 'y', 'z'; name the three with --columns"),
        (("src", "dst", "x"), "give --columns src,x,dst"),
    ],
)
def test_parquet_columns_of_unknown_names_are_refused(
    tmp_path: Path, names: tuple[str, ...], said: str
) -> None:
    assert said in complaint(write_parquet(tmp_path, {name: ["a"] for name in names}))


def test_parquet_columns_that_are_only_numbered_are_in_order(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"0": ["Berlin"], "1": ["capital_of"], "2": ["Germany"]})
    assert facts_of(read_graph(path)) == CAPITALS[:1]


def test_parquet_columns_are_chosen_as_asked(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"x": ["Germany"], "y": ["Berlin"], "z": ["capital_of"]})
    assert facts_of(read_graph(path, options=ReadOptions(columns=("y", 2, "x")))) == CAPITALS[:1]


def test_parquet_integers_become_names(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"h": [7], "r": [0], "t": [-1]})
    assert facts_of(read_graph(path)) == [("7", "0", "-1")]


def test_parquet_categories_are_read(tmp_path: Path) -> None:
    relations = pa.array(["capital_of", "capital_of"]).dictionary_encode()
    columns = {"h": ["Berlin", "Paris"], "r": relations, "t": ["Germany", "France"]}
    assert facts_of(read_graph(write_parquet(tmp_path, columns))) == CAPITALS


def test_parquet_is_known_by_its_content(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"h": ["Berlin"], "r": ["capital_of"], "t": ["Germany"]}, "x")
    assert facts_of(read_graph(path)) == CAPITALS[:1]


@pytest.mark.parametrize("missing", [None, ""])
def test_a_missing_name_in_parquet_is_named_by_its_row(tmp_path: Path, missing: str | None) -> None:
    columns = {"h": ["a", "b"], "r": ["r", "r"], "t": ["c", missing]}
    said = complaint(write_parquet(tmp_path, columns))
    assert said == "row 2: the tail (column 't') is empty; fill it in or leave the row out"


def test_a_nan_in_parquet_is_named_by_its_row(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"h": [1.0, float("nan")], "r": [1, 1], "t": [1, 2]})
    assert complaint(path).startswith("row 2: the head (column 'h') is empty")


def test_a_column_of_fractions_in_parquet_is_refused(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"h": [1.5], "r": [1], "t": [1]})
    assert "the head (column 'h') holds double, but names are strings" in complaint(path)


def test_a_damaged_parquet_file_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, b"PAR1 and then nothing", "facts.parquet")
    assert complaint(path).startswith("cannot be read as Parquet")


@pytest.mark.parametrize("name", ["facts.tsv.gz", "facts.tsv", "facts"])
def test_gzip_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    assert facts_of(read_graph(written(tmp_path, gzip.compress(TSV), name))) == CAPITALS


def test_gzip_in_several_members_is_read_to_the_end(tmp_path: Path) -> None:
    first, second = (gzip.compress(line) for line in TSV.splitlines(keepends=True))
    assert facts_of(read_graph(written(tmp_path, first + second, "facts.tsv.gz"))) == CAPITALS


def test_a_plain_file_with_a_gzip_ending_is_read_as_it_is(tmp_path: Path) -> None:
    assert facts_of(read_graph(written(tmp_path, TSV, "facts.tsv.gz"))) == CAPITALS


@pytest.mark.parametrize("name", ["facts.tsv.gz", "facts.parquet.gz"])
def test_a_gzip_file_cut_short_is_an_error(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, gzip.compress(TSV * 1000)[:-20], name)
    assert complaint(path)


def test_a_gzip_file_with_wrong_bytes_is_an_error(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(TSV))
    content[10:14] = b"\xff\xff\xff\xff"  # where the compressed data begins
    with pytest.raises(InputError, match=r"x\.tsv\.gz cannot be read"):
        read_graph(written(tmp_path, bytes(content), "x.tsv.gz"))


def test_a_bad_line_in_a_gzip_file_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(TSV + b"Rome\n"), "facts.tsv.gz")
    assert complaint(path).startswith("line 3: expected 3 columns")


def test_gzipped_parquet_is_read(tmp_path: Path) -> None:
    plain = write_parquet(tmp_path, {"h": ["Berlin"], "r": ["capital_of"], "t": ["Germany"]})
    path = written(tmp_path, gzip.compress(plain.read_bytes()), "facts.parquet.gz")
    assert facts_of(read_graph(path)) == CAPITALS[:1]


def test_an_archive_is_refused_by_name(tmp_path: Path) -> None:
    said = complaint(written(tmp_path, b"PK\x03\x04....", "facts.zip"))
    assert said.startswith("is a zip archive; unpack it first")


def test_rdf_without_its_parser_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(InputError, match=r"pip install 'nodepiece\[rdf\]'"):
        read_graph(written(tmp_path, b"<http://x/a> <http://x/in> <http://x/b> .\n", "facts.nt"))


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    give_on_standard_input(monkeypatch, TSV)
    assert facts_of(read_graph("-")) == CAPITALS


def test_the_format_of_standard_input_is_known_by_its_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_on_standard_input(monkeypatch, gzip.compress(JSON_LINES))
    assert read_graph_with_report("-")[1].format == "JSON lines, arrays"


def test_a_bad_line_on_standard_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    give_on_standard_input(monkeypatch, TSV + b"Rome\n")
    with pytest.raises(InputError, match=r"^standard input line 3: expected 3 columns"):
        read_graph("-")


def test_a_given_format_overrides_the_ending(tmp_path: Path) -> None:
    path = written(tmp_path, JSON_LINES, "facts.tsv")
    assert facts_of(read_graph(path, options=ReadOptions(format="jsonl"))) == CAPITALS[:1]


def test_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown format 'xml'; it is one of tsv, csv"):
        read_graph(written(tmp_path, TSV), options=ReadOptions(format="xml"))
