"""What is written, however nasty the names, is what is read."""

import csv
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from tests.data.written_facts import facts_of

from nodepiece.data.read import read_graph

# Quotes, delimiters, blanks of several kinds, line separators that are no line ends, letters of
# one to four bytes, a letter that needs two code points, and a null byte.
LETTERS = "aZ0\"'\\,; |#.\u00a0\u2028\x85\x0b\x00é字🜚\u0301"
Facts = list[tuple[str, str, str]]


def facts(letters: str) -> st.SearchStrategy[Facts]:
    name = st.text(letters, min_size=1, max_size=6)
    return st.lists(st.tuples(name, name, name), min_size=1, max_size=12, unique=True)


def read_back(name: str, content: bytes) -> Facts:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return facts_of(read_graph(path))


@given(facts(LETTERS))
def test_tsv_gives_back_what_was_written(written: Facts) -> None:
    text = "".join("\t".join(fact) + "\n" for fact in written)
    assert read_back("facts.tsv", text.encode()) == written


@given(facts(LETTERS + "\n\r\t"))
def test_csv_gives_back_what_was_written(written: Facts) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "facts.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows(written)
        assert facts_of(read_graph(path)) == written


@given(facts(LETTERS + "\n\r\t\ufeff"))
def test_parquet_gives_back_what_was_written(written: Facts) -> None:
    heads, relations, tails = zip(*written, strict=True)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"h": heads, "r": relations, "t": tails}), sink)
    assert read_back("facts.parquet", sink.getvalue().to_pybytes()) == written
