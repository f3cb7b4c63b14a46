"""The benchmarks of many kinds of graphs, of passes and of plans."""

import numpy as np
import pytest
from benchmarks import seconds_a_pass
from benchmarks.plan_accuracy import within
from benchmarks.seconds_a_pass import StepTimes
from benchmarks.variety import KINDS, dataset_of


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_distinct_facts_in_which_every_relation_occurs(kind: str) -> None:
    graph = dataset_of(kind).train
    assert len(np.unique(graph.triples, axis=0)) == graph.num_triples >= 200
    assert len(np.unique(graph.triples[:, 1])) > 0.8 * graph.num_relations


def test_validations_do_not_count_for_the_time_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = iter([1.0, 2.0, 4.0, 100.0, 103.0])
    monkeypatch.setattr(seconds_a_pass, "perf_counter", lambda: next(instants))
    times = StepTimes()
    for done in (1, 2, 3):
        times.on_step(0, done, 9)
    times.on_epoch({}, None)  # a validation of 96 seconds
    for done in (4, 5):
        times.on_step(0, done, 9)
    assert (times.seconds, times.steps) == (1 + 2 + 3, 3)


def test_estimates_near_what_was_measured_are_counted() -> None:
    ratios = {"step": 1.2, "memory": 0.6, "memory from sizes": 1.0}
    recipes = {"one": {"ratios": ratios}, "other": {"ratios": ratios | {"memory": 1.3}}}
    found = within(recipes, 0.3)
    assert found == {"step": "2 of 2", "memory": "1 of 2", "memory from sizes": "2 of 2"}
