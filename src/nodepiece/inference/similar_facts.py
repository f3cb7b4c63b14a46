"""Facts of the graph with the same relation between similar nodes."""

import numpy as np
import torch

from nodepiece.inference.explained import Explainable, named_fact
from nodepiece.inference.explanation import SimilarFact

MAX_FACTS = 1 << 18  # facts that are compared, the first of the relation


def similar_limits(snapshot: Explainable, relation: int) -> tuple[str, ...]:
    """Whether a relation has more facts than are compared, in a sentence; nothing if it has not."""
    graph = snapshot.dataset.train
    number = int((graph.triples[:, 1] == relation % graph.num_relations).sum())
    if number <= MAX_FACTS:
        return ()
    return (f"similar facts are those of the first {MAX_FACTS:,} of {number:,} with the relation",)


def similar_facts(
    snapshot: Explainable, head: int, relation: int, tail: int, *, top: int
) -> tuple[SimilarFact, ...]:
    """The facts with the same relation and the most similar nodes, most similar first.

    The similarity is the mean of two cosines, of the vectors of the heads and of the tails. The
    fact itself is left out.
    """
    graph, table = snapshot.dataset.train, snapshot.node_table
    if relation >= graph.num_relations:
        head, relation, tail = tail, relation - graph.num_relations, head
    facts = graph.triples[graph.triples[:, 1] == relation][:MAX_FACTS]
    facts = facts[(facts[:, 0] != head) | (facts[:, 2] != tail)]
    if not len(facts) or not top:
        return ()
    vectors, scale = table.vectors, table.scale

    def cosines(node: int, column: int) -> torch.Tensor:
        nodes, place = np.unique(facts[:, column], return_inverse=True)
        rows = torch.from_numpy(nodes.astype(np.int64)).to(vectors.device)
        found = (vectors[rows] @ vectors[node]) * scale[rows] * scale[node]
        return found.cpu()[torch.from_numpy(place.reshape(-1))]

    with torch.no_grad():
        similarity = ((cosines(head, 0) + cosines(tail, 2)) / 2).double().numpy()
    order = np.argsort(-similarity, kind="stable")[:top]
    names = snapshot.dataset.names
    return tuple(
        SimilarFact(named_fact(names, facts[place]), float(similarity[place])) for place in order
    )
