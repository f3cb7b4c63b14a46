"""Progress of counted work as lines of a log."""

import pytest

from nodepiece.tasks import logged_progress as module
from nodepiece.tasks.logged_progress import logged_progress


def test_long_work_is_logged_with_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 10.0, 31.0, 40.0, 62.0])
    monkeypatch.setattr(module, "perf_counter", lambda: next(times))
    lines: list[str] = []

    advance = logged_progress("evaluating on test", "queries", lines.append)
    for done in (100, 1_000, 1_500, 2_000):
        advance(done, 4_000)

    assert lines == [
        "evaluating on test: 1,000/4,000 queries; 93 s left",
        "evaluating on test: 2,000/4,000 queries; 62 s left",
    ]


def test_work_of_some_seconds_is_not_logged() -> None:
    lines: list[str] = []

    logged_progress("evaluating on test", "queries", lines.append)(50, 100)

    assert not lines
