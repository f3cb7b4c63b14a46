"""Facts by ids in an array file."""

from pathlib import Path

import numpy as np
import pytest

from nodepiece.data.blocks import DETECT_EVERYTHING
from nodepiece.data.mapped import read_mapped_graph
from nodepiece.data.open import open_graph
from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph

FACTS = np.array([[0, 1, 4], [2, 0, 0], [4, 1, 2]], dtype=np.int32)


def test_facts_stay_on_disk_and_make_the_same_edges(tmp_path: Path) -> None:
    np.save(tmp_path / "facts.npy", FACTS)
    graph, _ = open_graph(str(tmp_path / "facts.npy"), options=DETECT_EVERYTHING, data=None)
    assert (graph.num_nodes, graph.num_relations, graph.names) == (5, 2, None)
    base = graph.triples
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    edges, expected = build_adjacency(graph), build_adjacency(KnowledgeGraph(FACTS, 5, 2))
    np.testing.assert_array_equal(edges.offsets, expected.offsets)
    np.testing.assert_array_equal(edges.neighbours, expected.neighbours)
    np.testing.assert_array_equal(edges.relations, expected.relations)


@pytest.mark.parametrize(
    "content", [FACTS.astype(np.int64), FACTS[:, :2], FACTS.ravel(), FACTS[:0], -FACTS]
)
def test_other_arrays_are_refused(tmp_path: Path, content: np.ndarray) -> None:
    np.save(tmp_path / "facts.npy", content)
    with pytest.raises(InputError):
        read_mapped_graph(tmp_path / "facts.npy")


def test_a_file_that_is_no_array_is_refused(tmp_path: Path) -> None:
    (tmp_path / "facts.npy").write_text("a\tb\tc\n")
    with pytest.raises(InputError, match="cannot be read as an array"):
        read_mapped_graph(tmp_path / "facts.npy")
