"""A budget of minutes: what follows from it is recorded, and gives the same result again."""

import json
import math
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch
from tests.tasks.couples import couples, experiment

from nodepiece.decoders.walks import WalkSettings
from nodepiece.errors import InputError
from nodepiece.settings import Experiment
from nodepiece.tasks.budget import Budget, is_same_but_for_length, with_validation_for
from nodepiece.tasks.evaluation_time import (
    VALIDATIONS_TO_CHOOSE,
    EvaluationTime,
    chosen_number,
    minutes_in_words,
    num_validated_in,
    plan_evaluation,
    ranking_time,
    seconds_to_choose,
    within_time_left,
)
from nodepiece.tasks.evaluator import LinkEvaluator
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.path_coefficients import COEFFICIENTS, FEW_TO_CHOOSE
from nodepiece.tasks.run_folder import read_config
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.task import Task

CPU = torch.device("cpu")
TIMED = with_validation_for(experiment(loss="self-adversarial"))


def run(chosen: Experiment, folder: Path, **options: Any) -> dict[str, Any]:
    task = LinkPrediction(chosen, couples())
    metrics = run_experiment(task, RunOptions(folder, CPU, **options))
    assert metrics is not None
    return metrics


def minutes(number: float) -> Budget:
    return Budget(number, perf_counter())


def test_what_followed_from_the_minutes_gives_the_same_result_again(tmp_path: Path) -> None:
    timed = run(TIMED, tmp_path / "timed", budget=minutes(0.03), command="nodepiece train -o x")

    stored = read_config(tmp_path / "timed")
    assert stored.training.stages[-1] >= timed["steps"] > 0
    assert "--set 'training.stages=[" in timed["command"]
    assert timed["minutes"] == 0.03
    if stored.training.stages[-1] == timed["steps"]:  # else the machine was too slow at the end
        again = run(stored, tmp_path / "again")
        assert again["steps"] == timed["steps"]
        assert (again["mrr"], again["best_step"]) == (timed["mrr"], timed["best_step"])


def test_a_finished_run_is_given_more_minutes(tmp_path: Path) -> None:
    first = run(TIMED, tmp_path, budget=minutes(0.02))
    more = run(TIMED, tmp_path, budget=minutes(0.02), resume=True)

    assert more["steps"] > first["steps"]
    assert len(read_config(tmp_path).training.stages) >= 2
    assert json.loads((tmp_path / "metrics.json").read_text())["steps"] == more["steps"]


def test_a_finished_run_is_given_more_epochs(tmp_path: Path) -> None:
    run(experiment(epochs=2), tmp_path / "parts")
    more = run(experiment(epochs=5), tmp_path / "parts", resume=True)

    whole = run(experiment(epochs=5), tmp_path / "whole")
    assert (more["epochs"], more["steps"], more["mrr"]) == (5, whole["steps"], whole["mrr"])
    assert read_config(tmp_path / "parts").training.epochs == 5


def test_a_finished_run_is_not_made_shorter(tmp_path: Path) -> None:
    run(experiment(epochs=3), tmp_path / "run")
    with pytest.raises(InputError, match="has 3 epochs already"):
        run(experiment(epochs=2), tmp_path / "run", resume=True)


def test_a_run_of_another_length_is_replaced_if_that_is_wanted(tmp_path: Path) -> None:
    run(experiment(epochs=3), tmp_path / "run")
    metrics = run(experiment(epochs=1), tmp_path / "run", resume=True, overwrite=True)
    assert metrics["epochs"] == 1
    assert read_config(tmp_path / "run").training.epochs == 1


@pytest.mark.parametrize("number", [0.0, -1.0, math.nan, math.inf])
def test_impossible_minutes_are_refused(number: float) -> None:
    with pytest.raises(InputError, match="minutes must be a number above 0"):
        minutes(number)


