"""Values of version 0.1 that later versions must give again, and folders they must open.

`golden.json` and `runs-0.1/` were written by `PYTHONPATH=src python -m tests.golden.write --runs`.
A change that is meant to alter digits takes new values with `python -m tests.golden.write`, which
leaves the stored runs as they are, and says in its commit which values changed and why.

Tokens and ids are compared byte for byte. Sums of floating point numbers depend on the processor:
where PyTorch's kernels are those that the values were taken with, six digits are compared.
Elsewhere it is three digits of the losses alone, as another epoch may be the best one there.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.golden.cases import (
    RUNS,
    STORED,
    TOKENS,
    Values,
    answers_of,
    read_ids,
    token_digests,
    train_case,
)
from tests.golden.graphs import write_graphs
from tests.golden.write import GOLDEN, STORED_RUNS, platform

import nodepiece

EXPECTED = json.loads(GOLDEN.read_text(encoding="utf-8"))
IS_SAME_PLATFORM = EXPECTED["platform"] == platform()
TOLERANCE = 1e-6 if IS_SAME_PLATFORM else 1e-3


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphs")
    write_graphs(folder)
    return folder


def close(value: Any) -> Any:
    return pytest.approx(value, rel=TOLERANCE, abs=TOLERANCE / 100)


def assert_same_answers(found: list[Values], expected: list[Values]) -> None:
    assert [each["name"] for each in found] == [each["name"] for each in expected]
    assert [each["score"] for each in found] == close([each["score"] for each in expected])
    assert [each["known"] for each in found] == [each["known"] for each in expected]


def test_a_file_of_facts_gives_the_same_ids(graphs: Path) -> None:
    assert read_ids(graphs / "labelled" / "edges.tsv") == EXPECTED["ids"]


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_are_the_same_byte_for_byte(name: str, graphs: Path, tmp_path: Path) -> None:
    facts = graphs / "labelled" / "edges.tsv"

    assert token_digests(facts, TOKENS[name], tmp_path / "tokens") == EXPECTED["tokens"][name]


@pytest.mark.parametrize("name", RUNS)
def test_training_gives_the_same_digits(name: str, graphs: Path, tmp_path: Path) -> None:
    found, expected = train_case(name, graphs, tmp_path / "run"), EXPECTED["runs"][name]

    assert [each["loss"] for each in found["history"]] == close(
        [each["loss"] for each in expected["history"]]
    )
    if IS_SAME_PLATFORM:
        assert_same_answers(found["answers"], expected["answers"])
        assert found["history"] == [close(each) for each in expected["history"]]
        assert found["metrics"] == close(expected["metrics"])


@pytest.mark.parametrize("name", STORED)
def test_a_run_of_version_0_1_opens_and_answers_the_same(name: str) -> None:
    run, expected = nodepiece.load(STORED_RUNS / name), EXPECTED["stored"][name]

    assert_same_answers(answers_of(run), expected["answers"])
    if IS_SAME_PLATFORM:
        assert run.evaluate("test").scores == close(expected["scores"])


def test_an_updated_run_of_version_0_1_takes_another_update(tmp_path: Path) -> None:
    folder = shutil.copytree(STORED_RUNS / "updated", tmp_path / "run")
    run = nodepiece.load(folder)

    assert "newcomer" in run.known(head="person 3", relation="friend of")
    assert run.known(head="person 3", relation="works for") == []
    updated = nodepiece.update_run(run, add=[("person 4", "friend of", "newcomer")])

    assert updated.num_added == 1
    again = nodepiece.load(folder)
    assert "newcomer" in again.known(head="person 4", relation="friend of")


def test_a_vocabulary_of_version_0_1_opens(graphs: Path) -> None:
    graph = nodepiece.read_graph(graphs / "links" / "train.tsv")

    table = nodepiece.load_tokens(STORED_RUNS / "vocabulary", graph=graph)

    assert [table.pieces(node) for node in range(3)] == EXPECTED["pieces"]
