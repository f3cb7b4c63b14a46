"""Headers: which first lines are one, which are a fact, and which are refused."""

from pathlib import Path

import pytest
from tests.data.written_facts import facts_of, written

from nodepiece.data.read import read_graph, read_graph_with_report
from nodepiece.errors import InputError

FACT = [("Berlin", "capital_of", "Germany")]


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        read_graph(path, **options)  # type: ignore[arg-type]
    return str(caught.value).removeprefix(str(path)).strip()


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("source,target,relationship", "Berlin,Germany,capital_of"),
        ("src,rel,dst", "Berlin,capital_of,Germany"),
        ("start,end,type", "Berlin,Germany,capital_of"),
        ("entity1,relation,entity2", "Berlin,capital_of,Germany"),
        ("dst,src,label", "Germany,Berlin,capital_of"),
        (":START_ID,:END_ID,:TYPE", "Berlin,Germany,capital_of"),
    ],
)
def test_a_header_is_no_fact_and_says_where_the_relation_is(
    tmp_path: Path, header: str, line: str
) -> None:
    path = written(tmp_path, f"{header}\n{line}\n", "facts.csv")
    assert facts_of(read_graph(path)) == FACT


def test_the_columns_taken_are_in_the_report(tmp_path: Path) -> None:
    path = written(tmp_path, "dst,src,label\nGermany,Berlin,capital_of\n", "facts.csv")
    report = read_graph_with_report(path)[1]
    assert report.columns == ("src", "label", "dst")
    assert "head, relation, tail are 'src', 'label', 'dst'" in report.sentences()[0]


def test_a_first_line_with_two_known_names_is_refused_with_both_readings(tmp_path: Path) -> None:
    path = written(tmp_path, "source,target,is\nBerlin,Germany,capital_of\n", "facts.csv")
    assert refusal(path) == (
        "line 1 may name the columns or be a fact: if it names them (head 'source', relation 'is', "
        "tail 'target'), give --columns source,is,target; if it is a fact (head 'source', relation "
        "'target', tail 'is'), give --no-header"
    )


def test_what_the_refusal_says_to_type_reads_the_file_either_way(tmp_path: Path) -> None:
    path = written(tmp_path, "source,target,is\nBerlin,Germany,capital_of\n", "facts.csv")
    assert facts_of(read_graph(path, columns="source,is,target")) == FACT
    assert facts_of(read_graph(path, header=False)) == [
        ("source", "target", "is"),
        ("Berlin", "Germany", "capital_of"),
    ]


def test_two_known_names_that_the_columns_have_again_are_a_fact(tmp_path: Path) -> None:
    path = written(tmp_path, "source\tis\ttarget\nsink\tis\ttarget\n")
    assert facts_of(read_graph(path)) == [("source", "is", "target"), ("sink", "is", "target")]


def test_a_full_header_whose_names_come_again_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "source\ttype\ttarget\na\ttype\tb\n")
    assert "may name the columns or be a fact" in refusal(path)


def test_letters_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    assert "give --columns s,r,t" in refusal(written(tmp_path, "s\tr\tt\n"))


def test_columns_by_number_do_not_make_a_fact_of_the_header(tmp_path: Path) -> None:
    text = "id,source,target,relationship\n7,Berlin,Germany,capital_of\n"
    path = written(tmp_path, text, "facts.csv")
    assert facts_of(read_graph(path, columns=(1, 3, 2))) == FACT


def test_columns_by_number_over_a_doubtful_first_line_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "source,target,is\nBerlin,Germany,capital_of\n", "facts.csv")
    assert "give --header if it names them, --no-header" in refusal(path, columns=(0, 2, 1))
    assert facts_of(read_graph(path, columns=(0, 2, 1), header=True)) == FACT


def test_columns_by_name_without_a_header_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a,r,b\n", "facts.csv")
    assert "columns are given by name" in refusal(path, columns="a,r,b", header=False)


def test_a_header_with_the_relation_elsewhere_is_not_read_by_position(tmp_path: Path) -> None:
    path = written(tmp_path, "source,target,is\nBerlin,Germany,capital_of\n", "facts.csv")
    assert "give --columns source,is,target" in refusal(path, header=True)


