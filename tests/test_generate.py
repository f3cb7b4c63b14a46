"""The graphs that measurements are made on have the shape that they are said to have."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks import generate_ids
from benchmarks.generate import HUB_SHARE, generate_graph, write_graph
from benchmarks.generate_ids import write_ids
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph

NUM_NODES, NUM_EDGES, NUM_RELATIONS, HUB_DEGREE = 2_000, 20_000, 12, 600


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return generate(seed=0)


def generate(seed: int) -> KnowledgeGraph:
    rng = np.random.default_rng(seed)
    return generate_graph(NUM_NODES, NUM_EDGES, NUM_RELATIONS, hub_degree=HUB_DEGREE, rng=rng)


def test_it_has_the_number_of_distinct_facts_asked_for(graph: KnowledgeGraph) -> None:
    assert len(np.unique(graph.triples, axis=0)) == NUM_EDGES


def test_every_node_occurs_and_none_points_to_itself(graph: KnowledgeGraph) -> None:
    head, _, tail = graph.triples.T
    assert len(np.union1d(head, tail)) == NUM_NODES
    assert (head != tail).all()


def test_the_largest_hub_has_about_the_degree_asked_for(graph: KnowledgeGraph) -> None:
    degree = np.bincount(graph.triples[:, [0, 2]].ravel())
    assert degree.max() == pytest.approx(HUB_DEGREE, rel=0.15)
    assert np.median(degree) < degree.max() / 20


def test_relations_follow_zipfs_law(graph: KnowledgeGraph) -> None:
    count = np.bincount(graph.triples[:, 1])
    assert len(count) == NUM_RELATIONS
    assert count[0] / count[1] == pytest.approx(2, rel=0.15)
    assert count[0] / count[3] == pytest.approx(4, rel=0.15)


def test_almost_all_nodes_are_in_one_component(graph: KnowledgeGraph) -> None:
    head, _, tail = graph.triples.T
    edges = coo_array((np.ones(NUM_EDGES), (head, tail)), shape=(NUM_NODES, NUM_NODES))
    num_components, component = connected_components(edges, directed=False)
    assert num_components == 1 + 20 // 4  # 1 % of the nodes are in small components of 4
    assert np.bincount(component).max() == NUM_NODES - 20


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        write_graph(generate(seed), tmp_path / name)
    one, two, other = ((tmp_path / name).read_bytes() for name in ("one", "two", "other"))
    assert one == two
    assert one != other


def test_the_file_names_nodes_and_relations_apart(tmp_path: Path) -> None:
    triples = np.array([[0, 1, 2], [2, 0, 1]], dtype=np.int32)
    write_graph(KnowledgeGraph(triples, 3, 2), tmp_path / "graph.tsv")
    assert (tmp_path / "graph.tsv").read_text() == "Q0\tP1\tQ2\nQ2\tP0\tQ1\n"


@pytest.mark.parametrize(
    ("num_edges", "hub_degree", "reason"),
    [(1_999, 600, "more edges"), (20_000, 5, "is no hub"), (20_000, 20_000, "below 1")],
)
def test_impossible_shapes_are_refused(num_edges: int, hub_degree: int, reason: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=reason):
        generate_graph(NUM_NODES, num_edges, NUM_RELATIONS, hub_degree=hub_degree, rng=rng)


def read_ids(path: Path) -> np.ndarray:
    table = pq.read_table(path)
    return np.stack([table[name].to_numpy() for name in ("head", "relation", "tail")], axis=1)


def test_ids_in_a_file_are_those_of_a_skewed_graph_in_which_every_node_occurs(
    tmp_path: Path,
) -> None:
    write_ids(2_000, 20_000, tmp_path / "ids.parquet", num_relations=12)
    facts = read_ids(tmp_path / "ids.parquet")
    assert facts.shape == (20_000, 3) and (facts[:, 0] != facts[:, 2]).all()
    assert np.array_equal(np.unique(facts[:, 0]), np.arange(2_000))
    assert np.array_equal(np.unique(facts[:, 1]), np.arange(12))
    degree = np.bincount(facts[:, [0, 2]].ravel())
    assert degree.max() == pytest.approx(HUB_SHARE * 20_000, rel=0.25)
    assert np.median(degree) < degree.max() / 20


def test_the_size_of_blocks_does_not_change_ids_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_ids(100, 900, tmp_path / "whole.parquet")
    monkeypatch.setattr(generate_ids, "BLOCK_FACTS", 70)
    write_ids(100, 900, tmp_path / "parts.parquet")
    parts, whole = read_ids(tmp_path / "parts.parquet"), read_ids(tmp_path / "whole.parquet")
    assert np.array_equal(parts, whole)
