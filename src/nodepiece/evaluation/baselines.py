"""Baselines without training, by name, and which queries the simplest of them answer."""

from nodepiece.evaluation.half_links import half_links_of
from nodepiece.evaluation.metrics import summarize
from nodepiece.evaluation.personalized_pagerank import walk_over
from nodepiece.evaluation.ranking import ScoreAll
from nodepiece.evaluation.report import Scores
from nodepiece.graph.arrays import FloatArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph

POPULARITY, HALF_LINKS, PAGERANK = "popularity", "half-links", "personalized PageRank"
NAIVE_BAYES = "naive Bayes"
WITH_SHORTCUT, WITHOUT_SHORTCUT = "queries with a shortcut", "queries without a shortcut"
Ranks = dict[str, FloatArray]  # by the name of a baseline, (num_queries,) each


def baselines_of(graph: KnowledgeGraph) -> dict[str, ScoreAll]:
    """Functions that score all nodes as tails, by the name of the baseline."""
    half_links = half_links_of(graph)
    return {
        POPULARITY: half_links.popularity.score_tails,
        HALF_LINKS: half_links.score_tails,
        PAGERANK: walk_over(graph).score_tails,
    }


def relation_baselines_of(graph: KnowledgeGraph) -> dict[str, ScoreAll]:
    """Functions that score all relations between two nodes, by the name of the baseline."""
    half_links = half_links_of(graph)
    return {
        POPULARITY: half_links.popularity.score_relations,
        NAIVE_BAYES: half_links.naive_bayes.score_relations,
        HALF_LINKS: half_links.score_relations,
    }


def compare_ranks(own: FloatArray, baselines: Ranks) -> dict[str, Scores]:
    """The metrics of baselines by name, and of the model (`own`) with and without shortcuts."""
    found = {name: summarize(ranks).to_json() for name, ranks in baselines.items()}
    return found | divide_by_shortcut(own, baselines[HALF_LINKS])


def divide_by_shortcut(own: FloatArray, half_links: FloatArray) -> dict[str, Scores]:
    """The metrics of queries that half-links answer right, and of the others, where there are any.

    Right: the answer has rank 1, before all others and without ties. Ranks are (num_queries,).
    """
    is_right = half_links == 1
    return {
        name: summarize(own[chosen]).to_json()
        for name, chosen in ((WITH_SHORTCUT, is_right), (WITHOUT_SHORTCUT, ~is_right))
        if chosen.any()
    }
