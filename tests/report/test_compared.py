"""Sentences that compare inductive runs with the paper and with personalized PageRank."""

from typing import Any

from nodepiece.report.compared import compare_inductive
from nodepiece.report.measured import Measurement


def measured(name: str, hits: float, pagerank: float, **more: Any) -> Measurement:
    dataset = f"inductive/{name.removeprefix('inductive-').rpartition('-')[0]}"
    found = {
        "experiment": name,
        "dataset": dataset,
        "hits@10": hits,
        "all nodes": {"hits@10": hits / 2},
        "personalized_pagerank": {"hits@10": pagerank, "all nodes": {"hits@10": pagerank / 2}},
        "seconds": {"train": 60.0},
        "device": "NVIDIA H200",
        "command": f"nodepiece train {name} --device cuda -o runs/{name}",
        "seed": 0,
    }
    return Measurement(name, found | more)


BEST = measured("inductive-wn18rr-v1-best", 0.953, 0.891)
PAPER = measured("inductive-wn18rr-v1-paper", 0.827, 0.893)


def test_sentences_name_the_recipes_they_are_about() -> None:
    text = compare_inductive([BEST, PAPER])
    assert "better Hits@10 than our `-best` recipes on none" in text
    assert "better Hits@10 than the `-paper` recipes on WN18RR v1 (.066)" in text
    assert "1 of the 12 recipes" in text
    assert "from -.003 to -.003, -.003 on average" in text
    assert "The trainings of the 1 `-best` recipes add up to 60 s" in text


def test_without_runs_of_the_paper_there_is_no_empty_point() -> None:
    lines = compare_inductive([BEST]).splitlines()
    assert len(lines) == 3
    assert all(line.startswith("- ") and len(line) > 10 for line in lines)
    assert compare_inductive([PAPER]) == ""
