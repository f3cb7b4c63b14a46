"""Answers as JSON or Arrow, with the version of the graph that they are exact for."""

from typing import Any

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from nodepiece.serving.problems import to_bytes

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
VERSION_HEADER = "Nodepiece-Version"
MIN_VERSION_HEADER = "Nodepiece-Min-Version"


def wants_arrow(request: Request) -> bool:
    return ARROW in request.headers.get("accept", "")


def json_response(content: dict[str, Any], status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    if "version" in content:
        headers[VERSION_HEADER] = str(content["version"])
    return Response(to_bytes(content), status, headers, JSON)


def arrow_response(table: pa.Table, version: int) -> Response:
    """A table as an Arrow stream; its schema has the version too."""
    table = table.replace_schema_metadata({"version": str(version)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"Cache-Control": "no-store", VERSION_HEADER: str(version)}
    return Response(sink.getvalue().to_pybytes(), 200, headers, ARROW)
