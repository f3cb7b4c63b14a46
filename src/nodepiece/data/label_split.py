"""Datasets for node classification from a graph and the classes of its nodes (appendix).

Facts that state classes contain the answers, so they are removed first, with nodes that have no
other fact. Then rare classes are removed. The remaining labelled nodes are split at random.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from nodepiece.data.labelled_graph import LabelledGraph, Labels, label_graph
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names


@dataclass(frozen=True)
class LabelSplitSettings:
    """How a labelled graph is made; the defaults are the paper's."""

    class_relations: tuple[str, ...] = ()  # relations that state classes, such as P31 and P279
    least_nodes: int = 50  # nodes that a class must have to be kept
    valid_share: float = 0.1  # of the labelled nodes
    test_share: float = 0.1

    def __post_init__(self) -> None:
        if self.least_nodes < 1:
            raise InputError(f"a class must have at least 1 node to be kept: {self.least_nodes}")
        shares = (self.valid_share, self.test_share)
        if min(shares) < 0 or sum(shares) >= 1:
            raise InputError(
                f"the shares for valid and test must be 0 or more and leave something to train "
                f"on, got {shares[0]} and {shares[1]}"
            )


@dataclass(frozen=True)
class LabelSplitReport:
    """The numbers of facts, nodes and classes kept and left out, in the order of the steps."""

    num_class_facts: int  # facts left out: they state classes
    num_disconnected: int  # nodes left out: they had no other facts
    num_facts: int  # kept
    num_nodes: int
    num_outside: int  # labelled nodes left out: the graph does not have them
    num_rare_classes: int  # classes left out: too few nodes have them
    num_rare_labels: int  # labels of nodes left out with them
    num_unlabelled: int  # nodes without a class after that: in the graph, but in no split
    num_classes: int  # kept
    num_labelled: dict[str, int]  # nodes in each split

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def split_labels(
    graph: KnowledgeGraph,
    labels: Labels,
    settings: LabelSplitSettings,
    *,
    name: str,
    rng: np.random.Generator,
) -> tuple[LabelledGraph, LabelSplitReport]:
    """The dataset, and a report of what was left out.

    The nodes of a class are counted in the remaining graph, before the split.
    """
    kept, num_class_facts = without_relations(graph, settings.class_relations)
    names = _names(kept)
    inside = set(names.nodes.to_pylist())
    known = {node: classes for node, classes in labels.items() if node in inside}
    counts = Counter(label for classes in known.values() for label in classes)
    frequent = {label for label, count in counts.items() if count >= settings.least_nodes}
    cleaned = {
        node: [label for label in classes if label in frequent] for node, classes in known.items()
    }
    labelled = {node: classes for node, classes in cleaned.items() if classes}
    if not labelled:
        raise InputError(
            f"no class has {settings.least_nodes} nodes of the graph ({len(known):,} of "
            f"{len(labels):,} labelled nodes are in it); lower the number of nodes that a class "
            "must have, or check that both files call nodes by the same names"
        )
    parts = _split(labelled, settings, rng=rng)
    report = LabelSplitReport(
        num_class_facts=num_class_facts,
        num_disconnected=graph.num_nodes - kept.num_nodes,
        num_facts=kept.num_triples,
        num_nodes=kept.num_nodes,
        num_outside=len(labels) - len(known),
        num_rare_classes=len(counts) - len(frequent),
        num_rare_labels=sum(count for label, count in counts.items() if label not in frequent),
        num_unlabelled=len(known) - len(labelled),
        num_classes=len(frequent),
        num_labelled={part: len(rows) for part, rows in parts.items()},
    )
    return label_graph(name, kept, parts), report


def without_relations(
    graph: KnowledgeGraph, relations: Sequence[str]
) -> tuple[KnowledgeGraph, int]:
    """The graph without some relations and without nodes that have no other facts.

    The remaining ids are renumbered in their order. Also returns the number of removed facts.
    """
    names = _names(graph)
    dropped = [names.relation_id(relation) % graph.num_relations for relation in relations]
    triples = graph.triples[~np.isin(graph.triples[:, 1], dropped)]
    if not len(triples):
        raise InputError(f"no fact is left without {', '.join(relations)}; drop fewer relations")
    nodes, new_nodes = _renumber(triples[:, [0, 2]], graph.num_nodes)
    used, new_relations = _renumber(triples[:, 1], graph.num_relations)
    renamed = Names(names.nodes.take(nodes), names.relations.take(used))
    head, relation, tail = triples.T
    fresh = np.stack([new_nodes[head], new_relations[relation], new_nodes[tail]], axis=1)
    kept = KnowledgeGraph(fresh, len(nodes), len(used), renamed)
    return kept, graph.num_triples - kept.num_triples


def _renumber(used: IntArray, num_ids: int) -> tuple[IntArray, IntArray]:
    """The ids in use, ascending, and the new id of every old one."""
    is_used = np.zeros(num_ids, dtype=bool)
    is_used[used] = True
    return np.flatnonzero(is_used).astype(np.int32), (is_used.cumsum() - 1).astype(np.int32)


def _split(
    labelled: Labels, settings: LabelSplitSettings, *, rng: np.random.Generator
) -> dict[str, Labels]:
    nodes = list(labelled)
    num_valid = round(settings.valid_share * len(nodes))
    num_test = round(settings.test_share * len(nodes))
    if num_valid + num_test >= len(nodes):
        raise InputError(
            f"{len(nodes):,} labelled nodes are too few for shares of {settings.valid_share} and "
            f"{settings.test_share}: none is left to train on; lower the shares"
        )
    order = rng.permutation(len(nodes))
    valid, test, train = np.split(order, [num_valid, num_valid + num_test])
    return {
        part: {nodes[position]: labelled[nodes[position]] for position in np.sort(chosen)}
        for part, chosen in (("train", train), ("valid", valid), ("test", test))
    }


def _names(graph: KnowledgeGraph) -> Names:
    if graph.names is None:
        raise InputError("labels are given by name, and the graph has no names")
    return graph.names
