"""What every request passes: limits on its body, and headers that protect the page."""

import asyncio
from hmac import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nodepiece.serving.problems import Problem, problem_of
from nodepiece.serving.settings import ServeSettings

JSON = "application/json"
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def check_writer(request: Request, settings: ServeSettings) -> None:
    """Refuse an update that is not allowed, or that a page of another server sent."""
    if not settings.writable:
        raise Problem(403, "this server is read-only; start it with --writable")
    if settings.token is not None:
        given = request.headers.get("authorization", "").encode()
        if not compare_digest(given, f"Bearer {settings.token}".encode()):
            raise Problem(
                401,
                "updates need the header Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )
    origin = request.headers.get("origin")
    if origin is not None and origin not in settings.origins:
        host = request.headers.get("host")
        if origin not in (f"http://{host}", f"https://{host}"):
            raise Problem(403, f"pages of {origin} may not update the graph; see --allow-origin")


def check_host(headers: Headers, settings: ServeSettings) -> None:
    """Refuse requests for another host: a page whose name was bound to this address sends them."""
    host = host_name(headers.get("host", ""))
    if settings.hosts and host not in settings.hosts:
        raise Problem(421, f"this server is not {host!r}; see --host")


def host_name(value: str) -> str:
    """The name in a Host header, without the port, in lower case."""
    name = value.rpartition(":")[0] if not value.endswith("]") and ":" in value else value
    return name.strip("[]").lower()


class Guard:
    """ASGI middleware around all paths."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        is_started = False

        async def send_guarded(message: Message) -> None:
            nonlocal is_started
            is_started = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            check_host(Headers(scope=scope), self.settings)
            body = await self._body(scope["method"], Headers(scope=scope), receive)
        except Problem as problem:
            await problem.to_response()(scope, receive, send_guarded)
            return
        try:
            await self.app(scope, replayed(body, receive), send_guarded)
        except Exception as error:
            if is_started:
                raise
            await problem_of(error).to_response()(scope, receive, send_guarded)

    async def _body(self, method: str, headers: Headers, receive: Receive) -> bytes:
        """The whole body; one that is too large or too slow is refused."""
        limits = self.settings.limits
        too_large = Problem(
            413, f"the body is larger than {limits.body:,} bytes", headers={"Connection": "close"}
        )
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and media_type != JSON:  # forms, which any page may send, have others
            raise Problem(415, f"the body is {media_type or 'of no type'}; send {JSON}")
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limits.body:
            raise too_large
        parts: list[bytes] = []
        num_bytes = 0
        try:
            async with asyncio.timeout(limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        break
                    parts.append(message.get("body", b""))
                    num_bytes += len(parts[-1])
                    if num_bytes > limits.body:
                        raise too_large
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            raise Problem(
                408,
                f"the body did not arrive within {limits.body_seconds:g} s",
                headers={"Connection": "close"},
            ) from None
        return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that was read already, and then what comes after it."""
    is_given = False

    async def receive_again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
