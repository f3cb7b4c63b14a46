"""The coefficient of walks, chosen by validation, in every task that has walks."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.tasks import citizens
from tests.tasks.couples import couples, experiment
from tests.tasks.newcomers import settings, task
from torch import Tensor

from nodepiece.data.out_of_sample import UnseenEdges
from nodepiece.decoders.path_scorers import PathGraph, PathScorers
from nodepiece.decoders.propagation import PropagationSettings
from nodepiece.decoders.walks import Walks, WalkSettings
from nodepiece.errors import InputError
from nodepiece.inference.facts import Query
from nodepiece.inference.run import load, load_links
from nodepiece.inference.update import update_run
from nodepiece.settings import Experiment, to_toml
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.out_of_sample import OutOfSample
from nodepiece.tasks.path_coefficients import (
    COEFFICIENTS,
    choose_coefficients,
    try_coefficients,
)
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.task import Task
from nodepiece.tasks.tokens import tokenize_for

CHOOSING = WalkSettings(
    2, separate_losses=True, coefficient=2.5, choose_coefficient=True
)  # 2.5 is not in COEFFICIENTS
LINKS = replace(
    experiment(epochs=4, hide_targets=True, validate_every=1, learning_rate=0.03), walks=CHOOSING
)


def links() -> LinkPrediction:
    return LinkPrediction(LINKS, couples())


def inductive() -> InductiveLinkPrediction:
    chosen = replace(citizens.experiment(epochs=3, validate_every=1), walks=CHOOSING)
    return InductiveLinkPrediction(chosen, citizens.two_worlds())


def out_of_sample() -> OutOfSample:
    return task(settings(training={"mask_share": 0.3, "validate_every": 1}, walks=CHOOSING))


TASKS: tuple[Callable[[], Task[Any]], ...] = (links, inductive, out_of_sample)


def run(opened: Task[Any], folder: Path, **options: Any) -> dict[str, Any] | None:
    return run_experiment(opened, RunOptions(folder, torch.device("cpu"), **options))


def finished(opened: Task[Any], folder: Path, **options: Any) -> dict[str, Any]:
    metrics = run(opened, folder, **options)
    assert metrics is not None
    return metrics


def outcome(folder: Path) -> tuple[dict[str, Any], bytes]:
    metrics = json.loads((folder / "metrics.json").read_text())
    del metrics["peak_memory"]
    assert metrics.pop("seconds").keys() == {"tokenize", "train", "choose", "evaluate"}
    return metrics, (folder / "model.safetensors").read_bytes()


def history(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("make", TASKS)
def test_the_weight_that_is_best_in_validation_is_kept_and_written_down(
    make: Callable[[], Task[Any]], tmp_path: Path
) -> None:
    folder, said = tmp_path / "run", list[str]()
    metrics = finished(make(), folder, log=said.append)
    opened = load(folder)
    model: Any = opened.model
    chosen, table = (
        float(model.scorers["walks"].coefficient),
        metrics["coefficients_tried"]["walks"],
    )
    assert metrics["coefficients"]["walks"] == chosen
    assert [float(key) for key in table] == sorted([*COEFFICIENTS, 2.5])
    assert table[f"{chosen:g}"] == max(table.values())
    assert len(set(table.values())) > 1  # there was something to choose
    assert any(sentence.startswith(f"coefficient of walks {chosen:g}: valid") for sentence in said)

    assert opened.evaluate("test").scores["mrr"] == metrics["mrr"]
    assert metrics["valid"]["mrr"] == max(table.values())
    best_epoch = history(folder)[metrics["best_epoch"] - 1]
    assert table["2.5"] == best_epoch["valid_mrr"]  # until then the weight is that of the settings
    for key, score in table.items():
        model.scorers["walks"].coefficient.fill_(float(key))
        assert opened.task.validate(model)["mrr"] == score
    del model.scorers["walks"]
    assert opened.task.validate(model)["mrr"] == table["0"]


@pytest.mark.parametrize("make", TASKS)
def test_a_run_resumed_at_any_time_ends_with_the_same_weight(
    make: Callable[[], Task[Any]], tmp_path: Path
) -> None:
    finished(make(), tmp_path / "whole")
    whole = outcome(tmp_path / "whole")
    assert run(make(), tmp_path / "parts", should_stop=lambda: True) is None
    finished(make(), tmp_path / "parts", resume=True)
    assert outcome(tmp_path / "parts") == whole
    finished(make(), tmp_path / "parts", resume=True)  # after the last epoch
    assert outcome(tmp_path / "parts") == whole


def test_without_validation_in_training_there_is_still_a_choice(tmp_path: Path) -> None:
    chosen = replace(LINKS, training=replace(LINKS.training, validate_every=0))
    metrics = finished(LinkPrediction(chosen, couples()), tmp_path / "run")
    before = outcome(tmp_path / "run")
    assert metrics["valid"]["mrr"] == max(metrics["coefficients_tried"]["walks"].values())
    finished(LinkPrediction(chosen, couples()), tmp_path / "run", resume=True)
    assert outcome(tmp_path / "run") == before


def test_a_weight_that_is_not_chosen_is_in_no_file(tmp_path: Path) -> None:
    chosen = replace(LINKS, walks=replace(CHOOSING, choose_coefficient=False))
    metrics = finished(LinkPrediction(chosen, couples()), tmp_path / "run")
    assert not {"coefficients", "coefficients_tried"} & metrics.keys()
    assert metrics["seconds"].keys() == {"tokenize", "train", "evaluate"}
    saved = load_file(tmp_path / "run" / "model.safetensors")
    assert "scorers.walks.mix.weight" in saved and "scorers.walks.coefficient" not in saved


def test_a_run_of_before_there_was_a_choice_still_opens(tmp_path: Path) -> None:
    """Its settings do not name it; the weights are tied to them as they are written."""
    chosen = replace(LINKS, walks=replace(CHOOSING, choose_coefficient=False))
    assert "choose_coefficient = false\n" in to_toml(chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "nodepiece.tasks.run_folder.to_toml",
            lambda experiment: to_toml(experiment).replace("choose_coefficient = false\n", ""),
        )
        metrics = finished(LinkPrediction(chosen, couples()), tmp_path / "run")
    assert load(tmp_path / "run").evaluate("test").scores["mrr"] == metrics["mrr"]


def test_answers_of_all_kinds_go_by_the_chosen_weight(tmp_path: Path) -> None:
    metrics = finished(links(), tmp_path / "run")
    coefficient = metrics["coefficients"]["walks"]
    assert coefficient != 1
    asked = Query(1, 0, is_relation_query=False)
    new = [("stranger", "married to", "person 1")]
    trained = load_links(tmp_path / "run")
    assumed = trained.with_facts(new)
    updated = load_links(tmp_path / "run")
    update_run(updated, add=new)
    for answering in (trained, assumed, updated, load_links(tmp_path / "run")):
        found = answering.snapshot.scores(asked)
        with torch.no_grad():
            head = answering.node_vectors[[1]]
            relation = answering.model.relation_vectors()[[0]]
            by_vectors = answering.model.decoder.score_all_tails(
                head, relation, answering.node_vectors
            )
            scorers = answering.model.scorers
            scorers.train()  # where there is no coefficient
            first, second = torch.tensor([asked.first]), torch.tensor([asked.second])
            ((_, walked),) = scorers.all_scores(first, second, answering.snapshot.path_graph)
            scorers.eval()
        expected = (by_vectors + coefficient * walked)[0].numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("score", "best"),
    [
        (lambda coefficient: 0.3, 2.5),  # all alike: the weight of the settings
        (lambda coefficient: float(coefficient >= 3), 3.0),
        (lambda coefficient: float(coefficient in (0.5, 3.0)), 3.0),  # nearer to 2.5 than 0.5
        (lambda coefficient: -coefficient, 0.0),
        (lambda coefficient: coefficient, 32.0),
    ],
)
def test_of_equally_good_weights_the_nearest_to_the_settings_is_chosen(
    score: Callable[[float], float], best: float
) -> None:
    walks = Walks(4, CHOOSING, generator=torch.Generator().manual_seed(0))

    def validate() -> dict[str, float]:
        return {"mrr": score(float(walks.coefficient)), "hits@1": 0.0}

    try_coefficients("walks", walks, "mrr", validate, log=lambda sentence: None)
    assert float(walks.coefficient) == best


def test_a_choice_that_cannot_be_made_is_refused_before_training(tmp_path: Path) -> None:
    def refused(opened: Task[Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            run(opened, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def without_validation(chosen: Experiment) -> Experiment:
        return replace(chosen, training=replace(chosen.training, validate_every=0))

    none = np.empty((0, 3), np.int32)
    message = "walks.choose_coefficient needs validation facts, and dataset .* has none"
    dataset = replace(couples(), valid=none)
    refused(LinkPrediction(without_validation(LINKS), dataset), message)
    worlds = inductive()
    inference = replace(worlds.inference, valid=none)
    refused(
        InductiveLinkPrediction(
            without_validation(worlds.experiment), replace(worlds.dataset, inference=inference)
        ),
        message,
    )
    unseen = out_of_sample()
    nobody = UnseenEdges(np.zeros(1, np.int64), none[:, 0], none[:, 0])
    chosen, parts = without_validation(unseen.experiment), unseen.unseen | {"valid": nobody}
    refused(replace(unseen, experiment=chosen, unseen=parts), message)
    classes = replace(LINKS, training=replace(LINKS.training, metric="roc_auc"))
    refused(LinkPrediction(classes, couples()), "no training.metric = 'roc_auc'; it is one of mrr")


@pytest.mark.gpu
@pytest.mark.parametrize("make", TASKS)
def test_a_weight_chosen_on_a_gpu_is_there_on_the_cpu(
    make: Callable[[], Task[Any]], tmp_path: Path
) -> None:
    metrics = run_experiment(make(), RunOptions(tmp_path / "run", torch.device("cuda")))
    assert metrics is not None
    opened = load(tmp_path / "run")
    model: Any = opened.model
    assert float(model.scorers["walks"].coefficient) == metrics["coefficients"]["walks"]
    assert opened.evaluate("valid").scores["mrr"] == pytest.approx(metrics["valid"]["mrr"], rel=0.1)


def test_the_coefficients_of_two_scorers_are_chosen_for_each_other() -> None:
    """The best pair is (3, 4); in the first round, the first is chosen beside 2.5."""
    propagation = PropagationSettings(
        layers=1, separate_losses=True, coefficient=2.5, choose_coefficient=True
    )
    scorers = PathScorers([CHOOSING, propagation], 2, 4, generator=torch.Generator().manual_seed(0))

    def validate() -> dict[str, float]:
        first, second = (
            float(cast(torch.Tensor, scorers[name].coefficient))
            for name in ("walks", "propagation")
        )
        return {"mrr": -abs(first - second + 1) - 3 * abs(second - 4)}

    found = choose_coefficients(scorers, "mrr", validate, log=lambda sentence: None)
    assert found["coefficients"] == {"walks": 3, "propagation": 4}
    assert max(found["coefficients_tried"]["walks"].values()) == 0


def test_paths_are_scored_once_for_all_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = links()
    model = chosen.build_model(tokenize_for(LINKS, chosen.graph)).eval()
    scored: list[int] = []
    compute = Walks.scores

    def counted(walks: Walks, heads: Tensor, relations: Tensor, graph: PathGraph) -> Tensor:
        scored.append(len(heads))
        return compute(walks, heads, relations, graph)

    monkeypatch.setattr(Walks, "scores", counted)
    metrics = chosen.validate(model)
    once = sum(scored)
    scored.clear()
    found = chosen.after_training(model, log=lambda sentence: None)
    assert sum(scored) == once
    assert found["coefficients_tried"]["walks"]["2.5"] == metrics["mrr"]
    scored.clear()
    chosen.validate(model)
    assert sum(scored) == once  # nothing is remembered afterwards
