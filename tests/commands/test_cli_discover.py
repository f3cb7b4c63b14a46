"""nodepiece discover: missing facts printed, or written to a file."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.golden.write import STORED_RUNS

import nodepiece as library
from nodepiece.inference import candidate_search, discover, fact_search
from nodepiece.inference.search_progress import SearchProgress

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece


def test_facts_are_written_to_a_file(nodepiece: Nodepiece, trained: Path, tmp_path: Path) -> None:
    output = tmp_path / "missing.parquet"

    ran = nodepiece("discover", trained, "--top", 50, "-o", output)

    assert ran.status == 0 and f"wrote {output}: 50 facts" in ran.err
    assert pq.read_table(output).equals(library.load(trained).discover(top=50))


def test_a_few_facts_are_printed(nodepiece: Nodepiece, trained: Path) -> None:
    ran = nodepiece("discover", trained, "--top", 3, "--relation", "has language")

    assert ran.status == 0
    assert [line.split()[0] for line in ran.out.splitlines() if line.strip()][-3:] == list("123")
    assert "has language" in ran.out


def test_limits_of_nodes_are_files(nodepiece: Nodepiece, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "heads.txt").write_text("Kenya\nUganda\n")
    (tmp_path / "tails.txt").write_text("Spanish\nFrench\n")

    ran = nodepiece(
        *("discover", trained, "--relation", "has language", "-o", "-"),
        *("--heads", tmp_path / "heads.txt", "--tails", tmp_path / "tails.txt"),
    )

    found = {(row["head"], row["tail"]) for row in map(json.loads, ran.out.splitlines())}
    assert found == {(h, t) for h in ("Kenya", "Uganda") for t in ("Spanish", "French")}


def test_nodes_may_be_those_of_a_type(nodepiece: Nodepiece, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "heads.txt").write_text("Kenya\nPeru\n")

    ran = nodepiece(
        *("discover", trained, "--top", 200, "-o", "-", "--heads", tmp_path / "heads.txt"),
        *("--head-type", "in region", "Africa", "--tail-type", "in region", "Europe"),
    )

    rows = [json.loads(line) for line in ran.out.splitlines()]
    europe = library.load(trained).known(relation="in region", tail="Europe")
    assert {row["head"] for row in rows} == {"Kenya"}
    assert {row["tail"] for row in rows} <= set(europe) and len(rows) > 5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--relation", "has langage"], "unknown relation 'has langage'; did you mean"),
        (["--head-type", "in regon", "Africa"], "unknown relation 'in regon'; did you mean"),
        (["--tail-type", "in region", "Kenya"], "no node has the relation 'in region' to 'Kenya'"),
        (
            ["--min-score", "1e9"],
            "lift some of the limits, or allow nodes new to a relation with --any-candidate",
        ),
        (["-o", "missing.txt"], "cannot write missing.txt"),
    ],
)
def test_wrong_limits_are_refused(
    nodepiece: Nodepiece, trained: Path, options: list[str], sentence: str
) -> None:
    ran = nodepiece("discover", trained, *options)

    assert ran.status == 2 and ran.out == "" and sentence in ran.err


def test_a_run_of_node_classification_has_no_missing_facts(nodepiece: Nodepiece) -> None:
    ran = nodepiece("discover", STORED_RUNS / "classes")

    assert ran.status == 2 and "it predicts no facts; ask for the classes of a node" in ran.err


def test_a_search_of_candidates_says_so_and_the_exact_one_does_not(
    nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover, "FEW_QUERIES", 3)
    monkeypatch.setattr(discover, "LONG_SECONDS", 0.0)
    run, output = STORED_RUNS / "walks", tmp_path / "missing.parquet"

    ran = nodepiece("discover", run, "--top", 5, "-o", output)

    assert ran.status == 0 and "the result may miss some facts, --exact" in ran.err
    assert pq.read_schema(output).metadata[b"search"].startswith(b"candidates: ")
    ran = nodepiece("discover", run, "--top", 5, "-o", output, "--exact")
    assert ran.status == 0 and "may miss" not in ran.err
    assert pq.read_schema(output).metadata[b"search"] == b"exact"
    assert pq.read_table(output).equals(library.load(run).discover(top=5, exact=True))


def test_candidates_may_be_asked_for(nodepiece: Nodepiece) -> None:
    ran = nodepiece("discover", STORED_RUNS / "walks", "--top", 3, "--approximate")

    assert ran.status == 0 and "only candidates are scored" in ran.err


def test_ctrl_c_ends_a_search_of_candidates_with_what_was_found(
    nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after_a_batch(monkeypatch)
    output = tmp_path / "missing.csv"

    ran = nodepiece("discover", STORED_RUNS / "walks", "--top", 2, "-o", output, "--approximate")

    assert ran.status == 130 and f"wrote {output}: 2 facts" in ran.err
    assert "queries; these are the best facts so far" in ran.err


def interrupt_after_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C once four queries are scored."""
    add = SearchProgress.add

    def add_and_interrupt(progress: SearchProgress, number: int) -> None:
        add(progress, number)
        if progress.callback is not None:  # that of the command, not of a part of the search
            signal.raise_signal(signal.SIGINT)

    for module in (fact_search, candidate_search):
        monkeypatch.setattr(module, "QUERIES_AT_ONCE", 4)
    monkeypatch.setattr(SearchProgress, "add", add_and_interrupt)


def test_ctrl_c_ends_the_search_with_what_was_found(
    nodepiece: Nodepiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after_a_batch(monkeypatch)
    output = tmp_path / "missing.csv"

    ran = nodepiece("discover", STORED_RUNS / "walks", "--top", 2, "-o", output)

    assert ran.status == 130 and f"wrote {output}: 2 facts" in ran.err
    assert "stopped after 4 of " in ran.err and "these are the best facts so far" in ran.err


def test_ctrl_c_before_anything_was_found_is_one_sentence(
    nodepiece: Nodepiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after_a_batch(monkeypatch)

    ran = nodepiece("discover", STORED_RUNS / "walks", "--min-score", "1e9")

    assert ran.status == 130 and "which have no missing fact of that kind" in ran.err
