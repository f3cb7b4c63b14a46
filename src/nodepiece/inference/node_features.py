"""Features of nodes for calibration: the number of facts, and the distance to an anchor.

A model knows less of a node with few facts. A node that arrived after training mostly has few, so
its answers are calibrated like those of trained nodes with as few.
"""

import numpy as np

from nodepiece.graph.arrays import FloatArray, LongArray
from nodepiece.inference.bulk import Scoring
from nodepiece.inference.snapshot import HypotheticalSnapshot, Snapshot

FEATURES = ("log of 1 + facts", "hops to the nearest anchor")
MAX_HOPS = 6  # also for a node that reaches no anchor


def node_features(snapshot: Scoring, nodes: LongArray) -> FloatArray:
    """FEATURES of some nodes in the current graph: (num_nodes, 2)."""
    num_facts = snapshot.candidates.num_facts.at(nodes)
    return np.stack([np.log1p(num_facts), anchor_hops(snapshot, nodes)], axis=1)


def anchor_hops(snapshot: Scoring, nodes: LongArray) -> FloatArray:
    """Hops to the nearest anchor, MAX_HOPS at most; 0 for all in a model without anchors.

    Assumed facts count for new nodes only; the hops of other nodes are those without them.
    """
    if isinstance(snapshot, HypotheticalSnapshot):
        return assumed_hops(snapshot, nodes)
    if not isinstance(snapshot, Snapshot):
        return np.zeros(len(nodes))
    table = snapshot.table
    if not table.anchors_per_node or not table.vocabulary.settings.distances:
        return np.zeros(len(nodes))
    if snapshot.updates is None:
        hops = table.distances[nodes, 0]
    else:
        hops = snapshot.updates.first_distances.at(nodes)
    return np.where(hops < 0, MAX_HOPS, hops.clip(max=MAX_HOPS)).astype(np.float64)


def assumed_hops(snapshot: HypotheticalSnapshot, nodes: LongArray) -> FloatArray:
    """A new node is one hop farther than the nearest of its neighbours.

    So is a node that was removed from the graph, and has assumed facts.
    """
    base, num_old = snapshot.base, snapshot.base.dataset.num_nodes
    hops = np.full(len(nodes), float(MAX_HOPS))
    is_old = (nodes < num_old) & ~np.isin(nodes, base.absent)
    hops[is_old] = anchor_hops(base, nodes[is_old])
    heads, _, tails = snapshot.change.batch.added.T.astype(np.int64)
    for place in np.flatnonzero(~is_old).tolist():
        node = nodes[place]
        neighbours = np.concatenate([tails[heads == node], heads[tails == node]])
        known = np.setdiff1d(neighbours[neighbours < num_old], base.absent)
        if len(known):
            hops[place] = min(MAX_HOPS, 1 + anchor_hops(base, known).min())
    has_anchors = base.table.anchors_per_node and base.table.vocabulary.settings.distances
    return hops if has_anchors else np.zeros(len(nodes))
