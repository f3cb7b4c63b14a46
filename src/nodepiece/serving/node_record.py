"""What a run has about one node: its facts and its pieces."""

from typing import Any

import numpy as np

from nodepiece.errors import InputError
from nodepiece.graph.arrays import IntArray, LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import INVERSE_PREFIX, Names, UnknownName
from nodepiece.inference.changed_graph import facts_of
from nodepiece.inference.facts import FactRun
from nodepiece.inference.links import LinkRun
from nodepiece.inference.node_pieces import NodeTokens, tokens_of
from nodepiece.inference.opened_run import Run
from nodepiece.serving.answers import State
from nodepiece.tokenizer.tokens import NO_DISTANCE
from nodepiece.tokenizer.vocabulary import Vocabulary


def graph_of(run: Run) -> KnowledgeGraph:
    """The current graph of a run, with names."""
    return run.dataset.train if isinstance(run, FactRun) else run.task.graph


def names_of(run: Run) -> Names:
    names = graph_of(run).names
    if names is None:
        raise InputError(f"{run.folder} has no names")
    return names


def absent(run: Run) -> LongArray:
    """Removed nodes, ascending."""
    return run.snapshot.absent if isinstance(run, LinkRun) else np.empty(0, np.int64)


def node_record(state: State, name: str, limit: int) -> dict[str, Any]:
    """The facts and the pieces of a node, by name."""
    run = state.run
    names = names_of(run)
    node = names.node_id(name)
    if node in absent(run):
        raise UnknownName(f"node {name!r} was removed from the graph; choose another one")
    facts = facts_of(graph_of(run), node)
    table, row = tokens_of(run, node)
    return {
        "version": state.version,
        "name": name,
        "is_new": node >= run.num_trained,
        "is_anchor": bool((table.vocabulary.anchors == node).any()),
        "num_facts": len(facts),
        "facts": named(names, facts[:limit]),
        "pieces": pieces_json(table.vocabulary, names, row),
    }


def named(names: Names, facts: IntArray) -> list[list[str]]:
    return [
        [names.node(head), names.relation(relation), names.node(tail)]
        for head, relation, tail in facts.tolist()
    ]


def pieces_json(vocabulary: Vocabulary, names: Names, tokens: NodeTokens) -> dict[str, Any]:
    return {
        "anchors": [
            {
                "name": names.node(int(vocabulary.anchors[token])),
                "distance": None if distance == NO_DISTANCE else distance,
            }
            for token, distance in zip(
                tokens.anchors.tolist(), tokens.distances.tolist(), strict=True
            )
            if token < vocabulary.num_anchors
        ],
        "relations": [
            relation_json(vocabulary, names, token)
            for token in tokens.relations.tolist()
            if token < vocabulary.padding
        ],
    }


def relation_json(vocabulary: Vocabulary, names: Names, token: int) -> dict[str, Any]:
    relation = names.relation(token - vocabulary.num_anchors)
    is_inverse = token - vocabulary.num_anchors >= len(names.relations)
    return {
        "name": relation.removeprefix(INVERSE_PREFIX) if is_inverse else relation,
        "inverse": is_inverse,
    }