def test_a_last_column_that_looks_like_relations_is_remarked_on(tmp_path: Path) -> None:
    path = written(tmp_path, "".join(f"a{i}\tb{i}\tknows\n" for i in range(30)))
    graph, report = read_graph_with_report(path)
    assert graph.num_relations == 30
    assert report.sentences()[-1] == (
        "column 1 has 30 names and column 2 only 1: if column 2 is the relation, give "
        "--columns 0,2,1"
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('head\trelation\ttail\n"the ""one"""\tis\tb\n', 'the "one"'),  # as pandas writes it
        ('"head"\t"relation"\t"tail"\n"one"\t"is"\t"b"\n', "one"),
        ('1\t"is"\t"b"\n', "1"),
        ('"a\tb"\tis\tc\nd\tis\te\n', "a\tb"),
        ('"a\nb"\tis\tc\nd\tis\te\n', "a\nb"),
    ],
)
def test_quotes_as_csv_has_them_are_not_part_of_names_in_tsv(
    tmp_path: Path, text: str, name: str
) -> None:
    assert facts_of(read_graph(written(tmp_path, text)))[0][0] == name


def test_a_name_in_quotes_among_names_without_keeps_them(tmp_path: Path) -> None:
    path = written(tmp_path, '"Heroes"\tby\tDavid Bowie\n')
    assert facts_of(read_graph(path)) == [('"Heroes"', "by", "David Bowie")]


def test_quotes_of_both_kinds_are_refused_with_what_to_type(tmp_path: Path) -> None:
    path = written(tmp_path, '"Heroes"\tby\tBowie\n"the ""one"""\tis\tb\n')
    said = refusal(path)
    assert "give --format tsv" in said and "give --format csv --delimiter tab" in said
    assert facts_of(read_graph(path, format="tsv"))[1][0] == '"the ""one"""'
    assert facts_of(read_graph(path, format="csv", delimiter="tab"))[1][0] == 'the "one"'


def test_quoted_cells_after_the_first_lines_are_remarked_on(tmp_path: Path) -> None:
    lines = "".join(f"node number {i}\tis\tb\n" for i in range(60_000))
    path = written(tmp_path, lines + '"the ""one"""\tis\tb\n')
    doubts = read_graph_with_report(path)[1].doubts
    assert doubts[0].startswith('names such as "the ""one""" keep their quotes')


def test_two_known_names_among_four_columns_are_refused_with_the_readings(tmp_path: Path) -> None:
    text = "id,source,target,how,why\n7,Berlin,Germany,capital_of,?\n"
    path = written(tmp_path, text, "facts.csv")
    assert refusal(path) == (
        "line 1 may name the columns or be a fact: if it names them (head 'source', relation "
        "'how', tail 'target'), give --columns source,how,target or (head 'source', relation "
        "'why', tail 'target'), give --columns source,why,target; if it is a fact (head 'id', "
        "relation 'source', tail 'target'), give --no-header --columns 0,1,2"
    )
    assert facts_of(read_graph(path, columns="source,how,target")) == FACT


@pytest.mark.parametrize(
    "header", ["source,target,weight", "source,target", "id,source,target,score", "to,year,from"]
)
def test_a_header_without_a_relation_does_not_take_a_number_for_it(
    tmp_path: Path, header: str
) -> None:
    values = ",".join("7" for _ in header.split(","))
    said = refusal(written(tmp_path, f"{header}\n{values}\n", "facts.csv"))
    assert "but none for the relation" in said and "--columns HEAD,RELATION,TAIL" in said


@pytest.mark.parametrize(
    "text", ["n1,n2,0.53\nn2,n3,1\n", "a,b,1e-5\n", "node1,node2,weight\nn1,n2,.5\nn2,n3,-2.\n"]
)
def test_an_edge_list_with_weights_is_refused_with_both_readings(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text, "edges.csv")
    said = refusal(path)
    assert "If they are weights, the file has no relations" in said
    assert said.endswith("if they are nodes, give --columns 0,1,2")
    assert read_graph(path, columns=(0, 1, 2)).num_triples == text.count("\n")


def test_an_edge_list_with_whole_numbers_is_remarked_on(tmp_path: Path) -> None:
    path = written(tmp_path, "ann,bob,3\nbob,eve,1\neve,ann,7\n", "edges.csv")
    (doubt,) = read_graph_with_report(path)[1].doubts
    assert "column 2 has numbers only" in doubt and "the file has no relations" in doubt


@pytest.mark.parametrize("text", ["1,2,3\n3,2,1\n", "ann,born,1990\nbob,born,1991\n"])
def test_numbers_for_nodes_are_not_remarked_on(tmp_path: Path, text: str) -> None:
    assert read_graph_with_report(written(tmp_path, text, "facts.csv"))[1].doubts == ()
