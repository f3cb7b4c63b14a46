"""Baselines of node classification, by hand."""

import numpy as np

from nodepiece.data.labelled_graph import NodeLabels
from nodepiece.evaluation.class_baselines import CLASS_SHARES, NEIGHBOURS, class_baselines
from nodepiece.graph.knowledge_graph import KnowledgeGraph

# 0 - 1 twice, 0 - 2, 3 - 3, 4 alone; of the classes, 1 has the first two, 2 the first, 3 none
GRAPH = KnowledgeGraph(np.array([[0, 0, 1], [1, 1, 0], [0, 0, 2], [3, 0, 3]], np.int32), 5, 2)
TRAIN = NodeLabels(
    np.array([1, 2, 3], np.int32), np.array([[0, 0], [0, 1], [1, 0]], np.int32).reshape(-1, 2)
)


def test_neighbours_vote_and_one_more_has_the_classes_of_all() -> None:
    nodes = np.array([0, 1, 3, 4], np.int32)
    found = class_baselines(GRAPH, TRAIN, 3, nodes)
    shares = np.array([2 / 3, 1 / 3, 0])
    np.testing.assert_allclose(found[CLASS_SHARES], np.tile(shares, (4, 1)), rtol=1e-6)
    voted = found[NEIGHBOURS].numpy()
    np.testing.assert_allclose(voted[0], (np.array([3, 2, 0]) + shares) / 4, rtol=1e-6)
    for row in (1, 2, 3):  # its neighbour has no label; only itself has one; no neighbour
        np.testing.assert_allclose(voted[row], shares, rtol=1e-6)
