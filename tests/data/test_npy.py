"""Facts by ids in a NumPy file."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from tests.data.written_facts import facts_of

from nodepiece.data.blocks import DETECT_EVERYTHING
from nodepiece.data.npy import read_mapped_graph
from nodepiece.data.open import open_graph
from nodepiece.data.read import read_dataset, read_graph
from nodepiece.errors import InputError
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.knowledge_graph import KnowledgeGraph

FACTS = np.array([[0, 1, 4], [2, 0, 0], [4, 1, 2]], dtype=np.int32)
BY_NAME = [("0", "1", "4"), ("2", "0", "0"), ("4", "1", "2")]


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


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_a_reader_of_any_format_takes_ids_for_names(tmp_path: Path, dtype: type) -> None:
    np.save(tmp_path / "facts.npy", FACTS.astype(dtype))
    assert facts_of(read_graph(tmp_path / "facts.npy")) == BY_NAME


def test_columns_are_chosen_by_position(tmp_path: Path) -> None:
    np.save(tmp_path / "facts.npy", FACTS[:, [0, 2, 1]])
    assert facts_of(read_graph(tmp_path / "facts.npy", columns="0,2,1")) == BY_NAME


def test_a_compressed_file_without_an_ending_is_recognized(tmp_path: Path) -> None:
    np.save(tmp_path / "facts.npy", FACTS)
    (tmp_path / "facts").write_bytes(gzip.compress((tmp_path / "facts.npy").read_bytes()))
    assert facts_of(read_graph(tmp_path / "facts")) == BY_NAME


def test_a_folder_may_have_a_file_for_each_split(tmp_path: Path) -> None:
    np.save(tmp_path / "train.npy", FACTS)
    np.save(tmp_path / "test.npy", FACTS[:1, [2, 1, 0]])
    dataset = read_dataset(tmp_path)
    names = dataset.names
    assert [names.node(node) for node in dataset.test[0, ::2]] == ["4", "0"]


@pytest.mark.parametrize(
    "content", [FACTS.astype(np.int64), FACTS[:, :2], FACTS.ravel(), FACTS[:0], -FACTS]
)
def test_other_arrays_are_not_mapped(tmp_path: Path, content: np.ndarray) -> None:
    np.save(tmp_path / "facts.npy", content)
    with pytest.raises(InputError):
        read_mapped_graph(tmp_path / "facts.npy")


@pytest.mark.parametrize(
    "content", [FACTS.astype(np.float32), FACTS[:, :2], FACTS.ravel(), FACTS[:0], -FACTS]
)
def test_arrays_that_hold_no_facts_are_refused(tmp_path: Path, content: np.ndarray) -> None:
    np.save(tmp_path / "facts.npy", content)
    with pytest.raises(InputError, match=r"facts\.npy"):
        read_graph(tmp_path / "facts.npy")


def test_a_file_that_is_no_array_is_refused(tmp_path: Path) -> None:
    (tmp_path / "facts.npy").write_text("a\tb\tc\n")
    for read in (read_mapped_graph, read_graph):
        with pytest.raises(InputError, match="cannot be read as an array"):
            read(tmp_path / "facts.npy")


def test_an_archive_of_arrays_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "facts.npz", FACTS)
    (tmp_path / "facts.npz").rename(tmp_path / "facts.npy")
    with pytest.raises(InputError, match="cannot be read as an array"):
        read_mapped_graph(tmp_path / "facts.npy")


def test_the_byte_order_of_another_machine_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "graph.npy", np.array([[0, 0, 1], [1, 0, 300]], ">i4"))
    found = facts_of(read_graph(tmp_path / "graph.npy"))
    assert found == [("0", "0", "1"), ("1", "0", "300")]
