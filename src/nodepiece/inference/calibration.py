"""From scores to probabilities: the calibration that is stored with a run."""

from nodepiece.graph.arrays import FloatArray, IntArray
from nodepiece.inference.opened_run import Run


def probabilities(
    run: Run, triples: IntArray, scores: FloatArray, *, by_relation: bool = True
) -> FloatArray | None:
    """The probability that each fact is true, (num_facts,); None: the run has no calibration.

    triples: (num_facts, 3) ids of the current graph, in the direction in which they were scored:
    `scores[i]` is that of the tail `triples[i, 2]` in the query (head, relation, ?), and a relation
    from num_relations on is an inverse. Within a query a higher score never gets a lower
    probability. `by_relation=False` uses one calibration for all relations, so that this holds for
    queries for relations too.
    """
    return None
