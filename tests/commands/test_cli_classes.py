"""A graph and a label file by commands: label, train, evaluate, predict."""

import json
from pathlib import Path

import pytest
from tests.commands.conftest import Nodepiece

EXPERIMENT = """
extends = "wd50k-100-paper"
dataset = "dataset"

[tokenizer]
num_anchors = 3
anchors_per_node = 2
relations_per_node = 2

[encoder]
dim = 8
hidden_dim = 16

[graph]
layers = 1
attention_heads = 2

[training]
epochs = 3
validate_every = 1
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Twelve people, half of whom teach at a school; what they are is stated in the graph too."""
    facts, labels = [], []
    for n in range(12):
        profession, place = ("teacher", "school") if n % 2 else ("player", "club")
        facts += [f"person {n}\tworks at\t{place}", f"person {n}\tis a\t{profession}"]
        labels += [f"person {n}\t{profession}", f"person {n}\thuman"]
    labels += ["nobody\thuman", "person 0\tcaptain"]
    (tmp_path / "facts.tsv").write_text("\n".join(facts))
    (tmp_path / "labels.tsv").write_text("\n".join(labels))
    (tmp_path / "mine.toml").write_text(EXPERIMENT)
    return tmp_path


def label(nodepiece: Nodepiece, *more: object) -> dict[str, object]:
    made = nodepiece(
        *("label", "facts.tsv", "labels.tsv", "-o", "dataset", "--drop-relation", "is a"),
        *("--least-nodes", 3, "--valid-share", 0.25, "--test-share", 0.25, "--json", *more),
    )
    assert made.status == 0, made.err
    found: dict[str, object] = json.loads(made.out)
    return found


def test_a_labelled_folder_in_place_of_a_graph_says_what_it_needs(
    nodepiece: Nodepiece, dump: Path
) -> None:
    label(nodepiece)
    ran = nodepiece("train", "dataset", "-o", "run")
    assert ran.status == 2
    assert 'write a TOML file with extends = "wd50k-100-paper"' in " ".join(ran.err.split())


def test_label_says_what_it_left_out(nodepiece: Nodepiece, dump: Path) -> None:
    report = label(nodepiece)
    assert report["num_class_facts"] == 12
    assert report["num_disconnected"] == 2  # teacher and player
    assert report["num_outside"] == 1  # nobody
    assert report["num_rare_classes"] == 1  # captain
    assert report["num_labelled"] == {"train": 6, "valid": 3, "test": 3}
    assert json.loads((dump / "dataset/label_split.json").read_text()) == report
    printed = nodepiece("label", "facts.tsv", "labels.tsv", "-o", "dataset", "--least-nodes", 3)
    assert printed.status == 0
    assert "left out 1 labelled node that the graph does not have" in printed.out


def test_a_labelled_graph_is_trained_on_judged_and_asked(nodepiece: Nodepiece, dump: Path) -> None:
    label(nodepiece)
    trained = nodepiece("train", "mine.toml", "-o", "run", "--device", "cpu")
    assert trained.status == 0, trained.err
    assert "labelled nodes: 6 for train, 3 for valid, 3 for test" in trained.err + trained.out
    judged = nodepiece("evaluate", "run", "--json", "--device", "cpu")
    assert {"roc_auc", "prc_auc", "hard_accuracy"} <= set(json.loads(judged.out))
    assert "hard accuracy" in nodepiece("evaluate", "run", "--device", "cpu").out
    by_class = nodepiece("evaluate", "run", "--split", "train", "--per-class", "--device", "cpu")
    assert "teacher" in by_class.out and "human" not in by_class.out  # everybody is
    asked = nodepiece("predict", "run", "--node", "person 3", "--json", "--device", "cpu")
    classes = json.loads(asked.out)["classes"]
    assert {answer["name"] for answer in classes} == {"human", "player", "teacher"}
    assert all(0 <= answer["probability"] <= 1 for answer in classes)
    assert {answer["name"] for answer in classes if answer["known"]} == {"human", "teacher"}
    shown = nodepiece("predict", "run", "--node", "person 3", "--top", 2, "--device", "cpu").out
    assert "person 3" in shown and "probability" in shown


def test_queries_that_do_not_go_together_are_refused(nodepiece: Nodepiece, dump: Path) -> None:
    label(nodepiece)
    nodepiece("train", "mine.toml", "-o", "run", "--device", "cpu")
    both = nodepiece("predict", "run", "--node", "person 3", "--head", "person 1")
    assert both.status == 2 and "--node predicts classes" in both.err
    facts = nodepiece("predict", "run", "--head", "person 3", "--relation", "works at")
    assert facts.status == 2 and "it predicts no facts" in facts.err


def test_another_folder_is_not_replaced(nodepiece: Nodepiece, dump: Path) -> None:
    (dump / "dataset").mkdir()
    (dump / "dataset/diary.txt").write_text("mine")
    refused = nodepiece("label", "facts.tsv", "labels.tsv", "-o", "dataset", "--least-nodes", 1)
    assert refused.status == 2 and "choose another output" in refused.err
    assert (dump / "dataset/diary.txt").read_text() == "mine"


def test_a_dataset_without_classes_is_refused(nodepiece: Nodepiece, dump: Path) -> None:
    refused = nodepiece("train", "mine.toml", "-o", "run", "--set", "dataset=countries")
    assert refused.status == 2 and "countries has no classes" in refused.err
