"""Nodes that arrive after training, simulated: scores of true and false facts about them.

A model scores facts of a node that it was not trained on lower than those of others, so these have
a calibration of their own. A copy of a trained node is added with a few of its training facts, and
gets pieces and a vector without training, as a new node does. Then it stands in for its node in
validation facts and false facts, which training did not have.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import Progress
from nodepiece.graph.arrays import FloatArray, IntArray, LongArray
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.labelled_facts import tail_scores
from nodepiece.inference.links import LinkRun
from nodepiece.inference.node_features import node_features
from nodepiece.tokenizer.changing_graph import NamedFact

MAX_NODES = 500  # that are copied
MAX_FACTS = 8  # that a copy is described by: 1 to so many, each number as often
SUFFIX = " (arriving)"


class ScoredArrivals(NamedTuple):
    """Facts about simulated nodes: (num_facts,) each, and features (num_facts, 2)."""

    scores: FloatArray
    relations: LongArray  # inverses from num_relations on
    features: FloatArray
    is_true: NDArray[np.bool_]


def score_arrivals(
    run: FactRun,
    directed: IntArray,
    is_true: NDArray[np.bool_],
    *,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> ScoredArrivals | None:
    """Scores of facts whose heads are replaced by copies; None: the model has no new nodes.

    directed: (num_facts, 3) true and false facts, with relations or inverses.
    """
    if not isinstance(run, LinkRun) or run.is_hypothetical:
        return None
    nodes = np.unique(directed[:, 0])
    nodes = nodes[nodes < run.num_trained]
    nodes = rng.permutation(nodes)[:MAX_NODES]
    facts, copied = few_facts(run, nodes, rng=rng)
    if not len(copied):
        return None
    try:
        later = fact_run(run.with_facts(facts))
    except InputError:  # of a model without pieces
        return None
    names = later.dataset.names
    copy_of = np.full(run.dataset.num_nodes, -1)
    copy_of[copied] = names.node_ids([copy_name(names.node(node)) for node in copied.tolist()])
    is_asked = copy_of[directed[:, 0]] >= 0
    asked = directed[is_asked].copy()
    asked[:, 0] = copy_of[asked[:, 0]]
    return ScoredArrivals(
        tail_scores(later.snapshot, asked, progress),
        asked[:, 1].astype(np.int64),
        node_features(later.snapshot, asked[:, 0].astype(np.int64)),
        is_true[is_asked],
    )


def few_facts(
    run: LinkRun, nodes: IntArray, *, rng: np.random.Generator
) -> tuple[list[NamedFact], IntArray]:
    """Some training facts of each node, by name and about its copy; and the nodes with facts."""
    graph, names = run.dataset.train, run.dataset.names
    ends = graph.triples[:, [0, 2]].T.ravel()  # heads, then tails
    order = np.argsort(ends, kind="stable")
    first = np.searchsorted(ends[order], nodes)
    last = np.searchsorted(ends[order], nodes, side="right")
    facts: list[NamedFact] = []
    for node, start, end in zip(nodes.tolist(), first.tolist(), last.tolist(), strict=True):
        number = min(end - start, int(rng.integers(1, MAX_FACTS + 1)))
        chosen = rng.choice(end - start, number, replace=False) if number else ()
        for place in chosen:
            head, relation, tail = graph.triples[order[start + place] % len(graph.triples)].tolist()
            copied = {node: copy_name(names.node(node))}
            named = [copied.get(each) or names.node(each) for each in (head, tail)]
            facts.append((named[0], names.relation(relation), named[1]))
    return facts, nodes[last > first]


def copy_name(name: str) -> str:
    return name + SUFFIX
