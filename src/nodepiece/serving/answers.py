"""Requests by name answered from one state of a run, as tables and as JSON."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from nodepiece.data.column_names import ROLES
from nodepiece.data.query_rows import NumberedParts
from nodepiece.errors import InputError
from nodepiece.graph.names import Names, UnknownName
from nodepiece.inference.bulk import BestTails
from nodepiece.inference.facts import FactRun, fact_run
from nodepiece.inference.links import LinkRun
from nodepiece.inference.opened_run import Run
from nodepiece.inference.queries import ASKED, Refused
from nodepiece.inference.score_facts import PROBABILITIES, score_schema
from nodepiece.serving.models import NamedFact

Parts = tuple[str | None, str | None, str | None]
MIXED_TOP = 100  # answers to each query of a batch whose queries want different numbers


@dataclass(frozen=True, eq=False)
class State:
    """A run that does not change, and the number of its last update."""

    run: Run
    version: int

    @property
    def facts(self) -> FactRun:
        """The run; one that completes no facts is refused."""
        return fact_run(self.run)


def current_state(run: Run, assume: Sequence[NamedFact] = ()) -> State:
    """The current state of a run, with assumed facts; later updates do not affect it."""
    pinned = run.with_facts(tuple(assume)) if assume else copy(run)
    version = pinned.snapshot.number if isinstance(pinned, LinkRun) else None
    return State(pinned, version or 0)


@dataclass(frozen=True)
class PredictOptions:
    """Which answers queries get."""

    top: int = 10
    include_known: bool = False
    seen_candidates: bool = False

    def goes_with(self, other: "PredictOptions") -> bool:
        """Whether queries with these and with other options may be answered together.

        All queries of a batch get as many answers as one of them wants, so if they want different
        numbers, these must be small.
        """
        is_cheap = self.top == other.top or max(self.top, other.top) <= MIXED_TOP
        return is_cheap and replace(self, top=other.top) == other


def predict(
    state: State,
    queries: Sequence[Parts],
    options: PredictOptions,
    approximate: BestTails | None = None,
    *,
    skip_unknown: bool = False,
) -> pa.Table:
    """A table of answers to queries, as `Run.predict_many` returns."""
    run = state.facts
    settings = run.answer_settings(options.top, options.include_known, options.seen_candidates)
    settings = replace(settings, approximate=approximate)
    rows = [NumberedParts(number, parts) for number, parts in enumerate(queries)]
    refusal = Refusal("query", queries, run.dataset.names, skip_unknown)
    tables = run.answer_many(rows, settings, on_refused=refusal)
    return pa.concat_tables([settings.schema.empty_table(), *tables])


def predict_json(
    queries: Sequence[Parts], columns: dict[str, list[Any]], rows: range, first: int = 0
) -> list[dict[str, Any]]:
    """The answers to each query, best first.

    columns: of a table of answers; rows: those of these queries, which are numbered from `first`.
    """
    results: list[dict[str, Any]] = [
        {
            "query": dict(zip(ROLES, parts, strict=True)),
            "asked": ROLES[parts.index(None)],
            "answers": [],
        }
        for parts in queries
    ]
    numbers, scores = columns["query"], columns["score"]
    probability, known = columns.get("probability"), columns.get("known")
    for row in rows:
        result = results[numbers[row] - first]
        answer = {
            "name": columns[result["asked"]][row],
            "score": scores[row],
            "probability": None if probability is None else probability[row],
            "known": known is not None and known[row],
        }
        result["answers"].append(answer)
    return results


def score(state: State, facts: Sequence[NamedFact], *, skip_unknown: bool = False) -> pa.Table:
    """A table of scores and ranks, as `Run.score` returns."""
    run = state.facts
    rows = [NumberedParts(number, parts) for number, parts in enumerate(facts)]
    refusal = Refusal("fact", facts, run.dataset.names, skip_unknown)
    tables = run.score_many(rows, on_refused=refusal)
    return pa.concat_tables([score_schema(run.calibrated).empty_table(), *tables])


def score_json(table: pa.Table) -> list[dict[str, Any]]:
    nothing = dict.fromkeys(PROBABILITIES)
    return [nothing | row for row in table.drop_columns("fact").to_pylist()]


def similar_json(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def embed_json(vectors: np.ndarray[Any, Any]) -> list[list[float]]:
    found: list[list[float]] = vectors.tolist()
    return found


@dataclass(frozen=True, eq=False)
class Refusal:
    """Raises the error of the first query or fact that cannot be answered."""

    noun: str
    rows: Sequence[Parts]
    names: Names
    skip_unknown: bool = False  # those with unknown names are left out

    def __call__(self, refused: Refused) -> None:
        if refused.is_unknown and self.skip_unknown:
            return
        prefix = f"{self.noun} {refused.number}: " if len(self.rows) > 1 else ""
        if not refused.is_unknown:
            raise InputError(prefix + refused.reason)
        suggestions: Sequence[str] = ()
        for part, find in zip(
            self.rows[refused.number],
            (self.names.node_id, self.names.relation_id, self.names.node_id),
            strict=True,
        ):
            try:
                if part not in ASKED:
                    find(part or "")
            except UnknownName as error:
                suggestions = error.suggestions
                break
        raise UnknownName(prefix + refused.reason, suggestions)
