"""nodepiece experiments: the list by purpose, and one in full."""

import json
import tomllib
from pathlib import Path

import pytest
from tests.commands.conftest import Nodepiece

from nodepiece.recipes import experiment_names
from nodepiece.settings import load_experiment


def test_the_list_is_short_and_by_purpose(nodepiece: Nodepiece) -> None:
    ran = nodepiece("experiments", "--all")

    lines = ran.out.splitlines()
    assert ran.status == 0
    assert len(lines) < 55
    assert [line.split(":")[0] for line in lines[:-2] if not line.startswith(" ")] == [
        "own",
        "paper",
        "best",
        "baselines",
        "ablations",
    ]
    assert "  fb15k-237-paper, fb15k-237-relations-paper" in lines
    assert "  wd50k-{5,10,100}-paper" in lines
    assert "NAME-no-relations, NAME-no-distances, NAME-relations-only" in ran.out


def test_baselines_and_ablations_are_only_counted_without_all(nodepiece: Nodepiece) -> None:
    ran = nodepiece("experiments")

    assert len(ran.out.splitlines()) < 32
    assert "own-small: up to some 5,000 nodes" in ran.out
    assert "wn18rr-best" in ran.out
    assert "fb15k-237-shallow" not in ran.out
    assert ", with --all" in ran.out


def test_train_lists_the_same(nodepiece: Nodepiece) -> None:
    assert nodepiece("train", "--list").out == nodepiece("experiments", "list").out


def test_a_part_of_names_lists_those_that_have_it_with_what_they_are(nodepiece: Nodepiece) -> None:
    ran = nodepiece("experiments", "list", "countries")

    assert ran.status == 0
    assert "The embedded graph of countries" in ran.out
    assert "countries-walks" in ran.out
    assert "wn18rr" not in ran.out


def test_all_names_are_in_the_json(nodepiece: Nodepiece) -> None:
    rows = json.loads(nodepiece("experiments", "--json").out)

    assert [row["name"] for row in rows] == experiment_names()
    assert rows[0].keys() == {"name", "purpose", "description"}


def test_one_is_shown_as_toml_that_can_be_trained(nodepiece: Nodepiece) -> None:
    ran = nodepiece("experiments", "show", "wn18rr-paper-no-distances")

    assert ran.status == 0
    assert "# wn18rr-paper without anchor distances.\n# Extends wn18rr-paper.\n" in ran.out
    assert "distances = false  # default: true\n" in ran.out
    assert tomllib.loads(ran.out)["training"]["epochs"] == 600
    Path("mine.toml").write_text(ran.out, encoding="utf-8")
    assert load_experiment("mine.toml") == load_experiment("wn18rr-paper-no-distances")


def test_a_file_is_shown_with_what_it_extends(nodepiece: Nodepiece) -> None:
    Path("mine.toml").write_text('extends = "countries"\nseed = 3', encoding="utf-8")

    ran = nodepiece("experiments", "show", "mine.toml")

    assert 'name = "mine"\n' in ran.out
    assert "seed = 3  # default: 0\n" in ran.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("open",), "unknown action 'open'; it is one of list, show"),
        (("show",), "name the experiment"),
        (("show", "contries"), "did you mean countries"),
        (("list", "freebase"), "no experiment has freebase in its name"),
    ],
)
def test_mistakes_are_reported(
    nodepiece: Nodepiece, arguments: tuple[str, ...], sentence: str
) -> None:
    ran = nodepiece("experiments", *arguments)

    assert ran.status == 2
    assert sentence in " ".join(ran.err.split())
