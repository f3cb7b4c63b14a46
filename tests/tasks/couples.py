"""A dataset that can be learned in seconds, and an experiment that does.

Forty people in twenty couples, each couple in one of four towns. Everybody's town is known, and
that one partner is married to the other; that the other is then married to the one is known of
half of the couples, and to be found out of the rest: five in validation, five in test.
"""

from dataclasses import replace

import numpy as np
from tests.tasks.training_changes import with_training

from nodepiece.data.dataset import Dataset
from nodepiece.decoders.link_model import DecoderSettings
from nodepiece.encoders.node_embedding import EncoderSettings
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.settings import Experiment
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.training.settings import TrainingSettings

NUM_COUPLES, NUM_TOWNS = 20, 4
NAMES = Names.of(
    [f"person {n}" for n in range(2 * NUM_COUPLES)] + [f"town {n}" for n in range(NUM_TOWNS)],
    ["married to", "lives in"],
)


def couples() -> Dataset:
    said = [(2 * n, 0, 2 * n + 1) for n in range(NUM_COUPLES)]
    back = [(2 * n + 1, 0, 2 * n) for n in range(NUM_COUPLES)]
    # Half of all couples are in the first town: some queries have many more answers than others.
    towns = [0 if n % 2 else 1 + n % 3 for n in range(NUM_COUPLES)]
    homes = [
        (2 * n + partner, 1, 2 * NUM_COUPLES + towns[n])
        for n in range(NUM_COUPLES)
        for partner in (0, 1)
    ]
    train = np.array(said + back[:10] + homes)
    graph = KnowledgeGraph(train, len(NAMES.nodes), len(NAMES.relations), NAMES)
    valid, test = np.array(back[10:15], np.int32), np.array(back[15:], np.int32)
    return Dataset("couples", graph, valid, test, {"valid": 0, "test": 0})


EXPERIMENT = Experiment(
    name="couples",
    dataset="couples",
    tokenizer=TokenizerSettings(num_anchors=20, anchors_per_node=6, relations_per_node=2),
    encoder=EncoderSettings(dim=16, hidden_dim=32, dropout=0.1),
    decoder=DecoderSettings("distmult", query_dropout=0.1),
    training=TrainingSettings(
        loss="cross-entropy", epochs=6, batch_size=16, learning_rate=0.01, checkpoint_seconds=0
    ),
)


def experiment(task: str = "link-prediction", **training: object) -> Experiment:
    """The experiment with other settings of training."""
    return with_training(replace(EXPERIMENT, task=task), **training)
