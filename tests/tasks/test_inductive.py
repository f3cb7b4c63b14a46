"""Training on one graph, evaluation on another that has no node in common with it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.citizens import EXPERIMENT, RELATIONS, experiment, two_worlds

from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.errors import InputError
from nodepiece.evaluation.sampled_negatives import LEFT_OUT
from nodepiece.evaluation.settings import EvaluationSettings
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.inference.inductive import InductiveRun
from nodepiece.inference.run import load
from nodepiece.settings import Experiment, load_experiment
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment

NO_WALKS = WalkSettings()


def run(chosen: Experiment, folder: Path, **options: Any) -> dict[str, Any] | None:
    task = InductiveLinkPrediction(chosen, two_worlds())
    return run_experiment(task, RunOptions(folder, torch.device("cpu"), **options))


def finished(chosen: Experiment, folder: Path, **options: Any) -> dict[str, Any]:
    metrics = run(chosen, folder, **options)
    assert metrics is not None
    return metrics


def outcome(folder: Path) -> tuple[dict[str, Any], bytes]:
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["seconds"], metrics["peak_memory"]
    return metrics, (folder / "model.safetensors").read_bytes()


def test_citizenship_is_found_in_a_world_never_seen(tmp_path: Path) -> None:
    """PageRank puts the right country first for a tenth of the people."""
    metrics = finished(experiment(epochs=25), tmp_path / "run")
    assert metrics["tail"]["hits@1"] > 0.95
    assert metrics["all nodes"]["mrr"] > 0.9
    assert metrics["personalized_pagerank"]["tail"]["hits@1"] < 0.3
    assert metrics["count"] == 40
    assert set(metrics["spread"]) == {"mrr", "mean_rank", "hits@1", "hits@3", "hits@10"}


@pytest.mark.parametrize(
    "training",
    [
        {"loss": "cross-entropy"},
        {"loss": "self-adversarial", "hide_targets": False, "margin": 4.0, "epochs": 80},
    ],
)
def test_what_nodes_are_is_learned_without_walks(training: dict[str, Any], tmp_path: Path) -> None:
    """Vectors tell countries from other nodes: of 50 random ones, four or five are countries."""
    chosen = replace(experiment(**({"epochs": 25} | training)), walks=NO_WALKS)
    assert finished(chosen, tmp_path / "run")["tail"]["hits@10"] > 0.8


KINDS: dict[str, Experiment] = {
    "plain": replace(EXPERIMENT, walks=NO_WALKS),
    "walks": EXPERIMENT,
    "transformer": replace(EXPERIMENT, encoder=EncoderSettings("transformer", 16, 16, layers=1)),
    "no layers": replace(EXPERIMENT, graph=GraphLayerSettings()),
    "everything": replace(
        experiment(
            resample_relations=True, validate_every=2, relation_weight=0.5, clip_gradient=1.0
        ),
        tokenizer=replace(EXPERIMENT.tokenizer, relations_per_node=2),
        graph=GraphLayerSettings(
            kind="compgcn", layers=2, edge_dropout=0.1, residual=True, jumping_knowledge=True
        ),
        decoder=DecoderSettings("complex", node_norm=True, query_dropout=0.1),
        walks=WalkSettings(1, plain_steps=2, counts=False, vectors_alone=0.5),
    ),
    "published": replace(
        experiment(
            loss="self-adversarial", hide_targets=False, subsampling=True, steps_per_epoch=4
        ),
        decoder=DecoderSettings("rotate", unit_relations=True),
        walks=NO_WALKS,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_runs_with_one_seed_are_the_same_whole_or_interrupted_and_resumed(
    kind: str, tmp_path: Path
) -> None:
    finished(KINDS[kind], tmp_path / "whole")
    asked = iter(range(1, 100))
    stopped = run(KINDS[kind], tmp_path / "parts", should_stop=lambda: next(asked) == 3)
    assert stopped is None
    finished(KINDS[kind], tmp_path / "parts", resume=True)
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    finished(experiment(epochs=15), folder)
    return folder


def opened(folder: Path) -> InductiveRun:
    run = load(folder)
    assert isinstance(run, InductiveRun)
    return run


def test_the_folder_alone_gives_the_same_evaluation(trained: Path) -> None:
    metrics = json.loads((trained / "metrics.json").read_text())
    found = load(trained).evaluate("test").to_json()
    assert {key: metrics[key] for key in found} == found
    baseline = load(trained).evaluate_baseline("test").to_json()
    assert {key: baseline[key] for key in metrics["personalized_pagerank"]} == metrics[
        "personalized_pagerank"
    ]


def test_the_first_facts_can_be_judged_alone(trained: Path) -> None:
    run = load(trained, overrides=["evaluation.test_facts=5"])
    for report in (run.evaluate("test"), run.evaluate_baseline("test")):
        assert report.scores["count"] == report.parts["all nodes"]["count"] == 10


def test_queries_are_about_the_inference_graph(trained: Path) -> None:
    answers = opened(trained).predict(head="new person 50", relation="citizen of", top=3)
    assert all(answer.name.startswith("new country") for answer in answers)
    with pytest.raises(InputError, match="old person 1"):
        opened(trained).predict(head="old person 1", relation="citizen of")


def small_world(relations: list[str]) -> KnowledgeGraph:
    """ann - rome - italy, bob - oslo - norway; both know each other, by whatever relation."""
    nodes = ["ann", "rome", "italy", "bob", "oslo", "norway"]
    facts = [[0, 0, 1], [1, 1, 2], [3, 0, 4], [4, 1, 5], [0, 2, 3]]
    return KnowledgeGraph(np.array(facts), 6, len(relations), Names.of(nodes, relations))


def test_another_graph_is_asked_about_with_the_same_weights(trained: Path) -> None:
    """Its relations come in an order of their own."""
    graph = small_world(["lives in", "is in", "friend of"])
    there = load(trained).on_graph(graph)
    assert there.predict(head="ann", relation="citizen of", top=1)[0].name == "italy"
    assert there.predict(relation="citizen of", tail="norway", top=1)[0].name == "bob"
    assert there.known(head="ann", relation="lives in") == ["rome"]
    for evaluate in (there.evaluate, there.evaluate_baseline):  # not by the facts of another graph
        with pytest.raises(InputError, match="has no test facts"):
            evaluate("test")


def test_the_inference_graph_given_once_more_gives_the_same_answers(trained: Path) -> None:
    here = opened(trained)
    there = here.on_graph(here.dataset.train)
    answers, again = (
        run.predict(head="new person 59", relation="citizen of", include_known=True)
        for run in (here, there)
    )
    assert [(one.name, one.score) for one in answers] == [(one.name, one.score) for one in again]
    assert [one.is_known for one in answers][:1] == [True]  # stated in the test facts
    assert not any(one.is_known for one in again)


def test_a_relation_that_training_lacks_is_refused_or_is_the_mean_of_all(trained: Path) -> None:
    graph = small_world(["lives in", "is in", "has met"])
    with pytest.raises(InputError, match=r"'has met', were not in training"):
        load(trained).on_graph(graph)
    there = load(trained).on_graph(graph, unseen_relations="mean")
    assert there.predict(head="ann", relation="citizen of", top=1)[0].name == "italy"
    answers = there.predict(head="bob", relation="has met", top=5)
    assert len(answers) == 5 and np.isfinite([answer.score for answer in answers]).all()
    names = {answer.name for answer in there.predict(head="ann", tail="italy", top=10)}
    assert names == {*RELATIONS, "has met"} | {f"inverse of {r}" for r in [*RELATIONS, "has met"]}


def test_transductive_runs_answer_for_their_own_graph_only(tmp_path: Path) -> None:
    from tests.tasks.couples import couples
    from tests.tasks.couples import experiment as transductive

    from nodepiece.tasks.link_prediction import LinkPrediction

    task = LinkPrediction(transductive(epochs=1), couples())
    run_experiment(task, RunOptions(tmp_path / "run", torch.device("cpu")))
    with pytest.raises(InputError, match="answers for its own graph only"):
        load(tmp_path / "run").on_graph(small_world(["a", "b", "c"]))
    assert load(tmp_path / "run").evaluate_baseline() == load(tmp_path / "run").popularity()
    wrong = LinkPrediction(transductive(mask_share=0.5), couples())
    with pytest.raises(InputError, match=r"link-prediction does not read \[out_of_sample\]"):
        run_experiment(wrong, RunOptions(tmp_path / "wrong", torch.device("cpu")))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"tokenizer": replace(EXPERIMENT.tokenizer, anchors_per_node=2)}, "anchors belong to one"),
        ({"encoder": EncoderSettings(kind="lookup")}, "cannot be used on another graph"),
        ({"graph": GraphLayerSettings(layers=1)}, 'set graph.kind = "compgcn"'),
        ({"training": replace(EXPERIMENT.training, hide_targets=False)}, "predicted fact itself"),
        (
            {"training": replace(EXPERIMENT.training, loss="margin")},
            "goes with the losses against all",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_written(
    change: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        run(replace(EXPERIMENT, **change), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_batch_that_hides_the_whole_graph_is_refused(tmp_path: Path) -> None:
    num_facts = two_worlds().training.train.num_triples
    with pytest.raises(InputError, match=rf"hides all {num_facts} facts .*batch_size = 63 or"):
        run(experiment(batch_size=2 * num_facts), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def write_worlds(folder: Path) -> None:
    for part, people in (("training", ["a", "b", "c"]), ("inference", ["x", "y", "z"])):
        (folder / part).mkdir(parents=True)
        lines = [f"{p}\tlives in\t{p} town\n{p} town\tis in\t{p} land" for p in people]
        lines += [f"{people[0]}\tcitizen of\t{people[0]} land"]
        (folder / part / "train.tsv").write_text("\n".join(lines) + "\n")
    with (folder / "inference" / "train.tsv").open("a") as file:
        file.write("x\tadmires\ty\n")
    (folder / "inference" / "valid.tsv").write_text("y\tcitizen of\ty land\n")
    (folder / "inference" / "test.tsv").write_text("z\tcitizen of\tz land\nz\tadmires\tx\n")


@pytest.mark.parametrize(("how", "num_ranks", "num_unseen"), [("drop", 2, 1), ("mean", 4, 0)])
def test_a_folder_with_relations_that_training_lacks(
    how: str, num_ranks: int, num_unseen: int, tmp_path: Path
) -> None:
    write_worlds(tmp_path / "data")
    chosen = replace(experiment(batch_size=2), dataset=str(tmp_path / "data"))
    with pytest.raises(InputError, match="1 relations of the inference graph"):
        InductiveLinkPrediction.open(chosen, None).check()
    chosen = replace(chosen, evaluation=EvaluationSettings(unseen_relations=how, num_negatives=5))
    task = InductiveLinkPrediction.open(chosen, None)
    metrics = run_experiment(task, RunOptions(tmp_path / "run", torch.device("cpu")))
    assert metrics is not None
    assert metrics["count"] == num_ranks
    assert metrics["unseen"]["test"] == num_unseen
    assert load(tmp_path / "run").evaluate("test").scores["mrr"] == metrics["mrr"]


def test_a_folder_with_half_of_the_graphs_is_refused_with_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "inference").mkdir()
    chosen = replace(EXPERIMENT, dataset=str(tmp_path))
    with pytest.raises(InputError, match=r"no folder training/; an inductive dataset has"):
        InductiveLinkPrediction.open(chosen, None)


def test_the_baseline_waits_to_be_asked_for_where_it_would_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = InductiveLinkPrediction(EXPERIMENT, two_worlds())
    assert task.remarks()["personalized_pagerank"] is not None
    monkeypatch.setattr("nodepiece.tasks.inductive_link_prediction.BASELINE_WORK", 10)
    assert task.remarks()["personalized_pagerank"] is None


def test_a_single_graph_is_judged_on_itself() -> None:
    task = InductiveLinkPrediction.open(replace(EXPERIMENT, dataset="countries"), None)
    assert task.inference is task.dataset.training
    assert len(task.inference.test) == 165
    assert task.describe().count("831 nodes") == 1
    assert task.describe().endswith("ranks are among 50 nodes drawn at random, 10 times")


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_trains_on_a_gpu_about_as_on_the_cpu(kind: str, tmp_path: Path) -> None:
    """Other random numbers there, so only the loss before much was learned is comparable."""
    losses = []
    for device in ("cpu", "cuda"):
        options = RunOptions(tmp_path / device, torch.device(device))
        assert run_experiment(InductiveLinkPrediction(KINDS[kind], two_worlds()), options)
        lines = (tmp_path / device / "history.jsonl").read_text().splitlines()
        losses.append([json.loads(line)["loss"] for line in lines])
    assert losses[0] == pytest.approx(losses[1], rel=0.2)


@pytest.mark.data
@pytest.mark.parametrize(
    ("split", "heads", "tails"), [("nell-995-v1", 0.38, 0.14), ("fb15k-237-v3", 0.0, 0.0)]
)
def test_the_share_of_negatives_that_the_published_ranks_leave_out(
    split: str, heads: float, tails: float, benchmark_data: Path
) -> None:
    published = load_experiment(f"inductive-{split}-paper")
    task = InductiveLinkPrediction.open(published, benchmark_data)
    of_tails, of_heads = np.split(task.evaluator.negatives("test"), 2)
    assert (of_heads == LEFT_OUT).mean() == pytest.approx(heads, abs=0.01)
    assert (of_tails == LEFT_OUT).mean() == pytest.approx(tails, abs=0.01)
