"""A graph as a table, or as the object of another library, by name.

Each function imports its library when it is called: none of them is needed otherwise.
"""

from importlib import import_module
from types import ModuleType
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from nodepiece.errors import InputError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

BLANK = "_:"  # how the name of a blank node begins


def to_arrow(graph: KnowledgeGraph) -> pa.Table:
    """An Arrow table of the facts, by name: head, relation, tail."""
    names = names_of(graph)
    head, relation, tail = (pa.array(np.ascontiguousarray(part)) for part in graph.triples.T)
    columns = [names.nodes.take(head), names.relations.take(relation), names.nodes.take(tail)]
    return pa.table(columns, names=["head", "relation", "tail"])


def to_pandas(graph: KnowledgeGraph) -> Any:
    """A pandas DataFrame of the facts, by name: head, relation, tail."""
    library("pandas")
    return to_arrow(graph).to_pandas()


def to_polars(graph: KnowledgeGraph) -> Any:
    """A polars DataFrame of the facts, by name: head, relation, tail."""
    return library("polars").from_arrow(to_arrow(graph))


def to_networkx(graph: KnowledgeGraph) -> Any:
    """A networkx MultiDiGraph; the relation is the key and the attribute "relation" of an edge."""
    networkx, names = library("networkx"), names_of(graph)
    nodes, relations = names.nodes.to_pylist(), names.relations.to_pylist()
    result = networkx.MultiDiGraph()
    result.add_nodes_from(nodes)
    for head, relation, tail in graph.triples.tolist():
        label = relations[relation]
        result.add_edge(nodes[head], nodes[tail], key=label, relation=label)
    return result


def to_pyg(graph: KnowledgeGraph) -> Any:
    """`Data` of PyTorch Geometric: edge_index, edge_type, num_nodes, node_names, relation_names."""
    import torch
    from torch_geometric.data import Data

    names = names_of(graph)
    triples = torch.tensor(graph.triples, dtype=torch.int64)
    return Data(
        edge_index=triples[:, ::2].T.contiguous(),
        edge_type=triples[:, 1].contiguous(),
        num_nodes=graph.num_nodes,
        node_names=names.nodes.to_pylist(),
        relation_names=names.relations.to_pylist(),
    )


def to_pykeen(graph: KnowledgeGraph, *, create_inverse_triples: bool = False) -> Any:
    """PyKEEN's TriplesFactory with the ids and names of the graph."""
    import torch

    library("pykeen")
    factory = import_module("pykeen.triples").TriplesFactory
    names = names_of(graph)
    return factory(
        torch.tensor(graph.triples, dtype=torch.int64),
        entity_to_id={name: node for node, name in enumerate(names.nodes.to_pylist())},
        relation_to_id={name: number for number, name in enumerate(names.relations.to_pylist())},
        create_inverse_triples=create_inverse_triples,
    )


def to_rdflib(graph: KnowledgeGraph, *, namespace: str | None = None) -> Any:
    """An RDFLib graph; names are IRIs, or become such after `namespace`.

    A name that begins with "_:" is a blank node.
    """
    rdflib, names = library("rdflib"), names_of(graph)

    def term(name: str) -> Any:
        if name.startswith(BLANK):
            return rdflib.BNode(name.removeprefix(BLANK))
        if ":" in name and not set(name) & set('<>" {}|\\^`\n\t'):
            return rdflib.URIRef(name)
        if namespace is None:
            raise InputError(
                f"{name!r} is not an IRI; give a namespace such as 'https://example.org/' for names"
            )
        return rdflib.URIRef(namespace + quote(name, safe=""))

    nodes = [term(name) for name in names.nodes.to_pylist()]
    relations = [term(name) for name in names.relations.to_pylist()]
    result = rdflib.Graph()
    for head, relation, tail in graph.triples.tolist():
        result.add((nodes[head], relations[relation], nodes[tail]))
    return result


def names_of(graph: KnowledgeGraph) -> Names:
    """The names of a graph; ids where it has none."""
    if graph.names is not None:
        return graph.names
    nodes, relations = range(graph.num_nodes), range(graph.num_relations)
    return Names.of([str(node) for node in nodes], [str(relation) for relation in relations])


def library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise InputError(f"this conversion needs {name}; pip install {name}") from error
