"""Baselines without training, by name, and which queries the simplest of them answer."""

import numpy as np

from nodepiece.evaluation.half_links import half_links_of
from nodepiece.evaluation.metrics import summarize
from nodepiece.evaluation.personalized_pagerank import walk_over
from nodepiece.evaluation.popularity import count_tails
from nodepiece.evaluation.ranking import LinkRanks, ScoreAll
from nodepiece.evaluation.report import Scores
from nodepiece.graph.knowledge_graph import KnowledgeGraph

HALF_LINKS = "half-links"
WITH_SHORTCUT, WITHOUT_SHORTCUT = "queries with a shortcut", "queries without a shortcut"


def baselines_of(graph: KnowledgeGraph) -> dict[str, ScoreAll]:
    """Functions that score all nodes, by the name of the baseline."""
    return {
        "popularity": count_tails(graph).score_tails,
        HALF_LINKS: half_links_of(graph).score_tails,
        "personalized PageRank": walk_over(graph).score_tails,
    }


def divide_by_shortcut(ranks: LinkRanks, half_links: LinkRanks) -> dict[str, Scores]:
    """The metrics of queries that half-links answer right, and of the others, where there are any.

    Right: the answer has rank 1, before all others and without ties.
    """
    own = np.concatenate([ranks.tail, ranks.head])
    is_right = np.concatenate([half_links.tail, half_links.head]) == 1
    return {
        name: summarize(own[chosen]).to_json()
        for name, chosen in ((WITH_SHORTCUT, is_right), (WITHOUT_SHORTCUT, ~is_right))
        if chosen.any()
    }
