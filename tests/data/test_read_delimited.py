"""Text files: delimiters, headers, columns, and what is said about bad lines."""

from pathlib import Path

import pytest
from tests.data.written_facts import facts_of, written

from nodepiece.data.read import ReadOptions, read_graph
from nodepiece.errors import InputError

CAPITALS = [("Berlin", "capital_of", "Germany"), ("Paris", "capital_of", "France")]


def complaint(path: Path, options: ReadOptions | None = None) -> str:
    """What is said about the file, after its path."""
    with pytest.raises(InputError) as caught:
        read_graph(path, options=options or ReadOptions())
    message = str(caught.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).strip()


@pytest.mark.parametrize("name", ["facts.tsv", "facts.csv", "facts.txt", "facts"])
@pytest.mark.parametrize("delimiter", ["\t", ",", ";", " ", "   "])
def test_the_delimiter_is_detected_whatever_the_ending(
    tmp_path: Path, delimiter: str, name: str
) -> None:
    text = "".join(delimiter.join(fact) + "\n" for fact in CAPITALS)
    assert facts_of(read_graph(written(tmp_path, text, name))) == CAPITALS


def test_names_with_commas_and_blanks_do_not_mislead_the_detection(tmp_path: Path) -> None:
    fact = ("Paris, Texas, USA", "is not, of course,", "Paris, the one, in France")
    path = written(tmp_path, "\t".join(fact) + "\n", "facts.txt")
    assert facts_of(read_graph(path)) == [fact]


def test_a_given_delimiter_is_used(tmp_path: Path) -> None:
    path = written(tmp_path, "Berlin|capital_of|Germany\n")
    assert facts_of(read_graph(path, options=ReadOptions(delimiter="|"))) == CAPITALS[:1]


def test_a_delimiter_may_be_given_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\tr\tc\n", "facts.csv")
    graph = read_graph(path, options=ReadOptions(delimiter="tab"))
    assert facts_of(graph) == [("a,b", "r", "c")]


def test_a_delimiter_of_two_characters_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a||r||b\n")
    with pytest.raises(InputError, match=r"one character or one of tab.*got '\|\|'"):
        read_graph(path, options=ReadOptions(delimiter="||"))


def test_a_header_of_known_words_is_no_fact(tmp_path: Path) -> None:
    path = written(tmp_path, "Head\tRelation\tTail\nBerlin\tcapital_of\tGermany\n")
    assert facts_of(read_graph(path)) == CAPITALS[:1]


def test_a_header_tells_the_order_of_the_columns(tmp_path: Path) -> None:
    path = written(tmp_path, "source,target,type\nBerlin,Germany,capital_of\n", "facts.csv")
    assert facts_of(read_graph(path)) == CAPITALS[:1]


def test_a_header_finds_three_columns_among_many(tmp_path: Path) -> None:
    text = "id,node1,label,node2,rank\n1,Berlin,capital_of,Germany,\n2,Paris,capital_of,France,9\n"
    assert facts_of(read_graph(written(tmp_path, text, "facts.csv"))) == CAPITALS


def test_a_first_line_with_one_known_word_is_a_fact(tmp_path: Path) -> None:
    path = written(tmp_path, "source\tis\tNile\n")
    assert facts_of(read_graph(path)) == [("source", "is", "Nile")]


def test_header_false_makes_a_fact_of_known_words(tmp_path: Path) -> None:
    path = written(tmp_path, "h\tr\tt\n")
    assert facts_of(read_graph(path, options=ReadOptions(header=False))) == [("h", "r", "t")]


def test_header_true_skips_any_first_line(tmp_path: Path) -> None:
    path = written(tmp_path, "Stadt\tist\tLand\nBerlin\tcapital_of\tGermany\n")
    assert facts_of(read_graph(path, options=ReadOptions(header=True))) == CAPITALS[:1]


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, "Land\tStadt\tist\nGermany\tBerlin\tcapital_of\n")
    options = ReadOptions(columns=("Stadt", "ist", "Land"))
    assert facts_of(read_graph(path, options=options)) == CAPITALS[:1]


def test_columns_are_chosen_by_position(tmp_path: Path) -> None:
    path = written(tmp_path, "7\tGermany\tBerlin\tcapital_of\n")
    assert facts_of(read_graph(path, options=ReadOptions(columns=(2, 3, 1)))) == CAPITALS[:1]


def test_blank_lines_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    text = "\r\nBerlin\tcapital_of\tGermany\r\n\r\nParis\tcapital_of\tFrance\r\n\r\n\r\n"
    assert facts_of(read_graph(written(tmp_path, text))) == CAPITALS


