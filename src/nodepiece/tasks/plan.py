"""Estimates of parameters and memory of an experiment, before it is run.

Parameters are those of the model that the task builds for its graph and tokens, without allocating
weights. Memory is estimated from sizes (`tasks/memory_estimate.py`), for tasks other than link
prediction roughly; `tasks/timing.py` measures it with a few steps.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch

from nodepiece.data.dataset import Dataset
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.encoders.parameters import num_parameters
from nodepiece.errors import InputError, SettingError
from nodepiece.graph.knowledge_graph import KnowledgeGraph, with_inverses
from nodepiece.settings import Experiment
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.memory_estimate import Sizes, estimate_memory, table_bytes
from nodepiece.tasks.out_of_sample import check_settings as check_out_of_sample
from nodepiece.tasks.registry import task_record
from nodepiece.tasks.task import Task
from nodepiece.tasks.tokens import tokenize_for, tokenizer_settings_of
from nodepiece.tokenizer.context import RelationSets
from nodepiece.tokenizer.tokens import TokenTable
from nodepiece.tokenizer.vocabulary import Vocabulary

LIKELY_DISTANCE = 10  # hops to the farthest anchor, if there is no graph to measure


@dataclass(frozen=True, eq=False)
class PlanInput:
    """The input of a plan: a task, its tokens and its sizes."""

    task: Task[Any]
    table: TokenTable
    sizes: Sizes
    is_real: bool  # False: only the sizes are known; facts and tokens are random

    @property
    def experiment(self) -> Experiment:
        return self.task.experiment


def is_link_task(experiment: Experiment) -> bool:
    """Whether the task is link prediction on one graph, whose costs depend on sizes only."""
    return issubclass(task_record(experiment).task, LinkPrediction)


def input_from_task(task: Task[Any]) -> PlanInput:
    """The input of an opened task, tokenized as for training."""
    return PlanInput(task, tokenize_for(task.experiment, task.graph), sizes_of(task), is_real=True)


def input_from_sizes(experiment: Experiment, sizes: Sizes) -> PlanInput:
    """The input of link prediction on a graph of which only the sizes are known."""
    # With pieces, no parameter depends on the number of nodes.
    num_rows = 1 if experiment.encoder.has_pieces else sizes.num_nodes
    table = random_tokens(experiment, sizes, num_rows, rng=np.random.default_rng(0))
    graph = KnowledgeGraph(np.empty((0, 3), np.int32), sizes.num_nodes, sizes.num_relations)
    return PlanInput(link_prediction_on(experiment, graph), table, sizes, is_real=False)


def link_prediction_on(experiment: Experiment, graph: KnowledgeGraph) -> LinkPrediction:
    """Link prediction on a graph, without facts for validation and test."""
    none = np.empty((0, 3), np.int32)
    return LinkPrediction(experiment, Dataset(experiment.dataset, graph, none, none, {}))


def sizes_of(task: Task[Any]) -> Sizes:
    graph = task.graph
    head, relation, _ = with_inverses(graph).T
    queries = np.sort(head.astype(np.int64) * (2 * graph.num_relations) + relation)
    num_test_facts = len(task.dataset.test) if isinstance(task, LinkPrediction) else 0
    return Sizes(
        graph.num_nodes,
        graph.num_triples,
        graph.num_relations,
        num_test_facts,
        num_queries=int((np.diff(queries, prepend=-1) > 0).sum()),
    )


@dataclass(frozen=True)
class Plan:
    """Parameters and memory of one model; memory in bytes."""

    kind: str  # in words
    parameters: int
    weights: int
    token_table: int
    tokenizing: int  # on the host, peak
    training: int  # weights and optimizer, token table, facts, a step, the program
    evaluating: int  # weights, token table, vectors of all nodes, scores, the program

    def to_json(self) -> dict[str, object]:
        return dict(vars(self))


def plan(inputs: PlanInput) -> Plan:
    """The plan of the model of an experiment on its graph."""
    experiment, sizes = inputs.experiment, inputs.sizes
    parameters, is_shallow = count_parameters(inputs), not experiment.encoder.has_pieces
    memory = estimate_memory(experiment, sizes, parameters)
    return Plan(
        kind="a vector for every node" if is_shallow else "NodePiece",
        parameters=parameters,
        weights=4 * parameters,
        token_table=0 if is_shallow else table_bytes(experiment, sizes),
        tokenizing=memory.tokenizing,
        training=memory.training,
        evaluating=memory.evaluating,
    )


def with_lookup(inputs: PlanInput) -> PlanInput | None:
    """The input with a vector of the same size for every node; None: the task has no such model."""
    lookup = EncoderSettings(kind="lookup", dim=inputs.experiment.encoder.dim)
    experiment = replace(inputs.experiment, encoder=lookup)
    if experiment.task == "inductive-link-prediction":
        return None
    if experiment.task == "out-of-sample":
        try:
            check_out_of_sample(experiment)
        except InputError:
            return None
    if not inputs.is_real:
        return input_from_sizes(experiment, inputs.sizes)
    return input_from_task(replace(cast(Any, inputs.task), experiment=experiment))


def count_parameters(inputs: PlanInput) -> int:
    """The number of parameters of the model that the task builds; exact if its graph was read."""
    with torch.device("meta"):  # shapes without memory
        return num_parameters(inputs.task.build_model(inputs.table))


def random_tokens(
    experiment: Experiment, sizes: Sizes, num_nodes: int, *, rng: np.random.Generator
) -> TokenTable:
    """A random token table for some nodes, with the vocabulary size of the whole graph."""
    settings = tokenizer_settings_of(experiment)
    try:
        num_anchors = settings.anchors_in(sizes.num_nodes)
    except SettingError as error:
        raise error.named(lambda field: f"tokenizer.{field}") from error
    num_relations, k = 2 * sizes.num_relations, settings.anchors_per_node
    vocabulary = Vocabulary(
        np.arange(num_anchors, dtype=np.int32),
        num_relations,
        num_nodes,
        "a plan, no graph",
        settings,
    )
    distances = np.sort(rng.integers(LIKELY_DISTANCE, size=(num_nodes, k), dtype=np.int16), axis=1)
    distances[:, k - 1 :] = LIKELY_DISTANCE
    if not settings.distances:
        distances[:] = -1
    shape = (num_nodes, settings.relations_per_node)
    relations = rng.integers(num_relations, size=shape, dtype=np.int32)
    return TokenTable(
        vocabulary,
        rng.integers(max(1, num_anchors), size=(num_nodes, k), dtype=np.int32),
        distances,
        vocabulary.relation_tokens(relations),
        RelationSets(np.zeros(num_nodes + 1, np.int64), np.empty(0, np.int32)),
    )