@pytest.mark.parametrize(
    ("seconds_a_fact", "valid", "test"),
    [
        (0.0001, 0, 0),  # all of them
        (0.1, 239, 239),  # 4 % of ten minutes, as 1.5 % are few facts; 8 % for two splits
        (10.0, 50, 50),  # at least some
    ],
)
def test_as_many_facts_are_ranked_as_there_is_time_for(
    seconds_a_fact: float, valid: int, test: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LinkPrediction, "num_evaluated", lambda self, split: 10_000)

    def seconds_of(task: Task[Any], model: torch.nn.Module) -> float:
        return 0.1 + seconds_a_fact * task.experiment.evaluation.validation_facts

    monkeypatch.setattr("nodepiece.tasks.evaluation_time.seconds_of", seconds_of)
    task = LinkPrediction(TIMED, couples())

    planned, time = plan_evaluation(task, torch.nn.Linear(1, 1), minutes(10.0))

    evaluation = planned.experiment.evaluation
    assert evaluation.validation_facts == pytest.approx(valid, abs=2)
    assert evaluation.test_facts == pytest.approx(test, abs=2)
    assert time.validation == pytest.approx(0.1 + seconds_a_fact * (valid or 10_000), rel=0.05)


def test_a_number_of_facts_that_is_set_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodepiece.tasks.evaluation_time.seconds_of", lambda task, model: 0.1)
    evaluation = replace(TIMED.evaluation, test_facts=3, validation_facts=2)
    task = LinkPrediction(replace(TIMED, evaluation=evaluation), couples())
    planned, _ = plan_evaluation(task, torch.nn.Linear(1, 1), minutes(1.0))
    assert planned.experiment.evaluation == evaluation


def test_a_run_that_goes_on_ranks_as_many_facts_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodepiece.tasks.evaluation_time.seconds_of", lambda task, model: 0.1)
    rest = Budget(0.01, perf_counter(), is_rest=True)
    ranked = {"validation_facts": 3, "test_facts": 2}
    task = LinkPrediction(TIMED, couples())
    planned, time = plan_evaluation(task, torch.nn.Linear(1, 1), rest, ranked)
    found = planned.experiment.evaluation
    assert (found.validation_facts, found.test_facts) == (3, 2)
    assert time.ranking  # of fewer, if it takes longer than was planned


def test_fewer_facts_are_ranked_for_the_result_where_ranking_became_slower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nodepiece.tasks.evaluation_time.MIN_FACTS", 1)
    monkeypatch.setattr("nodepiece.tasks.evaluation_time.perf_counter", lambda: 0.0)
    task = LinkPrediction(experiment(), couples())
    assert max(len(couples().valid), len(couples().test)) == 5
    time = EvaluationTime(validation=1.0, evaluation=12.0, ranking=10.0)

    def ranked(validation_seconds: float, left: float, time: EvaluationTime = time) -> int:
        budget = Budget(1.0, start=left - 60.0)
        found = within_time_left(task, time, validation_seconds, budget)
        return found.experiment.evaluation.test_facts

    assert ranked(1.0, left=11) == 0  # all, as planned
    assert ranked(2.0, left=12) == 3  # of 5
    assert ranked(1.0, left=-5) == 1
    quick = EvaluationTime(validation=0.1, evaluation=1.3, ranking=1.0)
    assert ranked(0.1, left=-5, time=quick) == 0  # all: they take 1 s of a minute
    assert ranked(2.0, left=1, time=replace(time, ranking=0.0)) == 0  # the number was given


def test_no_more_facts_are_ranked_to_find_the_time_than_there_is_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranked: list[int] = []

    def seconds_of(task: Task[Any], model: torch.nn.Module) -> float:
        ranked.append(task.experiment.evaluation.validation_facts)
        return 0.5 + 1.0 * ranked[-1]

    monkeypatch.setattr("nodepiece.tasks.evaluation_time.seconds_of", seconds_of)
    task, model = LinkPrediction(TIMED, couples()), torch.nn.Linear(1, 1)
    assert ranking_time(task, model, 10_000, limit=10.0) == pytest.approx((0.5, 1.0))
    assert ranked == [1, 16, 1]
    assert ranking_time(task, model, 10_000, limit=40.0) == pytest.approx((0.5, 1.0))
    assert ranked[3:] == [1, 16, 16, 38]
    assert ranking_time(task, model, 10_000) == pytest.approx((0.5, 1.0))
    assert ranked[7:] == [1, 16, 16, 256]


