"""What is written, however nasty the names, is what is read."""

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.data.written_facts import facts_of

from nodepiece.data.read import ReadOptions, read_graph

# Quotes, delimiters, blanks of several kinds, line separators that are no line ends, letters of
# one to four bytes, a letter that needs two code points, and a null byte.
LETTERS = "aZ0\"'\\,; |#.\u00a0\u2028\x85\x0b\x00é字🜚\u0301"
Facts = list[tuple[str, str, str]]


def is_in_quotes(name: str) -> bool:
    return name[0] == name[-1] == '"'


def is_number(name: str) -> bool:
    return set(name) <= set(" 0.")


def facts(letters: str, *, quoted: bool = True) -> st.SearchStrategy[Facts]:
    """quoted: some names may begin and end with a quote, as cells of CSV do.

    No tail is a number: if all were, they would be taken for weights, and refused.
    """
    name = st.text(letters, min_size=1, max_size=6).filter(lambda n: quoted or not is_in_quotes(n))
    rows = st.lists(st.tuples(name, name, name), min_size=1, max_size=12, unique=True)
    return rows.filter(lambda rows: not any(is_number(tail) for _, _, tail in rows))


def read_back(name: str, content: bytes, **options: Any) -> Facts:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return facts_of(read_graph(path, options=ReadOptions(**options)))


def as_csv(written: Facts) -> bytes:
    """Without a blank behind every comma, which would be no part of the names."""
    assume(not all(name[0] == " " for fact in written for name in fact[1:]))
    text = io.StringIO(newline="")
    csv.writer(text).writerows(written)
    return text.getvalue().encode()


@settings(deadline=None)  # the first call imports pyarrow
@given(facts(LETTERS, quoted=False))
def test_tsv_gives_back_what_was_written(written: Facts) -> None:
    text = "".join("\t".join(fact) + "\n" for fact in written)
    assert read_back("facts.tsv", text.encode()) == written


@settings(deadline=None)  # the first call imports pyarrow
@given(facts(LETTERS))
def test_tsv_said_to_be_tsv_gives_back_names_in_quotes_too(written: Facts) -> None:
    text = "".join("\t".join(fact) + "\n" for fact in written)
    assert read_back("facts", text.encode(), format="tsv") == written


@settings(deadline=None)  # the first call imports pyarrow
@given(facts(LETTERS + "\n\r\t"), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
def test_tsv_with_every_cell_in_quotes_gives_back_the_names_alone(
    written: Facts, quoting: Literal[1, 2]
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t", quoting=quoting).writerows(written)
    assert read_back("facts", text.getvalue().encode(), delimiter="tab") == written


@settings(deadline=None)  # the first call imports pyarrow
@given(facts(LETTERS + "\n\r\t\ufeff"), st.booleans())
def test_json_lines_give_back_what_was_written(written: Facts, is_object: bool) -> None:
    rows = [dict(zip("spo", fact, strict=True)) if is_object else fact for fact in written]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    assert read_back("facts.jsonl", text.encode()) == written


@settings(deadline=None)  # the first call imports pyarrow
@given(facts(LETTERS + "\n\r"))
def test_csv_gives_back_what_was_written(written: Facts) -> None:
    assert read_back("facts.csv", as_csv(written)) == written


@settings(deadline=None)  # the first call imports pyarrow
@given(facts(LETTERS + "\n\r\t"))
def test_csv_with_tabs_in_its_names_gives_them_back_with_the_delimiter(written: Facts) -> None:
    assert read_back("facts.csv", as_csv(written), delimiter="comma") == written


@settings(deadline=None)  # the first call imports pyarrow
@given(facts(LETTERS + "\n\r\t\ufeff"))
def test_parquet_gives_back_what_was_written(written: Facts) -> None:
    heads, relations, tails = zip(*written, strict=True)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"h": heads, "r": relations, "t": tails}), sink)
    assert read_back("facts.parquet", sink.getvalue().to_pybytes()) == written
