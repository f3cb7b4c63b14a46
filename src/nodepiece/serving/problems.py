"""Errors as problem details (RFC 9457): a status, a sentence, never a traceback."""

import json
import logging
from collections.abc import Mapping
from math import isfinite
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from nodepiece.errors import InputError, one_line
from nodepiece.graph.names import UnknownName

log = logging.getLogger("nodepiece")

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "the request cannot be read",
    401: "a token is needed",
    403: "not allowed",
    404: "not found",
    405: "this path has other methods",
    408: "the request took too long to arrive",
    409: "the state of the graph does not allow this",
    413: "the request is too large",
    415: "the body has another format",
    421: "this server has another name",
    422: "the request has a wrong value",
    500: "an error in nodepiece",
    503: "not now",
    504: "the answer took too long",
}


class Problem(Exception):
    """An error with the status that a client gets."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **members: object,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers, self.members = dict(headers or {}), members

    def to_response(self) -> Response:
        return problem_response(self.status, self.detail, self.headers, self.members)


def problem_response(
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    members: Mapping[str, object] | None = None,
) -> Response:
    content = {
        "type": "about:blank",
        "title": TITLES.get(status, "error"),
        "status": status,
        "detail": one_line(detail),
        **(members or {}),
    }
    return Response(to_bytes(content), status, dict(headers or {}), MEDIA_TYPE)


def to_bytes(content: object) -> bytes:
    """JSON as UTF-8. Lone surrogates, which UTF-8 lacks, are escaped, and NaN is null."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return to_bytes(without_nan(content))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(content, separators=(",", ":")).encode()


def without_nan(content: object) -> object:
    """The content with None for numbers that JSON lacks: NaN and infinities."""
    if isinstance(content, float):
        return content if isfinite(content) else None
    if isinstance(content, dict):
        return {key: without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [without_nan(value) for value in content]
    return content


def problem_of(error: Exception) -> Problem:
    """The problem that stands for an error of the library."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, UnknownName):
        return Problem(404, str(error), suggestions=list(error.suggestions))
    if isinstance(error, InputError):
        return Problem(422, str(error))
    if isinstance(error, MemoryError):
        return Problem(503, "not enough memory for this request; ask for less at a time")
    log.error("%s", one_line(f"{type(error).__name__}: {error}"), exc_info=error)
    return Problem(500, "the server failed to answer; its log has the cause")


def invalid_request(error: RequestValidationError) -> Problem:
    """One sentence for the first value that is wrong."""
    first: Any = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
    if first["type"] == "json_invalid":
        return Problem(400, f"the body is not JSON ({first['ctx']['error']}); send an object")
    return Problem(422, f"{place or 'body'}: {first['msg']}"[:500])


def add_problems(app: FastAPI) -> None:
    """Answer every error of the application with a problem."""

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            return invalid_request(error).to_response()
        if isinstance(error, HTTPException):
            headers = error.headers or {}
            if error.status_code == 404:
                return problem_response(404, f"there is nothing at {request.url.path}", headers)
            return problem_response(error.status_code, str(error.detail), headers)
        return problem_of(error).to_response()

    # All other errors reach the guard, so that their answers have its headers too.
    for kind in (Problem, InputError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, refuse)
