"""Groups of nodes, for the colours of a map."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names
from nodepiece.tokenizer.tokens import TokenTable

MAX_GROUPS = 8  # that colours can tell apart
OTHER = "other"
NO_GROUP = -1


@dataclass(frozen=True, eq=False)
class Groups:
    """The largest groups, largest first, and the group of every node."""

    names: Sequence[str]  # the last is OTHER, if some node is in none of the largest
    group: IntArray  # (num_nodes,) positions in `names`


def largest_groups(labels: LongArray, names: Sequence[str]) -> Groups:
    """Keep the largest groups; the rest, and nodes with NO_GROUP, are in one group OTHER.

    labels: (num_nodes,) positions in `names`; of two groups of equal size the first is larger.
    """
    sizes = np.bincount(labels[labels >= 0], minlength=len(names))
    kept = [each for each in np.argsort(-sizes, kind="stable")[:MAX_GROUPS] if sizes[each]]
    group = np.full(len(labels), len(kept), np.int32)
    for position, label in enumerate(kept):
        group[labels == label] = position
    has_other = bool((group == len(kept)).any())
    return Groups([names[each] for each in kept] + [OTHER] * has_other, group)


def by_relation(graph: KnowledgeGraph, names: Names) -> Groups:
    """Nodes by the relation that most of their facts have; inverses count as relations."""
    head, relation, tail = graph.triples.T.astype(np.int64)
    num_relations = 2 * graph.num_relations
    ends = np.concatenate([head, tail])
    labels = np.concatenate([relation, relation + graph.num_relations])
    group = commonest(ends, labels, graph.num_nodes, num_relations)
    return largest_groups(group, [names.relation(each) for each in range(num_relations)])


def by_tail(graph: KnowledgeGraph, names: Names, relation: str) -> Groups:
    """Nodes by their tail with one relation, such as countries by continent.

    A node with several tails is in the group of the tail that most nodes have. A node that is
    itself such a tail is in its own group.
    """
    wanted = names.relation_id(relation)
    head, relations, tail = graph.triples.T.astype(np.int64)
    inverse, base = divmod(wanted, graph.num_relations)
    chosen = relations == base
    node, label = (tail, head) if inverse else (head, tail)
    node, label = node[chosen], label[chosen]
    if not len(node):
        raise InputError(f"no fact of the graph has the relation {relation!r}; choose another one")
    sizes = np.bincount(label, minlength=graph.num_nodes)
    best = np.full(graph.num_nodes, NO_GROUP, np.int64)
    best[label] = label
    order = np.argsort(sizes[label], kind="stable")  # the largest is assigned last
    best[node[order]] = label[order]
    return largest_groups(best, NodeNames(names))


def by_anchor(table: TokenTable, num_nodes: int) -> Groups:
    """Nodes by the anchor that most nodes have, among their nearest ones.

    Each node is in the group of its nearest anchor, or, if that is none of the largest groups, of
    the nearest of its anchors that is. Nodes that came after training are in OTHER.
    """
    vocabulary = table.vocabulary
    if not vocabulary.num_anchors or not table.anchors_per_node:
        raise InputError("the vocabulary of this run has no anchors; group by relation instead")
    anchors = np.where(table.anchors < vocabulary.num_anchors, table.anchors, NO_GROUP)
    nearest = anchors[:, 0].astype(np.int64)
    sizes = np.bincount(nearest[nearest >= 0], minlength=vocabulary.num_anchors)
    is_large = np.zeros(vocabulary.num_anchors + 1, np.bool_)  # the last is NO_GROUP
    is_large[np.argsort(-sizes, kind="stable")[:MAX_GROUPS]] = True
    first = is_large[anchors].argmax(axis=1)
    found = np.take_along_axis(anchors, first[:, None], axis=1)[:, 0].astype(np.int64)
    group = np.full(num_nodes, NO_GROUP, np.int64)
    group[: len(found)] = np.where(is_large[found], found, NO_GROUP)
    return largest_groups(group, [vocabulary.token_name(a) for a in range(vocabulary.num_anchors)])


def commonest(ends: LongArray, labels: LongArray, num_nodes: int, num_labels: int) -> LongArray:
    """The label that a node has most often, the smaller one of two: (num_nodes,).

    ends, labels: (num_pairs,). NO_GROUP for a node without any.
    """
    pairs = np.sort(ends * num_labels + labels)
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    times = np.diff(first, append=len(pairs))
    node, label = np.divmod(pairs[first], num_labels)
    order = np.lexsort((-label, times, node))  # the commonest is the last of its node
    result = np.full(num_nodes, NO_GROUP, np.int64)
    result[node[order]] = label[order]
    return result


class NodeNames(Sequence[str]):
    """The names of all nodes, read one at a time."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names.nodes)

    def __getitem__(self, node: int) -> str:  # type: ignore[override]
        return self.names.node(node)
