"""Small runs of every kind of model, trained in a second, for tests of explanations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tests.tasks import citizens
from tests.tasks.couples import couples, experiment
from tests.tasks.newcomers import settings, task

from nodepiece.decoders.propagation import PropagationSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.run import load
from nodepiece.tasks.inductive_link_prediction import InductiveLinkPrediction
from nodepiece.tasks.link_prediction import LinkPrediction
from nodepiece.tasks.runner import RunOptions, run_experiment
from nodepiece.tasks.task import Task

KINDS = ("pieces", "lookup", "layers", "walks", "propagation", "out-of-sample", "inductive")


def make_task(kind: str) -> Task[Any]:
    chosen = experiment(epochs=4)
    hidden = replace(chosen, training=replace(chosen.training, hide_targets=True))
    if kind == "lookup":
        chosen = replace(chosen, encoder=replace(chosen.encoder, kind="lookup"))
    if kind == "layers":
        layers = GraphLayerSettings(layers=2, dropout=0.1, edge_dropout=0.1)
        decoder = replace(hidden.decoder, node_norm=True)
        chosen = replace(hidden, graph=layers, decoder=decoder)
    if kind == "walks":
        training = replace(hidden.training, epochs=10)
        walks = WalkSettings(steps=3, plain_steps=4, coefficient=1.5)
        chosen = replace(hidden, walks=walks, training=training)
    if kind == "propagation":
        propagation = PropagationSettings(3, dim=8, rank=2, coefficient=1.5)
        training = replace(hidden.training, loss="filtered-cross-entropy", batch_size=8, epochs=8)
        chosen = replace(hidden, propagation=propagation, training=training)
    if kind == "out-of-sample":
        return task(settings())
    if kind == "inductive":
        return InductiveLinkPrediction(citizens.experiment(epochs=3), citizens.two_worlds())
    return LinkPrediction(chosen, couples())


def trained(kind: str, folder: Path) -> FactRun:
    """A run of one of KINDS."""
    run_experiment(make_task(kind), RunOptions(folder, torch.device("cpu")))
    return fact_run(load(folder))


def a_fact(run: FactRun) -> tuple[str, str, str]:
    """A fact that training does not have, or else one of the graph."""
    dataset = run.dataset
    facts = dataset.test if len(dataset.test) else dataset.train.triples
    head, relation, tail = facts[0].tolist()
    return dataset.names.node(head), dataset.names.relation(relation), dataset.names.node(tail)
