"""Hyperparameter search: where it starts, what it may change, how it goes on."""

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.planted_graphs import GraphSizes, planted_graph
from typer.testing import CliRunner

import nodepiece
from nodepiece.cli import app
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.errors import InputError, Stopped
from nodepiece.settings import Experiment, load_experiment, settings_by_name
from nodepiece.tasks import tune as search
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.open_tuning import tune_source
from nodepiece.tasks.search_space import (
    Choices,
    LogRange,
    search_space,
    start_of,
    with_values,
    within,
)
from nodepiece.tasks.trial import TuneOptions, Watch
from nodepiece.tasks.tune import Tuned
from nodepiece.training.checkpoint import Progress

pytest.importorskip("optuna")

SETTINGS = [
    *("tokenizer.num_anchors=20", "tokenizer.anchors_per_node=4", "encoder.dim=8"),
    *("encoder.hidden_dim=16", "walks.steps=0", "training.hide_targets=false"),
    *("graph.layers=0", "one_vs_all.path_queries=0", "training.batch_size=64"),
]


def facts(number: int = 300) -> list[tuple[str, str, str]]:
    graph = planted_graph(GraphSizes(100, number, 8), rng=np.random.default_rng(0))
    return [(f"n{head}", f"r{relation}", f"n{tail}") for head, relation, tail in graph.triples]


def write_facts(path: Path, number: int = 300) -> Path:
    path.write_text("".join("\t".join(fact) + "\n" for fact in facts(number)), encoding="utf-8")
    return path


def options_of(folder: Path, **others: Any) -> TuneOptions:
    return TuneOptions(folder, torch.device("cpu"), minutes=1e-9, **others)


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[Experiment]:
    """The settings of the trials, none of which is trained: the score is the learning rate."""
    ran: list[Experiment] = []

    def run_trial(task: LinkPrediction, trial: Any, options: TuneOptions) -> tuple[float, str]:
        ran.append(task.experiment)
        return task.experiment.training.learning_rate, "finished"

    monkeypatch.setattr(search, "run_trial", run_trial)
    monkeypatch.setattr(search, "num_validated", lambda task, options: 7)
    return ran


def tune_times(number: int, source: Path, folder: Path) -> Tuned:
    """Call a search so many times; each has time for one trial, and the first begins it."""
    for call in range(number):
        found = tune_source(
            source,
            options_of(folder),
            resume=call > 0,
            overrides=() if call else SETTINGS,
        )
    return found


def test_the_first_trial_has_the_settings_that_the_search_starts_from(
    tmp_path: Path, trials: list[Experiment]
) -> None:
    found = tune_times(1, write_facts(tmp_path / "graph.tsv"), tmp_path / "search")
    base = load_experiment(tmp_path / "search" / "base.toml")
    assert with_values(trials[0], {"evaluation.validation_facts": 0}) == base
    assert found.score == found.first_score == base.training.learning_rate
    assert base.encoder.dim == 8  # as it was set


def test_a_search_goes_on_and_keeps_the_best(tmp_path: Path, trials: list[Experiment]) -> None:
    found = tune_times(6, write_facts(tmp_path / "graph.tsv"), tmp_path / "search")
    rates = [trial.training.learning_rate for trial in trials]
    assert len(set(rates)) == found.num_trials == 6
    best = load_experiment(tmp_path / "search" / "best.toml")
    assert best == found.experiment
    assert found.score == best.training.learning_rate == max(rates)
    assert best.evaluation.validation_facts == 0  # the sample is that of the search


def test_settings_that_are_given_are_those_of_all_trials(
    tmp_path: Path, trials: list[Experiment]
) -> None:
    tune_times(5, write_facts(tmp_path / "graph.tsv"), tmp_path / "search")
    assert {trial.encoder.dim for trial in trials} == {8}
    assert {trial.training.batch_size for trial in trials} == {64}
    assert {trial.evaluation.validation_facts for trial in trials} == {7}


def test_a_search_is_not_mixed_with_another(tmp_path: Path, trials: list[Experiment]) -> None:
    graph, folder = write_facts(tmp_path / "graph.tsv"), tmp_path / "search"
    tune_times(1, graph, folder)
    with pytest.raises(InputError, match="has a search; continue it with --resume"):
        tune_source(graph, options_of(folder))
    with pytest.raises(InputError, match="leave --trial-minutes out"):
        tune_source(graph, options_of(folder, trial_minutes=1), resume=True)
    with pytest.raises(InputError, match="leave --set out"):
        tune_source(graph, options_of(folder), resume=True, overrides=["encoder.dim=4"])
    write_facts(graph, 250)
    with pytest.raises(InputError, match="search on other facts"):
        tune_source(graph, options_of(folder), resume=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputError, match="no search in it"):
        tune_source(graph, options_of(tmp_path / "other"))


