import json

import numpy as np
import pytest

from nodepiece.errors import InputError
from nodepiece.evaluation.metrics import (
    report_links,
    report_queries,
    report_relations,
    summarize,
)
from nodepiece.evaluation.ranking import LinkRanks


def example() -> LinkRanks:
    """Three facts, two of them about relation 7."""
    return LinkRanks(
        head=np.array([1.0, 2.0, 4.0]),
        tail=np.array([1.5, 10.0, 11.0]),
        relation=np.array([7, 3, 7], dtype=np.int32),
    )


def test_the_means_of_ranks() -> None:
    metrics = summarize(np.array([1.0, 1.5, 3.0, 10.5]))
    assert metrics.mrr == pytest.approx((1 + 2 / 3 + 1 / 3 + 2 / 21) / 4)
    assert metrics.mean_rank == 4
    assert (metrics.hits_at_1, metrics.hits_at_3, metrics.hits_at_10) == (0.25, 0.75, 0.75)
    assert metrics.count == 4


def test_a_report_has_both_sides_on_top_then_each_side_and_relation() -> None:
    report = report_links(example()).named(str).to_json()
    assert list(report) == [
        *("mrr", "mean_rank", "hits@1", "hits@3", "hits@10", "count"),
        *("head", "tail", "relations"),
    ]
    assert report["mean_rank"] == pytest.approx(29.5 / 6)
    assert report["hits@10"] == pytest.approx(5 / 6)
    assert report["head"] == summarize(example().head).to_json()
    assert report["tail"] == summarize(example().tail).to_json()
    assert report["relations"] == {
        "3": summarize(np.array([2.0, 10.0])).to_json(),
        "7": summarize(np.array([1.0, 4.0, 1.5, 11.0])).to_json(),
    }
    assert json.loads(json.dumps(report)) == report


def test_a_report_on_relations_has_no_sides() -> None:
    report = (
        report_relations(np.array([1.0, 3.0]), np.array([2, 0], dtype=np.int32))
        .named(str)
        .to_json()
    )
    assert "head" not in report
    assert report["mean_rank"] == 2
    assert report["relations"] == {
        "0": summarize(np.array([3.0])).to_json(),
        "2": summarize(np.array([1.0])).to_json(),
    }


@pytest.mark.parametrize(
    ("rank", "hits"),
    [
        (1.0, (1, 1, 1)),
        (1.5, (0, 1, 1)),
        (3.0, (0, 1, 1)),
        (3.5, (0, 0, 1)),
        (10.0, (0, 0, 1)),
        (10.5, (0, 0, 0)),
    ],
)
def test_a_rank_hits_up_to_its_limit_and_not_above(rank: float, hits: tuple[int, ...]) -> None:
    metrics = summarize(np.array([rank]))
    assert (metrics.hits_at_1, metrics.hits_at_3, metrics.hits_at_10) == hits


def test_queries_of_inverse_relations_are_heads_of_the_relation_itself() -> None:
    ranks, relation = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 2, 3, 4], np.int32)
    report = report_queries(ranks, relation, num_relations=3)
    assert report.sides["tail"] == summarize(np.array([1.0, 2.0]))
    assert report.sides["head"] == summarize(np.array([4.0, 8.0]))
    assert report.relations == {
        0: summarize(np.array([1.0, 4.0])),
        1: summarize(np.array([8.0])),
        2: summarize(np.array([2.0])),
    }


def test_a_side_that_no_query_asks_for_is_left_out() -> None:
    report = report_queries(np.array([1.0]), np.array([0], np.int32), num_relations=3)
    assert list(report.sides) == ["tail"]


def test_no_ranks_have_no_means() -> None:
    with pytest.raises(InputError, match="no ranks"):
        summarize(np.array([]))
