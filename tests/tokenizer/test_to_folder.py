"""Tokenizing into a folder writes the bytes of the table in memory."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodepiece.graph import fact_blocks, nearest
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.tokenizer import token_files
from nodepiece.tokenizer.array_file import array_file
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.similarity import count_sharing
from nodepiece.tokenizer.storage import save_tokens
from nodepiece.tokenizer.to_folder import tokenize_into
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary


@st.composite
def graphs(draw: st.DrawFn) -> KnowledgeGraph:
    """Skewed degrees, many components or long chains; loops and parallel facts abound."""
    num_nodes, num_relations = draw(st.integers(3, 60)), draw(st.integers(1, 5))
    num_facts = draw(st.integers(0, 3 * num_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    facts = rng.integers((num_nodes, num_relations, num_nodes), size=(num_facts, 3), dtype=np.int32)
    shape = draw(st.sampled_from(["hubs", "uniform", "chain"]))
    if shape == "hubs":
        facts[:, 2] %= 2
    if shape == "chain":
        facts[:, 2] = np.minimum(facts[:, 0] + 1, num_nodes - 1)
    names = Names.of([f"n{i}" for i in range(num_nodes)], [f"r{i}" for i in range(num_relations)])
    return KnowledgeGraph(facts, num_nodes, num_relations, draw(st.sampled_from([None, names])))


@st.composite
def any_settings(draw: st.DrawFn) -> TokenizerSettings:
    k = draw(st.integers(0, 3))
    return TokenizerSettings(
        num_anchors=3,
        anchors_per_node=k,
        relations_per_node=draw(st.integers(0 if k else 1, 4)),
        select=draw(st.sampled_from(["nearest", "random"])),
        ties=draw(st.sampled_from(["per-node", "global"])),
        relation_order=draw(st.sampled_from(["ascending", "random"])),
        distances=draw(st.booleans()),
        disconnected=draw(st.sampled_from(["token", "anchor"])),
    )


def written_in_memory(graph: KnowledgeGraph, chosen: TokenizerSettings, folder: Path) -> int:
    rng = np.random.default_rng(7)
    vocabulary = fit_vocabulary(graph, chosen, rng=rng)
    table = tokenize(graph, vocabulary, rng=rng)
    save_tokens(table, folder)
    return count_sharing(table)


def written_in_blocks(graph: KnowledgeGraph, chosen: TokenizerSettings, folder: Path) -> int:
    folder.mkdir()
    written = tokenize_into(folder, graph, chosen, rng=np.random.default_rng(7))
    return written.num_sharing


def all_bytes(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def assert_same(graph: KnowledgeGraph, chosen: TokenizerSettings) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        sharing = written_in_memory(graph, chosen, folder / "memory")
        assert written_in_blocks(graph, chosen, folder / "blocks") == sharing
        assert all_bytes(folder / "blocks") == all_bytes(folder / "memory")


@settings(max_examples=100, deadline=None)
@given(graphs(), any_settings())
def test_the_folder_has_the_bytes_of_the_table_in_memory(
    graph: KnowledgeGraph, chosen: TokenizerSettings
) -> None:
    assert_same(graph, chosen)


@pytest.mark.parametrize("ties", ["per-node", "global"])
def test_the_size_of_blocks_changes_nothing(ties: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    facts = rng.integers((300, 6, 300), size=(700, 3), dtype=np.int32)
    facts[:200, 2] %= 3
    graph = KnowledgeGraph(facts, 310, 6)
    chosen = TokenizerSettings(num_anchors=20, anchors_per_node=4, relations_per_node=3, ties=ties)
    with TemporaryDirectory() as name:
        written_in_memory(graph, chosen, Path(name) / "memory")
        monkeypatch.setattr(token_files, "BLOCK_NODES", 17)
        monkeypatch.setattr(nearest, "BLOCK_NODES", 13)
        monkeypatch.setattr(fact_blocks.fact_blocks, "__defaults__", (29,))
        written_in_blocks(graph, chosen, Path(name) / "blocks")
        assert all_bytes(Path(name) / "blocks") == all_bytes(Path(name) / "memory")


def test_distances_beyond_a_byte_are_kept() -> None:
    chain = np.array([[node, 0, node + 1] for node in range(600)])
    chosen = TokenizerSettings(
        num_anchors=1, anchors_per_node=1, mix={"random": 1.0}, relations_per_node=1
    )
    graph = KnowledgeGraph(chain, 601, 1)
    assert_same(graph, chosen)
    with TemporaryDirectory() as name:
        written_in_blocks(graph, chosen, Path(name) / "blocks")
        assert np.load(Path(name) / "blocks" / "tokens" / "distances.npy").max() > 300


def test_anchors_and_relations_beyond_two_bytes_are_kept() -> None:
    num_nodes = 2**16 + 40
    ring = np.arange(num_nodes, dtype=np.int32)
    facts: IntArray = np.stack([ring, ring % (2**15 + 10), (ring + 1) % num_nodes], axis=1)
    graph = KnowledgeGraph(facts, num_nodes, 2**15 + 10)
    chosen = TokenizerSettings(num_anchors=2**16 + 20, anchors_per_node=2, relations_per_node=2)
    assert_same(graph, chosen)


def test_an_array_file_must_get_all_its_rows(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="was to have 3 rows and has 2"),
        array_file(tmp_path / "rows.npy", (3, 2), np.int32) as append,
    ):
        append(np.zeros((2, 2), np.int32))
