"""Baselines of node classification without training: frequent classes, and those of neighbours."""

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from nodepiece.data.labelled_graph import NodeLabels
from nodepiece.graph.adjacency import build_adjacency
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph

CLASS_SHARES, NEIGHBOURS = "class shares", "classes of neighbours"


def class_shares(train: NodeLabels, num_classes: int) -> Tensor:
    """The share of the training nodes that have each class: (num_classes,)."""
    counts = np.bincount(train.classes[:, 1], minlength=num_classes)
    return torch.tensor(counts / max(1, len(train.nodes)), dtype=torch.float32)


def neighbour_shares(
    graph: KnowledgeGraph, train: NodeLabels, shares: Tensor, nodes: IntArray
) -> Tensor:
    """The share of a node's labelled neighbours that have each class: (num_nodes, num_classes).

    A neighbour counts once for every fact that joins the two; one more that has the shares of all
    training nodes stands for what is not known. Labels of the node itself are not used.
    """
    edges, num_classes = build_adjacency(graph), len(shares)
    classes = csr_array(
        (np.ones(len(train.classes)), (train.nodes[train.classes[:, 0]], train.classes[:, 1])),
        shape=(graph.num_nodes, num_classes),
    )
    is_labelled = np.zeros(graph.num_nodes, dtype=np.bool_)
    is_labelled[train.nodes] = True
    node = np.repeat(np.arange(graph.num_nodes), edges.degrees)
    chosen = is_labelled[edges.neighbours] & (edges.neighbours != node)
    joined = csr_array(
        (np.ones(int(chosen.sum())), (node[chosen], edges.neighbours[chosen])),
        shape=(graph.num_nodes, graph.num_nodes),
    )[nodes]
    number = torch.from_numpy(np.asarray(joined.sum(axis=1)))
    counts = torch.from_numpy((joined @ classes).toarray())
    return ((counts + shares) / (number + 1)[:, None]).float()


def class_baselines(
    graph: KnowledgeGraph, train: NodeLabels, num_classes: int, nodes: IntArray
) -> dict[str, Tensor]:
    """Probabilities of the classes of some nodes, (num_nodes, num_classes) each, by name."""
    shares = class_shares(train, num_classes)
    return {
        CLASS_SHARES: shares.expand(len(nodes), -1),
        NEIGHBOURS: neighbour_shares(graph, train, shares, nodes),
    }
