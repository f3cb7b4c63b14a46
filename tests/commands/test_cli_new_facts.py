"""nodepiece predict --facts, embed and update: nodes that come after training."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from nodepiece import load, load_countries
from nodepiece.data.hold_out import hold_out

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece

NEW = "Ruritania\tborders\tKenya\nRuritania\thas language\tEnglish\nKenya\tborders\tRuritania\n"


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "new.tsv"
    path.write_text(NEW)
    return path


@pytest.fixture(scope="module")
def without_kenya(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the graph of countries without Kenya, and an experiment on them."""
    folder = tmp_path_factory.mktemp("held-out")
    held_out, _ = hold_out(load_countries(), "Kenya")
    (folder / "data").mkdir()
    names = held_out.names
    for split in ("train", "valid", "test"):
        lines = [
            f"{names.node(head)}\t{names.relation(relation)}\t{names.node(tail)}\n"
            for head, relation, tail in held_out.part(split).tolist()
        ]
        (folder / "data" / f"{split}.tsv").write_text("".join(lines))
    (folder / "experiment.toml").write_text(
        f'extends = "countries"\ndataset = "{folder / "data"}"\n'
        "graph.layers = 0\ntraining.epochs = 40\ntraining.validate_every = 0\n"
    )
    return folder


def test_a_country_that_training_never_saw_gets_sensible_neighbours(
    nodepiece: Nodepiece, without_kenya: Path, tmp_path: Path
) -> None:
    ran = nodepiece("train", without_kenya / "experiment.toml", "-o", "run", "--device", "cpu")
    assert ran.status == 0
    new_facts = tmp_path / "kenya.tsv"
    new_facts.write_text(
        "Kenya\tborders\tUganda\nKenya\tborders\tTanzania\n"
        "Kenya\thas language\tSwahili\nKenya\tin region\tAfrica\n"
    )

    def likeliest(relation: str, top: int) -> list[str]:
        query = ("--head", "Kenya", "--relation", relation, "--top", top, "--json")
        answer = nodepiece("predict", "run", *query, "--facts", new_facts)
        assert answer.status == 0
        return [each["name"] for each in json.loads(answer.out)["answers"]]

    assert {"South Sudan", "Somalia"} <= set(likeliest("borders", 10))
    assert "Eastern Africa" in likeliest("in subregion", 2)
    assert "UTC+03:00" in likeliest("in time zone", 3)


def test_assumed_facts_are_understood_and_not_kept(
    nodepiece: Nodepiece, trained: Path, facts: Path
) -> None:
    query = ("--head", "Ruritania", "--relation", "borders")
    ran = nodepiece("predict", trained, *query, "--facts", facts, "--include-known")
    assert ran.status == 0 and "Ruritania — borders — ?" in ran.out and "3 facts" in ran.err
    ran = nodepiece("predict", trained, *query)
    assert ran.status == 2 and "unknown node 'Ruritania'" in ran.err
    assert not (trained / "live").exists()


def test_vectors_by_name_of_all_nodes_or_of_some(
    nodepiece: Nodepiece, trained: Path, facts: Path, tmp_path: Path
) -> None:
    ran = nodepiece("embed", trained, "-o", "all.parquet", "--facts", facts)
    assert ran.status == 0 and "wrote all.parquet: 832 nodes" in ran.out
    table = pq.read_table(tmp_path / "all.parquet")
    assert table["node"].to_pylist()[-1] == "Ruritania"
    vectors = np.array(table["vector"].to_pylist(), np.float32)
    names = tmp_path / "names.txt"
    names.write_text("Ruritania\nKenya\n")
    assert nodepiece("embed", trained, "-o", "two.parquet", "--nodes", names, "--facts", facts)
    some = pq.read_table(tmp_path / "two.parquet")
    assert some["node"].to_pylist() == ["Ruritania", "Kenya"]
    ids = [831, load_countries().names.node_id("Kenya")]
    np.testing.assert_array_equal(np.array(some["vector"].to_pylist(), np.float32), vectors[ids])


