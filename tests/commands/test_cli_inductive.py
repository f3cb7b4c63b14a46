"""train, evaluate and predict on two graphs without a common node, in a folder of files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.tasks.citizens import two_worlds

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands.conftest import Nodepiece

    from nodepiece.data.dataset import Dataset

EXPERIMENT = """
extends = "inductive-wn18rr-v1-best-walks"
dataset = "worlds"

[encoder]
dim = 16
hidden_dim = 16

[graph]
layers = 1

[walks]
steps = 2
plain_steps = 3

[training]
batch_size = 64
learning_rate = 0.01
epochs = 12
validate_every = 0
schedule = "constant"
"""


def write_world(dataset: Dataset, folder: Path) -> None:
    folder.mkdir(parents=True)
    for split in ("train", "valid", "test"):
        facts = [
            "\t".join([dataset.names.node(h), dataset.names.relation(r), dataset.names.node(t)])
            for h, r, t in dataset.part(split).tolist()
        ]
        if facts:
            (folder / f"{split}.tsv").write_text("\n".join(facts) + "\n")


@pytest.fixture
def run(nodepiece: Nodepiece, tmp_path: Path) -> Path:
    worlds = two_worlds()
    write_world(worlds.training, tmp_path / "worlds" / "training")
    write_world(worlds.inference, tmp_path / "worlds" / "inference")
    (tmp_path / "mine.toml").write_text(EXPERIMENT)
    ran = nodepiece("train", "mine.toml", "-o", "run", "--device", "cpu")
    assert ran.status == 0, ran.err
    assert "worlds/training: 98 nodes" in ran.err and "worlds/inference: 78 nodes" in ran.err
    assert "test MRR" in ran.out
    return tmp_path / "run"


def test_a_run_is_evaluated_beside_its_baseline_and_queried_on_another_graph(
    nodepiece: Nodepiece, run: Path, tmp_path: Path
) -> None:
    found = json.loads(nodepiece("evaluate", run, "--json").out)
    assert found["task"] == "inductive-link-prediction"
    assert set(found) >= {"mrr", "hits@10", "spread", "head", "tail", "all nodes"}
    ranked = json.loads(nodepiece("evaluate", run, "--baselines", "--json").out)["baselines"]
    metrics = json.loads((run / "metrics.json").read_text())
    pagerank = ranked["personalized PageRank"]["hits@10"]
    assert pagerank == metrics["personalized_pagerank"]["hits@10"] < found["hits@10"]
    assert ranked["half-links, all nodes"]["count"] == found["count"]
    table = [line.split() for line in nodepiece("evaluate", run).out.splitlines()]
    first_words = [words[0] for words in table if words]
    assert first_words[-6:] == ["all", "spread", "head", "tail", "all", "popularity,"]

    new = tmp_path / "new.tsv"
    new.write_text("ann\tlives in\trome\nrome\tis in\titaly\noslo\tis in\tnorway\n")
    asked = ("predict", run, "--graph", new, "--relation", "citizen of", "--json")
    answers = json.loads(nodepiece(*asked, "--head", "ann").out)["answers"]
    assert answers[0]["name"] == "italy"
    assert nodepiece(*asked, "--head", "new person 1").status == 2

    with new.open("a") as file:
        file.write("ann\tadores\toslo\n")
    refused = nodepiece(*asked, "--head", "ann")
    assert refused.status == 2
    assert "'adores', were not in training" in refused.err
    assert "--unseen-relations mean" in refused.err
    answers = json.loads(nodepiece(*asked, "--head", "ann", "--unseen-relations", "mean").out)
    assert answers["answers"][0]["name"] == "italy"


def test_facts_are_held_out_where_the_graph_of_evaluation_has_none(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    """Of one file, those of the training graph; of two graphs, those of the inference graph."""
    worlds = two_worlds()
    write_world(worlds.training, tmp_path / "worlds" / "training")
    write_world(worlds.inference, tmp_path / "worlds" / "inference")
    for split in ("valid", "test"):
        (tmp_path / "worlds" / "inference" / f"{split}.tsv").unlink()
    (tmp_path / "mine.toml").write_text(EXPERIMENT)
    training = tmp_path / "worlds" / "training" / "train.tsv"
    one_file = ("--set", f"dataset={training}")
    words = ("train", "mine.toml", "--device", "cpu", "--set", "training.epochs=1")
    validated = ("--set", "training.validate_every=1")

    for folder, source in (("one", one_file), ("two", ())):
        ran = nodepiece(*words, "-o", folder, *validated, *source)
        assert ran.status == 0, ran.err
        said = " ".join(ran.err.split())
        assert said.count("held out at random, as there were none") == 1
        found = json.loads((tmp_path / folder / "metrics.json").read_text())
        known = training if source else tmp_path / "worlds" / "inference" / "train.tsv"
        number = round(0.05 * len(known.read_text().splitlines()))
        assert found["held_out"] == {"valid": number, "test": number}
        assert (found["count"], found["valid"]["count"]) == (2 * number, 2 * number)
        resumed = nodepiece(*words, "-o", folder, *validated, *source, "--resume")  # the same facts
        assert resumed.status == 0, resumed.err

    share = ("--set", "evaluation.held_out_share=0")
    refused = nodepiece(*words, "-o", "none", *validated, *one_file, *share)
    assert refused.status == 2 and "has no validation facts; add some" in refused.err


def test_of_one_file_the_held_out_facts_are_not_in_the_graph_of_training(
    nodepiece: Nodepiece, tmp_path: Path
) -> None:
    worlds = two_worlds()
    write_world(worlds.training, tmp_path / "world")
    (tmp_path / "mine.toml").write_text(EXPERIMENT)
    source = ("--set", f"dataset={tmp_path / 'world' / 'train.tsv'}")
    few = ("--set", "training.epochs=1", "--set", "training.validate_every=1", "--device", "cpu")
    assert nodepiece("train", "mine.toml", "-o", "run", *source, *few).status == 0

    parts = {
        split: {tuple(fact) for fact in np.load(tmp_path / "run" / "facts" / f"{split}.npy")}
        for split in ("train", "valid", "test")
    }
    assert sum(len(facts) for facts in parts.values()) == worlds.training.train.num_triples
    assert len(set.union(*parts.values())) == worlds.training.train.num_triples
    known = np.load(tmp_path / "run" / "inference" / "facts" / "train.npy")
    assert {tuple(fact) for fact in known} == parts["train"]


def test_vectors_of_the_nodes_of_any_graph_over_the_same_relations(
    nodepiece: Nodepiece, run: Path, tmp_path: Path
) -> None:
    def vectors_of(*options: object) -> dict[str, list[float]]:
        ran = nodepiece("embed", run, "-o", "vectors.parquet", *options)
        assert ran.status == 0, ran.err
        table = pq.read_table(tmp_path / "vectors.parquet")
        return dict(zip(table["node"].to_pylist(), table["vector"].to_pylist(), strict=True))

    inference = vectors_of()
    assert len(inference) == 78 and "new person 1" in inference
    inference_file = tmp_path / "worlds" / "inference" / "train.tsv"
    again = vectors_of("--graph", inference_file)  # the weights know no node
    assert list(again) == list(inference)
    np.testing.assert_allclose([*again.values()], [*inference.values()], atol=1e-5)

    new, names = tmp_path / "new.tsv", tmp_path / "names.txt"
    new.write_text("ann\tlives in\trome\nbob\tlives in\trome\nrome\tis in\titaly\n")
    found = vectors_of("--graph", new)
    assert list(found) == ["ann", "rome", "bob", "italy"] and len(found["ann"]) == 16
    assert found["ann"] == pytest.approx(found["bob"], abs=1e-5)  # who stand alike in the graph
    assert found["ann"] != pytest.approx(found["rome"], abs=1e-5)
    names.write_text("italy\nann\n")
    some = vectors_of("--graph", new, "--nodes", names)
    assert list(some) == ["italy", "ann"]
    assert some["ann"] == pytest.approx(found["ann"], abs=1e-5)


def test_other_graphs_are_for_inductive_runs(
    nodepiece: Nodepiece, trained: Path, facts: Path
) -> None:
    asked = ("--head", "ada", "--relation", "knows")
    ran = nodepiece("predict", trained, "--graph", facts, *asked)
    assert ran.status == 2
    assert "answers for its own graph only" in ran.err
