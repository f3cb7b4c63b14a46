"""A task: which nodes of any graph have many edges, learned from two thirds of the nodes."""

from dataclasses import replace
from typing import Self

import numpy as np

from nodepiece.data.dataset import SPLITS
from nodepiece.data.labelled_graph import LabelledGraph, NodeLabels
from nodepiece.data.open import DataSource, open_dataset
from nodepiece.settings import Experiment
from nodepiece.tasks.node_classification import NODE_CLASSIFICATION, NodeClassification


class HubDetection(NodeClassification):
    """Node classification whose classes, "hub" and "leaf", are found in the graph."""

    @classmethod
    def open(cls, experiment: Experiment, data: DataSource) -> Self:
        dataset = open_dataset(experiment.dataset, data=data, options=experiment.reading)
        graph = dataset.train
        degrees = np.bincount(graph.triples[:, [0, 2]].ravel(), minlength=graph.num_nodes)
        is_leaf = (degrees <= degrees.mean()).astype(np.int32)
        labels = {}
        for number, split in enumerate(SPLITS):
            nodes = np.arange(number, graph.num_nodes, len(SPLITS), dtype=np.int32)
            positions = np.arange(len(nodes), dtype=np.int32)
            labels[split] = NodeLabels(nodes, np.stack([positions, is_leaf[nodes]], axis=1))
        return cls(experiment, LabelledGraph(dataset.name, graph, ("hub", "leaf"), labels))


HUB_DETECTION = replace(
    NODE_CLASSIFICATION,
    name="hub-detection",
    description="which nodes have many edges",
    task=HubDetection,
)
