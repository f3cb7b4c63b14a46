"""What people call the three columns."""

import pytest

from nodepiece.data.blocks import ReadOptions
from nodepiece.data.column_names import possible_columns
from nodepiece.data.columns import choose_columns
from nodepiece.errors import InputError


@pytest.mark.parametrize(
    "header",
    [
        "head,relation,tail",
        "Subject,Predicate,Object",
        "source,relationship,target",
        "src,rel,dst",
        "from,label,to",
        "start,type,end",
        "entity1,relation,entity2",
        "e1,rel,e2",
        "node1,label,node2",
        "START_ID,TYPE,END_ID",
        ":START_ID,:TYPE,:END_ID",
        "id:START_ID(Person),:TYPE,:END_ID(City)",
        "~from,~label,~to",
        "?s,?p,?o",
        "rdf:subject,rdf:predicate,rdf:object",
        "Head Entity,relation_type,Tail Entity",
        "startNode,edgeType,endNode",
        "h,r,t",
        "lhs,property,rhs",
        "head,predicate,object",
    ],
)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2)])
def test_the_usual_names_are_known_in_any_order(header: str, order: tuple[int, ...]) -> None:
    names = header.split(",")
    expected = tuple(order.index(role) for role in range(3))
    assert possible_columns([names[place] for place in order]) == [expected]


@pytest.mark.parametrize(
    "fact",
    [
        "Berlin,capital_of,Germany",
        "source,is,Nile",
        "a,type,b",
        "n1,r,n2",
        "e1,knows,e2",
        "a,b,c",
        "ex:source,rdf:type,ex:target",
    ],
)
def test_facts_are_not_taken_for_names_of_columns(fact: str) -> None:
    assert possible_columns(fact.split(",")) == []


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("id,subject,predicate,object,relation,source", (1, 2, 3)),
        ("subject,subject_label,predicate,predicate_label,object,object_label", (0, 2, 4)),
        (",head,relation,tail", (1, 2, 3)),
        ("source,target,type,weight", (0, 2, 1)),
        ("from,to,relation,type,label", (0, 2, 1)),
    ],
)
def test_names_that_go_together_are_found_among_others(
    header: str, expected: tuple[int, int, int]
) -> None:
    assert possible_columns(header.split(",")) == [expected]


@pytest.mark.parametrize(
    ("header", "ways"),
    [
        (
            "Source,Target,Type,Id,Label",
            "--columns Source,Type,Target or --columns Source,Label,Target",
        ),
        (
            "head_id,head_name,relation,tail_id,tail_name",
            "--columns head_id,relation,tail_id or --columns head_name,relation,tail_name",
        ),
        ("source,predicate,relation,target", "--columns source,predicate,target or"),
    ],
)
def test_two_ways_to_read_the_columns_are_shown_side_by_side(header: str, ways: str) -> None:
    with pytest.raises(InputError, match="more than one way") as caught:
        choose_columns(header.split(","), None, "x.csv")
    assert ways in str(caught.value)


def test_many_columns_of_one_name_are_refused_quickly() -> None:
    with pytest.raises(InputError, match="more than one way"):
        choose_columns(["source", "relation", "target"] * 10_000, None, "x.csv")


def test_a_name_asked_for_may_differ_in_case_and_blanks() -> None:
    names = ["Start Node", "kind of edge", "End_Node"]
    columns = ReadOptions(columns="start_node,Kind Of Edge,end node").chosen
    assert choose_columns(names, columns, "x.csv") == (0, 1, 2)


def test_a_column_with_a_comma_in_its_name_is_asked_for_in_quotes() -> None:
    assert ReadOptions(columns='"a, b",1,c').chosen == ("a, b", 1, "c")


@pytest.mark.parametrize("columns", ["", "a,b", "a,b,c,d", ("a", 1.5, "b"), (True, 1, 2)])
def test_columns_are_three_names_or_positions(columns: object) -> None:
    with pytest.raises(InputError, match="three names or positions"):
        ReadOptions(columns=columns)  # type: ignore[arg-type]
