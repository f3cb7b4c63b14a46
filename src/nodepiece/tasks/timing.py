"""Estimates of the time and memory of an experiment, from a few steps of its training.

The steps are those of the task on its graph, and so are the facts that are ranked. If only sizes
are known, or link prediction has a large graph, the steps use random facts and tokens, and time and
memory that grow with the number of nodes are extrapolated.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

import numpy as np
import torch

from nodepiece.decoders.path_scorers import is_on, is_sparse
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.settings import Experiment
from nodepiece.tasks.evaluation_time import ranking_time, seconds_to_choose
from nodepiece.tasks.memory_estimate import Sizes, nodes_in_step
from nodepiece.tasks.peak import PeakMemory, current_of_process
from nodepiece.tasks.plan import (
    PlanInput,
    is_link_task,
    link_prediction_on,
    random_tokens,
    sizes_of,
)
from nodepiece.tasks.registry import task_record
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.settings import TrainingSettings

TIMING_NODES = 50_000  # if the time of a step does not depend on the number of nodes
TIMING_STEPS = 5  # on a GPU the first ones are warm-up and capture
TIMING_QUERIES = 64
GIVEN_NEGATIVES = 500  # that OGB gives for each fact and side


@dataclass(frozen=True)
class Duration:
    """The estimated seconds of an experiment on this machine, and its memory."""

    tokenizing: float
    step: float
    num_steps: int
    ranking: float | None  # of the test facts; None: not estimated
    validating: float = 0.0  # all validations, and what is chosen by them
    peak: int | None = None  # bytes: of the process, on CUDA of the device; None: not measured

    @property
    def training(self) -> float:
        return self.step * self.num_steps

    @property
    def total(self) -> float:
        """All stages; beside the test facts, as many for validation are ranked in the end."""
        return self.tokenizing + self.training + self.validating + (self.ranking or 0.0)

    def to_json(self) -> dict[str, float | None]:
        times = {name: value for name, value in vars(self).items() if name != "peak"}
        return {**times, "training": self.training, "total": self.total}


@dataclass(frozen=True)
class StepCost:
    """The time of a step, and the memory at its peak beside what there was before."""

    seconds: float
    memory: int


def estimate_duration(
    inputs: PlanInput, device: torch.device, *, rng: np.random.Generator
) -> Duration:
    """The duration by a few steps of training and of ranking."""
    experiment, sizes = inputs.experiment, inputs.sizes
    is_shallow, is_links = not experiment.encoder.has_pieces, is_link_task(experiment)
    before = held_memory(device)
    tokenizing = 0.0 if is_shallow else seconds_to_tokenize(experiment.tokenizer, sizes, rng=rng)
    is_timed_whole = inputs.is_real and not (is_links and sizes.num_nodes > TIMING_NODES)
    if is_timed_whole:
        with PeakMemory(device) as peak:
            step, steps_per_epoch = time_steps(inputs, device)
        num_steps = planned_steps(experiment.training, steps_per_epoch)
        cost = StepCost(step, max(0, peak.bytes - before))
    else:
        cost = measure_step(experiment, sizes, device, rng=rng)
        num_steps = count_steps(experiment, sizes)
        steps_per_epoch = max(1, num_steps // max(1, experiment.training.epochs))
    validating, ranking = 0.0, None
    if is_timed_whole and inputs.task.num_evaluated("valid"):
        validating, ranking = time_evaluation(inputs, device, num_steps, steps_per_epoch)
    elif is_links:
        ranking = seconds_to_rank(experiment, sizes, device, rng=rng)
    memory = before + cost.memory
    return Duration(tokenizing, cost.seconds, num_steps, ranking, validating, memory)


def held_memory(device: torch.device) -> int:
    """The bytes in memory now: of the process, or on CUDA of the device."""
    if device.type == "cuda":
        return torch.cuda.memory_reserved(device)
    return current_of_process()


def time_evaluation(
    inputs: PlanInput, device: torch.device, num_steps: int, steps_per_epoch: int
) -> tuple[float, float]:
    """Seconds of all validations, and of the evaluation after training; from a few facts.

    After training the facts of test and of valid are ranked.
    """
    task, experiment = inputs.task, inputs.experiment
    num_valid, num_test = task.num_evaluated("valid"), task.num_evaluated("test")
    model = task.build_model(inputs.table).to(device).eval()
    settings, training = experiment.evaluation, experiment.training
    if task_record(experiment).reads_setting("evaluation.validation_facts"):
        fixed, each = ranking_time(task, model, num_valid)
    else:
        fixed, each = seconds_of(lambda: task.validate(model)), 0.0
        each = fixed / num_valid if num_valid else 0.0
        fixed = 0.0
    num_validated = min(num_valid, settings.validation_facts or num_valid)
    validation = fixed + each * num_validated
    every = training.validate_every * steps_per_epoch
    if training.stages:
        every = training.validate_steps
    num_validations = num_steps // every if every else 0
    choosing = seconds_to_choose(
        experiment,
        num_validated,
        task.graph.num_nodes,
        (fixed, each),
        on_gpu=device.type == "cuda",
    )
    ranked = sum(min(number, settings.test_facts or number) for number in (num_valid, num_test))
    return num_validations * validation + choosing, 2 * fixed + each * ranked


def count_steps(experiment: Experiment, sizes: Sizes) -> int:
    """The steps of link prediction; against all nodes an upper bound if queries are not counted."""
    training, num_items = experiment.training, 2 * sizes.num_facts
    drawn = experiment.one_vs_all if training.is_one_vs_all else experiment.sampled
    if training.is_one_vs_all and sizes.num_queries is not None:
        num_items = sizes.num_queries
    each = drawn.steps_per_epoch or -(-num_items // training.batch_size)
    return planned_steps(training, each)


def planned_steps(training: TrainingSettings, steps_per_epoch: int) -> int:
    """The number of steps by the stages, or else by the epochs."""
    return training.stages[-1] if training.stages else training.epochs * steps_per_epoch


def seconds_a_step(
    experiment: Experiment,
    sizes: Sizes,
    device: torch.device,
    *,
    rng: np.random.Generator,
    num_timed: int = TIMING_STEPS,
    limit: float = math.inf,
) -> float:
    """Seconds of a step on a random graph of these sizes; timed for about `limit` seconds."""
    cost = measure_step(experiment, sizes, device, rng=rng, num_timed=num_timed, limit=limit)
    return cost.seconds


def measure_step(
    experiment: Experiment,
    sizes: Sizes,
    device: torch.device,
    *,
    rng: np.random.Generator,
    num_timed: int = TIMING_STEPS,
    limit: float = math.inf,
) -> StepCost:
    """The cost of a step; if it depends on the number of nodes, extrapolated from two sizes."""
    training, graph = experiment.training, experiment.graph
    is_lookup = not experiment.encoder.has_pieces
    has_scorers = any(
        is_on(settings) and not (is_sparse(settings) and device.type == "cpu")
        for settings in experiment.scorers
    )
    takes_all = training.is_one_vs_all or graph.layers > 0 or has_scorers
    small = min(sizes.num_nodes, max(TIMING_NODES, 2 * nodes_in_step(experiment, sizes)))
    if takes_all:
        small = min(sizes.num_nodes, TIMING_NODES)
    before = held_memory(device)

    def cost_of(num_nodes: int) -> StepCost:
        with PeakMemory(device) as peak:
            inputs = random_input(experiment, sizes, num_nodes, rng=rng)
            seconds = time_steps(inputs, device, num_timed=num_timed, limit=limit / 2)[0]
        return StepCost(seconds, max(0, peak.bytes - before))

    half = cost_of(max(1, small // 2)) if small < sizes.num_nodes else None
    whole = cost_of(small)
    if half is None:
        return whole
    share = (sizes.num_nodes - small) / (small - small // 2)
    memory = whole.memory + int(share * max(0, whole.memory - half.memory))
    if not (is_lookup or takes_all):
        return StepCost(whole.seconds, memory)
    return StepCost(whole.seconds + share * max(0.0, whole.seconds - half.seconds), memory)


def random_input(
    experiment: Experiment, sizes: Sizes, num_nodes: int, *, rng: np.random.Generator
) -> PlanInput:
    """The input of link prediction on fewer nodes: random tokens and facts of the same density."""
    task = link_prediction_on(experiment, random_graph(sizes, num_nodes, rng=rng))
    table = random_tokens(experiment, sizes, num_nodes, rng=rng)
    return PlanInput(task, table, sizes_of(task), is_real=False)


def random_graph(sizes: Sizes, num_nodes: int, *, rng: np.random.Generator) -> KnowledgeGraph:
    num_facts = max(1, round(num_nodes / sizes.num_nodes * sizes.num_facts))
    limits = (num_nodes, sizes.num_relations, num_nodes)
    facts = np.stack([rng.integers(limit, size=num_facts) for limit in limits], axis=1)
    return KnowledgeGraph(facts.astype(np.int32), num_nodes, sizes.num_relations)


class TimingDone(Exception):
    """Raised between two steps to end a measurement."""


def time_steps(
    inputs: PlanInput,
    device: torch.device,
    *,
    num_timed: int = TIMING_STEPS,
    limit: float = math.inf,
) -> tuple[float, int]:
    """The median seconds of a few steps, after as many warm-up steps, and the steps of an epoch.

    The first step may compile, so it does not count. After `limit` seconds of others no further
    step begins; without steps after warm-up, the last one counts.
    """
    task, table, num_steps = inputs.task, inputs.table, 0
    generator = torch.Generator(device).manual_seed(0)
    model = task.build_model(table).to(device)
    trainer = task.make_trainer(model, generator=generator)
    started = 0.0  # the end of the first step
    instants: list[float] = []
    seconds: list[float] = []

    def note(done: int, total: int) -> None:
        nonlocal num_steps, started
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        num_steps = total
        instants.append(perf_counter())
        seconds.append(instants[-1] - instants[-2])
        if len(seconds) == 1:
            started = instants[-1]
        elif len(seconds) == 2 * num_timed or instants[-1] - started > limit:
            raise TimingDone

    epoch = 0
    with suppress(TimingDone):
        while True:
            task.before_epoch(model, table, epoch, generator=generator)
            instants.append(perf_counter())
            trainer.run_epoch(epoch, note)
            epoch += 1
    return median(seconds[num_timed:] or seconds[-1:]), num_steps


def seconds_to_rank(
    experiment: Experiment, sizes: Sizes, device: torch.device, *, rng: np.random.Generator
) -> float:
    """Seconds to rank the test facts, both sides, among the candidates of the experiment.

    Extrapolated from encoding some nodes, and from scoring and comparing for a few queries.
    """
    num_nodes, settings = min(sizes.num_nodes, TIMING_NODES), experiment.evaluation
    inputs = random_input(experiment, sizes, num_nodes, rng=rng)
    model = inputs.task.build_model(inputs.table).to(device).eval()
    queries = torch.zeros(TIMING_QUERIES, dtype=torch.int64, device=device)
    given = torch.tensor(rng.integers(num_nodes, size=(TIMING_QUERIES, 1 + GIVEN_NEGATIVES)))
    given = given.to(device)

    def score() -> None:
        if settings.candidates == "given":
            scores = model.score_candidates(queries, queries, given, vectors)
        else:
            scores = model.score_all_tails(queries, queries, vectors)
        float((scores > scores[:, :1]).sum())  # waits for the device

    share = num_nodes / sizes.num_nodes
    with torch.no_grad():
        vectors = model.node_vectors()
        to_encode = seconds_of(lambda: float(model.node_vectors()[-1, -1])) / share
        to_score = seconds_of(score) / TIMING_QUERIES
    if settings.candidates == "all":
        to_score /= share
    num_facts = min(settings.test_facts or sizes.num_test_facts, sizes.num_test_facts)
    return to_encode + 2 * num_facts * to_score


def seconds_of(work: Callable[[], object]) -> float:
    """The seconds of a second call, after one for warm-up."""
    work()
    start = perf_counter()
    work()
    return perf_counter() - start


def seconds_to_tokenize(
    settings: TokenizerSettings, sizes: Sizes, *, rng: np.random.Generator
) -> float:
    """Seconds by a random graph of the same density, scaled by edges times anchors per node."""
    graph = random_graph(sizes, min(sizes.num_nodes, TIMING_NODES), rng=rng)
    share = graph.num_nodes / sizes.num_nodes
    num_anchors = max(
        settings.anchors_per_node, round(share * settings.anchors_in(sizes.num_nodes))
    )
    chosen = replace(settings, num_anchors=num_anchors)
    for _ in range(2):  # the first call may compile
        start = perf_counter()
        tokenize(graph, fit_vocabulary(graph, chosen, rng=rng), rng=rng)
        seconds = perf_counter() - start
    return seconds / share
