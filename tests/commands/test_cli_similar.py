"""nodepiece similar: the neighbours of a node, or of all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece


def test_the_neighbours_of_a_node_are_printed(nodepiece: Nodepiece, trained: Path) -> None:
    ran = nodepiece("similar", trained, "--node", "Kenya", "--top", 3)

    lines = [line.split() for line in ran.out.splitlines() if line.strip()]
    assert ran.status == 0 and lines[0] == ["Kenya"]
    assert [line[0] for line in lines[-3:]] == ["1", "2", "3"]
    found = json.loads(nodepiece("similar", trained, "--node", "Kenya", "--json").out)
    assert len(found["neighbours"]) == 10
    assert found["neighbours"][0]["name"] == " ".join(lines[-3][1:-1])


def test_those_of_all_nodes_are_a_table(
    nodepiece: Nodepiece, trained: Path, tmp_path: Path
) -> None:
    output = tmp_path / "neighbours.parquet"

    ran = nodepiece("similar", trained, "--all", "-o", output)

    assert ran.status == 0 and f"wrote {output}: 8,310 rows" in ran.err
    assert pq.read_table(output).column_names == ["node", "neighbour", "similarity", "rank"]


def test_several_nodes_come_from_a_file(
    nodepiece: Nodepiece, trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "nodes.txt").write_text("Kenya\nFrench\n")

    ran = nodepiece("similar", trained, "--nodes", tmp_path / "nodes.txt", "--top", 1, "-o", "-")

    assert [json.loads(line)["node"] for line in ran.out.splitlines()] == ["Kenya", "French"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "give one of --node NAME, --nodes FILE and --all"),
        (["--node", "Kenya", "--all"], "give one of --node NAME"),
        (["--all"], "the neighbours of many nodes are a table; give -o FILE.parquet"),
        (["--node", "Kenia"], "unknown node 'Kenia'; did you mean 'Kenya'"),
    ],
)
def test_wrong_options_are_refused(
    nodepiece: Nodepiece, trained: Path, options: list[str], sentence: str
) -> None:
    ran = nodepiece("similar", trained, *options)

    assert ran.status == 2 and ran.out == "" and sentence in ran.err
