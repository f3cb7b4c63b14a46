"""nodepiece tokenize, as a user meets it."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nodepiece import load_tokens

if TYPE_CHECKING:
    from tests.commands.conftest import Nodepiece

SMALL = ("--anchors", 1, "--anchors-per-node", 1, "--relations-per-node", 3)


def all_bytes(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_it_says_what_it_read_and_what_it_wrote(nodepiece: Nodepiece, facts: Path) -> None:
    ran = nodepiece("tokenize", facts, "-o", "vocabulary", *SMALL)

    assert ran.status == 0
    assert "5 facts" in ran.err and "left out 1 fact stated before" in ran.err
    assert "5 nodes, 2 relations" in ran.err
    assert "choosing anchors ... 1 anchor" in ran.err
    assert "5 nodes as sequences of pieces, 7 different ones" in ran.out  # 1 + 4 + 2 special
    assert "no node has exactly the same pieces as another node" in ran.out


def test_the_settings_reach_the_vocabulary(nodepiece: Nodepiece, facts: Path) -> None:
    ran = nodepiece(
        *("tokenize", facts, "-o", "out", "--anchors", 2, "--anchors-per-node", 2),
        *("--relations-per-node", 0, "--mix", "random=0.5,degree=0.5", "--select", "random"),
        *("--ties", "global", "--disconnected", "anchor", "--no-distances"),
    )

    assert ran.status == 0
    settings = load_tokens(Path("out")).vocabulary.settings
    assert (settings.num_anchors, settings.anchors_per_node) == (2, 2)
    assert settings.relations_per_node == 0
    assert settings.mix == {"random": 0.5, "degree": 0.5}
    assert (settings.select, settings.ties) == ("random", "global")
    assert settings.disconnected == "anchor"
    assert not settings.distances


def test_an_anchor_share_is_rounded_to_whole_anchors(nodepiece: Nodepiece, facts: Path) -> None:
    ran = nodepiece("tokenize", facts, "-o", "out", "--anchor-share", 0.6, "--anchors-per-node", 1)

    assert ran.status == 0
    assert load_tokens(Path("out")).vocabulary.num_anchors == 3  # of 5 nodes


def test_the_same_seed_writes_the_same_bytes(nodepiece: Nodepiece) -> None:
    for folder, seed in (("one", 7), ("two", 7), ("other", 8)):
        assert nodepiece("tokenize", "countries", "-o", folder, "--seed", seed).status == 0

    assert all_bytes(Path("one")) == all_bytes(Path("two"))
    assert all_bytes(Path("one")) != all_bytes(Path("other"))


def test_an_earlier_vocabulary_is_replaced(nodepiece: Nodepiece, vocabulary: Path) -> None:
    ran = nodepiece("tokenize", "countries", "-o", vocabulary)

    assert ran.status == 0
    assert load_tokens(vocabulary).num_nodes == 831
    assert [path.name for path in vocabulary.parent.glob(".*")] == []


def test_files_can_be_cut_into_parts(nodepiece: Nodepiece, facts: Path) -> None:
    assert nodepiece("tokenize", facts, "-o", "parts", *SMALL, "--part-size", "64KiB").status == 0
    assert nodepiece("tokenize", facts, "-o", "whole", *SMALL).status == 0
    parts, whole = all_bytes(Path("parts")), all_bytes(Path("whole"))
    assert parts["tokens/anchors.npy.00000"] == whole["tokens/anchors.npy"]
    assert nodepiece("inspect", "parts").out == nodepiece("inspect", "whole").out.replace(
        "whole", "parts"
    )
    ran = nodepiece("tokenize", facts, "-o", "parts", *SMALL, "--part-size", "1KB")
    assert ran.status == 2 and "at least 65,536 bytes, got 1,000" in ran.err


def test_it_reads_standard_input(
    nodepiece: Nodepiece, facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(facts.read_bytes())))

    ran = nodepiece("tokenize", "-", "-o", "out", *SMALL)

    assert ran.status == 0
    assert "reading standard input" in ran.err


def test_of_a_folder_it_reads_the_training_part(nodepiece: Nodepiece, facts: Path) -> None:
    folder = facts.parent / "split"
    folder.mkdir()
    (folder / "train.tsv").write_text(facts.read_text())
    (folder / "test.tsv").write_text("somebody\tknows\telse\n")

    assert nodepiece("tokenize", folder, "-o", "out", *SMALL).status == 0
    assert load_tokens(Path("out")).num_nodes == 5


def test_a_file_with_the_name_of_a_known_dataset_is_given_with_its_folder(
    nodepiece: Nodepiece, facts: Path
) -> None:
    Path("countries").write_text(facts.read_text())

    refused = nodepiece("tokenize", "countries", "-o", "out", *SMALL)
    assert (refused.status, "write ./countries for the file" in refused.err) == (2, True)
    assert nodepiece("tokenize", "./countries", "-o", "out", *SMALL).status == 0
    assert load_tokens(Path("out")).num_nodes == 5


def test_a_benchmark_is_found_by_its_name(nodepiece: Nodepiece, facts: Path) -> None:
    folder = facts.parent / "data" / "umls"
    folder.mkdir(parents=True)
    for part in ("train", "valid", "test"):
        (folder / f"{part}.tsv").write_text(facts.read_text())

    ran = nodepiece("tokenize", "umls", "-o", "out", "--data", facts.parent / "data", *SMALL)

    assert ran.status == 0
    assert load_tokens(Path("out")).num_nodes == 5


def test_columns_delimiter_and_header_can_be_given(nodepiece: Nodepiece) -> None:
    Path("odd.txt").write_text("when|what|who|whom\n1|knows|ada|bob\n2|knows|bob|cy\n")
    named = ("--delimiter", "|", "--columns", "who,what,whom")
    counted = ("--delimiter", "|", "--columns", "2,1,3", "--header")

    assert nodepiece("tokenize", "odd.txt", "-o", "named", *named, *SMALL).status == 0
    assert nodepiece("tokenize", "odd.txt", "-o", "counted", *counted, *SMALL).status == 0
    assert all_bytes(Path("named")) == all_bytes(Path("counted"))
    assert load_tokens(Path("named")).num_nodes == 3
