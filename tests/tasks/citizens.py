"""Two graphs without a common node, where an answer follows from the relations alone.

People live in cities, cities are in countries. Who lives in a city of a country is its citizen:
stated of some people, and to be found out of the rest. People also have friends in any country.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.tasks.training_changes import with_training

from nodepiece.data.dataset import Dataset
from nodepiece.data.inductive import InductiveDataset
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.decoders.walks import WalkSettings
from nodepiece.encoders.graph_settings import GraphLayerSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.settings import Experiment
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.training.settings import TrainingSettings

RELATIONS = ["lives in", "is in", "citizen of", "friend of"]
LIVES, IS_IN, CITIZEN, FRIEND = range(4)
NUM_CITIES, NUM_COUNTRIES = 12, 6


def world(name: str, num_people: int, num_open: int, *, rng: np.random.Generator) -> Dataset:
    """A graph; of the last `num_open` people citizenship is to be found out."""
    city_ids = num_people + np.arange(NUM_CITIES)
    countries = num_people + NUM_CITIES + np.arange(NUM_COUNTRIES)
    people = np.arange(num_people)
    home = rng.integers(NUM_CITIES, size=num_people)
    country_of = countries[np.arange(NUM_CITIES) % NUM_COUNTRIES]
    lives = facts(people, LIVES, city_ids[home])
    is_in = facts(city_ids, IS_IN, country_of)
    citizens = facts(people, CITIZEN, country_of[home])
    friends = facts(people, FRIEND, (people + rng.integers(1, num_people, num_people)) % num_people)
    stated, found = citizens[: num_people - num_open], citizens[num_people - num_open :]
    names = Names.of(
        [f"{name} person {n}" for n in range(num_people)]
        + [f"{name} city {n}" for n in range(NUM_CITIES)]
        + [f"{name} country {n}" for n in range(NUM_COUNTRIES)],
        RELATIONS,
    )
    train = np.concatenate([lives, is_in, stated, friends])
    graph = KnowledgeGraph(train, len(names.nodes), len(RELATIONS), names)
    valid, test = found[: num_open // 2], found[num_open // 2 :]
    return Dataset(name, graph, valid, test, {"valid": 0, "test": 0})


def facts(head: NDArray[Any], relation: int, tail: NDArray[Any]) -> IntArray:
    return np.stack([head, np.full_like(head, relation), tail], axis=1).astype(np.int32)


def two_worlds() -> InductiveDataset:
    rng = np.random.default_rng(0)
    old = world("old", num_people=80, num_open=0, rng=rng)
    new = world("new", num_people=60, num_open=40, rng=rng)
    return InductiveDataset("two worlds", old, new, 0, 0)


EXPERIMENT = Experiment(
    name="citizens",
    dataset="two worlds",
    task="inductive-link-prediction",
    tokenizer=TokenizerSettings(anchors_per_node=0, relations_per_node=4),
    encoder=EncoderSettings(dim=16, hidden_dim=32, dropout=0.0),
    graph=GraphLayerSettings(kind="compgcn", layers=1, attention_heads=2),
    decoder=DecoderSettings("rotate"),
    walks=WalkSettings(steps=2),
    training=TrainingSettings(
        loss="cross-entropy",
        hide_targets=True,
        epochs=6,
        batch_size=64,
        learning_rate=0.01,
        checkpoint_seconds=0,
    ),
)


def experiment(**training: object) -> Experiment:
    """The experiment with other settings of training."""
    return with_training(EXPERIMENT, **training)