def test_vectors_in_the_format_of_the_ending_and_of_relations_too(
    nodepiece: Nodepiece, trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "names.txt").write_text("Kenya\nChad\n")

    assert nodepiece("embed", trained, "-o", "v.npy", "--nodes", "names.txt").status == 0
    ran = nodepiece("embed", trained, "-o", "r.csv", "--relations")
    both = nodepiece("embed", trained, "-o", "r.csv", "--relations", "--nodes", "names.txt")

    assert np.load(tmp_path / "v.npy").shape == (2, 16)
    assert json.loads((tmp_path / "v.names.json").read_text()) == ["Kenya", "Chad"]
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert "relations" in ran.out and lines[0].startswith('"relation","vector_0"')
    assert lines[len(lines) // 2 + 1].startswith('"inverse of ')
    assert both.status == 2 and "leave out --nodes" in both.err


def test_updates_last_and_say_what_they_did(
    nodepiece: Nodepiece, run: Path, facts: Path, tmp_path: Path
) -> None:
    assert "831 vectors computed and kept" in nodepiece("update", run, "--keep-vectors").err
    ran = nodepiece("update", run, "--add", facts)
    assert ran.status == 0
    assert "added 3 facts and 1 node, removed 0 facts and 0 nodes" in ran.out
    query = ("--head", "Ruritania", "--relation", "borders", "--include-known", "--json")
    printed = json.loads(nodepiece("predict", run, *query, "--top", 900).out)["answers"]
    assert [answer["name"] for answer in printed if answer["known"]] == ["Kenya"]
    gone = tmp_path / "gone.txt"
    gone.write_text("Kenya\n")
    old = tmp_path / "old.tsv"
    old.write_text("Ruritania\thas language\tEnglish\nRuritania\thas language\tFrench\n")
    ran = nodepiece("update", run, "--remove", old, "--remove-nodes", gone, "--json")
    printed = json.loads(ran.out)
    assert (printed["num_gone_nodes"], printed["num_absent"]) == (1, 1)
    again = load(run)
    assert again.known(head="Ruritania", relation="borders") == []
    assert "Kenya" not in again.node_names() and len(again.embed()) == 831


def test_json_of_an_update_has_what_was_asked_for(
    nodepiece: Nodepiece, run: Path, facts: Path
) -> None:
    assert json.loads(nodepiece("update", run, "--keep-vectors", "--json").out) == {"num_kept": 831}
    ran = nodepiece("update", run, "--keep-vectors", "--add", facts, "--json")
    printed = json.loads(ran.out)
    assert (printed["num_kept"], printed["num_added"], printed["num_new_nodes"]) == (0, 3, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["update", "RUN"], "give --add, --remove, --remove-nodes or --keep-vectors"),
        (["update", "RUN", "--add", "unseen.tsv"], "'invades' was not seen in training"),
        (["update", "RUN", "--remove", "unknown.tsv"], "unknown node 'Kenia'; did you mean"),
        (["embed", "RUN", "-o", "v.parquet", "--nodes", "names.txt"], "unknown node 'Kenia'"),
        (["embed", "RUN", "-o", "v.parquet", "--nodes", "nowhere"], "there is no file nowhere"),
        (["embed", "RUN", "-o", "v.parquet", "--nodes", "."], ". cannot be read (Is a directory)"),
        (["embed", "RUN", "-o", "."], "is a folder; name a file"),
    ],
)
def test_what_the_user_can_mend_is_said_in_one_sentence(
    nodepiece: Nodepiece, run: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "unseen.tsv").write_text("Kenya\tinvades\tUganda\n")
    (tmp_path / "unknown.tsv").write_text("Kenia\tborders\tUganda\n")
    (tmp_path / "names.txt").write_text("Uganda\nKenia\n")
    ran = nodepiece(*[str(run) if word == "RUN" else word for word in arguments])
    assert ran.status == 2 and message in ran.err
    assert not list(run.glob("live/base-*"))


def test_a_split_of_the_countries_can_be_trained_on(nodepiece: Nodepiece, tmp_path: Path) -> None:
    ran = nodepiece("split", "countries", "-o", "split", "--share", 0.05, "--json")
    assert ran.status == 0
    printed = json.loads(ran.out)
    assert printed["num_unseen"]["test"] > 10 and printed["seed"] == 0
    assert "unseen nodes for test" in nodepiece("split", "countries", "-o", "split").out
    (tmp_path / "unseen.toml").write_text(
        'extends = "countries"\ndataset = "split"\ntask = "out-of-sample"\n'
        "graph.layers = 0\ntraining.epochs = 1\nout_of_sample.mask_share = 0.2\n"
    )
    ran = nodepiece("train", "unseen.toml", "-o", "run", "--device", "cpu")
    assert ran.status == 0 and "test MRR" in ran.out
    assert nodepiece("evaluate", "run", "--split", "valid").status == 0
