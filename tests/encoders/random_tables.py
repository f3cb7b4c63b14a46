"""Small token tables with every kind of token in them, for the tests of encoders and models."""

import numpy as np

from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary

NUM_NODES, NUM_RELATIONS = 24, 3


def random_graph(seed: int = 1) -> KnowledgeGraph:
    """Nodes 0-19 are one tangle, 20-22 a path of their own, and 23 has no edge at all."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(20, size=(40, 2))
    relation = rng.integers(NUM_RELATIONS, size=40)
    tangle = np.stack([ends[:, 0], relation, ends[:, 1]], axis=1)
    triples = np.unique(np.concatenate([tangle, [[20, 0, 21], [21, 1, 22]]]), axis=0)
    return KnowledgeGraph(triples, NUM_NODES, NUM_RELATIONS)


def random_table(
    *,
    num_anchors: int = 8,
    anchors_per_node: int = 4,
    relations_per_node: int = 3,
    distances: bool = True,
    seed: int = 1,
) -> TokenTable:
    settings = TokenizerSettings(
        num_anchors=num_anchors if anchors_per_node else 0,
        anchors_per_node=anchors_per_node,
        relations_per_node=relations_per_node,
        mix={"random": 1.0},
        distances=distances,
    )
    rng = np.random.default_rng(seed)
    graph = random_graph(seed)
    return tokenize(graph, fit_vocabulary(graph, settings, rng=rng), rng=rng)
