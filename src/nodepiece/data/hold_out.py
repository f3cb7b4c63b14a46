"""A dataset without one of its nodes."""

from dataclasses import replace

from nodepiece.data.dataset import Dataset
from nodepiece.data.encode import encode_like
from nodepiece.data.out_of_sample import NamedTriple
from nodepiece.data.out_of_sample_split import renumbered
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph


def hold_out(dataset: Dataset, name: str) -> tuple[Dataset, list[NamedTriple]]:
    """The dataset without a node, and the facts of this node by name.

    Nodes that occur only in these facts are removed too, with their facts of valid and test.
    """
    names = dataset.names
    node = names.node_id(name)
    train = renumbered(without_node(dataset.train.triples, node), names)[0]
    parts = {}
    for split in ("valid", "test"):
        facts = without_node(dataset.part(split), node)
        graph = KnowledgeGraph(facts, dataset.num_nodes, len(names.relations), names)
        parts[split] = encode_like(graph, train.names or names)[0]
    facts = dataset.all_triples()
    own = facts[(facts[:, ::2] == node).any(axis=1)].tolist()
    named = [(names.node(head), names.relation(r), names.node(tail)) for head, r, tail in own]
    return replace(dataset, train=train, valid=parts["valid"], test=parts["test"]), named


def without_node(facts: IntArray, node: int) -> IntArray:
    return facts[(facts[:, ::2] != node).all(axis=1)]