def test_trials_that_are_not_possible_do_not_end_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(task: LinkPrediction, trial: Any, options: TuneOptions) -> tuple[float, str]:
        if trial.number == 0:
            raise InputError("training diverged")
        return 0.5, "pruned" if trial.number == 1 else "finished"

    monkeypatch.setattr(search, "run_trial", refuse)
    monkeypatch.setattr(search, "num_validated", lambda task, options: 7)
    graph, folder = write_facts(tmp_path / "graph.tsv"), tmp_path / "search"
    for resume in (False, True):
        with pytest.raises(InputError, match="no trial was finished"):
            tune_source(graph, options_of(folder), resume=resume)
    found = tune_source(graph, options_of(folder), resume=True)
    assert (found.num_trials, found.num_pruned, found.first_score) == (1, 1, None)


def test_a_stopped_search_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter(["finished", "stopped"])
    monkeypatch.setattr(search, "run_trial", lambda *_: (0.25, next(ends)))
    monkeypatch.setattr(search, "num_validated", lambda task, options: 7)
    graph, folder = write_facts(tmp_path / "graph.tsv"), tmp_path / "search"
    assert not tune_source(graph, options_of(folder)).is_stopped
    found = tune_source(graph, options_of(folder), resume=True)
    assert found.is_stopped and found.num_trials == 1


def test_a_search_that_is_stopped_in_its_first_trial_has_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "run_trial", lambda *_: (0.25, "stopped"))
    monkeypatch.setattr(search, "num_validated", lambda task, options: 7)
    with pytest.raises(Stopped, match="before a trial was finished"):
        tune_source(write_facts(tmp_path / "graph.tsv"), options_of(tmp_path / "search"))


def test_a_trial_that_was_stopped_is_the_first_when_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, rates = iter(["stopped", "finished"]), list[float]()

    def run_trial(task: LinkPrediction, trial: Any, options: TuneOptions) -> tuple[float, str]:
        rates.append(task.experiment.training.learning_rate)
        return 0.25, next(ends)

    monkeypatch.setattr(search, "run_trial", run_trial)
    monkeypatch.setattr(search, "num_validated", lambda task, options: 7)
    graph, folder = write_facts(tmp_path / "graph.tsv"), tmp_path / "search"
    with pytest.raises(Stopped):
        tune_source(graph, options_of(folder))
    found = tune_source(graph, options_of(folder), resume=True)
    assert rates[0] == rates[1]
    assert found.first_score == 0.25


def test_a_search_shorter_than_a_trial_is_refused(tmp_path: Path, trials: list[Experiment]) -> None:
    graph, folder = write_facts(tmp_path / "graph.tsv"), tmp_path / "search"
    with pytest.raises(InputError, match=r"a trial takes 5 minutes, and the search 1e-09"):
        tune_source(graph, options_of(folder, trial_minutes=5))
    assert not folder.exists()
    tune_times(1, graph, folder)
    shorter = TuneOptions(folder, torch.device("cpu"), minutes=1e-12)
    with pytest.raises(InputError, match=r"a trial takes .* give at least as many --minutes"):
        tune_source(graph, shorter, resume=True)
    assert len(trials) == 1


def test_the_time_of_a_search_includes_what_was_before_the_trials(
    tmp_path: Path, trials: list[Experiment]
) -> None:
    options = TuneOptions(
        tmp_path / "search", torch.device("cpu"), 10, started=perf_counter() - 598
    )
    tune_source(write_facts(tmp_path / "graph.tsv"), options, overrides=SETTINGS)
    assert len(trials) == 1  # two seconds are left, too few for another


def base_of(loss: str = "sampled-softmax", settings: dict[str, Any] | None = None) -> Experiment:
    changed = {"training.loss": loss, "tokenizer.num_anchors": 100} | (settings or {})
    return with_values(Experiment(name="a", dataset="b"), changed)


@pytest.mark.parametrize("loss", ["sampled-softmax", "cross-entropy", "filtered-cross-entropy"])
def test_every_setting_of_the_space_can_be_chosen_and_contains_the_start(loss: str) -> None:
    base = base_of(loss)
    space = search_space(base, num_nodes=1_000, num_facts=5_000, fixed=())
    for name, start in start_of(base, space).items():
        part = space[name]
        if isinstance(part, LogRange):
            assert part.low < start < part.high
            continue
        assert start in part.values and len(part.values) > 1
        for value in part.values:
            assert settings_by_name(with_values(base, {name: value}))[name] == value


def test_the_space_stays_within_the_graph() -> None:
    space = search_space(
        base_of(settings={"tokenizer.anchors_per_node": 5}), 120, 30, fixed=["encoder.dim"]
    )
    assert space["tokenizer.num_anchors"] == Choices((25, 50, 100, 120))
    assert space["tokenizer.anchors_per_node"] == Choices((5, 8, 16, 20))
    assert "encoder.dim" not in space


