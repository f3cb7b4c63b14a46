"""A run on a server, with the methods of a run on disk."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodepiece.data.query_rows import NumberedParts, numbered
from nodepiece.errors import InputError, MissingExtra
from nodepiece.graph.names import UnknownName
from nodepiece.inference.explanation import Explanation
from nodepiece.inference.named_vectors import NamedVectors
from nodepiece.inference.opened_run import Prediction, node_list
from nodepiece.inference.queries import ASKED
from nodepiece.inference.update_groups import Committed
from nodepiece.tokenizer.changing_graph import NamedFact, NamedFacts, by_name

ARROW = "application/vnd.apache.arrow.stream"
MAX_ROWS = 1_000  # queries, facts or nodes in a request
MAX_ANSWERS = 100_000  # in a request
SECONDS = 60.0


def connect(
    address: str, run: str | None = None, *, token: str | None = None, seconds: float = SECONDS
) -> "RemoteRun":
    """A run on a server of `nodepiece serve`, which answers like a run on disk.

    `address` is that of the server, such as "http://127.0.0.1:8000"; `run` is the name of the run,
    which may be left out where there is one. `token` is needed for updates, if the server has one.
    An error of the server is an InputError with its sentence. A run reads its own updates.
    """
    try:
        import httpx
    except ModuleNotFoundError as error:
        raise MissingExtra("connecting needs httpx", "serve") from error
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        client = httpx.Client(base_url=address, headers=headers, timeout=seconds)
    except (httpx.InvalidURL, ValueError) as error:
        raise InputError(f"{address!r} is no address ({error}); give http://HOST:PORT") from error
    server = Server(address, client)
    try:
        return RemoteRun(server, choose_run(server, run))
    except InputError:
        client.close()
        raise


def choose_run(server: "Server", run: str | None) -> str:
    """The name of the run, or that of the only one."""
    names = [each["name"] for each in server.get("/v1/runs")["runs"]]
    if run is None and len(names) == 1:
        run = names[0]
    if run is None or run not in names:
        chosen = "several runs" if run is None else f"no run {run!r}"
        raise InputError(f"{server.address} has {chosen}; choose one of {', '.join(names)} by run=")
    return run


@dataclass(frozen=True, eq=False)
class Server:
    """Requests to one server, whose problems are raised."""

    address: str
    client: Any  # of httpx

    def get(self, path: str, min_version: int = 0, **parameters: Any) -> dict[str, Any]:
        headers = versioned(min_version)
        return self._send("GET", path, params=parameters, headers=headers).json()

    def post(self, path: str, body: dict[str, Any], min_version: int = 0) -> dict[str, Any]:
        return self._send("POST", path, json=body, headers=versioned(min_version)).json()

    def table(self, path: str, body: dict[str, Any], min_version: int = 0) -> pa.Table:
        headers = {"Accept": ARROW} | versioned(min_version)
        answer = self._send("POST", path, json=body, headers=headers)
        return pa.ipc.open_stream(answer.content).read_all()

    def _send(self, method: str, path: str, **options: Any) -> Any:
        import httpx

        try:
            answer = self.client.request(method, path, **options)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise InputError(
                f"{self.address} does not answer ({reason}); is nodepiece serve running there?"
            ) from None  # a long chain of exceptions of httpx says no more
        if answer.is_success:
            return answer
        try:
            problem = answer.json()
            detail, suggestions = str(problem["detail"]), problem.get("suggestions")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                f"{self.address} answered {answer.status_code}; is it a server of nodepiece?"
            ) from None
        if suggestions is not None:
            raise UnknownName(detail, suggestions)
        raise InputError(detail)


def versioned(min_version: int) -> dict[str, str]:
    return {"Nodepiece-Min-Version": str(min_version)} if min_version else {}


class RemoteRun:
    """A run on a server. Any number of threads may use it.

    Answers to more than 1,000 queries, facts or nodes come from several requests, and so maybe
    from several versions of the graph.
    """

    def __init__(self, server: Server, name: str) -> None:
        self._server, self.name = server, name
        self._assumed: tuple[NamedFact, ...] = ()
        self._version = 0

    def __repr__(self) -> str:
        return f"RemoteRun({self.name!r} at {self._server.address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._server.client.close()

    def describe(self) -> dict[str, Any]:
        """The task, the sizes, the model and the metrics of the run, and its version."""
        return self._server.get(self._path("").rstrip("/"), self._version)

    def predict(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        top: int = 10,
        include_known: bool = False,
        seen_candidates: bool = False,
    ) -> list[Prediction]:
        """The likeliest answers to a fact with one part left out, best first, by name."""
        body = {
            "queries": [{"head": head, "relation": relation, "tail": tail}],
            "top": top,
            "include_known": include_known,
            "seen_candidates": seen_candidates,
        }
        (result,) = self._post("predict", body)["results"]
        return [
            Prediction(each["name"], each["score"], each["known"], each["probability"])
            for each in result["answers"]
        ]

    def predict_many(
        self,
        queries: object,
        *,
        top: int = 10,
        include_known: bool = False,
        seen_candidates: bool = False,
        skip_unknown: bool = False,
    ) -> pa.Table:
        """The likeliest answers to many queries, as an Arrow table; see `Run.predict_many`."""
        options = {
            "top": top,
            "include_known": include_known,
            "seen_candidates": seen_candidates,
            "skip_unknown": skip_unknown,
        }
        rows = [checked(row) for row in numbered(queries)]
        tables = []
        for first, some in in_parts(rows, max(1, min(MAX_ROWS, MAX_ANSWERS // max(1, top)))):
            asked = [
                dict(zip(("head", "relation", "tail"), parts, strict=True))
                for parts in ([None if p in ASKED else p for p in row.parts] for row in some)
            ]
            table = self._table("predict", {"queries": asked, **options})
            tables.append(renumbered(table, first))
        return pa.concat_tables(tables)

    def known(
        self, *, head: str | None = None, relation: str | None = None, tail: str | None = None
    ) -> list[str]:
        """The known answers to a query, by name, which `predict` leaves out."""
        body = {"head": head, "relation": relation, "tail": tail}
        names: list[str] = self._post("known", body)["names"]
        return names

    def score(self, facts: object, *, skip_unknown: bool = False) -> pa.Table:
        """Scores and filtered ranks of facts, as an Arrow table; see `Run.score`."""
        rows = [checked(row) for row in numbered(facts)]
        tables = []
        for first, some in in_parts(rows, MAX_ROWS):
            body = {"facts": [row.parts for row in some], "skip_unknown": skip_unknown}
            tables.append(renumbered(self._table("score", body), first))
        return pa.concat_tables(tables)

    def embed(self, nodes: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of some nodes by name: (num_nodes, dim)."""
        parts = []
        for _, some in in_parts(node_list(nodes), MAX_ROWS):
            column = self._table("embed", {"nodes": some})["vector"].combine_chunks()
            flat = column.values.to_numpy(zero_copy_only=False)
            parts.append(flat.reshape(len(some), column.type.list_size))
        return np.concatenate(parts)

    def vectors(self, nodes: Sequence[str]) -> NamedVectors:
        """The vectors of some nodes, with their names."""
        return NamedVectors(node_list(nodes), self.embed(nodes))

    def similar(self, nodes: str | Sequence[str], *, top: int = 10) -> pa.Table:
        """The nodes with the most similar vectors, as an Arrow table; see `Run.similar`."""
        names = [nodes] if isinstance(nodes, str) else node_list(nodes)
        size = max(1, min(MAX_ROWS, MAX_ANSWERS // max(1, top)))
        return pa.concat_tables(
            self._table("similar", {"nodes": some, "top": top}).replace_schema_metadata(None)
            for _, some in in_parts(names, size)
        )

    def explain(self, *, head: str, relation: str, tail: str) -> Explanation:
        """Why the run scores a fact as it does; see `Run.explain`."""
        body = {"head": head, "relation": relation, "tail": tail}
        return Explanation.from_json(self._post("explain", body))

    def classify(self, node: str, *, top: int = 10) -> list[Prediction]:
        """The likeliest classes of a node, best first, by name."""
        found = self._server.get(self._path("classify"), self._version, node=node, top=top)
        return [Prediction(each["name"], each["score"], each["known"]) for each in found["classes"]]

    def node(self, name: str, *, facts: int = 100) -> dict[str, Any]:
        """The facts and the pieces of a node: what the page shows of it."""
        return self._post("node", {"name": name, "limit": facts})

    def search(self, text: str = "", *, top: int = 20) -> list[str]:
        """Nodes whose names begin with a text, then those that have it in their names."""
        found = self._server.get(self._path("nodes"), self._version, search=text, limit=top)
        return [each["name"] for each in found["nodes"]]

    def with_facts(self, facts: NamedFacts) -> "RemoteRun":
        """A run that answers as if these facts, by name, were in its graph too."""
        other = copy(self)
        other._assumed = (*self._assumed, *by_name(facts))
        return other

    def update(
        self,
        *,
        add: NamedFacts = (),
        remove: NamedFacts = (),
        remove_nodes: Sequence[str] = (),
        remove_if_empty: Sequence[str] = (),
    ) -> Committed:
        """Change the graph on the server; later answers of this run have the change.

        `remove_if_empty`: nodes to remove if no facts about them are left. The result has the
        facts and nodes that were not in the graph before.
        """
        if self._assumed:
            raise InputError("this run has assumed facts, which are not stored; update the other")
        body = {
            "add": list(by_name(add)),
            "remove": list(by_name(remove)),
            "remove_nodes": node_list(remove_nodes),
            "remove_if_empty": node_list(remove_if_empty),
        }
        done = self._server.post(self._path("update"), body)
        self._version = max(self._version, done["version"])
        return Committed(
            done["version"],
            done["added"],
            done["removed"],
            done["new_nodes"],
            tuple((head, relation, tail) for head, relation, tail in done["added_facts"]),
            tuple(done["new_node_names"]),
        )

    def _path(self, name: str) -> str:
        return f"/v1/runs/{quote(self.name, safe='')}/{name}"

    def _with_assumed(self, body: dict[str, Any]) -> dict[str, Any]:
        return body | ({"assume": self._assumed} if self._assumed else {})

    def _post(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._server.post(self._path(name), self._with_assumed(body), self._version)

    def _table(self, name: str, body: dict[str, Any]) -> pa.Table:
        return self._server.table(self._path(name), self._with_assumed(body), self._version)


def checked(row: NumberedParts) -> NumberedParts:
    if row.fault:
        raise InputError(f"row {row.number}: {row.fault}")
    return row


def in_parts(rows: list[Any], size: int) -> Iterator[tuple[int, list[Any]]]:
    """The position of the first row, and the rows, of every request; one at least."""
    for start in range(0, max(1, len(rows)), size):
        yield start, rows[start : start + size]


def renumbered(table: pa.Table, first: int) -> pa.Table:
    """A table whose first column counts from another number."""
    numbers = pa.array(table.column(0).to_numpy() + first)
    name = table.column_names[0]
    return table.set_column(0, name, numbers).replace_schema_metadata(None)