def test_blank_lines_before_a_header_are_fine(tmp_path: Path) -> None:
    path = written(tmp_path, "\n\nhead\trelation\ttail\nBerlin\tcapital_of\tGermany\n")
    assert facts_of(read_graph(path)) == CAPITALS[:1]


def test_blank_separated_columns_may_be_aligned(tmp_path: Path) -> None:
    text = (
        "head    relation    tail\n\n  Berlin  capital_of  Germany  \nParis   capital_of \t France"
    )
    assert facts_of(read_graph(written(tmp_path, text, "facts.txt"))) == CAPITALS


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfBerlin\tcapital_of\tGermany\n")
    assert facts_of(read_graph(path)) == CAPITALS[:1]


def test_what_looks_like_a_number_or_a_missing_value_stays_a_name(tmp_path: Path) -> None:
    facts = [("007", "1e3", "NA"), ("null", "NaN", "7")]
    path = written(tmp_path, "".join("\t".join(fact) + "\n" for fact in facts))
    assert facts_of(read_graph(path)) == facts


def test_a_quote_is_a_letter_in_tsv(tmp_path: Path) -> None:
    path = written(tmp_path, '"Berlin"\t"is\tGer"many\n')
    assert facts_of(read_graph(path)) == [('"Berlin"', '"is', 'Ger"many')]


def test_a_quoted_csv_cell_may_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    path = written(tmp_path, '"a,b","say ""r""","c\nd"\n', "facts.csv")
    assert facts_of(read_graph(path)) == [("a,b", 'say "r"', "c\nd")]


def test_a_line_with_too_few_columns_is_named(tmp_path: Path) -> None:
    lines = ["Paris\tcapital_of\tFrance"] * 3040 + ["Berlin\tcapital_of", "x"]
    assert complaint(written(tmp_path, "\n".join(lines))).startswith(
        r"line 3,041: expected 3 columns separated by tabs, got 2: 'Berlin\tcapital_of'; fix"
    )


def test_a_line_with_too_many_columns_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "head,relation,tail\na,r,b\na,r,b,c\n", "facts.csv")
    assert complaint(path).startswith("line 3: expected 3 columns separated by commas, got 4")


def test_a_bad_line_among_aligned_columns_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "a  r   b\n\na  r\n", "facts.txt")
    assert complaint(path).startswith("line 3: expected 3 columns separated by blanks, got 2")


def test_blank_lines_and_quoted_line_ends_count_as_lines(tmp_path: Path) -> None:
    path = written(tmp_path, '\na,r,"b\n\nc"\n\na,r\n', "facts.csv")
    assert complaint(path).startswith("line 6: expected 3 columns")


def test_a_first_line_of_two_columns_is_named(tmp_path: Path) -> None:
    assert complaint(written(tmp_path, "a\tb\n")).startswith("line 1: expected 3 columns")


def test_a_first_line_of_four_columns_asks_for_their_meaning(tmp_path: Path) -> None:
    said = complaint(written(tmp_path, "a\tr\tb\t2020\n"))
    assert said.startswith("line 1: expected 3 columns separated by tabs, got 4")
    assert "give --delimiter and --columns" in said


@pytest.mark.parametrize(
    ("line", "role"), [("\tr\tb", "head"), ("a\t\tb", "relation"), ("a\tr\t", "tail")]
)
def test_an_empty_cell_is_named(tmp_path: Path, line: str, role: str) -> None:
    path = written(tmp_path, f"a\tr\tb\n{line}\n")
    assert complaint(path).startswith(f"line 2: the {role} is empty: {line!r}; fill it in")


def test_a_cell_of_blanks_alone_is_empty_where_a_blank_follows_every_comma(tmp_path: Path) -> None:
    path = written(tmp_path, "a, r, b\na,  , b\n", "facts.csv")
    assert complaint(path).startswith("line 2: the relation is empty")


def test_an_empty_cell_in_a_column_not_asked_for_is_fine(tmp_path: Path) -> None:
    path = written(tmp_path, "a\tr\tb\t\n")
    assert facts_of(read_graph(path, options=ReadOptions(columns=(0, 1, 2)))) == [("a", "r", "b")]


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "a\tr\tb\nZürich\tin\tSchweiz\n".encode("latin-1"))
    assert complaint(path).startswith(r"line 2: not UTF-8: 'Z\\xfcrich\tin\tSchweiz'; save")


