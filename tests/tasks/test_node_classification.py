"""Classes learned from the graph, on sixty people in twelve towns."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.couples import couples
from tests.tasks.couples import experiment as couples_experiment
from tests.tasks.professions import EXPERIMENT, experiment, professions

from nodepiece.data.labelled_graph import LabelledGraph, NodeLabels
from nodepiece.decoders.class_model import ClassifierSettings
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.encoders.complex_numbers import moduli
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.errors import InputError
from nodepiece.inference.classes import ClassRun
from nodepiece.inference.run import load
from nodepiece.settings import Experiment, load_experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.node_classification import NodeClassification, sample_labels
from nodepiece.tasks.runner import RunOptions, run_experiment


def run(
    chosen: Experiment, folder: Path, *, dataset: LabelledGraph | None = None, **options: Any
) -> dict[str, Any] | None:
    run_options = RunOptions(folder, torch.device(options.pop("device", "cpu")), **options)
    return run_experiment(NodeClassification(chosen, dataset or professions()), run_options)


def finished(chosen: Experiment, folder: Path, **options: Any) -> dict[str, Any]:
    metrics = run(chosen, folder, **options)
    assert metrics is not None
    return metrics


def history(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [{**json.loads(line), "seconds": 0} for line in lines]


def test_classes_that_follow_from_the_graph_are_learned(tmp_path: Path) -> None:
    metrics = finished(
        experiment(epochs=120, validate_every=20, checkpoint_seconds=60), tmp_path / "run"
    )
    assert metrics["hard_accuracy"] >= 0.9 and metrics["roc_auc"] >= 0.98
    assert metrics["labelled_nodes"] == {"train": 30, "valid": 15, "test": 15}
    assert metrics["num_classes"] == metrics["num_classes_in_training"] == 3
    assert set(metrics["classes"]) == {"northerner", "player", "teacher"}
    opened = load(tmp_path / "run")
    assert isinstance(opened, ClassRun)
    assert opened.evaluate("test").scores["hard_accuracy"] == metrics["hard_accuracy"]
    truth = opened.task.dataset.labels["train"]
    best = opened.classify("person 0", top=3)
    assert [answer.score for answer in best] == sorted((a.score for a in best), reverse=True)
    stated = {
        opened.task.dataset.classes[label] for position, label in truth.classes if not position
    }
    assert {answer.name for answer in best if answer.is_known} == stated
    assert {answer.name for answer in best if answer.score > 0.5} == stated


def test_baselines_are_frequent_classes_and_those_of_neighbours(tmp_path: Path) -> None:
    """Schools and towns have no labels, so the neighbours of people say nothing here."""
    finished(experiment(epochs=1), tmp_path / "run")
    found = load(tmp_path / "run").compare_baselines()
    assert set(found) == {"class shares", "classes of neighbours"}
    assert found["class shares"]["roc_auc"] == found["classes of neighbours"]["roc_auc"] == 0.5
    assert found["class shares"].keys() == {"roc_auc", "prc_auc", "hard_accuracy"}


def test_vectors_of_single_nodes_do_not_generalize(tmp_path: Path) -> None:
    """The MLP baseline of the paper memorizes the training nodes."""
    chosen = replace(
        experiment(epochs=60, validate_every=60, metric="roc_auc", checkpoint_seconds=60),
        encoder=EncoderSettings(kind="lookup", dim=16),
        graph=GraphLayerSettings(),
        classifier=ClassifierSettings(hidden_layers=2),
    )
    metrics = finished(chosen, tmp_path / "run")
    last = history(tmp_path / "run")[-1]
    assert last["train_hard_accuracy"] >= 0.9
    assert metrics["hard_accuracy"] <= 0.6


def test_compgcn_runs_on_vectors_of_single_nodes_too(tmp_path: Path) -> None:
    chosen = replace(experiment(), encoder=EncoderSettings(kind="lookup", dim=16))
    metrics = finished(chosen, tmp_path / "run")
    assert metrics["vocabulary"]["anchors"] == 0 and metrics["epochs"] == 6


@pytest.mark.parametrize("encoder", [EXPERIMENT.encoder, EncoderSettings(kind="lookup", dim=16)])
def test_relations_keep_to_the_unit_circle_on_request(
    encoder: EncoderSettings, tmp_path: Path
) -> None:
    chosen = replace(
        experiment(), encoder=encoder, classifier=ClassifierSettings(unit_relations=True)
    )
    finished(chosen, tmp_path / "run")
    opened = load(tmp_path / "run")
    assert isinstance(opened, ClassRun)
    found = moduli(opened.model.relation_vectors())
    torch.testing.assert_close(found, torch.ones_like(found))


def test_an_interrupted_run_ends_where_the_whole_one_does(tmp_path: Path) -> None:
    finished(experiment(), tmp_path / "whole")
    asked = iter(range(1, 100))
    assert run(experiment(), tmp_path / "run", should_stop=lambda: next(asked) == 3) is None
    finished(experiment(), tmp_path / "run", resume=True)
    for name in ("model.safetensors", "labels/train_nodes.npy"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert history(tmp_path / "run") == history(tmp_path / "whole")


def test_train_and_validation_are_reported_every_few_epochs(tmp_path: Path) -> None:
    finished(experiment(), tmp_path / "run")
    records = history(tmp_path / "run")
    epochs = [record["epoch"] for record in records if "valid_hard_accuracy" in record]
    assert epochs == [2, 4, 6]
    for name in ("roc_auc", "prc_auc", "hard_accuracy"):
        assert f"valid_{name}" in records[-1] and f"train_{name}" in records[-1]


def test_a_share_of_the_labels_is_drawn_by_the_seed() -> None:
    labels = professions().labels["train"]
    some = sample_labels(labels, 0.1, rng=np.random.default_rng(0))
    again = sample_labels(labels, 0.1, rng=np.random.default_rng(0))
    others = sample_labels(labels, 0.1, rng=np.random.default_rng(1))
    assert len(some.nodes) == 3 and some.nodes.tolist() == again.nodes.tolist()
    assert some.nodes.tolist() != others.nodes.tolist()
    assert len(sample_labels(labels, 0.001, rng=np.random.default_rng(0)).nodes) == 1
    everything = sample_labels(labels, 1.0, rng=np.random.default_rng(0))
    assert everything.nodes.tolist() == labels.nodes.tolist()
    assert everything.classes.tolist() == labels.classes.tolist()


def test_the_sampled_nodes_are_in_the_run_folder(tmp_path: Path) -> None:
    chosen, dataset = experiment(label_share=0.2), professions()
    rng = np.random.default_rng(chosen.seed)
    sample = sample_labels(dataset.labels["train"], 0.2, rng=rng)
    sampled = replace(dataset, labels=dataset.labels | {"train": sample})
    metrics = finished(chosen, tmp_path / "run", dataset=sampled)
    assert metrics["label_share"] == 0.2 and metrics["labelled_nodes"]["train"] == 6
    recorded = np.load(tmp_path / "run/labels/train_nodes.npy")
    assert recorded.tolist() == sample.nodes.tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "mrr"}, "no training.metric = 'mrr'; it is one of roc_auc, prc_auc"),
        ({"loss": "cross-entropy"}, 'set training.loss = "binary-cross-entropy"'),
        ({"hide_targets": True}, "hide_targets = true would do nothing: node-class"),
        ({"regularization": 0.1}, "one_vs_all.regularization = 0.1 would do nothing"),
        ({"mask_share": 0.1}, "out_of_sample.mask_share = 0.1 would do nothing"),
    ],
)
def test_settings_for_other_tasks_are_refused(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(experiment(**changes), tmp_path / "run")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_a_decoder_of_facts_is_refused(tmp_path: Path) -> None:
    chosen = replace(EXPERIMENT, decoder=DecoderSettings(kind="distmult"))
    with pytest.raises(InputError, match=r"does not read \[decoder\]"):
        run(chosen, tmp_path / "run")


def test_layers_that_are_not_compgcn_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'set graph\.kind = "compgcn"'):
        run(replace(EXPERIMENT, graph=GraphLayerSettings(layers=1)), tmp_path / "run")


def test_unit_relations_are_refused_where_nothing_rotates(tmp_path: Path) -> None:
    chosen = replace(
        EXPERIMENT,
        graph=replace(EXPERIMENT.graph, composition="multiply"),
        classifier=ClassifierSettings(unit_relations=True),
    )
    with pytest.raises(InputError, match=r"classifier\.unit_relations goes with graph layers"):
        run(chosen, tmp_path / "run")


def test_compgcn_is_refused_where_facts_of_the_same_graph_are_predicted() -> None:
    layers = GraphLayerSettings(kind="compgcn", layers=1)
    with pytest.raises(InputError, match=r'set graph\.kind = "mean" for link-prediction'):
        LinkPrediction(replace(couples_experiment(), graph=layers), couples()).check()


def test_validation_needs_labelled_nodes(tmp_path: Path) -> None:
    dataset = professions()
    nothing = dataset.labels["valid"].only(np.empty(0, np.int32))
    without = replace(dataset, labels=dataset.labels | {"valid": nothing})
    with pytest.raises(InputError, match="no labelled nodes for validation"):
        run(experiment(), tmp_path / "run", dataset=without)
    finished(experiment(validate_every=0), tmp_path / "run", dataset=without)


def only_with(dataset: LabelledGraph, name: str) -> LabelledGraph:
    """The nodes of a class, and that class alone."""
    wanted, labels = dataset.classes.index(name), {}
    for part, them in dataset.labels.items():
        nodes = them.nodes[them.classes[them.classes[:, 1] == wanted, 0]]
        pairs = np.stack([np.arange(len(nodes)), np.zeros(len(nodes))], axis=1).astype(np.int32)
        labels[part] = NodeLabels(nodes, pairs)
    return replace(dataset, classes=(name,), labels=labels)


def test_a_class_that_everybody_has_gives_no_areas(tmp_path: Path) -> None:
    dataset = only_with(professions(), "teacher")
    with pytest.raises(InputError, match="no class that some nodes for validation have and others"):
        run(experiment(metric="prc_auc"), tmp_path / "run", dataset=dataset)
    metrics = finished(experiment(), tmp_path / "run", dataset=dataset)
    assert metrics["hard_accuracy"] == 1 and "roc_auc" not in metrics


def test_labels_without_any_class_are_refused(tmp_path: Path) -> None:
    nothing = {
        part: NodeLabels(labels.nodes, np.empty((0, 2), np.int32))
        for part, labels in professions().labels.items()
    }
    with pytest.raises(InputError, match="professions has no classes"):
        run(
            EXPERIMENT, tmp_path / "run", dataset=replace(professions(), classes=(), labels=nothing)
        )


def test_vectors_of_nodes_are_given_by_name(tmp_path: Path) -> None:
    finished(experiment(), tmp_path / "run")
    opened = load(tmp_path / "run")
    everything, names = opened.embed(), opened.node_names()
    assert everything.shape == (len(names), 16)
    two = opened.embed(["town 3", "person 0"])
    expected = everything[[names.index("town 3"), names.index("person 0")]]
    np.testing.assert_array_equal(two, expected)
    with pytest.raises(InputError, match="unknown node 'town'"):
        opened.embed(["person 0", "town"])


def test_a_run_refuses_what_it_cannot_answer(tmp_path: Path) -> None:
    finished(experiment(), tmp_path / "run")
    opened = load(tmp_path / "run")
    with pytest.raises(InputError, match="it predicts no facts; ask for the classes of a node"):
        opened.predict(head="person 0", relation="lives in")
    with pytest.raises(InputError, match="unknown node 'person'"):
        opened.classify("person")
    with pytest.raises(InputError, match="there is no split 'dev'"):
        opened.evaluate("dev")


@pytest.mark.parametrize("name", ["classes.json", "train_nodes.npy", "test_classes.npy"])
def test_damaged_labels_are_refused_by_name(name: str, tmp_path: Path) -> None:
    finished(experiment(), tmp_path / "run")
    (tmp_path / "run/labels" / name).write_bytes(b"damaged")
    with pytest.raises(InputError, match=f"{name} is damaged or of another run"):
        load(tmp_path / "run")


def test_labels_of_another_run_are_refused(tmp_path: Path) -> None:
    finished(experiment(), tmp_path / "run")
    np.save(tmp_path / "run/labels/train_nodes.npy", np.array([10**6], dtype=np.int32))
    with pytest.raises(InputError, match=r"train_nodes\.npy is damaged or of another run"):
        load(tmp_path / "run")


@pytest.mark.parametrize("share", [0.0, 1.1])
def test_an_impossible_share_of_labels_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="label_share"):
        ClassifierSettings(label_share=share)


@pytest.mark.data
@pytest.mark.parametrize(("share", "number"), [(5, 1529), (10, 3057), (100, 30571)])
def test_the_shares_of_wd50k_are_real(share: int, number: int, benchmark_data: Path) -> None:
    task = NodeClassification.open(load_experiment(f"wd50k-{share}-paper"), benchmark_data)
    task.check()
    assert task.remarks()["labelled_nodes"] == {"train": number, "valid": 3790, "test": 3832}
    assert task.graph.num_nodes == 40324 and len(task.dataset.classes) == 465


@pytest.mark.gpu
def test_classes_are_learned_on_a_gpu_about_as_on_the_cpu(tmp_path: Path) -> None:
    chosen = experiment(epochs=120, validate_every=20)
    metrics = finished(chosen, tmp_path / "run", device="cuda")
    assert metrics["hard_accuracy"] >= 0.9
