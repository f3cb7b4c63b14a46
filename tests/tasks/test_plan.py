"""A plan agrees with the model that is then trained."""

from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks import citizens, newcomers, professions
from tests.tasks.couples import couples, experiment

from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.parameters import num_parameters
from nodepiece.settings import Experiment, load_experiment
from nodepiece.tasks.graph_shape import shape_of
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.machine import Machine
from nodepiece.tasks.memory_estimate import Sizes
from nodepiece.tasks.node_classification import NodeClassification
from nodepiece.tasks.open_automatic import step_timer
from nodepiece.tasks.plan import (
    LIKELY_DISTANCE,
    PlanInput,
    count_parameters,
    input_from_sizes,
    input_from_task,
    plan,
    sizes_of,
    with_lookup,
)
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.task import Task
from nodepiece.tasks.timing import (
    count_steps,
    estimate_duration,
    seconds_a_step,
    seconds_to_rank,
    time_steps,
)
from nodepiece.training.batches import QueryBatches
from nodepiece.training.settings import SampledSettings

EXPERIMENT = experiment(epochs=1)
WITH_LAYERS = replace(
    experiment(epochs=1, hide_targets=True),
    graph=GraphLayerSettings(layers=1),
    walks=WalkSettings(steps=2, plain_steps=2),
)
WIKIKG2 = Sizes(2_500_604, 16_109_182, 535, 598_543)
CPU = torch.device("cpu")


def links(chosen: Experiment) -> Task[Any]:
    return LinkPrediction(chosen, couples())


def with_encoder(kind: str) -> Experiment:
    return replace(EXPERIMENT, encoder=replace(EXPERIMENT.encoder, kind=kind))


def published(name: str) -> PlanInput:
    """An experiment on ogbl-wikikg2, without its files."""
    return input_from_sizes(load_experiment(name), WIKIKG2)


TASKS: dict[str, Task[Any]] = {
    "links": links(EXPERIMENT),
    "links with graph layers and walks": links(WITH_LAYERS),
    "relations": links(experiment("relation-prediction", epochs=1)),
    "gated sum": links(with_encoder("gated-sum")),
    "transformer": links(with_encoder("transformer")),
    "a vector for every node": links(with_encoder("lookup")),
    "another graph": InductiveLinkPrediction(citizens.experiment(epochs=1), citizens.two_worlds()),
    "classes": NodeClassification(professions.experiment(epochs=1), professions.professions()),
    "unseen nodes": newcomers.task(newcomers.settings()),
    "unseen nodes with walks": newcomers.task(newcomers.walking()),
    "unseen nodes by their neighbours": newcomers.task(newcomers.lookup()),
}


@pytest.mark.parametrize("name", TASKS)
def test_parameters_are_those_of_the_run(name: str, tmp_path: Path) -> None:
    metrics = run_experiment(TASKS[name], RunOptions(tmp_path / "run", CPU))
    assert metrics is not None
    assert plan(input_from_task(TASKS[name])).parameters == metrics["parameters"]


@pytest.mark.parametrize("name", TASKS)
def test_steps_of_every_task_are_timed(name: str) -> None:
    duration = estimate_duration(input_from_task(TASKS[name]), CPU, rng=np.random.default_rng(0))
    assert duration.step > 0
    assert duration.num_steps >= TASKS[name].experiment.training.epochs


@pytest.mark.parametrize("kind", ["mlp", "lookup"])
def test_parameters_by_sizes_alone_differ_by_distances(kind: str) -> None:
    inputs = input_from_task(links(with_encoder(kind)))
    surplus = 0
    if kind != "lookup":
        farthest = int(inputs.table.distances.max())
        surplus = (LIKELY_DISTANCE - farthest) * EXPERIMENT.encoder.dim
    assumed = input_from_sizes(inputs.experiment, inputs.sizes)
    assert count_parameters(assumed) == count_parameters(inputs) + surplus


def test_no_weight_is_allocated_to_count_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    devices: set[str] = set()

    def note(model: torch.nn.Module) -> int:
        devices.update(parameter.device.type for parameter in model.parameters())
        return num_parameters(model)

    monkeypatch.setattr("nodepiece.tasks.plan.num_parameters", note)
    for task in TASKS.values():
        count_parameters(input_from_task(task))
    assert devices == {"meta"}