def test_a_quote_that_is_not_closed_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,r,b\na,r,"b\n' + "a,r,b\n" * 50, "facts.csv")
    said = complaint(path)
    assert said.startswith("after line 1: unexpected end of data; look for a quote")


def test_a_quote_that_swallows_a_long_file_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,r,b\n"a,r,b\n' + "a,r,b\n" * 100_000, "facts.csv")
    assert "look for a quote that is not closed" in complaint(path)


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_quote_that_is_not_closed_in_the_last_line_is_found(tmp_path: Path, end: str) -> None:
    path = written(tmp_path, f'a,r,b\nc,r,"d{end}', "facts.csv")
    assert complaint(path).startswith("after line 1: unexpected end of data; look for a quote")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ['"d"', 'a 5" disk', '"d ""e"""'])
def test_quotes_in_the_last_line_that_are_right_are_accepted(
    tmp_path: Path, end: str, last: str
) -> None:
    path = written(tmp_path, f'a,r,b{end}"c",r,{last}{end}', "facts.csv")
    assert read_graph(path).num_triples == 2


def test_a_csv_file_with_tabs_is_not_cut_at_the_commas_of_its_names(tmp_path: Path) -> None:
    path = written(tmp_path, "Bonn, Rhine\tin, of\tNRW, Germany\n" * 3, "facts.csv")
    assert facts_of(read_graph(path)) == [("Bonn, Rhine", "in, of", "NRW, Germany")]


def test_a_csv_file_with_a_tab_in_its_names_is_cut_at_commas(tmp_path: Path) -> None:
    path = written(tmp_path, "a\tb,r,c\n" * 3, "facts.csv")
    assert facts_of(read_graph(path)) == [("a\tb", "r", "c")]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert complaint(tmp_path / "facts.tsv") == "does not exist; check the path"


@pytest.mark.parametrize("text", ["", "\n\n", "head\trelation\ttail\n"])
def test_a_file_without_facts_is_an_error(tmp_path: Path, text: str) -> None:
    assert "fact" in complaint(written(tmp_path, text))


def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = written(tmp_path, "from\tis\tto\na\tr\tb\n")
    said = complaint(path, ReadOptions(columns=("from", "kind", "to")))
    assert said == ": no column named 'kind'; the columns are 'from', 'is', 'to'"


def test_a_position_outside_the_table_is_named(tmp_path: Path) -> None:
    said = complaint(written(tmp_path, "a\tr\tb\n"), ReadOptions(columns=(1, 2, 3)))
    assert said == ": there is no column at position 3; it has 3 columns, counted from 0"


def test_one_column_cannot_be_head_and_tail(tmp_path: Path) -> None:
    said = complaint(written(tmp_path, "a\tr\tb\n"), ReadOptions(columns=(0, 1, 0)))
    assert "three different columns" in said


def test_unclear_columns_under_a_header_are_listed(tmp_path: Path) -> None:
    path = written(tmp_path, "w\tx\ty\tz\n1\t2\t3\t4\n")
    assert "among 'w', 'x', 'y', 'z'" in complaint(path, ReadOptions(header=True))


@pytest.mark.parametrize("header", ["", "head, relation, tail\n"])
def test_a_blank_behind_every_comma_is_no_part_of_a_name(tmp_path: Path, header: str) -> None:
    (tmp_path / "graph.csv").write_text(f"{header}n0, likes, n1\nn1, likes, n2\n")
    graph = read_graph(tmp_path / "graph.csv")
    assert graph.names is not None
    assert graph.names.nodes.to_pylist() == ["n0", "n1", "n2"]


def test_a_blank_before_a_quote_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.csv").write_text('"n0", "likes", "n1"\n"n1", "likes", "n2"\n')
    with pytest.raises(InputError, match="a blank between a delimiter and a quote"):
        read_graph(tmp_path / "graph.csv")


def test_a_fourth_column_in_every_line_asks_which_three_are_meant(tmp_path: Path) -> None:
    (tmp_path / "graph.tsv").write_text("a\tr\tb\t0.5\nb\tr\tc\t0.7\n")
    with pytest.raises(InputError, match=r"every line has 4 columns .* --columns 0,1,2$"):
        read_graph(tmp_path / "graph.tsv")
    assert read_graph(tmp_path / "graph.tsv", columns="0,1,2").num_triples == 2


def test_two_columns_in_every_line_ask_for_a_relation(tmp_path: Path) -> None:
    (tmp_path / "edges.tsv").write_text("a\tb\nb\tc\n")
    with pytest.raises(InputError, match=r"every line has 2 columns .* add a column with its name"):
        read_graph(tmp_path / "edges.tsv")
