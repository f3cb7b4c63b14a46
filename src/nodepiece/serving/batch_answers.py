"""The queries of several requests answered by one call of the scorer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from starlette.responses import Response

from nodepiece.graph.arrays import LongArray
from nodepiece.graph.names import Names, UnknownName
from nodepiece.inference.bulk import BestTails, answer
from nodepiece.inference.queries import HEAD, RELATION, TAIL, QueryIds, removed_node
from nodepiece.serving.answers import Parts, PredictOptions, State, predict_json
from nodepiece.serving.name_ids import NameIds
from nodepiece.serving.responses import arrow_response, json_response


@dataclass(frozen=True, eq=False)
class AskedTogether:
    """The queries of one request."""

    queries: Sequence[Parts]
    top: int
    is_arrow: bool


@dataclass(frozen=True)
class Unanswered:
    """A request with an unknown name."""

    number: int  # of the query
    is_relation: bool
    name: str
    names: Names
    is_removed: bool = False  # the graph had the node

    def error(self, num_queries: int) -> UnknownName:
        """The error with similar names, which take time to find."""
        find = self.names.relation_id if self.is_relation else self.names.node_id
        prefix = f"query {self.number}: " if num_queries > 1 else ""
        if self.is_removed:
            return UnknownName(prefix + removed_node(self.name))
        try:
            find(self.name)
        except UnknownName as error:
            return UnknownName(prefix + str(error), error.suggestions)
        return UnknownName(f"{prefix}unknown name {self.name!r}")


def answer_together(
    ids: NameIds,
    state: State,
    asked: Sequence[AskedTogether],
    options: PredictOptions,
    approximate: BestTails | None = None,
) -> list[Response | Unanswered]:
    """The answer to each request, all from one state; a request with an unknown name gets that.

    `options.top` is that of the request with most answers.
    """
    run = state.facts
    names = run.dataset.names
    results: list[Response | Unanswered | None] = []
    rows: list[tuple[int, int, int]] = []
    starts: list[int] = []
    top: list[int] = []  # of each row
    for request in asked:
        found = encode(ids, names, request.queries, run.snapshot.candidates.absent)
        starts.append(len(rows))
        results.append(found if isinstance(found, Unanswered) else None)
        rows += [] if isinstance(found, Unanswered) else found
        top += [request.top] * (len(rows) - len(top))
    first, second, role = np.array(rows, np.int64).reshape(-1, 3).T
    number = np.arange(len(rows), dtype=np.int64)
    settings = run.answer_settings(options.top, options.include_known, options.seen_candidates)
    settings = replace(settings, approximate=approximate)
    table = answer(run.snapshot, QueryIds(number, first, second, role.astype(np.int8)), settings)
    if min(top, default=options.top) < options.top:
        table = table.filter(table["rank"].to_numpy() <= np.array(top)[table["query"].to_numpy()])
    ends = np.searchsorted(table["query"].to_numpy(), [*starts, len(rows)])
    columns = table.to_pydict() if any(not each.is_arrow for each in asked) else {}
    responses: list[Response | Unanswered] = []
    for place, (request, result) in enumerate(zip(asked, results, strict=True)):
        start, end = int(ends[place]), int(ends[place + 1])
        if result is not None:
            responses.append(result)
        elif request.is_arrow:
            mine = table.slice(start, end - start)
            numbers = pa.array(mine["query"].to_numpy() - starts[place])
            responses.append(arrow_response(mine.set_column(0, "query", numbers), state.version))
        else:
            answers = predict_json(request.queries, columns, range(start, end), starts[place])
            responses.append(json_response({"version": state.version, "results": answers}))
    return responses


def encode(
    ids: NameIds, names: Names, queries: Sequence[Parts], absent: LongArray
) -> list[tuple[int, int, int]] | Unanswered:
    """First part, second part and role of every query, as in `QueryIds`."""
    rows = []
    num_relations = len(names.relations)
    for number, (head, relation, tail) in enumerate(queries):
        head_id, tail_id = ids.node(head, names.nodes), ids.node(tail, names.nodes)
        relation_id = ids.relation(relation)
        given = zip((head, relation, tail), (head_id, relation_id, tail_id), strict=True)
        for role, (name, found) in enumerate(given):
            if name is not None and found < 0:
                return Unanswered(number, role == RELATION, name, names)
            if name is not None and role != RELATION and len(absent) and found in absent:
                return Unanswered(number, False, name, names, is_removed=True)
        if head is None:
            inverse = (relation_id + num_relations) % (2 * num_relations)
            rows.append((tail_id, inverse, HEAD))
        elif relation is None:
            rows.append((head_id, tail_id, RELATION))
        else:
            rows.append((head_id, relation_id, TAIL))
    return rows