def test_a_vector_for_every_node_is_left_out_where_the_task_has_no_such_model() -> None:
    assert with_lookup(input_from_task(TASKS["another graph"])) is None
    assert with_lookup(input_from_task(TASKS["unseen nodes with walks"])) is None
    beside = with_lookup(input_from_task(TASKS["classes"]))
    assert beside is not None
    assert beside.experiment.encoder.kind == "lookup"


def test_the_papers_parameters_up_to_special_rows() -> None:
    """Published: 20,006 rows for anchors, 23 for distances, 1,071 for relations, the MLP, 2 more.

    Six of the first are special tokens, of which we have two; we have a row for "no distance".
    With as many distances (0 to 22) ours are 602 fewer.
    """
    theirs = (20_006 + 23 + 1_071) * 200 + (32 * 200 + 1) * 400 + (400 + 1) * 200 + 2
    assert theirs == 6_860_602
    missing_distances = (22 - LIKELY_DISTANCE) * 200
    found = count_parameters(published("wikikg2-paper")) + missing_distances
    assert found == 6_860_000 == theirs - 4 * 200 + 200 - 2


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("wikikg2-paper-no-relations", 5.9),
        ("wikikg2-paper-no-distances", 6.9),
        ("wikikg2-paper-relations-only", 1.3),
        ("wikikg2-autosf", 500),
        ("wikikg2-pairre", 501),
        ("wikikg2-rotate", 1251),
        ("wikikg2-transe", 1251),
    ],
)
def test_the_rows_of_the_papers_table_have_its_sizes(name: str, millions: float) -> None:
    found = count_parameters(published(name)) / 1e6
    assert found == pytest.approx(millions, abs=max(0.05, 0.002 * millions))


def test_a_vector_for_every_node_takes_more_of_everything_but_tokens() -> None:
    inputs = published("wikikg2-paper")
    beside = with_lookup(inputs)
    assert beside is not None
    pieces, lookup = plan(inputs), plan(beside)
    assert lookup.parameters > 70 * pieces.parameters
    assert lookup.training > 2.5 * pieces.training
    assert pieces.token_table == 2_500_604 * (20 * 6 + 12 * 4)
    assert lookup.token_table == 0


@pytest.mark.parametrize("loss", ["cross-entropy", "self-adversarial"])
def test_the_number_of_steps_is_that_of_the_batches(loss: str) -> None:
    chosen = experiment(loss=loss, epochs=3)
    task = LinkPrediction(chosen, couples())
    model = task.build_model(input_from_task(task).table)
    trainer = task.make_trainer(model, generator=torch.Generator())
    assert isinstance(trainer.batches, QueryBatches) == (loss == "cross-entropy")
    assert count_steps(chosen, sizes_of(task)) == 3 * trainer.batches.num_batches


