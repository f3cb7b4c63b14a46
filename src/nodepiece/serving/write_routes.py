"""The path that changes the graph."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from nodepiece.inference.graph_updates import UpdateUnderWay
from nodepiece.inference.update_groups import Committed, GraphUpdate
from nodepiece.serving import models
from nodepiece.serving.checks import check_names, check_number
from nodepiece.serving.forwarding import forward
from nodepiece.serving.guards import check_writer
from nodepiece.serving.problems import Problem
from nodepiece.serving.responses import json_response
from nodepiece.serving.routes import answers
from nodepiece.serving.service import Service


def write_routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1")
    limits = service.settings.limits

    @router.post(
        "/runs/{run}/update",
        responses=answers(models.UpdateAnswer),
        summary="Add and remove facts, remove nodes",
    )
    async def update(request: Request, run: str, body: models.UpdateRequest) -> Response:
        """The update is on disk when it is acknowledged, and later answers have its version."""
        check_writer(request, service.settings)
        served = service.run(run)
        if service.settings.forward_to is not None:
            return await forward(request, service.settings.forward_to)
        changes = (*body.add, *body.remove)
        nodes = (*body.remove_nodes, *body.remove_if_empty)
        check_number((*changes, *nodes), limits.batch, "changes")
        check_names((part for fact in changes for part in fact), limits.name)
        check_names(nodes, limits.name)
        if served.writer is None:
            raise Problem(403, f"the graph of {run} cannot be updated: {served.why_not_writable}")
        wanted = GraphUpdate(
            tuple(body.add),
            tuple(body.remove),
            tuple(body.remove_nodes),
            tuple(body.remove_if_empty),
        )
        future = asyncio.wrap_future(served.writer.submit(wanted))
        # Not cancelled with the request: an update that was accepted is committed.
        try:
            with served.named_errors():
                done: Committed = await asyncio.shield(future)
        except UpdateUnderWay as error:
            raise Problem(503, str(error), headers={"Retry-After": "1"}) from error
        return json_response(
            {
                "version": done.version,
                "added": done.num_added,
                "removed": done.num_removed,
                "new_nodes": done.num_new_nodes,
                "added_facts": done.added,
                "new_node_names": done.new_nodes,
            }
        )

    return router
