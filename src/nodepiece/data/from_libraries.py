"""Graphs from the objects of networkx, PyTorch Geometric, PyKEEN and RDFLib.

None of these libraries is imported here: an object comes with its own.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from nodepiece.data.column_names import RELATION_TIERS, normalized
from nodepiece.data.encode import drop_duplicates
from nodepiece.data.from_tables import name_of, shown
from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

log = logging.getLogger("nodepiece")

UNLABELLED = "edge"  # the relation of all edges of a graph whose edges have no labels
Triple = tuple[str, str, str]


def from_networkx(source: Any, relation: str | None) -> KnowledgeGraph:
    """A graph from any networkx graph; nodes without edges are kept.

    The relation of an edge is the attribute `relation`, else one with a usual name such as
    "relation" or "label", else the key of the edge in a multigraph if keys are text, else "edge"
    for all. An undirected edge is one fact: nodepiece follows every fact both ways.
    """
    nodes = [name_of(node, "a node of the graph") for node in source.nodes]
    edges = list(source.edges(keys=True, data=True)) if source.is_multigraph() else None
    if edges is None:
        edges = [(head, tail, None, data) for head, tail, data in source.edges(data=True)]
    labels = edge_labels(edges, relation)
    facts = [
        (str(head), label, str(tail)) for (head, tail, *_), label in zip(edges, labels, strict=True)
    ]
    return from_ordered(facts, nodes, "the networkx graph")


def edge_labels(edges: Sequence[tuple[Any, Any, Any, dict[Any, Any]]], chosen: str | None) -> Any:
    attribute = chosen or common_attribute([data for *_, data in edges])
    if attribute is None:
        are_keys = edges and all(isinstance(key, str) and key for *_, key, _ in edges)
        return [key if are_keys else UNLABELLED for *_, key, _ in edges]
    labels = []
    for head, tail, _, data in edges:
        if attribute not in data:
            raise InputError(
                f"the edge {shown(head)} - {shown(tail)} has no attribute {attribute!r}; add it, "
                "or name another with relation="
            )
        labels.append(name_of(data[attribute], f"{attribute!r} of {shown(head)} - {shown(tail)}"))
    return labels


def common_attribute(attributes: Iterable[dict[Any, Any]]) -> str | None:
    """The edge attribute with a usual name for a relation; None if there is none.

    Two equally likely ones are refused.
    """
    names = {
        name: normalized(name) for data in attributes for name in data if isinstance(name, str)
    }
    for tier in RELATION_TIERS:
        found = sorted(name for name, word in names.items() if word in tier)
        if "relation" in found:
            return "relation"
        if len(found) > 1:
            raise InputError(f"edges have {' and '.join(found)}; choose one with relation=")
        if found:
            return found[0]
    return None


def from_ordered(facts: Sequence[Triple], nodes: Sequence[str], label: str) -> KnowledgeGraph:
    """A graph whose nodes have the given order, those without facts included."""
    if not facts:
        raise InputError(f"{label} has no edges; a graph needs facts")
    node_ids = {name: node for node, name in enumerate(nodes)}
    if len(node_ids) < len(nodes):
        twice = next(name for node, name in enumerate(nodes) if node_ids[name] != node)
        raise InputError(f"two nodes of {label} are called {twice!r}; rename one of them")
    relation_ids: dict[str, int] = {}
    ids = [
        (node_ids[head], relation_ids.setdefault(relation, len(relation_ids)), node_ids[tail])
        for head, relation, tail in facts
    ]
    return by_ids(np.array(ids, np.int32), list(nodes), list(relation_ids))


def by_ids(triples: IntArray, nodes: Sequence[str], relations: Sequence[str]) -> KnowledgeGraph:
    names = Names.of(nodes, relations)
    graph = KnowledgeGraph(triples, len(nodes), len(relations), names)  # which checks the ids
    facts = drop_duplicates(graph.triples, len(nodes), len(relations))
    return KnowledgeGraph(facts, len(nodes), len(relations), names)


def from_pyg(source: Any) -> KnowledgeGraph:
    """A graph from PyTorch Geometric's Data or HeteroData; node ids keep their order.

    Nodes of Data are called by `node_names` if it has these, else by their numbers, and relations
    by `relation_names`, else by the numbers in `edge_type`, else "edge". Nodes of HeteroData are
    called "type:number" and relations as their edge types, whole if two have the same middle.
    """
    if hasattr(source, "edge_types"):
        return from_hetero(source)
    if getattr(source, "edge_index", None) is None:
        raise InputError("the Data has no edge_index; a graph needs edges")
    head, tail = np.asarray(source.edge_index.cpu())
    edge_type = getattr(source, "edge_type", None)
    relation = np.zeros(len(head), np.int64) if edge_type is None else np.asarray(edge_type.cpu())
    num_relations = int(relation.max(initial=0)) + 1
    unnamed = [UNLABELLED] if edge_type is None else list(map(str, range(num_relations)))
    relations = given_names(source, "relation_names", unnamed)
    nodes = given_names(source, "node_names", list(map(str, range(int(source.num_nodes)))))
    if not len(head):
        raise InputError("the Data has no edges; a graph needs facts")
    return by_ids(np.stack([head, relation, tail], axis=1), nodes, relations)


def given_names(source: Any, field: str, unnamed: list[str]) -> list[str]:
    names = getattr(source, field, None)
    if names is None:
        return unnamed
    named = [name_of(name, f"an entry of {field}") for name in names]
    if len(named) < len(unnamed) or len(set(named)) < len(named):
        raise InputError(
            f"{field} has {len(set(named)):,} different names, and {len(unnamed):,} are needed; "
            "give each its own"
        )
    return named


def from_hetero(source: Any) -> KnowledgeGraph:
    first, nodes = {}, list[str]()
    for kind in source.node_types:
        first[kind] = len(nodes)
        nodes += [f"{kind}:{number}" for number in range(int(source[kind].num_nodes))]
    middles = [relation for _, relation, _ in source.edge_types]
    relations, parts = [], []
    for edge_type in source.edge_types:
        start, relation, end = edge_type
        is_unique = middles.count(relation) == 1
        relations.append(relation if is_unique else "__".join(edge_type))
        head, tail = np.asarray(source[edge_type].edge_index.cpu())
        number = np.full(len(head), len(relations) - 1)
        parts.append(np.stack([head + first[start], number, tail + first[end]], axis=1))
    if not sum(map(len, parts)):
        raise InputError("the HeteroData has no edges; a graph needs facts")
    return by_ids(np.concatenate(parts), nodes, relations)


def from_pykeen(source: Any) -> KnowledgeGraph:
    """A graph from PyKEEN's TriplesFactory, with its ids; without labels, ids are the names."""
    triples = np.asarray(source.mapped_triples.cpu())
    num_relations = int(source.real_num_relations)
    nodes = labels_by_id(getattr(source, "entity_id_to_label", None), int(source.num_entities))
    relations = labels_by_id(getattr(source, "relation_id_to_label", None), num_relations)
    return by_ids(triples, nodes, relations)


