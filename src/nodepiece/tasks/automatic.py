"""The automatic choice: settings for any graph, some minutes and some memory.

The rules are below, one function for each decision, with what was measured beside them: all runs of
ten minutes on two cores. A rule reads the sizes of the graph, the machine and the minutes, and, to
decide between training against all nodes and against a sample, the time of a few steps. What it
chose is written to the config.toml of the run, so the clock matters once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.errors import InputError
from nodepiece.evaluation.settings import EvaluationSettings
from nodepiece.settings import Experiment, overridden, with_overrides
from nodepiece.tasks.budget import without_validation
from nodepiece.tasks.consistent import consistent
from nodepiece.tasks.fit_memory import fitted, gigabytes, least_memory
from nodepiece.tasks.graph_shape import WALK_DEGREE, WALK_STEPS, GraphShape, sizes_of_shape
from nodepiece.tasks.machine import Machine
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.training.losses import SAMPLED_SOFTMAX
from nodepiece.training.settings import OneVsAllSettings, SampledSettings, TrainingSettings

DEFAULT_MINUTES = 10.0
TRAINING_SHARE = 0.8  # of the minutes; the rest is for tokens, validation and the result

FEW_FACTS = 200  # of which none are held out
SMALL_GRAPH = 5_000  # nodes: always against all of them
LARGE_GRAPH = {"cpu": 100_000, "cuda": 1_000_000}  # nodes: never against all of them
MAX_PASSES = 150  # over the facts, however many minutes there are
# Passes over the queries that there must be time for, to train against all nodes. WD50K made 2.6 in
# 5 minutes: MRR .290. Where nodes have few facts, walks decide: WN18RR had .511 after 1.2 passes
# (vectors alone .161). Of many such nodes all are too many for a step: 75,000 had .232 after 258
# steps in 5 minutes. Of 6,000, 64 numbers each, the same processor seconds (36) gave .237
# against all nodes, and .288 against a sample with walks beside it (.279 with walks of 5 steps).
MIN_PASSES, MIN_PASSES_IF_SPARSE, MIN_PASSES_IF_LARGE_AND_SPARSE = 2.0, 0.5, 10.0
SPARSE = 4.0  # facts a node: fewer are a sparse graph
LARGE_SPARSE_GRAPH = 50_000  # nodes
MINUTES_FOR_MANY_SPARSE_NODES = 60.0  # before that, there is no time for these passes
FACTS_OF_SPARSE_GRAPH = 300_000  # at most
# Beside sampled facts walks are trained on so many facts of a batch. They cost what they reach:
# 149,000 nodes with 854,000 facts had MRR .468 after 3 minutes with them, where vectors alone had
# .090; with walks that end at nodes of more than 300 edges .459, of more than 100 .427.
SAMPLED_WALKS = WalkSettings(
    WALK_STEPS,
    counts=False,
    max_degree=WALK_DEGREE,
    separate_losses=True,
    coefficient=4,
    choose_coefficient=True,
)
# 149,000 nodes with 854,000 facts, where a walk follows 15,000 edges, had .478 with 32 queries a
# step and .463 with 8 (3.5 minutes on one core). 120,000 nodes with 3 million facts, where it
# follows 230,000, had .581 with 32 queries and 791 steps, .584 with 8 and 1,766, .583 with 4. (The
# graphs are those of `benchmarks.planted_graphs`, here and below with --relations 48.)
MIN_PATH_QUERIES, MAX_PATH_QUERIES = 8, 32
MAX_WALK_EDGES = 2**19  # that the walks of a step follow, where there are more than the fewest
MAX_EDGES_OF_A_WALK = 2**18  # where it has more, walks have 2 steps, so that steps stay short
# Walks against all nodes: edges that those of a step follow; where they are many, no more than so
# many for each score of the vectors, but not fewer queries than this.
MANY_WALK_EDGES, WALK_EDGES_A_SCORE, MIN_DENSE_PATH_QUERIES = 2**24, 2, 4
MIN_ANCHORS, MAX_ANCHORS, ANCHOR_SHARE = 20, 5_000, 0.25  # of the nodes
# Of millions of nodes 5,000 anchors tell too few apart: of 2.5M with 41,000 communities they had
# validation MRR .044 after 5 minutes, and no more after 30.
ANCHOR_SHARE_IF_LARGE, MAX_ANCHORS_IF_LARGE = 0.02, 100_000
# With walks beside a sample, half of 6,000 nodes as anchors gave .288, a quarter .279.
MAX_ANCHORS_IF_SPARSE = 20_000
# Of the encoder and of queries. With (0, 0.1) CoDEx-M had MRR .327 after 6 passes, with (0.1, 0.3)
# .324 after 13; FB15k-237 on validation .323 after 4, and .325 after 8.
FEW_PASSES_DROPOUT, MANY_PASSES_DROPOUT = (0.0, 0.1), (0.1, 0.3)
MANY_PASSES = 30
FACTS_FOR_LAYERS = 50_000  # at most: the time of a graph layer grows with the facts


@dataclass(frozen=True)
class Choice:
    """Settings, why they were chosen, in sentences, and the minutes that are enough for them."""

    experiment: Experiment
    reasons: tuple[str, ...]
    minutes: float


TimeStep = Callable[[Experiment], float]  # seconds of a step


def choose(
    name: str,
    dataset: str,
    shape: GraphShape,
    machine: Machine,
    minutes: float,
    *,
    time_step: TimeStep,
    overrides: Sequence[str] = (),
) -> Choice:
    """Settings for a graph, with `overrides`, which are timed and fitted to the memory too."""

    def given(experiment: Experiment) -> Experiment:
        if not overrides:
            return experiment
        return consistent(with_overrides(experiment, overrides), overridden(overrides))

    base = Experiment(
        name=name,
        dataset=dataset,
        tokenizer=choose_tokenizer(shape),
        evaluation=EvaluationSettings(held_out_share=choose_held_out(shape)),
    )
    sizes = replace(sizes_of_shape(shape), on_gpu=machine.device.type == "cuda")
    one_vs_all = fitted(with_all_nodes(base, shape, machine), sizes, machine.memory, given=given)
    sampled = fitted(with_samples(base, shape, machine), sizes, machine.memory, given=given)
    if one_vs_all is None and sampled is None:
        smallest = with_samples(base, shape, machine)
        least = least_memory(smallest, sizes, machine.memory, given=given)
        raise InputError(
            f"{name} needs at least {gigabytes(least)} of memory, and {gigabytes(machine.memory)} "
            f"may be used; allow more with --memory{' or leave out --set' if overrides else ''}"
        )
    loss = overridden(overrides).get("training.loss")
    is_all, reason = decide_loss(
        one_vs_all, shape, machine, minutes, time_step=time_step, loss=loss
    )
    chosen = one_vs_all if is_all else sampled
    chosen = chosen or one_vs_all or sampled
    assert chosen is not None  # both were refused above
    seconds = time_step(chosen)
    passes = minutes / minutes_for_passes(chosen, shape, 1, seconds)
    chosen = given(with_dropout(chosen, passes))
    reasons = (*describe(chosen, shape, machine), reason)
    enough = minutes_for_passes(chosen, shape, MAX_PASSES, seconds)
    if enough < minutes:
        reasons += (f"{enough:.2g} minutes are enough: {MAX_PASSES} passes over the facts",)
    return Choice(chosen, reasons, min(minutes, enough))


def minutes_for_passes(
    experiment: Experiment, shape: GraphShape, passes: float, step_seconds: float
) -> float:
    """The minutes in which so many passes over the facts are made, evaluation included."""
    is_all = experiment.training.is_one_vs_all
    num_items = shape.num_queries if is_all else 2 * shape.num_facts
    num_steps = -(-num_items // experiment.training.batch_size)
    return passes * num_steps * step_seconds / TRAINING_SHARE / 60


def choose_held_out(shape: GraphShape) -> float:
    """The share of facts held out for validation, and for test, where there are none."""
    return 0.0 if shape.num_facts < FEW_FACTS else 0.05


def choose_tokenizer(shape: GraphShape) -> TokenizerSettings:
    """A quarter of the nodes as anchors, up to some thousands, or 2 % of a large graph.

    With sums they cost no time until their vectors no longer fit the processor's cache. A node has
    about twice as many relation pieces as it has relations on average.
    """
    most = max(1, shape.num_nodes)
    large = min(MAX_ANCHORS_IF_LARGE, round(ANCHOR_SHARE_IF_LARGE * most))
    least, limit = min(MIN_ANCHORS, most), max(MAX_ANCHORS, large)
    num_anchors = int(np.clip(round(ANCHOR_SHARE * most), least, limit))
    return TokenizerSettings(
        num_anchors=num_anchors,
        anchors_per_node=min(16, num_anchors),
        relations_per_node=int(np.clip(round(2 * shape.relations_per_node), 2, 12)),
    )


def with_all_nodes(base: Experiment, shape: GraphShape, machine: Machine) -> Experiment:
    """Every query against all nodes, and beside the vectors walks, trained on a part of them."""
    is_small = shape.num_nodes <= SMALL_GRAPH
    dropout, query_dropout = (0.1, 0.5) if is_small else FEW_PASSES_DROPOUT
    dim = 128
    layers = 2 if shape.num_facts <= FACTS_FOR_LAYERS else 0
    batch_size = int(np.clip(2 ** round(np.log2(max(1, shape.num_queries) / 100)), 64, 1024))
    return replace(
        base,
        encoder=EncoderSettings("gated-sum", dim=dim, hidden_dim=dim, dropout=dropout),
        graph=GraphLayerSettings(layers=layers, edge_dropout=0.3 if layers else 0.0),
        decoder=DecoderSettings("complex", query_dropout=query_dropout, node_norm=True),
        walks=choose_walks(shape),
        training=TrainingSettings(
            loss="cross-entropy",
            batch_size=batch_size,
            learning_rate=0.003 if is_small else 0.005,
            precision="float32" if is_small else choose_precision(machine),
            hide_targets=True,
            validate_every=1,
        ),
        one_vs_all=OneVsAllSettings(
            smoothing=0.1, path_queries=choose_path_queries(shape, batch_size)
        ),
    )


def with_dropout(experiment: Experiment, passes: float) -> Experiment:
    """More dropout where there is time for many passes; small graphs have more already."""
    encoder, decoder = experiment.encoder, experiment.decoder
    values = encoder.dropout, decoder.query_dropout
    if passes < MANY_PASSES or values != FEW_PASSES_DROPOUT:
        return experiment
    dropout, query_dropout = MANY_PASSES_DROPOUT
    return replace(
        experiment,
        encoder=replace(encoder, dropout=dropout),
        decoder=replace(decoder, query_dropout=query_dropout),
    )


def for_few_facts(experiment: Experiment) -> Experiment:
    """The settings for a graph that has no facts to validate on, and too few to hold some out."""
    walks = replace(experiment.walks, choose_coefficient=False)
    return without_validation(replace(experiment, walks=walks))


def choose_walks(shape: GraphShape) -> WalkSettings:
    """Longer walks where nodes have few facts: there they reach few nodes, and cost little.

    With walks of 3 steps beside the vectors CoDEx-M had MRR .327 after 5 minutes, FB15k-237 .317;
    without them .271 and .302 after 8.
    """
    steps = 5 if shape.facts_per_node < SPARSE else 3
    return WalkSettings(steps, separate_losses=True, choose_coefficient=True)


def choose_path_queries(shape: GraphShape, batch_size: int) -> int:
    """On how many queries of a batch walks are trained, where every query is against all nodes.

    These walks go along all edges. Where nodes have very many they would take nearly all of the
    time: 3,000 nodes with 360,000 facts had MRR .255 with 32 queries (291 steps in 3 minutes on
    one core), .424 with 8 and .460 with 4 (1,376 steps). FB15k-237 had .321 with 32, .323 with 8.
    """
    queries = min(batch_size, 64 if shape.facts_per_node < 8 else 32)
    num_edges = 2 * shape.num_facts
    if queries * num_edges <= MANY_WALK_EDGES:
        return queries
    number = WALK_EDGES_A_SCORE * batch_size * shape.num_nodes // num_edges
    return min(max(number, MIN_DENSE_PATH_QUERIES), queries)


def with_samples(base: Experiment, shape: GraphShape, machine: Machine) -> Experiment:
    """Facts against the tails of their group and a shared sample of all nodes.

    A large batch in groups: with 149,000 nodes and 854,000 facts a pass takes 54 s of a processor
    in batches of 4,096, each 1,024 with 512 negatives, and 88 s in batches of 2,048 with 1,024.
    15,000 nodes had MRR .255 after 8 passes in batches of 1,024 and .249 in batches of 512.
    """
    batch_size = int(np.clip(2 ** round(np.log2(max(1, shape.num_facts) / 50)), 256, 4096))
    walks, path_queries, num_anchors = WalkSettings(), 0, base.tokenizer.num_anchors or 20
    if machine.device.type == "cpu":
        walks, path_queries = choose_sampled_walks(shape)
    if is_small_and_sparse(shape):
        most = min(MAX_ANCHORS_IF_SPARSE, round(ANCHOR_SHARE * shape.num_nodes))
        num_anchors = max(num_anchors, most)
    return replace(
        base,
        tokenizer=replace(
            base.tokenizer, num_anchors=num_anchors, anchors_per_node=min(20, num_anchors)
        ),
        encoder=EncoderSettings("gated-sum", dim=128, hidden_dim=128, dropout=0.0),
        decoder=DecoderSettings("complex"),
        training=TrainingSettings(
            loss=SAMPLED_SOFTMAX,
            batch_size=batch_size,
            learning_rate=0.005,
            precision=choose_precision(machine),
            hide_targets=bool(walks.steps),
            validate_every=1,
        ),
        walks=walks,
        sampled=SampledSettings(
            num_negatives=512, group_size=min(1024, batch_size), path_queries=path_queries
        ),
    )


def choose_sampled_walks(shape: GraphShape) -> tuple[WalkSettings, int]:
    """Walks beside a sample, and on how many facts of a batch they are trained.

    Fewer where they follow many edges, so that a step costs about as much on any graph; shorter
    walks where even a few of them would take most of its time.
    """
    steps = WALK_STEPS
    while steps > 2 and shape.walk_edges[steps - 1] > MAX_EDGES_OF_A_WALK:
        steps -= 1
    number = int(MAX_WALK_EDGES / max(1.0, shape.walk_edges[steps - 1]))
    queries = min(max(number, MIN_PATH_QUERIES), MAX_PATH_QUERIES)
    return replace(SAMPLED_WALKS, steps=steps), queries


def is_small_and_sparse(shape: GraphShape) -> bool:
    return shape.facts_per_node < SPARSE and shape.num_facts <= FACTS_OF_SPARSE_GRAPH


def choose_precision(machine: Machine) -> str:
    if machine.device.type == "cuda":
        return "tf32"
    return "bfloat16" if machine.is_fast_in_bfloat16 else "float32"


def decide_loss(
    one_vs_all: Experiment | None,  # None: it does not fit
    shape: GraphShape,
    machine: Machine,
    minutes: float,
    *,
    time_step: TimeStep,
    loss: object = None,
) -> tuple[bool, str]:
    """Whether to train against all nodes, and why: if there is time for some passes."""
    if loss is not None:
        is_all = TrainingSettings(loss=str(loss)).is_one_vs_all
        return is_all, f"training.loss = {loss} was set"
    if one_vs_all is None:
        return False, "against a sample of the nodes, as all of them do not fit the memory"
    if shape.num_nodes <= SMALL_GRAPH:
        return True, f"against all nodes, as there are at most {SMALL_GRAPH:,}"
    large = LARGE_GRAPH[machine.device.type]
    if shape.num_nodes > large:
        return False, f"against a sample of the nodes, as there are more than {large:,}"
    is_sparse = shape.facts_per_node < SPARSE
    is_many = shape.num_nodes > LARGE_SPARSE_GRAPH and is_small_and_sparse(shape)
    is_many = is_many and machine.device.type == "cpu"  # where walks go with a sample
    if is_many and minutes < MINUTES_FOR_MANY_SPARSE_NODES:  # no step has to be timed
        return False, (
            f"against a sample of the nodes, with walks, as more than {LARGE_SPARSE_GRAPH:,} nodes "
            "have few facts each"
        )
    num_steps = -(-shape.num_queries // one_vs_all.training.batch_size)
    passes = TRAINING_SHARE * 60 * minutes / max(1e-9, num_steps * time_step(one_vs_all))
    least = MIN_PASSES_IF_SPARSE if is_sparse else MIN_PASSES
    least = MIN_PASSES_IF_LARGE_AND_SPARSE if is_many else least
    is_all = passes >= least
    against = "against all nodes" if is_all else "against a sample of the nodes"
    return is_all, (
        f"{against}, as there is time for {passes:.1f} passes over all queries against all nodes "
        f"({least:g} are worth it)"
    )


def describe(experiment: Experiment, shape: GraphShape, machine: Machine) -> list[str]:
    """What was chosen for which graph, in two lines."""
    tokenizer, encoder, training = experiment.tokenizer, experiment.encoder, experiment.training
    graph = (
        f"{shape.num_nodes:,} nodes with {shape.facts_per_node:.1f} facts each, "
        f"{shape.num_relations:,} relations, {shape.two_way:.0%} of the facts both ways, "
        f"{machine.memory / 1e9:.1f} GB"
    )
    extra = [f"walks of {experiment.walks.steps} steps"] * bool(experiment.walks.steps)
    extra += [f"{experiment.graph.layers} graph layers"] * bool(experiment.graph.layers)
    parts = [
        f"{tokenizer.num_anchors:,} anchors, {tokenizer.anchors_per_node} of them and "
        f"{tokenizer.relations_per_node} relations a node",
        f"{encoder.kind} of {encoder.dim} numbers",
        f"{experiment.decoder.kind}",
        *extra,
        f"{training.loss}, batches of {training.batch_size:,}, rate {training.learning_rate:g}, "
        f"{training.precision}",
    ]
    return [graph, "chosen: " + "; ".join(parts)]