def test_known_answers_are_found_once_for_all_evaluators_of_a_dataset() -> None:
    dataset = couples()
    one, other = LinkEvaluator(TIMED, dataset), LinkEvaluator(experiment(), dataset)
    assert one.known is other.known
    assert LinkEvaluator(TIMED, couples()).known is not one.known
    relations = LinkEvaluator(experiment("relation-prediction"), dataset)
    assert relations.known is not one.known


def test_a_time_that_is_over_before_training_is_named(tmp_path: Path) -> None:
    lines: list[str] = []
    late = Budget(0.5, perf_counter() - 29)
    run(TIMED, tmp_path / "run", budget=late, log=lines.append)
    assert any("were over before training began" in line for line in lines)

    lines.clear()  # a graph that needs no more: more minutes would not help
    enough = Budget(0.5, perf_counter() - 29, is_enough=True)
    run(TIMED, tmp_path / "enough", budget=enough, log=lines.append)
    assert lines and not any("were over before training began" in line for line in lines)


def test_few_facts_are_validated_for_longer_and_many_are_not() -> None:
    assert num_validated_in(1_000, fixed=0, each=0.01) == pytest.approx(1_500)
    assert num_validated_in(1_000, fixed=0, each=0.06) == 500  # 250 at the usual share
    assert num_validated_in(1_000, fixed=0, each=0.4) == pytest.approx(100)


def test_numbers_of_facts_are_none_too_small_and_0_for_all() -> None:
    assert [chosen_number(n, 100) for n in (-5.0, 60.5, 99.0, 100.0, 1e9)] == [50, 60, 99, 0, 0]


def test_runs_of_other_lengths_may_go_on_and_others_may_not() -> None:
    assert is_same_but_for_length(experiment(epochs=2), experiment(epochs=9))
    assert is_same_but_for_length(experiment(), experiment(stages=(6, 10), validate_every=1))
    assert not is_same_but_for_length(experiment(), experiment(validate_every=1))
    assert not is_same_but_for_length(experiment(), experiment(learning_rate=0.5))


def test_a_choice_of_coefficients_takes_longer_where_scores_of_paths_are_not_remembered() -> None:
    walks = WalkSettings(3, choose_coefficient=True)
    chosen = Experiment(name="mine", dataset="mine", walks=walks)

    def seconds(experiment: Experiment, num_facts: int, num_nodes: int) -> float:
        return seconds_to_choose(experiment, num_facts, num_nodes, (5.0, 1.0), on_gpu=False)

    assert seconds(Experiment(name="mine", dataset="mine"), 1_000, 10**6) == 0
    assert seconds(chosen, 1_000, 10_000) == 5 + VALIDATIONS_TO_CHOOSE * 1_000
    again = 5 + len(COEFFICIENTS) * 1_000
    assert seconds(chosen, 1_000, 10**7) == pytest.approx(again, rel=0.01)
    sparse = replace(chosen, walks=replace(walks, counts=False))
    assert seconds(sparse, 1_000, 10_000) == 5 + len(COEFFICIENTS) * FEW_TO_CHOOSE
    assert seconds(sparse, 10, 10_000) == 5 + 10 * len(COEFFICIENTS)
    inductive = replace(sparse, task="inductive-link-prediction")
    assert seconds(inductive, 10, 10_000) == len(COEFFICIENTS) * (5 + 10)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0.323566, "0.32 minutes"),
        (1.0, "1 minute"),
        (7.5, "7.5 minutes"),
        (10, "10 minutes"),
        (1440, "1,440 minutes"),
    ],
)
def test_minutes_are_rounded_in_words(number: float, words: str) -> None:
    assert minutes_in_words(number) == words