def labels_by_id(labels: dict[int, str] | None, number: int) -> list[str]:
    if labels is None:
        return [str(each) for each in range(number)]
    return [labels.get(each, str(each)) for each in range(number)]


def from_rdflib(source: Any) -> KnowledgeGraph:
    """A graph from an RDFLib graph, by IRIs without brackets; facts about literals are left out.

    Blank nodes are called _: and their label. The graphs of a Dataset are taken together.
    """
    num_literals = 0

    def named() -> Iterator[Triple]:
        nonlocal num_literals
        for head, relation, tail in triples:
            if type(tail).__name__ == "Literal":
                num_literals += 1
            else:
                yield term_name(head), str(relation), term_name(tail)

    graphs = source.graphs() if hasattr(source, "graphs") else [source]
    triples = (triple for graph in graphs for triple in graph)
    facts = sorted(set(named()))  # RDFLib's order changes from run to run
    if num_literals:
        log.info("left out %s facts whose object is a literal", f"{num_literals:,}")
    if not facts:
        raise InputError("the RDFLib graph states no fact between nodes; a graph needs some")
    nodes = dict.fromkeys(name for head, _, tail in facts for name in (head, tail))
    return from_ordered(facts, list(nodes), "the RDFLib graph")


def term_name(term: Any) -> str:
    return f"_:{term}" if type(term).__name__ == "BNode" else str(term)
