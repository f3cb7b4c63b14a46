"""What a graph refuses to be made of."""

import numpy as np
import pytest

from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.graph.names import Names


def test_triples_become_int32_that_cannot_be_written_to() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)
    assert graph.triples.dtype == np.int32 and not graph.triples.flags.writeable


@pytest.mark.parametrize("triple", [[0, 0, 2], [0, 1, 1], [2, 0, 0], [-1, 0, 0], [0, -1, 0]])
def test_ids_outside_the_graph_are_refused_with_an_example(triple: list[int]) -> None:
    triples = np.array([[0, 0, 1], triple])
    with pytest.raises(InputError, match=rf"1 triples, such as \[{triple[0]}, {triple[1]}, "):
        KnowledgeGraph(triples, 2, 1)


def test_an_id_beyond_32_bits_is_refused_before_it_wraps_around() -> None:
    with pytest.raises(InputError, match="outside the graph"):
        KnowledgeGraph(np.array([[2**32, 0, 1]]), 2, 1)


def test_numbers_that_are_not_whole_are_refused() -> None:
    with pytest.raises(InputError, match="whole numbers, got float64"):
        KnowledgeGraph(np.array([[0, np.nan, 1]]), 2, 1)


def test_an_array_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(num_triples, 3\), got \(1, 2\)"):
        KnowledgeGraph(np.array([[0, 1]]), 2, 1)


def test_names_of_another_number_are_refused() -> None:
    with pytest.raises(InputError, match="1 node and 1 relation names do not fit a graph of 2"):
        KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1, Names.of(["a"], ["r"]))


def test_the_inverse_of_relation_r_is_r_plus_the_number_of_relations() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1], [1, 2, 1]]), 2, 3)
    assert with_inverses(graph).tolist() == [[0, 0, 1], [1, 2, 1], [1, 3, 0], [1, 5, 1]]


def test_without_names_nodes_and_relations_go_by_their_ids() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1)
    assert (graph.node_name(1), graph.relation_name(0)) == ("1", "0")
