"""Metrics of ranks, as in the paper's tables."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nodepiece.errors import InputError
from nodepiece.evaluation.ranking import LinkRanks
from nodepiece.evaluation.report import Report, Scores
from nodepiece.graph.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class RankingMetrics:
    """Means over realistic ranks, which start at 1 and are half-integers where candidates tie."""

    mrr: float  # mean of 1 / rank
    mean_rank: float
    hits_at_1: float  # share of ranks that are 1; 1.5 is not
    hits_at_3: float
    hits_at_10: float
    count: int  # ranks

    def to_json(self) -> Scores:
        return {
            "mrr": self.mrr,
            "mean_rank": self.mean_rank,
            "hits@1": self.hits_at_1,
            "hits@3": self.hits_at_3,
            "hits@10": self.hits_at_10,
            "count": self.count,
        }


@dataclass(frozen=True)
class RankingReport:
    """Metrics of all ranks, of each side and of each relation."""

    both: RankingMetrics  # of all ranks together
    sides: dict[str, RankingMetrics]  # "head" and "tail"; empty where relations are ranked
    relations: dict[int, RankingMetrics]  # by relation id; those with a fact only

    def named(self, relation_name: Callable[[int], str]) -> Report:
        """A report with relations by name."""
        sides = {side: metrics.to_json() for side, metrics in self.sides.items()}
        relations = {relation_name(key): part.to_json() for key, part in self.relations.items()}
        return Report(self.both.to_json(), sides, {"relations": relations})


def summarize(ranks: FloatArray) -> RankingMetrics:
    """The metrics of ranks (num_ranks,)."""
    if not ranks.size:
        raise InputError("there are no ranks to summarize; rank at least one fact")
    return RankingMetrics(
        mrr=float(np.mean(1 / ranks)),
        mean_rank=float(np.mean(ranks)),
        hits_at_1=float(np.mean(ranks <= 1)),
        hits_at_3=float(np.mean(ranks <= 3)),
        hits_at_10=float(np.mean(ranks <= 10)),
        count=len(ranks),
    )


def report_links(ranks: LinkRanks) -> RankingReport:
    """Metrics of both sides together, of each side, and of each relation (both sides)."""
    relation = np.concatenate([ranks.relation, ranks.relation])
    sides = {"head": summarize(ranks.head), "tail": summarize(ranks.tail)}
    return RankingReport(summarize(ranks.both), sides, _by_relation(ranks.both, relation))


def report_relations(ranks: FloatArray, relation: IntArray) -> RankingReport:
    """Metrics of `ranks` from `rank_relations`, with the relation of each; (num_triples,) each."""
    return RankingReport(summarize(ranks), {}, _by_relation(ranks, relation))


def report_queries(ranks: FloatArray, relation: IntArray, num_relations: int) -> RankingReport:
    """Metrics of `ranks` from `rank_queries`; with an inverse relation, the head was ranked."""
    is_head = relation >= num_relations
    sides = {
        side: summarize(ranks[is_queried])
        for side, is_queried in (("head", is_head), ("tail", ~is_head))
        if is_queried.any()
    }
    return RankingReport(summarize(ranks), sides, _by_relation(ranks, relation % num_relations))


def _by_relation(ranks: FloatArray, relation: IntArray) -> dict[int, RankingMetrics]:
    order = np.argsort(relation, kind="stable")
    ids, starts = np.unique(relation[order], return_index=True)
    parts = np.split(ranks[order], starts[1:])
    return {int(key): summarize(part) for key, part in zip(ids, parts, strict=True)}
