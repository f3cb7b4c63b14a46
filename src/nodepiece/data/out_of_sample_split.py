"""An out-of-sample split of any dataset, by the paper's recipe (appendix on datasets)."""

from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from nodepiece.data.dataset import Dataset
from nodepiece.data.out_of_sample import EVALUATION_SPLITS, NamedTriple, OutOfSampleDataset
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

MIN_FACTS = 2  # of an unseen node: one to predict, one that describes it


@dataclass(frozen=True)
class SplitReport:
    """The sizes of the parts, and the numbers of facts and nodes left out."""

    num_train: int  # training facts
    num_nodes: int  # of the training graph
    num_unseen: dict[str, int]  # nodes of valid and test
    num_facts: dict[str, int]  # facts of valid and test
    num_between: int  # facts left out: both their nodes are unseen
    num_lost: int  # facts left out: training lacks their relation or other node, or no second fact
    num_single: int  # nodes left out: fewer than two facts remained

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def split_out_of_sample(
    dataset: Dataset, share: float, *, rng: np.random.Generator
) -> tuple[OutOfSampleDataset, SplitReport]:
    """A dataset of all facts whose test nodes, and as many validation nodes, training lacks.

    Unseen nodes are drawn from those with at least two facts, and all their facts are removed from
    the training graph.
    """
    if not 0 < share < 0.5:
        raise InputError(f"the share of unseen nodes must be above 0 and below 0.5, got {share}")
    facts = dataset.all_triples()
    part_of = draw_nodes(facts, dataset.num_nodes, share, rng=rng)
    ends = part_of[facts[:, ::2]]  # (num_facts, 2): 0 train, 1 valid, 2 test
    is_seen = (ends == 0).all(axis=1)
    is_between = (ends > 0).all(axis=1)
    train, node_names, relation_names = renumbered(facts[is_seen], dataset.names)
    unseen, num_lost, num_single = {}, 0, 0
    for number, split in enumerate(EVALUATION_SPLITS, start=1):
        own = facts[(ends == number).any(axis=1) & ~is_between]
        by_node, lost, single = facts_by_node(
            own, part_of == number, dataset.names, set(node_names), set(relation_names)
        )
        unseen[split] = by_node
        num_lost, num_single = num_lost + lost, num_single + single
    report = SplitReport(
        train.num_triples,
        train.num_nodes,
        {split: len(unseen[split]) for split in EVALUATION_SPLITS},
        {split: sum(map(len, unseen[split].values())) for split in EVALUATION_SPLITS},
        int(is_between.sum()),
        num_lost,
        num_single,
    )
    return OutOfSampleDataset(dataset.name, train, unseen, dataset.layout), report


def draw_nodes(
    facts: IntArray, num_nodes: int, share: float, *, rng: np.random.Generator
) -> IntArray:
    """(num_nodes,): 1 for nodes of valid, 2 for nodes of test, 0 for all others."""
    num_facts = np.bincount(facts[:, ::2].ravel(), minlength=num_nodes)
    loops = facts[facts[:, 0] == facts[:, 2], 0]
    num_facts -= np.bincount(loops, minlength=num_nodes)  # a self-loop is one fact
    candidates = rng.permutation(np.flatnonzero(num_facts >= MIN_FACTS))
    number = round(share * len(candidates))
    if not number:
        raise InputError(
            f"{share:g} of {len(candidates)} nodes with at least {MIN_FACTS} facts is less than "
            "one node; raise the share"
        )
    part_of = np.zeros(num_nodes, np.int32)
    part_of[candidates[:number]] = 1
    part_of[candidates[number : 2 * number]] = 2
    return part_of


def renumbered(facts: IntArray, names: Names) -> tuple[KnowledgeGraph, list[str], list[str]]:
    """The graph of some facts, with the ids in use renumbered, and its node and relation names."""
    if not len(facts):
        raise InputError("no facts are left to learn from; lower the share of unseen nodes")
    nodes, ends = np.unique(facts[:, ::2], return_inverse=True)
    relations, kinds = np.unique(facts[:, 1], return_inverse=True)
    heads, tails = ends.reshape(-1, 2).T
    triples = np.stack([heads, kinds.ravel(), tails], axis=1).astype(np.int32)
    kept = Names(names.nodes.take(pa.array(nodes)), names.relations.take(pa.array(relations)))
    graph = KnowledgeGraph(triples, len(nodes), len(relations), kept)
    return graph, kept.nodes.to_pylist(), kept.relations.to_pylist()


def facts_by_node(
    facts: IntArray,
    is_unseen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    names: Names,
    seen: set[str],
    relations: set[str],
) -> tuple[dict[str, tuple[NamedTriple, ...]], int, int]:
    """The facts of every unseen node, and the numbers of facts and of nodes left out."""
    by_node: dict[str, list[NamedTriple]] = {}
    num_lost = 0
    for head, relation, tail in facts.tolist():
        node, other = (head, tail) if is_unseen[head] else (tail, head)
        fact = (names.node(head), names.relation(relation), names.node(tail))
        if names.node(other) in seen and fact[1] in relations:
            by_node.setdefault(names.node(node), []).append(fact)
        else:
            num_lost += 1
    kept = {node: tuple(own) for node, own in by_node.items() if len(own) >= MIN_FACTS}
    num_lost += sum(len(own) for node, own in by_node.items() if node not in kept)
    num_drawn = int(is_unseen.sum())
    return kept, num_lost, num_drawn - len(kept)
