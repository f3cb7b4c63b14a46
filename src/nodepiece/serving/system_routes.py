"""The paths for those who run the server: health, readiness, metrics."""

from fastapi import APIRouter
from starlette.responses import Response

from nodepiece.serving import models
from nodepiece.serving.problems import Problem
from nodepiece.serving.responses import json_response
from nodepiece.serving.routes import answers
from nodepiece.serving.service import Service


def system_routes(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz", responses=answers(models.Status), summary="Whether the server runs")
    async def healthz() -> Response:
        return json_response({"status": "ok"})

    @router.get(
        "/readyz", responses=answers(models.Ready), summary="Whether the server answers queries"
    )
    async def readyz() -> Response:
        service.check_prepared()
        if service.is_closing:
            raise Problem(503, "the server stops", headers={"Retry-After": "5"})
        return json_response({"status": "ready", "runs": list(service.runs)})

    @router.get(
        "/metrics",
        responses={
            200: {
                "content": {"text/plain": {"example": "nodepiece_updates_total 0.0"}},
                "description": "Text in the format of Prometheus",
            }
        },
        response_class=Response,
        summary="Counts and times for Prometheus",
    )
    async def metrics() -> Response:
        runs = service.runs.values()
        text = service.metrics.to_text(
            num_waiting=service.pool.num_waiting,
            queued={run.name: run.writer.num_waiting for run in runs if run.writer is not None},
            versions={run.name: run.version for run in runs},
        )
        return Response(text, media_type=service.metrics.media_type)

    return router
