"""Shared pieces of nodes, and export of tokens by name to Parquet."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.tokenizer import export
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.similarity import count_sharing, nodes_sharing, shared_pieces
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

#   b     c        f - g
#    \   /
#      a - d - e         one relation, from the first letter to the second
TRIPLES = np.array([[0, 0, 1], [0, 0, 2], [0, 0, 3], [3, 0, 4], [5, 0, 6]], dtype=np.int32)


def table_of(names: Names | None, *, distances: bool = True) -> TokenTable:
    """a, with the most facts, is the only anchor; pieces are a, its distance, r and inverse r."""
    graph = KnowledgeGraph(TRIPLES, 7, 1, names)
    settings = TokenizerSettings(
        num_anchors=1,
        anchors_per_node=1,
        relations_per_node=3,
        mix={"degree": 1.0},
        distances=distances,
    )
    rng = np.random.default_rng(0)
    return tokenize(graph, fit_vocabulary(graph, settings, rng=rng), rng=rng)


def test_anchors_count_as_shared_only_at_the_same_distance() -> None:
    # b: a@1, inverse. c the same, d: a@1, r, inverse. e: a@2, inverse. g: inverse. a, f: r.
    assert shared_pieces(table_of(None), 1).tolist() == [0, 2, 2, 2, 1, 0, 1]


def test_padding_and_disconnection_are_nothing_to_share() -> None:
    # f: [DISCONNECTED], r, [PAD], [PAD]
    assert shared_pieces(table_of(None), 5).tolist() == [1, 0, 0, 1, 0, 1, 0]


def test_nodes_with_the_same_pieces_are_counted() -> None:
    assert count_sharing(table_of(None)) == 2  # b and c


def test_nodes_with_the_same_pieces_are_found() -> None:
    sharing = [nodes_sharing(table_of(None), node) for node in range(7)]
    assert sharing == [[], [2], [1], [], [], [], []]


@pytest.mark.parametrize("rows_at_once", [2, 100])
def test_export_is_the_same_in_blocks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(export, "ROWS_AT_ONCE", rows_at_once)

    export.export_tokens(table_of(Names.of(list("abcdefg"), ["r"])), tmp_path / "tokens.parquet")

    file = pq.ParquetFile(tmp_path / "tokens.parquet")
    assert file.num_row_groups == (4 if rows_at_once == 2 else 1)
    assert [tuple(row.values()) for row in file.read().to_pylist()] == [
        ("a", ["a"], [0], ["r"]),
        ("b", ["a"], [1], ["inverse of r"]),
        ("c", ["a"], [1], ["inverse of r"]),
        ("d", ["a"], [1], ["r", "inverse of r"]),
        ("e", ["a"], [2], ["inverse of r"]),
        ("f", [], [], ["r"]),
        ("g", [], [], ["inverse of r"]),
    ]
    file.close()


def test_export_of_a_nameless_graph_gives_ids(tmp_path: Path) -> None:
    export.export_tokens(table_of(None), tmp_path / "tokens.parquet")

    assert pq.read_table(tmp_path / "tokens.parquet").slice(3, 1).to_pylist() == [
        {"node": "3", "anchors": ["0"], "distances": [1], "relations": ["0", "1"]}
    ]
