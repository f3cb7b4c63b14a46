"""The automatic choice: settings for a graph, minutes and memory, written to config.toml."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.couples import couples

from nodepiece.errors import InputError
from nodepiece.settings import Experiment, overridden, settings_by_name
from nodepiece.tasks.automatic import Choice, choose, choose_tokenizer, with_all_nodes
from nodepiece.tasks.automatic_plan import plan_choices
from nodepiece.tasks.fit_memory import memory_of, refuse_too_large
from nodepiece.tasks.graph_shape import GraphShape, shape_of, sizes_of_shape
from nodepiece.tasks.link_prediction import LinkPrediction, check_hiding
from nodepiece.tasks.machine import Machine, free_memory, parse_memory
from nodepiece.tasks.open_automatic import is_automatic
from nodepiece.tasks.plan import input_from_sizes
from nodepiece.tasks.registry import check_task
from nodepiece.tasks.run_folder import read_config
from nodepiece.tasks.tokens import tokenize_for
from nodepiece.tasks.train import train_experiment
from nodepiece.training.distribution import Processes

CPU = torch.device("cpu")
GENERATOR = torch.Generator()
MACHINE = Machine(CPU, memory=8 * 10**9, is_fast_in_bfloat16=True)
MEDIUM = GraphShape(40_000, 200_000, 480, 150_000, 0.1)
SIZES = sizes_of_shape(MEDIUM)


def choose_for(
    shape: GraphShape, minutes: float = 10, step: float = 0.1, overrides: Sequence[str] = ()
) -> Choice:
    return choose(
        "mine", "mine", shape, MACHINE, minutes, time_step=lambda _: step, overrides=overrides
    )


def write_graph(path: Path, facts: list[tuple[str, str, str]]) -> Path:
    path.write_text("".join("\t".join(fact) + "\n" for fact in facts), encoding="utf-8")
    return path


def train_file(path: Path, folder: Path, **options: Any) -> dict[str, Any]:
    options = {"minutes": 0.02, "device": "cpu", **options}
    metrics = train_experiment(str(path), folder, **options)
    assert metrics is not None
    return metrics


def ring(num_nodes: int, relation: str = "next") -> list[tuple[str, str, str]]:
    return [
        (f"n{node}", relation, f"n{(node + step) % num_nodes}")
        for node in range(num_nodes)
        for step in (1, 2)
    ]


def test_a_small_graph_is_trained_with_walks_and_all_nodes() -> None:
    shape = GraphShape(2_000, 30_000, 40, 12_000, 0.1)
    choice = choose_for(shape, step=1e6)
    assert choice.experiment.training.is_one_vs_all
    assert choice.experiment.walks.steps > 0


def test_a_small_graph_takes_fewer_minutes_than_there_are() -> None:
    shape = GraphShape(30, 100, 4, 60, 0.1)
    choice = choose_for(shape, step=0.01)
    assert choice.minutes < 0.1
    assert "minutes are enough" in choice.reasons[-1]
    assert choose_for(MEDIUM).minutes == 10


def test_a_few_facts_end_in_seconds_whatever_the_minutes(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(20))
    metrics = train_file(graph, tmp_path / "run", minutes=None)
    assert metrics["minutes"] < 1


def test_time_for_several_passes_decides_between_all_nodes_and_a_sample() -> None:
    assert choose_for(MEDIUM, step=0.1).experiment.training.is_one_vs_all
    assert not choose_for(MEDIUM, step=10).experiment.training.is_one_vs_all
    assert choose_for(MEDIUM, step=10, minutes=600).experiment.training.is_one_vs_all


def test_millions_of_nodes_are_sampled() -> None:
    shape = replace(MEDIUM, num_nodes=2_500_000)
    assert choose_for(shape, minutes=60).experiment.training.loss == "sampled-softmax"


def test_millions_of_nodes_have_more_anchors() -> None:
    def num_anchors(num_nodes: int) -> int | None:
        return choose_tokenizer(replace(MEDIUM, num_nodes=num_nodes)).num_anchors

    sizes = (1_000, 150_000, 1_000_000, 2_500_000, 10_000_000)
    assert [num_anchors(size) for size in sizes] == [250, 5_000, 20_000, 50_000, 100_000]


def test_a_loss_that_was_set_decides_what_goes_with_it() -> None:
    experiment = choose_for(MEDIUM, overrides=["training.loss=sampled-softmax"]).experiment
    assert experiment.sampled.num_negatives == 512
    assert experiment.walks.is_sparse
    assert experiment.training.hide_targets


def test_the_reasons_name_the_graph_the_choice_and_what_decided() -> None:
    graph, chosen, reason = choose_for(MEDIUM).reasons
    assert "40,000 nodes" in graph
    assert "anchors" in chosen
    assert "passes" in reason


def test_the_shape_of_a_graph() -> None:
    shape = shape_of(couples().train)
    triples = couples().train.triples
    both = {(head, tail) for head, _, tail in triples.tolist()}
    two_way = np.mean([(tail, head) in both for head, _, tail in triples.tolist()])
    assert (shape.num_nodes, shape.num_facts) == (couples().num_nodes, len(triples))
    assert shape.two_way == pytest.approx(two_way)


def test_a_file_is_enough_and_config_toml_gives_the_same_digits_again(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(150))
    metrics = train_file(graph, tmp_path / "run", minutes=0.05)
    stored = read_config(tmp_path / "run")
    assert metrics["held_out"] == {"valid": 15, "test": 15}
    assert stored.dataset == str(graph)
    assert stored.training.stages[-1] >= metrics["steps"]
    if stored.training.stages[-1] == metrics["steps"]:  # else the machine was slow at the end
        again = train_experiment(tmp_path / "run" / "config.toml", tmp_path / "again", device="cpu")
        assert again is not None
        assert again["mrr"] == metrics["mrr"]


def test_settings_that_are_given_rule_over_the_choice(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(150))
    overrides = ["encoder.dim=8", "training.epochs=1", "walks.steps=0", "graph.layers=0"]
    train_file(graph, tmp_path / "run", minutes=None, overrides=overrides)
    stored = read_config(tmp_path / "run")
    assert (stored.encoder.dim, stored.training.epochs, stored.walks.steps) == (8, 1, 0)


@pytest.mark.parametrize(
    "overrides",
    [
        ["walks.steps=0"],
        ["walks.steps=0", "graph.layers=0"],
        ["training.loss=sampled-softmax"],
        ["training.loss=sampled-softmax", "walks.steps=2"],
        ["training.loss=self-adversarial", "sampled.num_negatives=4"],
        ["training.loss=filtered-cross-entropy"],
        ["encoder.kind=lookup", "walks.steps=0", "graph.layers=0"],
        ["encoder.kind=mlp"],
        ["decoder.kind=transe"],
        ["propagation.layers=1", "propagation.dim=4", "walks.steps=0"],
        ["training.validate_every=0", "walks.choose_coefficient=false"],
    ],
    ids=" ".join,
)
def test_any_setting_may_be_given_beside_the_choice(overrides: list[str]) -> None:
    chosen = choose_for(shape_of(couples().train), overrides=overrides).experiment
    task = LinkPrediction(chosen, couples())
    check_task(task)
    task.make_trainer(task.build_model(tokenize_for(chosen, task.graph)), generator=GENERATOR)
    stored = settings_by_name(chosen)
    assert {name: stored[name] for name in overridden(overrides)} == overridden(overrides)


def test_settings_that_are_given_are_not_dropped_but_refused(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(150))
    overrides = ["walks.steps=0", "graph.layers=0", "training.hide_targets=true"]
    with pytest.raises(InputError, match="hide_targets hides facts from graph layers and paths"):
        train_file(graph, tmp_path / "run", overrides=overrides)


def test_resuming_goes_on_with_what_was_chosen_before(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(150))
    first = train_file(graph, tmp_path / "run")
    more = train_file(graph, tmp_path / "run", resume=True)
    assert more["steps"] > first["steps"]


def test_a_finished_run_that_is_resumed_without_minutes_stays_as_it_is(tmp_path: Path) -> None:
    graph, run = write_graph(tmp_path / "ring.tsv", ring(150)), tmp_path / "run"
    first = train_file(graph, run)
    weights = (run / "model.safetensors").read_bytes()
    said: list[str] = []

    again = train_file(graph, run, minutes=None, resume=True, log=said.append)

    assert again == first and (run / "model.safetensors").read_bytes() == weights
    assert said[-1] == (
        f"{run} is finished and stays as it is; give minutes=N (--minutes N) to train it further"
    )
    write_graph(graph, ring(149))
    with pytest.raises(InputError, match="on other facts"):
        train_file(graph, run, minutes=None, resume=True)


def test_facts_in_memory_are_enough(tmp_path: Path) -> None:
    metrics = train_experiment(None, tmp_path / "run", data=couples(), minutes=0.02, device="cpu")
    assert metrics is not None
    assert metrics["steps"] > 0


def test_recipes_and_toml_files_have_settings_and_graphs_do_not(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(3))
    assert is_automatic(str(graph)) and is_automatic(tmp_path) and is_automatic("fb15k-237")
    assert not is_automatic("countries") and not is_automatic("mine.toml")
    assert not is_automatic("nothing-of-this-name")


def test_another_task_needs_a_toml_file(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(30))
    with pytest.raises(InputError, match="write a TOML file for relation-prediction"):
        train_file(graph, tmp_path / "run", overrides=["task=relation-prediction"])


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param([("a", "r", "b"), ("b", "s", "c"), ("c", "r", "a")], id="three facts"),
        pytest.param(ring(120, "only"), id="one relation"),
        pytest.param([("hub", "has", f"leaf{n}") for n in range(300)], id="a star"),
        pytest.param([(f"a{n}", "r", f"b{n}") for n in range(250)], id="nothing can be held out"),
        pytest.param([(f"n{n % 5}", f"r{n}", f"n{n // 5 % 5}") for n in range(25)], id="5 nodes"),
        pytest.param([(f"n{n}", "is", f"n{n}") for n in range(260)], id="self-loops"),
        pytest.param(2 * ring(60) + 3 * ring(60, "too"), id="duplicates"),
        pytest.param([(f"n{n}", "next", f"n{n + 1}") for n in range(400)], id="a chain"),
        pytest.param(
            [(f"n{n % 90}", f"r{n % 200}", f"n{(7 * n) % 90}") for n in range(240)],
            id="more relations than nodes",
        ),
        pytest.param(
            [(f"user{n % 80}", "buys", f"item{int((n * 37 % 97) ** 2 / 97)}") for n in range(500)],
            id="users and items",
        ),
    ],
)
def test_graphs_with_little_to_learn_still_give_a_model(
    facts: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    graph = write_graph(tmp_path / "graph.tsv", facts)
    metrics = train_file(graph, tmp_path / "run")
    assert metrics["steps"] > 0


def test_one_node_is_refused_in_a_sentence(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "one.tsv", [("a", "r", "a"), ("a", "s", "a")])
    with pytest.raises(InputError, match="one has 1 node, so there is nothing to predict"):
        train_file(graph, tmp_path / "run")
    with pytest.raises(InputError, match="has 1 node"):
        overrides = [f"dataset={graph}", "tokenizer.num_anchors=1", "tokenizer.anchors_per_node=1"]
        train_experiment("countries", tmp_path / "run", overrides=overrides)
    with pytest.raises(InputError, match="has 1 node"):
        plan_choices(str(graph), MACHINE, [1])


def test_a_star_of_many_leaves_is_learned(tmp_path: Path) -> None:
    facts = [("hub", "has", f"leaf{number}") for number in range(20_000)]
    metrics = train_file(write_graph(tmp_path / "star.tsv", facts), tmp_path / "run", minutes=0.05)
    assert metrics["vocabulary"]["nodes"] == 20_001
    assert metrics["steps"] > 0


def test_no_minutes_are_refused_in_a_sentence(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(30))
    with pytest.raises(InputError, match="minutes must be a number above 0, got 0"):
        train_file(graph, tmp_path / "run", minutes=0)


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("8GB", 8 * 10**9), ("500 mb", 5 * 10**8), ("1.5GiB", 3 * 2**29), ("2G", 2 * 10**9)],
)
def test_memory_is_a_number_and_a_unit(text: str, bytes_: int) -> None:
    assert parse_memory(text) == bytes_


@pytest.mark.parametrize("text", ["much", "0GB", "-1GB", "8XB", ""])
def test_other_memory_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="memory"):
        parse_memory(text)


def test_some_memory_is_free() -> None:
    assert 2**20 < free_memory(CPU) < 2**50


def test_less_memory_gives_smaller_batches_then_a_sample_then_a_sentence() -> None:
    def with_memory(number: float) -> Experiment:
        machine = replace(MACHINE, memory=int(number * 1e9))
        return choose("mine", "mine", MEDIUM, machine, 10, time_step=lambda _: 0.1).experiment

    wide, narrow = with_memory(8), with_memory(1.2)
    assert memory_of(wide, SIZES).peak < 8e9
    assert memory_of(narrow, SIZES).peak < 1.2e9
    assert narrow.training.batch_size < wide.training.batch_size
    with pytest.raises(InputError, match=r"needs at least .* and 1 MB may be used"):
        with_memory(0.001)


def test_the_memory_that_is_asked_for_is_enough() -> None:
    shape = GraphShape(2_500_000, 16_000_000, 50, 20_000_000, 0.1)

    def choose_with(memory: float) -> Experiment:
        machine = replace(MACHINE, memory=int(memory))
        return choose("mine", "mine", shape, machine, 60, time_step=lambda _: 0.1).experiment

    with pytest.raises(InputError, match=r"needs at least [\d.]+ GB") as refusal:
        choose_with(1e9)
    least = 1e9 * float(str(refusal.value).split("at least ")[1].split()[0])
    choose_with(least)
    with pytest.raises(InputError, match="needs at least"):
        choose_with(least - 2e8)


def test_settings_that_are_given_do_not_exceed_the_memory(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(150))
    with pytest.raises(InputError, match=r"needs at least .* and 1.0 GB may be used"):
        train_file(graph, tmp_path / "run", memory=10**9, overrides=["encoder.dim=200000"])
    assert not (tmp_path / "run").exists()


def test_steps_are_timed_with_the_settings_that_are_given() -> None:
    timed: list[Experiment] = []

    def time_step(experiment: Experiment) -> float:
        timed.append(experiment)
        return 0.1

    overrides = ["encoder.dim=64", "training.batch_size=100"]
    choose("mine", "mine", MEDIUM, MACHINE, 10, time_step=time_step, overrides=overrides)
    assert {(each.encoder.dim, each.training.batch_size) for each in timed} == {(64, 100)}


def test_what_is_not_given_is_made_smaller_to_fit_the_memory() -> None:
    machine = replace(MACHINE, memory=2 * 10**9)
    overrides = ["encoder.dim=1000"]
    wide = choose(
        "mine", "mine", MEDIUM, machine, 10, time_step=lambda _: 0.1, overrides=overrides
    ).experiment
    assert wide.encoder.dim == 1000
    assert memory_of(wide, SIZES).peak < 2e9


def test_a_recipe_that_does_not_fit_is_refused_with_a_batch_size_that_does(tmp_path: Path) -> None:
    shape = replace(MEDIUM, num_nodes=1_000_000)
    chosen = with_all_nodes(Experiment(name="mine", dataset="mine"), shape, MACHINE)
    inputs = input_from_sizes(chosen, sizes_of_shape(shape))
    refuse_too_large(inputs, 10**12)
    with pytest.raises(InputError, match=r"--set training.batch_size=\d+ would fit") as refusal:
        refuse_too_large(inputs, 10**10)
    batch_size = int(str(refusal.value).split("batch_size=")[1].split()[0])
    fits = replace(chosen, training=replace(chosen.training, batch_size=batch_size))
    refuse_too_large(input_from_sizes(fits, sizes_of_shape(shape)), 10**10)


def test_a_megabyte_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(150))
    with pytest.raises(InputError, match="may be used"):
        train_file(graph, tmp_path / "run", memory=10**6)
    with pytest.raises(InputError, match="may be used"):
        train_experiment("countries", tmp_path / "run", memory=10**6)
    assert not (tmp_path / "run").exists()


def test_a_plan_says_what_would_be_chosen_for_several_budgets(tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "ring.tsv", ring(150))
    short, long = plan_choices(str(graph), MACHINE, [0.01, 0.1])
    assert long.steps > 5 * short.steps > 0
    assert "parameters" in short.sentences[-1]
    assert json.loads(json.dumps(long.to_json()))["minutes"] == 0.1
    with pytest.raises(InputError, match="minutes must be a number above 0, got 0"):
        plan_choices(str(graph), MACHINE, [0])


def test_time_for_many_passes_gives_more_dropout() -> None:
    few, many = (choose_for(MEDIUM, minutes=number, step=0.5) for number in (10, 500))
    assert few.experiment.decoder.query_dropout < many.experiment.decoder.query_dropout


SPARSE = GraphShape(40_000, 87_000, 11, 120_000, 0.3)


def test_a_sparse_graph_needs_fewer_passes_for_walks_to_pay() -> None:
    step = 0.8 * 60 * 10 / (120_000 / 1024)  # one pass in ten minutes
    assert choose_for(SPARSE, step=step).experiment.walks.steps == 5
    assert choose_for(MEDIUM, step=step).experiment.training.loss == "sampled-softmax"


def test_a_large_sparse_graph_is_trained_against_a_sample_with_walks() -> None:
    shape = GraphShape(75_000, 135_000, 200, 190_000, 0.2)
    step = 0.8 * 60 * 10 / (190_000 / 1024)
    experiment = choose_for(shape, step=step).experiment
    assert experiment.training.loss == "sampled-softmax"
    assert experiment.walks.steps and experiment.sampled.path_queries
    assert experiment.tokenizer.num_anchors == 75_000 // 4
    assert choose_for(shape, minutes=300, step=step).experiment.training.is_one_vs_all


def test_a_sample_is_shared_by_groups_of_a_large_batch() -> None:
    shape = GraphShape(2_500_000, 16_000_000, 500, 20_000_000, 0.1)
    experiment = choose_for(shape, minutes=60).experiment
    assert experiment.training.batch_size == 4096
    assert experiment.sampled.group_size == 1024


def test_beside_a_sample_walks_cost_what_they_reach() -> None:
    shape = GraphShape(2_500_000, 16_000_000, 500, 20_000_000, 0.1)
    experiment = choose_for(shape, minutes=60).experiment
    assert experiment.walks.is_sparse and experiment.walks.max_degree
    assert experiment.sampled.path_queries


@pytest.mark.parametrize(
    ("walk_edges", "steps", "queries"),
    [
        ((5.0, 80.0, 1_000.0), 3, 32),
        ((5.0, 1_500.0, 32_768.0), 3, 16),
        ((50.0, 7_000.0, 230_000.0), 3, 8),
        ((200.0, 40_000.0, 8e6), 2, 13),
        ((900.0, 8e5, 9e6), 2, 8),
    ],
)
def test_walks_that_follow_many_edges_are_fewer_and_then_shorter(
    walk_edges: tuple[float, ...], steps: int, queries: int
) -> None:
    shape = GraphShape(500_000, 3_000_000, 50, 4_000_000, 0.1, walk_edges=walk_edges)
    experiment = choose_for(shape).experiment
    assert (experiment.walks.steps, experiment.sampled.path_queries) == (steps, queries)


@pytest.mark.parametrize(
    ("shape", "queries"),
    [
        (GraphShape(104, 8_500, 25, 4_000, 0.1), 32),
        (GraphShape(14_505, 272_115, 237, 149_689, 0.1), 32),
        (GraphShape(3_000, 360_000, 48, 60_000, 0.1), 4),
        (GraphShape(1_400, 490_000, 1, 1_400, 0.0), 4),
    ],
)
def test_walks_along_all_edges_are_fewer_in_a_dense_graph(shape: GraphShape, queries: int) -> None:
    assert choose_for(shape, minutes=60).experiment.one_vs_all.path_queries == queries


def test_a_run_in_place_of_a_graph_is_refused_with_how_to_go_on(tmp_path: Path) -> None:
    graph, run = write_graph(tmp_path / "ring.tsv", ring(20)), tmp_path / "run"
    train_file(graph, run, minutes=None)
    with pytest.raises(
        InputError, match=r"is the folder of a run.*ring\.tsv --resume --minutes 10"
    ):
        train_file(run, tmp_path / "other", minutes=None)


def test_how_to_go_on_with_a_run_fits_a_shell_and_facts_in_memory(tmp_path: Path) -> None:
    graph, run = write_graph(tmp_path / "my ring.tsv", ring(20)), tmp_path / "my run"
    train_file(graph, run)
    with pytest.raises(InputError) as error:
        train_file(run, tmp_path / "other")
    assert f"nodepiece train '{graph}' --resume --minutes 10 -o '{run}' trains" in str(error.value)

    memory = tmp_path / "memory"
    train_experiment(None, memory, data=couples(), minutes=0.02, device="cpu")
    with pytest.raises(InputError) as error:
        train_file(memory, tmp_path / "other")
    assert f"nodepiece.train(facts, '{memory}', resume=True, minutes=10)" in str(error.value)


@pytest.mark.parametrize("batch_size", [256, 4096])
def test_what_is_chosen_for_several_processes_fits_the_share_of_each(
    batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodepiece.tasks.consistent.current_processes", lambda: Processes(0, 2))
    given = ["training.loss=sampled-softmax", f"training.batch_size={batch_size}"]

    chosen = choose_for(MEDIUM, overrides=given).experiment

    assert chosen.training.batch_size == batch_size
    assert (batch_size // 2) % chosen.sampled.group_size == 0
    assert not chosen.walks.steps  # beside a sample they are for one process


@pytest.mark.parametrize(
    ("override", "has_walks"),
    [
        ("walks.plain_steps=3", True),
        ("graph.layers=1", False),
        ("evaluation.candidates='given'", False),
        ("training.hide_targets=false", False),
        ("sampled.path_queries=0", False),
        ("walks.separate_losses=false", False),
        ("training.loss='margin'", False),
    ],
)
def test_walks_beside_a_sample_give_way_to_what_was_set(override: str, has_walks: bool) -> None:
    shape = GraphShape(500_000, 3_000_000, 50, 4_000_000, 0.1)
    experiment = choose_for(shape, overrides=[override]).experiment
    assert bool(experiment.walks.steps) == has_walks
    check_hiding(experiment)
