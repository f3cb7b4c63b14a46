"""Runs of several seeds as one measurement, and remarks of files."""

from typing import Any

import pytest

from nodepiece.report.measured import Measurement, by_seed, has_remark

NAME = "inductive-wn18rr-v1-best"


def measured(seed: int, hits: float, pagerank: dict[str, Any] | None, remark: str = "") -> Any:
    found = {
        "experiment": NAME,
        "dataset": "inductive/wn18rr-v1",
        "hits@10": hits,
        "all nodes": {"mrr": hits / 2},
        "personalized_pagerank": pagerank,
        "seconds": {"train": 10.0 + seed},
        "command": f"nodepiece train {NAME} --set seed={seed} -o run",
        "seed": seed,
        "remark": remark,
    }
    return Measurement(f"{NAME}-seed-{seed}" if seed else NAME, found)


def pagerank(mrr: float) -> dict[str, Any]:
    spread, full = {"hits@10": mrr / 100}, {"mrr": mrr / 4, "count": 8}
    return {"mrr": mrr, "hits@10": 2 * mrr, "spread": spread, "all nodes": full}


def test_scores_of_seeds_are_averaged_in_every_part() -> None:
    (row,) = by_seed([measured(1, 0.9, pagerank(0.2)), measured(0, 0.8, pagerank(0.4))])

    assert (row.name, row.num_seeds) == (NAME, 2)
    assert row.found["hits@10"] == pytest.approx(0.85)
    assert row.found["all nodes"] == {"mrr": pytest.approx(0.425)}
    assert row.of_seeds == {"hits@10": [0.8, 0.9]}  # the first seed is the first
    assert row.spread == {"hits@10": pytest.approx(0.1 / 2**0.5)}
    assert row.found["seconds"] == {"train": 10.0}


def test_personalized_pagerank_is_averaged_and_has_the_spread_of_the_first_seed() -> None:
    (row,) = by_seed([measured(0, 0.8, pagerank(0.4)), measured(1, 0.9, pagerank(0.2))])

    assert row.found["personalized_pagerank"] == {
        "mrr": pytest.approx(0.3),
        "hits@10": pytest.approx(0.6),
        "spread": {"hits@10": 0.004},
        "all nodes": {"mrr": pytest.approx(0.075), "count": 8},
    }


def test_a_seed_without_personalized_pagerank_leaves_that_of_the_first() -> None:
    (row,) = by_seed([measured(0, 0.8, pagerank(0.4)), measured(1, 0.9, None)])

    assert row.found["personalized_pagerank"] == pagerank(0.4)


@pytest.mark.parametrize(
    ("remark", "expected"),
    [
        ("", False),
        (
            "trained alone on the GPU, one after another of 36 runs in one Python process, so that "
            "most kernels were compiled before",
            False,
        ),
        ("other runs shared the GPU; stopped after 231 epochs and resumed", False),
        ("resumed; trained in another version", True),
    ],
)
def test_remarks_on_seconds_are_no_remarks_on_scores(remark: str, expected: bool) -> None:
    assert has_remark(measured(0, 0.8, None, remark)) == expected
