"""A dataset without one of its nodes."""

import numpy as np
import pytest

from nodepiece.data.dataset import Dataset
from nodepiece.data.hold_out import hold_out
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

#  a --r--> b --r--> c     b --s--> d, which has no other fact     a --s--> c
NAMES = Names.of(["a", "b", "c", "d"], ["r", "s"])
DATASET = Dataset(
    "letters",
    KnowledgeGraph(np.array([[0, 0, 1], [1, 0, 2], [1, 1, 3], [0, 1, 2]], np.int32), 4, 2, NAMES),
    valid=np.array([[2, 0, 1], [2, 1, 0]], np.int32),
    test=np.array([[0, 1, 3], [2, 1, 2]], np.int32),
    num_unseen={"valid": 0, "test": 0},
)


def names_of(dataset: Dataset, split: str) -> list[tuple[str, str, str]]:
    names = dataset.names
    return [
        (names.node(head), names.relation(relation), names.node(tail))
        for head, relation, tail in dataset.part(split).tolist()
    ]


def test_the_facts_that_name_it_go_and_nodes_that_occur_only_with_it() -> None:
    rest, _ = hold_out(DATASET, "b")
    assert rest.names.nodes.to_pylist() == ["a", "c"]
    assert rest.names.relations.to_pylist() == ["s"]
    assert names_of(rest, "train") == [("a", "s", "c")]


def test_facts_of_valid_and_test_with_what_went_go_as_well() -> None:
    rest, _ = hold_out(DATASET, "b")
    assert names_of(rest, "valid") == [("c", "s", "a")]
    assert names_of(rest, "test") == [("c", "s", "c")]  # (a, s, d) named d


def test_its_own_facts_of_all_splits_are_returned_by_name() -> None:
    _, facts = hold_out(DATASET, "b")
    assert facts == [("a", "r", "b"), ("b", "r", "c"), ("b", "s", "d"), ("c", "r", "b")]


@pytest.mark.parametrize(("node", "number"), [("a", 4), ("c", 5), ("d", 2)])
def test_a_node_may_be_head_or_tail(node: str, number: int) -> None:
    rest, facts = hold_out(DATASET, node)
    assert len(facts) == number
    assert node not in rest.names.nodes.to_pylist()
