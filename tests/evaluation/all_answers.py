"""Known answers in a form that can be compared."""

import numpy as np

from nodepiece.evaluation.known_answers import KnownAnswers


def all_answers(known: KnownAnswers) -> dict[tuple[int, int], list[int]]:
    """The answers to every query that there could be."""
    number = 2 * known.num_relations if known.kind == "tails" else known.num_nodes
    first, second = (each.ravel() for each in np.indices((known.num_nodes, number)))
    start, count = known.find(first, second)
    found = {}
    for place, query in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        positions = np.arange(start[place], start[place] + count[place])
        found[query] = known.answers_at(positions).tolist()
    return found
