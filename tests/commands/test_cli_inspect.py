"""nodepiece inspect, export, demo, and what the command line says of itself."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from nodepiece import __version__

if TYPE_CHECKING:
    from tests.commands.conftest import Nodepiece


def test_inspect_shows_sizes_distances_and_memory(nodepiece: Nodepiece, vocabulary: Path) -> None:
    ran = nodepiece("inspect", vocabulary, "--dim", 50)

    assert ran.status == 0
    assert ran.err == ""
    assert "7: 1 anchor, 2 relations both ways, 2 special" in ran.out
    # The anchor itself, and the two others of its part of the graph; dan and eve reach none.
    assert "0 hops  1  33.3 %" in ran.out
    assert "1 hop  2  66.7 %" in ran.out
    assert "2 (40.0 %), of these 2 without any" in ran.out
    assert "Memory for vectors of 50 numbers" in ran.out
    assert "1.0 kB" in ran.out  # 5 nodes * 50 numbers * 4 bytes


def test_inspect_as_json_is_json_and_nothing_else(nodepiece: Nodepiece, vocabulary: Path) -> None:
    ran = nodepiece("inspect", vocabulary, "--json", "--dim", 50)

    content = json.loads(ran.out)
    assert content["num_pieces"] == 7
    assert content["statistics"]["distance_histogram"] == {"0": 1, "1": 2}
    assert content["statistics"]["num_disconnected"] == 2
    assert content["memory"]["full_embedding"] == 1000
    assert content["settings"]["anchors_per_node"] == 1


def test_inspect_draws_the_distances(nodepiece: Nodepiece, vocabulary: Path) -> None:
    ran = nodepiece("inspect", vocabulary, "--json", "--plot", "distances.png")

    assert ran.status == 0
    json.loads(ran.out)
    assert Path("distances.png").read_bytes().startswith(b"\x89PNG")


def test_inspect_shows_a_node_and_who_is_like_it(nodepiece: Nodepiece, vocabulary: Path) -> None:
    ran = nodepiece("inspect", vocabulary, "--node", "ada", "--json")

    described = json.loads(ran.out)
    assert described["node"] == "ada"
    assert described["anchors"] in (["ada"], ["bob"])
    assert described["distances"] == [0 if described["anchors"] == ["ada"] else 1]
    assert described["relations"] == ["knows", "inverse of knows", "inverse of likes"]
    assert described["same_pieces"] == []
    assert described["most_pieces_shared"]["bob"] == 2  # knows, inverse of knows


def test_a_disconnected_node_is_shown_without_anchors(
    nodepiece: Nodepiece, vocabulary: Path
) -> None:
    ran = nodepiece("inspect", vocabulary, "--node", "dan")

    assert "none: no anchor can be reached" in ran.out
    assert "likes" in ran.out
    assert "[PAD]" not in ran.out


def test_nodes_with_the_same_pieces_are_shown_together(nodepiece: Nodepiece) -> None:
    Path("star.tsv").write_text("".join(f"leaf {i}\tin\tcentre\n" for i in range(4)))
    options = ("--anchors", 1, "--anchors-per-node", 1, "--mix", "degree=1")
    ran = nodepiece("tokenize", "star.tsv", "-o", "star", *options)
    assert "4 nodes have exactly the same pieces as another node" in ran.out

    ran = nodepiece("inspect", "star", "--node", "leaf 1")

    assert "all 2 pieces shared by     leaf 0, leaf 2, leaf 3" in ran.out


def test_export_writes_pieces_by_name(nodepiece: Nodepiece, vocabulary: Path) -> None:
    ran = nodepiece("export", vocabulary, "tokens.parquet")

    assert ran.status == 0
    assert "wrote tokens.parquet: 5 nodes" in ran.out
    table = pq.read_table("tokens.parquet")
    assert table.column_names == ["node", "anchors", "distances", "relations"]
    rows = {row["node"]: row for row in table.to_pylist()}
    assert list(rows) == ["ada", "bob", "cy", "dan", "eve"]
    assert rows["cy"]["relations"] == ["likes", "inverse of knows"]  # without [PAD]
    assert rows["cy"]["distances"] == [1]
    assert rows["dan"] == {"node": "dan", "anchors": [], "distances": [], "relations": ["likes"]}


def test_export_of_tokens_without_distances_has_null_distances(
    nodepiece: Nodepiece, facts: Path
) -> None:
    options = ("--anchors", 1, "--anchors-per-node", 1, "--no-distances")
    nodepiece("tokenize", facts, "-o", "out", *options)
    nodepiece("export", "out", "tokens.parquet")

    assert pq.read_table("tokens.parquet")["distances"].to_pylist() == [None] * 5


def test_export_writes_the_format_of_the_ending(nodepiece: Nodepiece, vocabulary: Path) -> None:
    assert nodepiece("export", vocabulary, "tokens.jsonl").status == 0
    assert nodepiece("export", vocabulary, "tokens.npy").status == 0
    refused = nodepiece("export", vocabulary, "tokens.xls")

    first = json.loads(Path("tokens.jsonl").read_text().splitlines()[0])
    assert first["node"] == "ada" and first["relations"][0] == "knows"
    assert np.load("tokens.npy").shape == (5, 1 + 1 + 3)
    assert refused.status == 2 and "use one of .parquet, .csv, .tsv, .jsonl, .npy" in refused.err


def test_version(nodepiece: Nodepiece) -> None:
    assert nodepiece("--version").out == f"nodepiece {__version__}\n"


@pytest.mark.parametrize(
    "command", ["demo", "tokenize", "inspect", "export", "train", "evaluate", "predict", "datasets"]
)
def test_every_command_has_help_with_an_example(nodepiece: Nodepiece, command: str) -> None:
    ran = nodepiece(command, "--help")

    assert ran.status == 0
    assert f"Example: nodepiece {command}" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_paragraph_of_help_fills_its_lines(nodepiece: Nodepiece) -> None:
    shown = [line.strip() for line in nodepiece("update", "--help").out.splitlines()]
    start = next(row for row, line in enumerate(shown) if line.startswith("Pieces and vectors"))
    paragraph = shown[start : shown.index("", start)]

    for line, following in itertools.pairwise(paragraph):
        assert len(line) + len(" " + following.split()[0]) > 78
