"""nodepiece predict --queries and nodepiece score: files in, tables out."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.golden.write import STORED_RUNS

import nodepiece as library

if TYPE_CHECKING:
    from tests.commands.conftest import Nodepiece

QUERIES = "Kenya\tborders\t?\n\thas capital\tNairobi\nKenya\t?\tUganda\n"


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.tsv"
    path.write_text(QUERIES)
    return path


def test_answers_are_written_by_the_ending(
    nodepiece: Nodepiece, trained: Path, queries: Path, tmp_path: Path
) -> None:
    for ending in ("parquet", "csv", "tsv", "jsonl"):
        output = tmp_path / f"answers.{ending}"
        ran = nodepiece("predict", trained, "--queries", queries, "--top", 2, "-o", output)
        assert ran.status == 0 and ran.out == ""
        assert f"wrote {output}: 6 rows" in ran.err
    expected = library.load(trained).predict_many(
        [line.split("\t") for line in QUERIES.splitlines()], top=2
    )
    names = ["head", "relation", "tail"]
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    tab = pa.csv.ParseOptions(delimiter="\t")
    for table in (
        pq.read_table(tmp_path / "answers.parquet"),
        pa.csv.read_csv(tmp_path / "answers.csv"),
        pa.csv.read_csv(tmp_path / "answers.tsv", parse_options=tab),
        pa.Table.from_pylist(lines),
    ):
        assert table.select(names).to_pylist() == expected.select(names).to_pylist()
        assert table["query"].to_pylist() == [1, 1, 2, 2, 3, 3]  # lines


def test_standard_input_is_answered_with_json_lines(
    nodepiece: Nodepiece, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = io.TextIOWrapper(io.BytesIO(QUERIES.encode()))
    monkeypatch.setattr(sys, "stdin", source)

    ran = nodepiece("predict", trained, "--queries", "-", "--top", 1)

    assert ran.status == 0
    assert [json.loads(line)["asked"] for line in ran.out.splitlines()] == [
        "tail",
        "head",
        "relation",
    ]


def test_a_bad_line_is_reported_with_its_number_and_the_others_are_answered(
    nodepiece: Nodepiece, trained: Path, queries: Path
) -> None:
    queries.write_text("Kenia\tborders\t?\nKenya\tborders\n" + QUERIES)

    ran = nodepiece("predict", trained, "--queries", queries, "--top", 1)

    assert ran.status == 2
    assert len(ran.out.splitlines()) == 3
    assert f"{queries} line 1: unknown node 'Kenia'; did you mean 'Kenya'" in ran.err
    assert "line 2: expected 3 columns separated by tabs, got 2" in ran.err
    assert "left out 2 bad lines" in ran.err


def test_unknown_names_are_counted_when_they_are_to_be_skipped(
    nodepiece: Nodepiece, trained: Path, queries: Path
) -> None:
    queries.write_text("Kenia\tborders\t?\n" + QUERIES)

    ran = nodepiece("predict", trained, "--queries", queries, "--top", 1, "--skip-unknown")

    assert ran.status == 0
    assert len(ran.out.splitlines()) == 3
    assert "skipped 1 line with unknown names" in ran.err and "Kenia" not in ran.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--head", "Kenya"], "--queries has all queries; leave out --head"),
        (["--json"], "leave out --json, or give -o FILE.jsonl"),
        (["-o", "answers.xlsx"], "cannot write answers.xlsx: the ending says the format"),
    ],
)
def test_options_that_contradict_are_refused(
    nodepiece: Nodepiece, trained: Path, queries: Path, options: list[str], sentence: str
) -> None:
    ran = nodepiece("predict", trained, "--queries", queries, *options)

    assert ran.status == 2 and sentence in ran.err and ran.out == ""


@pytest.mark.parametrize("options", [["-o", "answers.csv"], ["--skip-unknown"]])
def test_options_of_many_queries_are_refused_for_one(
    nodepiece: Nodepiece, trained: Path, options: list[str]
) -> None:
    ran = nodepiece("predict", trained, "--head", "Kenya", "--relation", "borders", *options)

    assert ran.status == 2 and "--output and --skip-unknown go with --queries" in ran.err


def test_seen_candidates_limit_a_single_query(nodepiece: Nodepiece, trained: Path) -> None:
    asked = ("--head", "Kenya", "--relation", "in region", "--top", 900, "--seen-candidates")
    ran = nodepiece("predict", trained, *asked, "--include-known", "--json")

    names = {answer["name"] for answer in json.loads(ran.out)["answers"]}
    assert names == {"Africa", "Americas", "Asia", "Europe", "Oceania"}


def test_triples_are_scored_by_the_file(
    nodepiece: Nodepiece, trained: Path, tmp_path: Path
) -> None:
    path = tmp_path / "triples.csv"
    path.write_text("Kenya,borders,Uganda\nKenya,borders,Peru\nKenya,borders,?\n")

    ran = nodepiece("score", trained, path)

    assert ran.status == 2
    assert f"{path} line 3: it asks for a part; give head, relation and tail" in ran.err
    known, new = (json.loads(line) for line in ran.out.splitlines())
    assert (known["fact"], known["known"], new["known"]) == (1, True, False)
    assert new["tail_rank"] >= 1 and new["head_rank"] >= 1


def test_a_run_of_node_classification_scores_no_triples(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    path = tmp_path / "triples.tsv"
    path.write_text("a\tb\tc\n")

    ran = nodepiece("score", STORED_RUNS / "classes", path)

    assert ran.status == 2 and "it predicts no facts; ask for the classes of a node" in ran.err


def test_a_reader_that_has_enough_ends_the_command_quietly(
    trained: Path, queries: Path, tmp_path: Path
) -> None:
    queries.write_text(QUERIES * 300)
    command: list[str | Path] = [sys.executable, "-m", "nodepiece", "predict", trained]
    command += ["--queries", queries]

    with (tmp_path / "err").open("w") as err:
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err)
        assert program.stdout is not None
        program.stdout.readline()
        program.stdout.close()

    assert program.wait() == 0
    assert (tmp_path / "err").read_text() == ""


def test_an_output_that_cannot_be_written_is_not_taken_for_the_input(
    nodepiece: Nodepiece, trained: Path, queries: Path
) -> None:
    ran = nodepiece("predict", trained, "--queries", queries, "-o", "/proc/answers.jsonl")

    assert ran.status in (1, 2)
    assert str(queries) not in ran.err and "/proc/" in ran.err
