"""How long an experiment will take, from a few steps on tokens and facts at random."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import torch

from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.settings import Experiment
from nodepiece.tasks.plan import Sizes, empty_model, nodes_in_step, table_of
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.links import link_trainer

TRIAL_NODES = 50_000  # where the time of a step does not depend on how many there are
TRIAL_STEPS = 5  # on a GPU the first ones warm up and the step is recorded
TRIAL_QUERIES = 64
GIVEN_NEGATIVES = 500  # that OGB gives for each fact and side


@dataclass(frozen=True)
class Duration:
    """Seconds that an experiment will take on this machine, about."""

    tokenizing: float
    step: float
    num_steps: int
    ranking: float  # of the test facts; validation is not counted

    @property
    def training(self) -> float:
        return self.step * self.num_steps

    def to_json(self) -> dict[str, float]:
        return {**vars(self), "training": self.training}


def try_out(
    experiment: Experiment, sizes: Sizes, device: torch.device, *, rng: np.random.Generator
) -> Duration:
    is_shallow = experiment.encoder.kind == "lookup"
    return Duration(
        tokenizing=0.0 if is_shallow else seconds_to_tokenize(experiment.tokenizer, sizes, rng=rng),
        step=seconds_a_step(experiment, sizes, device, rng=rng),
        num_steps=count_steps(experiment, sizes),
        ranking=seconds_to_rank(experiment, sizes, device, rng=rng),
    )


def count_steps(experiment: Experiment, sizes: Sizes) -> int:
    """Against all at most, where nobody counted the queries: one may have several answers."""
    training, num_items = experiment.training, 2 * sizes.num_facts
    if training.is_against_all and sizes.num_queries is not None:
        num_items = sizes.num_queries
    each = training.steps_per_epoch or -(-num_items // training.batch_size)
    return training.epochs * each


def seconds_a_step(
    experiment: Experiment, sizes: Sizes, device: torch.device, *, rng: np.random.Generator
) -> float:
    """Measured where its time does not depend on the nodes; else on two sizes, and prolonged."""
    training = experiment.training
    grows = experiment.encoder.kind == "lookup" or training.is_against_all
    small = min(sizes.num_nodes, max(TRIAL_NODES, 2 * nodes_in_step(experiment, sizes)))
    if training.is_against_all:
        small = min(sizes.num_nodes, TRIAL_NODES)
    if not grows or small == sizes.num_nodes:
        return time_steps(experiment, sizes, small, device, rng=rng)
    half, whole = (
        time_steps(experiment, sizes, num_nodes, device, rng=rng)
        for num_nodes in (small // 2, small)
    )
    slope = max(0.0, whole - half) / (small - small // 2)
    return whole + slope * (sizes.num_nodes - small)


def time_steps(
    experiment: Experiment,
    sizes: Sizes,
    num_nodes: int,
    device: torch.device,
    *,
    rng: np.random.Generator,
) -> float:
    """The mean of a few steps after as many that do not count."""
    settings = replace(experiment.training, epochs=2, warmup_epochs=0)
    if not settings.is_against_all:
        settings = replace(settings, steps_per_epoch=TRIAL_STEPS)
    model = empty_model(experiment, sizes, table_of(experiment, sizes, num_nodes, rng=rng))
    num_facts = min(sizes.num_facts, TRIAL_STEPS * settings.batch_size // 2)
    limits = (num_nodes, sizes.num_relations, num_nodes)
    triples = np.stack([rng.integers(limit, size=num_facts) for limit in limits], axis=1)
    edges = with_inverses(KnowledgeGraph(triples.astype(np.int32), num_nodes, limits[1]))
    generator = torch.Generator(device).manual_seed(0)
    trainer = link_trainer(
        model.to(device), torch.tensor(edges).to(device), settings, generator=generator
    )
    trainer.run_epoch(0, lambda done, total: None)
    start = perf_counter()
    trainer.run_epoch(1, lambda done, total: None)  # ends when the device has done it
    return (perf_counter() - start) / trainer.batches.num_batches


def seconds_to_rank(
    experiment: Experiment, sizes: Sizes, device: torch.device, *, rng: np.random.Generator
) -> float:
    """The test facts, both sides, among the nodes that the experiment asks for.

    Vectors of some nodes, then scores and comparisons of a few queries, each prolonged.
    """
    num_nodes, settings = min(sizes.num_nodes, TRIAL_NODES), experiment.evaluation
    model = empty_model(experiment, sizes, table_of(experiment, sizes, num_nodes, rng=rng))
    model = model.to(device).eval()
    queries = torch.zeros(TRIAL_QUERIES, dtype=torch.int64, device=device)
    given = torch.tensor(rng.integers(num_nodes, size=(TRIAL_QUERIES, 1 + GIVEN_NEGATIVES)))
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
        to_score = seconds_of(score) / TRIAL_QUERIES
    if settings.candidates == "all":
        to_score /= share
    num_facts = min(settings.test_facts or sizes.num_test_facts, sizes.num_test_facts)
    return to_encode + 2 * num_facts * to_score


def seconds_of(work: Callable[[], object]) -> float:
    """Of the second time; the first one is for warming up."""
    work()
    start = perf_counter()
    work()
    return perf_counter() - start


def seconds_to_tokenize(
    settings: TokenizerSettings, sizes: Sizes, *, rng: np.random.Generator
) -> float:
    """On a graph of the same density at random: edges times anchors a node is what counts."""
    num_nodes = min(sizes.num_nodes, TRIAL_NODES)
    share = num_nodes / sizes.num_nodes
    num_facts = max(1, round(share * sizes.num_facts))
    limits = (num_nodes, sizes.num_relations, num_nodes)
    triples = np.stack([rng.integers(limit, size=num_facts) for limit in limits], axis=1)
    graph = KnowledgeGraph(triples.astype(np.int32), num_nodes, limits[1])
    num_anchors = max(
        settings.anchors_per_node, round(share * settings.anchors_in(sizes.num_nodes))
    )
    chosen = replace(settings, num_anchors=num_anchors)
    for _ in range(2):  # the first time may compile
        start = perf_counter()
        tokenize(graph, fit_vocabulary(graph, chosen, rng=rng), rng=rng)
        seconds = perf_counter() - start
    return seconds / share
