"""Updates that one of several processes passes to the one that writes."""

from urllib.parse import quote

import httpx
from starlette.requests import Request
from starlette.responses import Response

from nodepiece.serving.problems import Problem

PASSED = ("authorization", "content-type", "host", "origin")
SECONDS = 60.0


async def forward(request: Request, socket: str) -> Response:
    """The answer of the process that accepts connections at a Unix socket."""
    headers = {name: request.headers[name] for name in PASSED if name in request.headers}
    transport = httpx.AsyncHTTPTransport(uds=socket)
    try:
        async with httpx.AsyncClient(transport=transport, timeout=SECONDS) as client:
            answer = await client.post(
                f"http://localhost{quote(request.scope['path'])}",
                content=await request.body(),
                headers=headers,
            )
    except httpx.HTTPError as error:
        raise Problem(
            503,
            "the process that updates the graph does not answer, and the update may be committed "
            "or not; look at the graph, or send the same update again",
            headers={"Retry-After": "1"},
        ) from error
    kept = {
        name: value
        for name, value in answer.headers.items()
        if name in ("cache-control", "nodepiece-version", "retry-after", "www-authenticate")
    }
    return Response(answer.content, answer.status_code, kept, answer.headers["content-type"])
