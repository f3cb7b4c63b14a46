"""The application: all paths, the page, and the guards around them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from nodepiece import __version__
from nodepiece.inference.opened_run import Run
from nodepiece.serving.access_log import AccessLog, write_to_standard_error
from nodepiece.serving.guards import Guard
from nodepiece.serving.problems import add_problems
from nodepiece.serving.responses import MIN_VERSION_HEADER, VERSION_HEADER
from nodepiece.serving.routes import read_routes
from nodepiece.serving.service import Service
from nodepiece.serving.settings import ServeSettings
from nodepiece.serving.system_routes import system_routes
from nodepiece.serving.write_routes import write_routes

STATIC = Path(__file__).parent / "static"
PAGE = "index.html"
FRESH = {"Cache-Control": "no-cache"}  # a browser asks whether its copy is still the current one


class PageFiles(StaticFiles):
    """The files of the page. A browser never mixes those of two versions."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers.update(FRESH)
        return response


def make_app(runs: Sequence[Run], settings: ServeSettings | None = None) -> FastAPI:
    """The application that serves some runs, each by the name of its folder."""
    chosen = settings or ServeSettings()
    service = Service(runs, chosen)
    if chosen.access_log:
        write_to_standard_error()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if not service.prepared.is_set():
            Thread(target=service.prepare, name="nodepiece-prepare", daemon=True).start()
        yield
        service.close()

    app = FastAPI(
        title="nodepiece",
        version=__version__,
        description="Predictions, vectors and facts of a graph. Every answer has the version of "
        "the graph that it is exact for.",
        lifespan=lifespan,
        docs_url=None,  # the usual page loads scripts from a network
        redoc_url=None,
    )
    app.state.service = service
    add_problems(app)
    app.include_router(read_routes(service))
    app.include_router(write_routes(service))
    app.include_router(system_routes(service))
    app.mount("/static", PageFiles(directory=STATIC), "static")

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / PAGE, headers=FRESH)

    app.add_middleware(Guard, settings=chosen)
    if chosen.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(chosen.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", MIN_VERSION_HEADER],
            expose_headers=[VERSION_HEADER],
        )
    app.add_middleware(AccessLog, count=service.metrics.count_request)
    return app
