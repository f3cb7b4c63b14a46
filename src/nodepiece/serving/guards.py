"""What every request passes: limits on its body, and headers that protect the page."""

import asyncio

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nodepiece.serving.problems import Problem
from nodepiece.serving.settings import ServeSettings

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


class Guard:
    """ASGI middleware around all paths."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            body = await self._body(Headers(scope=scope), receive)
        except Problem as problem:
            await problem.to_response()(scope, receive, send_guarded)
            return
        await self.app(scope, replayed(body, receive), send_guarded)

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """The whole body; one that is too large or too slow is refused."""
        limits = self.settings.limits
        too_large = Problem(
            413, f"the body is larger than {limits.body:,} bytes", headers={"Connection": "close"}
        )
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