@pytest.mark.parametrize("loss", ["cross-entropy", "self-adversarial"])
@pytest.mark.parametrize("is_shallow", [False, True])
def test_every_stage_is_timed(loss: str, is_shallow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodepiece.tasks.timing.TIMING_NODES", 300)
    sizes = Sizes(num_nodes=1_000, num_facts=5_000, num_relations=3, num_test_facts=10)
    chosen = with_encoder("lookup") if is_shallow else EXPERIMENT
    chosen = replace(chosen, training=replace(chosen.training, loss=loss))
    duration = estimate_duration(input_from_sizes(chosen, sizes), CPU, rng=np.random.default_rng(0))
    assert (duration.tokenizing > 0) == (not is_shallow)
    assert duration.step > 0
    assert duration.ranking is not None and duration.ranking > 0
    assert duration.training == duration.step * duration.num_steps


@pytest.mark.parametrize(("loss", "seconds"), [("cross-entropy", 1000), ("self-adversarial", 232)])
def test_a_step_that_grows_with_the_nodes_is_prolonged_to_all_of_them(
    loss: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it does not, it is timed on twice as many nodes as a step has."""
    monkeypatch.setattr("nodepiece.tasks.timing.TIMING_NODES", 100)
    monkeypatch.setattr(
        "nodepiece.tasks.timing.time_steps",
        lambda inputs, device, **limits: (float(inputs.task.graph.num_nodes), 1),
    )
    sizes = Sizes(num_nodes=1_000, num_facts=5_000, num_relations=3)
    training = replace(EXPERIMENT.training, loss=loss, batch_size=8)
    sampled = SampledSettings()
    if loss == "self-adversarial":
        sampled = SampledSettings(num_negatives=100, shared_negatives=True)
    chosen = replace(EXPERIMENT, training=training, sampled=sampled)
    assert seconds_a_step(chosen, sizes, CPU, rng=np.random.default_rng(0)) == seconds


def test_ranking_is_timed_among_the_nodes_and_facts_that_the_experiment_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nodepiece.tasks.timing.seconds_of", lambda work: (work(), 1.0)[1])
    monkeypatch.setattr("nodepiece.tasks.timing.TIMING_NODES", 100)
    sizes = Sizes(num_nodes=1_000, num_facts=5_000, num_relations=3, num_test_facts=64)

    def seconds(**evaluation: object) -> float:
        judged = replace(EXPERIMENT.evaluation, **evaluation)  # type: ignore[arg-type]
        chosen, rng = replace(EXPERIMENT, evaluation=judged), np.random.default_rng(0)
        return seconds_to_rank(chosen, sizes, CPU, rng=rng)

    # Ten times 100 nodes are encoded in 10 s; 64 queries take 1 s, ten times that among all.
    assert seconds(candidates="given") == pytest.approx(10 + 2)
    assert seconds(candidates="all") == pytest.approx(10 + 20)
    assert seconds(candidates="all", test_facts=32) == pytest.approx(10 + 10)


def test_weights_of_facts_are_counted() -> None:
    chosen = load_experiment("wikikg2-paper")
    without = replace(chosen, sampled=replace(chosen.sampled, subsampling=False))
    with_weights, plain = (input_from_sizes(each, WIKIKG2) for each in (chosen, without))
    assert plan(with_weights).training - plan(plain).training == 2 * 4 * WIKIKG2.num_facts


def test_steps_are_those_of_the_stages_where_there_are_some() -> None:
    sizes = Sizes(num_nodes=1_000, num_facts=5_000, num_relations=3)
    assert count_steps(experiment(stages=(60, 100)), sizes) == 100


def test_no_step_begins_after_the_time_to_measure() -> None:
    inputs = input_from_task(links(experiment(epochs=1, batch_size=8)))
    begun: list[int] = []

    class Counted(LinkPrediction):
        def before_epoch(self, *arguments: Any, **options: Any) -> None:
            begun.append(len(begun))

    task = Counted(inputs.experiment, couples())
    seconds, steps = time_steps(replace(inputs, task=task), CPU, num_timed=1000, limit=0.0)
    assert seconds > 0 and steps > 1
    assert begun == [0]  # two steps of the first epoch


def test_a_first_step_that_compiles_is_not_the_time_of_a_step() -> None:
    inputs = input_from_task(links(experiment(epochs=1, batch_size=8)))

    class Compiled(LinkPrediction):
        def make_trainer(self, *arguments: Any, **options: Any) -> Any:
            trainer: Any = super().make_trainer(*arguments, **options)
            run_epoch = trainer.run_epoch

            def slow_start(epoch: int, note: Any) -> Any:
                sleep(1.0)
                return run_epoch(epoch, note)

            trainer.run_epoch = slow_start
            return trainer

    task = Compiled(inputs.experiment, couples())
    seconds, _ = time_steps(replace(inputs, task=task), CPU, num_timed=1, limit=0.5)
    assert seconds < 0.5


def test_steps_of_equal_settings_are_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def timed(*arguments: Any, limit: float, **options: Any) -> float:
        limits.append(limit)
        return 0.1

    monkeypatch.setattr("nodepiece.tasks.open_automatic.seconds_a_step", timed)
    machine = Machine(CPU, memory=10**10, is_fast_in_bfloat16=False)
    timer = step_timer(shape_of(couples().train), machine, minutes=2.0)
    assert timer(EXPERIMENT) == timer(EXPERIMENT) == timer(WITH_LAYERS) == 0.1
    assert limits == [6.0, 6.0]
