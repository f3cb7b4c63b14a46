"""What ids names get, and what happens to facts stated twice."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.data.written_facts import facts_of, written

from nodepiece.data import delimited, encode
from nodepiece.data.read import ReadOptions, ReadReport, read_graph, read_graph_with_report


def random_facts(num_facts: int) -> list[tuple[str, str, str]]:
    ids = np.random.default_rng(0).integers(0, [40, 5, 40], size=(num_facts, 3))
    return [(f"node {head}", f"relation {kind}", f"node {tail}") for head, kind, tail in ids]


def test_ids_go_by_first_appearance_fact_by_fact(tmp_path: Path) -> None:
    graph = read_graph(written(tmp_path, "b\tr\ta\nc\tq\tb\na\tr\td\n"))
    assert graph.triples.tolist() == [[0, 0, 1], [2, 1, 0], [1, 0, 3]]


@pytest.mark.parametrize("block_bytes", [64, 1000])
@pytest.mark.parametrize("name", ["facts.tsv", "facts.csv"])
def test_ids_do_not_depend_on_the_size_of_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, name: str
) -> None:
    delimiter = "," if name == "facts.csv" else "\t"
    text = "".join(delimiter.join(fact) + "\n" for fact in random_facts(500))
    path = written(tmp_path, text, name)
    whole = read_graph(path)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", block_bytes)
    pieces = read_graph(path)
    assert pieces.fingerprint == whole.fingerprint
    np.testing.assert_array_equal(pieces.triples, whole.triples)


def test_blank_separated_files_read_the_same_in_small_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(
        tmp_path, "head rel tail\n" + "".join(f"n{i}  r \t n{i + 1} \n" for i in range(90))
    )
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 64)
    graph = read_graph(path, options=ReadOptions(delimiter="blanks"))
    assert facts_of(graph) == [(f"n{i}", "r", f"n{i + 1}") for i in range(90)]


def test_a_fact_stated_twice_is_kept_where_it_is_stated_first(tmp_path: Path) -> None:
    facts = random_facts(5000)  # of 8,000 possible ones
    path = written(tmp_path, "".join("\t".join(fact) + "\n" for fact in facts))
    graph, report = read_graph_with_report(path)
    once = list(dict.fromkeys(facts))
    assert facts_of(graph) == once
    assert (report.num_rows, report.num_duplicates) == (5000, 5000 - len(once))
    assert report.num_facts == len(once) < 5000


def test_facts_have_different_keys_even_when_ids_fill_32_bits() -> None:
    top = 2**31 - 1
    values = [0, 1, 2**16, top - 1]
    triples = np.array(list(product(values, repeat=3)), dtype=np.int32)
    keys = encode.fact_keys(triples, top, top)
    assert len(set(keys.tolist())) == len(triples)


def test_node_names_take_no_more_memory_than_they_need(tmp_path: Path) -> None:
    graph = read_graph(written(tmp_path, "".join(f"n{i}\tr\tn{i + 1}\n" for i in range(999))))
    assert graph.names is not None
    num_letters = sum(len(f"n{i}") for i in range(1000))
    assert graph.names.nodes.get_total_buffer_size() == num_letters + 8 * 1001


def test_a_report_says_what_was_left_out() -> None:
    report = ReadReport("x.nt", "N-Triples", num_rows=3000, num_literals=999, num_duplicates=1)
    assert report.sentences() == [
        "x.nt: 2,000 facts (N-Triples)",
        "left out 999 facts whose object is a literal",
        "left out 1 fact stated before",
    ]


def test_a_report_with_nothing_left_out_is_one_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, "a\tr\tb\n")
    report = read_graph_with_report(path)[1]
    columns = "head, relation, tail are columns 0, 1, 2"
    assert report.sentences() == [f"{path}: 1 fact (text separated by tabs, no header; {columns})"]


def test_a_report_says_which_line_was_taken_for_a_header(tmp_path: Path) -> None:
    path = written(tmp_path, "\nsubject\tpredicate\tobject\na\tr\tb\n")
    report = read_graph_with_report(path)[1]
    assert report.format == "text separated by tabs, line 2 names the columns"
