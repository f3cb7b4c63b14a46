"""A labelled graph that can be learned in seconds, and an experiment that does.

Sixty people live in twelve towns, six of them in the north. Everybody either teaches at a school or
plays for a club. So the classes of a person follow from the graph: teacher or player from a
relation, northerner from where the town lies, one step further.
"""

from dataclasses import replace

import numpy as np
from tests.tasks.training_changes import with_training

from nodepiece.data.labelled_graph import LabelledGraph, label_graph
from nodepiece.decoders.class_model import ClassifierSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.settings import Experiment
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.training.settings import TrainingSettings

NUM_PEOPLE, NUM_TOWNS = 60, 12
PEOPLE = [f"person {n}" for n in range(NUM_PEOPLE)]
NODES = [*PEOPLE, *(f"town {n}" for n in range(NUM_TOWNS)), "north", "south", "school", "club"]
NORTH, SOUTH, SCHOOL, CLUB = range(NUM_PEOPLE + NUM_TOWNS, len(NODES))
LIVES_IN, LIES_IN, TEACHES_AT, PLAYS_FOR = range(4)
NAMES = Names.of(NODES, ["lives in", "lies in", "teaches at", "plays for"])


def professions() -> LabelledGraph:
    rng = np.random.default_rng(0)
    towns, teaches = rng.integers(NUM_TOWNS, size=NUM_PEOPLE), rng.random(NUM_PEOPLE) < 0.5
    facts = [
        (town + NUM_PEOPLE, LIES_IN, SOUTH if town % 2 else NORTH) for town in range(NUM_TOWNS)
    ]
    labels = {}
    for person, (town, is_teacher) in enumerate(zip(towns, teaches, strict=True)):
        facts.append((person, LIVES_IN, town + NUM_PEOPLE))
        facts.append((person, TEACHES_AT, SCHOOL) if is_teacher else (person, PLAYS_FOR, CLUB))
        region = [] if town % 2 else ["northerner"]
        labels[f"person {person}"] = ["teacher" if is_teacher else "player", *region]
    triples = np.array(sorted(facts), dtype=np.int32)
    graph = KnowledgeGraph(triples, len(NODES), len(NAMES.relations), NAMES)
    split = {"train": PEOPLE[:30], "valid": PEOPLE[30:45], "test": PEOPLE[45:]}
    parts = {part: {name: labels[name] for name in names} for part, names in split.items()}
    return label_graph("professions", graph, parts)


EXPERIMENT = Experiment(
    name="professions",
    dataset="professions",
    task="node-classification",
    tokenizer=TokenizerSettings(num_anchors=4, anchors_per_node=2, relations_per_node=3),
    encoder=EncoderSettings(dim=16, hidden_dim=32, dropout=0.1),
    graph=GraphLayerSettings(kind="compgcn", layers=2, attention_heads=2),
    training=TrainingSettings(
        epochs=6,
        learning_rate=0.01,
        clip_gradient=1.0,
        validate_every=2,
        metric="hard_accuracy",
        checkpoint_seconds=0,
    ),
)


def experiment(label_share: float = 1.0, **training: object) -> Experiment:
    """The experiment with other settings of training."""
    classifier = ClassifierSettings(label_share=label_share)
    return with_training(replace(EXPERIMENT, classifier=classifier), **training)
