"""Training with the tokens of a vocabulary folder."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.tasks.couples import couples, experiment

from nodepiece.data.dataset import Dataset
from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.tasks.train import train_experiment
from nodepiece.tokenizer.array_parts import PART_UNIT
from nodepiece.tokenizer.storage import load_tokens, save_tokens
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary


def write_vocabulary(folder: Path, graph: KnowledgeGraph, *, k: int, seed: int) -> Path:
    settings = replace(experiment().tokenizer, anchors_per_node=k)
    rng = np.random.default_rng(seed)
    vocabulary = fit_vocabulary(graph, settings, rng=rng)
    save_tokens(tokenize(graph, vocabulary, rng=rng), folder)
    return folder


def test_a_run_has_the_tokens_and_settings_of_a_given_vocabulary(tmp_path: Path) -> None:
    given = write_vocabulary(tmp_path / "given", couples().train, k=3, seed=9)
    chosen = experiment(epochs=1)
    train_experiment(chosen, tmp_path / "run", data=couples(), device="cpu", vocabulary=given)
    one, other = load_tokens(given), load_tokens(tmp_path / "run" / "vocabulary")
    np.testing.assert_array_equal(one.anchors, other.anchors)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert f"--vocabulary {given}" in metrics["command"]
    assert "anchors_per_node = 3" in (tmp_path / "run" / "config.toml").read_text()


def test_a_vocabulary_of_the_same_tokens_changes_nothing(tmp_path: Path) -> None:
    chosen = experiment(epochs=1)
    given = write_vocabulary(
        tmp_path / "given", couples().train, k=chosen.tokenizer.anchors_per_node, seed=chosen.seed
    )
    train_experiment(chosen, tmp_path / "one", data=couples(), device="cpu")
    train_experiment(chosen, tmp_path / "two", data=couples(), device="cpu", vocabulary=given)
    one, two = (load_file(tmp_path / run / "model.safetensors") for run in ("one", "two"))
    assert all(np.array_equal(one[name], two[name]) for name in one)


def long_ring(num_nodes: int) -> Dataset:
    """Node i -> node i + 1."""
    node = np.arange(num_nodes)
    facts = np.stack([node, node % 2, (node + 1) % num_nodes], axis=1).astype(np.int32)
    graph = KnowledgeGraph(facts, num_nodes, 2, Names.of([f"n{i}" for i in node], ["even", "odd"]))
    return Dataset("ring", graph, facts[:5], facts[5:10], {"valid": 0, "test": 0})


def test_a_table_in_parts_trains_to_the_weights_of_one_file(tmp_path: Path) -> None:
    data = long_ring(6_000)
    chosen = experiment(epochs=1, loss="sampled-softmax", steps_per_epoch=3)
    k = chosen.tokenizer.anchors_per_node
    given = write_vocabulary(tmp_path / "given", data.train, k=k, seed=chosen.seed)
    save_tokens(load_tokens(given), tmp_path / "parts", part_bytes=PART_UNIT)
    for name in ("given", "parts"):
        train_experiment(
            chosen, tmp_path / f"run-{name}", data=data, device="cpu", vocabulary=tmp_path / name
        )
    one, two = (
        load_file(tmp_path / f"run-{name}/model.safetensors") for name in ("given", "parts")
    )
    assert all(np.array_equal(one[name], two[name]) for name in one)
    stored = tmp_path / "run-parts" / "vocabulary" / "tokens" / "anchors.npy.00002"
    assert stored.samefile(tmp_path / "parts" / "tokens" / "anchors.npy.00002")  # no second copy


def test_a_vocabulary_of_another_graph_is_refused(tmp_path: Path) -> None:
    other = KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1, Names.of(["a", "b"], ["r"]))
    settings = replace(experiment().tokenizer, num_anchors=1, anchors_per_node=1)
    rng = np.random.default_rng(0)
    save_tokens(
        tokenize(other, fit_vocabulary(other, settings, rng=rng), rng=rng), tmp_path / "given"
    )
    with pytest.raises(InputError, match="made for another graph"):
        train_experiment(
            experiment(epochs=1),
            tmp_path / "run",
            data=couples(),
            device="cpu",
            vocabulary=tmp_path / "given",
        )


def test_settings_chosen_for_a_graph_have_their_own_anchors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give --vocabulary to an EXPERIMENT"):
        train_experiment(None, tmp_path / "run", data=couples(), vocabulary=tmp_path)