def test_values_that_alone_would_not_fit_the_memory_are_not_tried() -> None:
    base = Experiment(name="mine", dataset="mine", encoder=EncoderSettings(dim=300))
    space = search_space(base, 1_000, 5_000, ())
    smaller = within(space, base, lambda experiment: experiment.encoder.dim <= 128)
    assert smaller["encoder.dim"] == Choices((64, 128, 300))  # the start stays
    rest = {name: part for name, part in space.items() if name == "training.learning_rate"}
    assert {name: smaller[name] for name in rest} == rest


def test_a_search_that_does_not_fit_the_memory_is_refused(
    tmp_path: Path, trials: list[Experiment]
) -> None:
    graph = write_facts(tmp_path / "graph.tsv")
    base = tmp_path / "base.toml"
    base.write_text(f'extends = "countries"\ndataset = "{graph}"\nname = "mine"\n')
    with pytest.raises(InputError, match="1 MB may be used"):
        tune_source(base, options_of(tmp_path / "search", memory=10**6), overrides=SETTINGS[:2])
    assert not trials


def test_every_trial_has_to_fit_the_memory_and_many_that_do_not_end_the_search(
    tmp_path: Path, trials: list[Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def refuse(inputs: Any, memory: int) -> None:
        asked.append(memory)
        if len(asked) > 2:  # the settings it starts from, and the first trial
            raise InputError("needs too much")

    monkeypatch.setattr(search, "refuse_too_large", refuse)
    monkeypatch.setattr(search, "MAX_REFUSED", 4)
    options = TuneOptions(tmp_path / "search", torch.device("cpu"), 60.0, 0.01, memory=10**9)
    found = tune_source(write_facts(tmp_path / "graph.tsv"), options, overrides=SETTINGS)
    assert (len(trials), found.num_trials, asked) == (1, 1, 6 * [10**9])


def test_the_hidden_layer_keeps_its_ratio() -> None:
    wider = with_values(base_of(settings={"encoder.hidden_dim": 100}), {"encoder.dim": 100})
    assert wider.encoder.hidden_dim == 50  # dim was 200


class Report:
    """A trial of Optuna that prunes from a part on."""

    def __init__(self, prunes_from: int) -> None:
        self.prunes_from, self.reported = prunes_from, dict[int, float]()

    def report(self, value: float, step: int) -> None:
        self.reported[step] = value

    def should_prune(self) -> bool:
        return max(self.reported) >= self.prunes_from


@pytest.mark.parametrize(("prunes_from", "is_pruned"), [(4, True), (6, False)])
def test_validations_are_reported_for_every_part_of_the_time(
    prunes_from: int, is_pruned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("nodepiece.tasks.trial.perf_counter", lambda: now[0])
    trial = Report(prunes_from)
    watch = Watch(trial, 100.0, TuneOptions(Path(), torch.device("cpu"), 1, 1))
    for seconds, best in ((5, 0.1), (13, 0.2), (34, 0.3)):
        now[0] = 100.0 + seconds
        watch.on_epoch({}, Progress(best_metric=best))
    assert trial.reported == {1: 0.2, 2: 0.2, 3: 0.3, 4: 0.3, 5: 0.3}
    assert watch.should_stop() == is_pruned


def test_a_search_trains_and_its_settings_train_a_run(tmp_path: Path) -> None:
    train = facts()
    found = nodepiece.tune(
        train,
        tmp_path / "search",
        minutes=0.01,
        trial_minutes=0.01,
        overrides=SETTINGS,
        device="cpu",
    )
    assert found.num_trials >= 1 and found.score > 0
    run = nodepiece.train(
        load_experiment(found.path, ["training.epochs=1"]), tmp_path / "run", data=train
    )
    assert run.experiment.encoder.dim == 8


def test_a_trial_of_a_few_steps_has_a_score_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "num_validated", lambda task, options: 0)
    found = nodepiece.tune(
        facts(), tmp_path / "search", minutes=1e-6, trial_minutes=1e-6, overrides=SETTINGS
    )
    assert found.num_trials == 1 and 0 < found.score < 1


def test_the_command_prints_what_it_found(tmp_path: Path, trials: list[Experiment]) -> None:
    graph, folder = write_facts(tmp_path / "graph.tsv"), tmp_path / "search"
    words = ["tune", str(graph), "-o", str(folder), "--minutes", "0.0005", "--device", "cpu"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "1 trial finished" in done.output and "best.toml" in done.output


@pytest.mark.parametrize(
    ("minutes", "match"), [(0.0, "minutes must be"), (float("nan"), "got nan")]
)
def test_bad_minutes_are_refused(minutes: float, match: str) -> None:
    with pytest.raises(InputError, match=match):
        TuneOptions(Path(), torch.device("cpu"), minutes)


def test_other_tasks_are_refused(tmp_path: Path, trials: list[Experiment]) -> None:
    with pytest.raises(InputError, match="for link prediction"):
        tune_source("wd50k-5-mlp", options_of(tmp_path / "search"))
