"""A line of JSON for every request, and its counts for Prometheus."""

import json
import logging
from collections.abc import Callable
from time import perf_counter, time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

access = logging.getLogger("nodepiece.access")

CountRequest = Callable[[str, str, int, float], None]  # method, path, status, seconds
MAX_PATH = 200  # characters of a path that are logged
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def write_to_standard_error() -> None:
    """Write the lines of all requests to standard error."""
    if not access.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        access.addHandler(handler)
    access.setLevel(logging.INFO)
    access.propagate = False


class AccessLog:
    """ASGI middleware around all others. Names of nodes, in queries and bodies, are not logged."""

    def __init__(self, app: ASGIApp, count: CountRequest) -> None:
        self.app, self.count = app, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status, num_bytes = perf_counter(), 500, 0

        async def send_counted(message: Message) -> None:
            nonlocal status, num_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
            num_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        finally:
            seconds = perf_counter() - start
            route = scope.get("route")
            method = scope["method"] if scope["method"] in METHODS else "other"  # few counts
            self.count(method, getattr(route, "path", "other"), status, seconds)
            if access.isEnabledFor(logging.INFO):
                access.info(
                    "%s",
                    json.dumps(
                        {
                            "time": round(time(), 3),
                            "client": (scope.get("client") or ("",))[0],
                            "method": scope["method"],
                            "path": scope["path"][:MAX_PATH],
                            "status": status,
                            "milliseconds": round(1000 * seconds, 2),
                            "bytes": num_bytes,
                        }
                    ),
                )
