"""nodepiece predict: queries and answers by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nodepiece import load_countries

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece

NEIGHBOURS = {"Ethiopia", "Somalia", "South Sudan", "Tanzania", "Uganda"}  # of Kenya, all known
BORDERS = ("--head", "Kenya", "--relation", "borders")


def answers(nodepiece: Nodepiece, *arguments: object) -> dict[str, bool]:
    """Names in their order, and whether they are known."""
    ran = nodepiece("predict", *arguments, "--json")
    assert ran.status == 0
    return {answer["name"]: answer["known"] for answer in json.loads(ran.out)["answers"]}


def test_known_facts_are_left_out_and_counted(nodepiece: Nodepiece, trained: Path) -> None:
    ran = nodepiece("predict", trained, *BORDERS, "--top", 5)

    assert ran.status == 0
    assert "Kenya — borders — ?" in ran.out
    places = [line.split()[0] for line in ran.out.splitlines() if line.strip()]
    assert places[-5:] == ["1", "2", "3", "4", "5"]
    assert not any(name in ran.out for name in NEIGHBOURS)
    assert "5 known answers left out; --include-known shows them" in ran.err


def test_known_facts_are_shown_and_marked_when_asked_for(
    nodepiece: Nodepiece, trained: Path
) -> None:
    printed = answers(nodepiece, trained, *BORDERS, "--include-known", "--top", 900)

    assert {name for name, is_known in printed.items() if is_known} == NEIGHBOURS
    assert "yes" in nodepiece("predict", trained, *BORDERS, "--include-known", "--top", 900).out


def test_a_node_does_not_answer_for_itself(nodepiece: Nodepiece, trained: Path) -> None:
    printed = answers(nodepiece, trained, *BORDERS, "--top", 900)

    assert len(printed) == 831 - len(NEIGHBOURS) - 1
    assert "Kenya" not in printed


def test_heads_are_asked_for_with_a_tail(nodepiece: Nodepiece, trained: Path) -> None:
    asked = ("--relation", "has capital", "--tail", "Nairobi", "--include-known", "--top", 900)
    printed = answers(nodepiece, trained, *asked)

    assert [name for name, is_known in printed.items() if is_known] == ["Kenya"]


def test_a_head_is_the_tail_of_the_inverse_relation(nodepiece: Nodepiece, trained: Path) -> None:
    inverse = ("--head", "Nairobi", "--relation", "inverse of has capital")
    plain = ("--tail", "Nairobi", "--relation", "has capital")

    assert answers(nodepiece, trained, *inverse) == answers(nodepiece, trained, *plain)


def test_the_relation_of_a_pair_is_asked_for_with_both(nodepiece: Nodepiece, trained: Path) -> None:
    printed = answers(
        nodepiece, trained, "--head", "Kenya", "--tail", "Uganda", "--include-known", "--top", 50
    )

    relations = load_countries().names.relations.to_pylist()
    assert set(printed) == {*relations, *(f"inverse of {name}" for name in relations)}
    assert [name for name, is_known in printed.items() if is_known] != []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--head", "Kenia", "--relation", "borders"],
            "unknown node 'Kenia'; did you mean 'Kenya'",
        ),
        (["--head", "Kenya", "--relation", "border"], "unknown relation 'border'; did you mean"),
        (["--head", "Kenya"], "give exactly two of head, relation and tail"),
        (["--head", "Kenya", "--relation", "borders", "--tail", "Uganda"], "give exactly two"),
    ],
)
def test_queries_that_cannot_be_asked_are_refused(
    nodepiece: Nodepiece, trained: Path, options: list[str], sentence: str
) -> None:
    ran = nodepiece("predict", trained, *options)

    assert ran.status == 2
    assert ran.out == ""
    assert sentence in ran.err
