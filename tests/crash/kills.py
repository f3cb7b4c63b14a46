"""Many kills from a seed, beside readers."""

import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
from tests.crash.scenarios import SCENARIOS, Scenario, make_scenarios
from tests.crash.workers import Instant, Trace, run_and_kill

FINISHED_SHARE = 0.25  # of kills after which the job is done to its end and compared
READ_SHARE = 0.5
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_READS = 0.005


@dataclass
class Summary:
    kills: Counter[str] = field(default_factory=Counter)  # by scenario
    num_ended: int = 0  # jobs that were done before the kill came
    num_reads: int = 0
    num_finished: int = 0  # jobs done to the end after a kill
    found: str = ""  # what went wrong; the first time is the last


def kill_many(
    seed: int,
    num_kills: int,
    place: Path,
    say: Callable[[str], None],
    kinds: Sequence[str] = tuple(SCENARIOS),
) -> Summary:
    """Kill until something wrong is found, or `num_kills` times."""
    summary, rng = Summary(), np.random.default_rng(seed)
    start = perf_counter()
    scenarios = make_scenarios(place, kinds)
    last_line = perf_counter()
    say(f"seed {seed}: prepared {', '.join(kinds)} in {last_line - start:.0f} s")
    while summary.kills.total() < num_kills:
        turn = summary.kills.total() + summary.num_ended
        scenario = scenarios[turn % len(scenarios)]
        instant = draw_instant(scenario.trace, rng)
        reads, finishes = rng.random(2) < (READ_SHARE, FINISHED_SHARE)
        try:
            run_turn(scenario, instant, rng, summary, reads=reads, finishes=finishes)
        except Exception:
            summary.found = (
                f"seed {seed}, kill {summary.kills.total() + 1} (turn {turn}, {scenario.name}, "
                f"{instant}): {traceback.format_exc()}"
            )
            return summary
        if perf_counter() - last_line > SECONDS_BETWEEN_LINES:
            last_line = perf_counter()
            say(f"{summary.kills.total()} of {num_kills} kills in {last_line - start:.0f} s")
    return summary


def run_turn(
    scenario: Scenario,
    instant: Instant,
    rng: np.random.Generator,
    summary: Summary,
    *,
    reads: bool,
    finishes: bool,
) -> None:
    job = scenario.next_job(rng)
    reader = Reader(scenario)
    if reads:
        reader.start()
    try:
        was_killed = run_and_kill(job, instant)
    finally:
        summary.num_reads += reader.stop()
    scenario.check()
    if finishes:
        scenario.finish()
    summary.kills[scenario.name] += was_killed
    summary.num_ended += not was_killed
    summary.num_finished += bool(finishes)


def draw_instant(trace: Trace, rng: np.random.Generator) -> Instant:
    """Before a file operation, or at any time from it to the next one: the one as often.

    Every second time it is one with which something takes its place, or the one after that.
    """
    commits = trace.commits()
    operation = int(rng.integers(len(trace.names)))
    if rng.random() < 0.5:
        operation = commits[int(rng.integers(len(commits)))]
    share = float(rng.random()) * (trace.times[operation + 1] - trace.times[operation])
    return Instant(operation, 0.0 if rng.random() < 0.5 else share)


class Reader:
    """A thread that reads without end; `stop` raises what it met."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self._number = scenario, 0
        self._error: Exception | None = None
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """How many times it has read."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._number

    def _read(self) -> None:
        try:
            while not self._is_over.is_set():
                self._scenario.read()
                self._number += 1
                self._is_over.wait(SECONDS_BETWEEN_READS)
        except Exception as error:
            self._error = error
