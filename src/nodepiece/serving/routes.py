"""The paths that read: predict, score, embed, similar, explain, nodes, relations, runs."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Header, Query
from starlette.requests import Request
from starlette.responses import Response

from nodepiece.inference.changed_graph import relation_counts
from nodepiece.inference.facts import FactRun
from nodepiece.inference.named_vectors import NamedVectors
from nodepiece.serving import models
from nodepiece.serving.answers import (
    Parts,
    PredictOptions,
    State,
    embed_json,
    predict,
    predict_json,
    score,
    score_json,
    similar_json,
)
from nodepiece.serving.batch_answers import Unanswered
from nodepiece.serving.checks import check_names, check_number, check_query, check_top
from nodepiece.serving.examples import ANSWERS
from nodepiece.serving.node_finder import num_facts
from nodepiece.serving.node_record import graph_of, names_of, node_record
from nodepiece.serving.responses import arrow_response, json_response, wants_arrow
from nodepiece.serving.served_run import ServedRun
from nodepiece.serving.service import Service

Text = Annotated[str | None, Query()]
TABLES: dict[str, dict[str, Any]] = {"application/vnd.apache.arrow.stream": {}}


def answers(model: type[Any], *, arrow: bool = False) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI shows of an answer and of a problem."""
    problem = {"model": models.ProblemDetails, "description": "A problem (RFC 9457)"}
    content = {"application/json": {"example": ANSWERS[model.__name__]}}
    found = {
        "model": model,
        "description": "The answer",
        "content": content | (TABLES if arrow else {}),
    }
    return {200: found, "4XX": problem, "5XX": problem}


def read_routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1")
    limits = service.settings.limits

    async def served_run(
        run: str,
        min_version: Annotated[
            int | None,
            Header(
                alias="Nodepiece-Min-Version",
                ge=0,
                description="Answer from this version of the graph, or a later one.",
            ),
        ] = None,
    ) -> ServedRun:
        found = service.run(run)
        if min_version is not None:
            await found.wait_for(min_version, limits.version_seconds)
        return found

    Served = Annotated[ServedRun, Depends(served_run)]

    def check_assumed(assume: Sequence[models.NamedFact]) -> None:
        check_number(assume, limits.assumed, "assumed facts")
        check_names((part for fact in assume for part in fact), limits.name)

    async def read(
        served: ServedRun,
        answer: Callable[[State], Response],
        assume: Sequence[models.NamedFact] = (),
    ) -> Response:
        """The answer from the current state of a run, computed by another thread."""
        check_assumed(assume)

        def compute() -> Response:
            with served.named_errors():
                return answer(served.state(assume))

        return await service.pool.compute(compute)

    @router.get("/runs", responses=answers(models.RunList), summary="All runs")
    async def runs() -> Response:
        service.check_prepared()
        found = [served.record() for served in service.runs.values()]
        return json_response({"runs": found})

    @router.get("/runs/{run}", responses=answers(models.RunDetails), summary="One run")
    async def run(served: Served) -> Response:
        return await service.pool.compute(lambda: json_response(served.details()))

    @router.get(
        "/runs/{run}/relations",
        responses=answers(models.RelationList),
        summary="All relations, most frequent first",
    )
    async def relations(served: Served) -> Response:
        return await read(served, relation_list)

    @router.get(
        "/runs/{run}/nodes",
        responses=answers(models.NodeList),
        summary="Nodes by the beginning of their names, then by a part",
    )
    async def nodes(
        served: Served,
        search: Annotated[str, Query(examples=["ken"])] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    ) -> Response:
        check_names([search], limits.name)
        return await read(served, lambda state: node_list(served, state, search, limit))

    @router.get(
        "/runs/{run}/node",
        responses=answers(models.NodeRecord),
        summary="A node with its facts and its pieces",
    )
    async def node(
        served: Served,
        name: Annotated[str, Query(examples=["Kenya"])],
        limit: Annotated[int, Query(ge=0, le=10_000)] = 100,
    ) -> Response:
        check_names([name], limits.name)
        return await read(served, lambda state: json_response(node_record(state, name, limit)))

    @router.post(
        "/runs/{run}/node",
        responses=answers(models.NodeRecord),
        summary="A node as it would be with assumed facts",
    )
    async def node_with_facts(served: Served, body: models.NodeRequest) -> Response:
        check_names([body.name], limits.name)
        return await read(
            served,
            lambda state: json_response(node_record(state, body.name, body.limit)),
            body.assume,
        )

    async def answer_queries(
        request: Request,
        served: ServedRun,
        queries: list[Parts],
        options: PredictOptions,
        assume: Sequence[models.NamedFact] = (),
        *,
        skip_unknown: bool = False,
    ) -> Response:
        check_number(queries, limits.batch, "queries")
        check_top(options.top, len(queries), limits)
        for number, parts in enumerate(queries):
            check_query(parts, number if len(queries) > 1 else None)
            check_names((part for part in parts if part is not None), limits.name)
        is_arrow = wants_arrow(request)
        if not (assume or skip_unknown) and isinstance(served.run, FactRun):
            found = await served.batcher.predict(queries, options, is_arrow=is_arrow)
            if isinstance(found, Unanswered):
                raise await service.pool.compute(lambda: found.error(len(queries)))
            return found

        def answer(state: State) -> Response:
            table = predict(state, queries, options, served.approximate, skip_unknown=skip_unknown)
            if is_arrow:
                return arrow_response(table, state.version)
            results = predict_json(queries, table.to_pydict(), range(table.num_rows))
            return json_response({"version": state.version, "results": results})

        return await read(served, answer, assume)

    @router.post(
        "/runs/{run}/predict",
        responses=answers(models.PredictAnswer, arrow=True),
        summary="The likeliest answers to queries",
    )
    async def predict_many(
        request: Request, served: Served, body: models.PredictRequest
    ) -> Response:
        queries = [(each.head, each.relation, each.tail) for each in body.queries]
        options = PredictOptions(body.top, body.include_known, body.seen_candidates)
        return await answer_queries(
            request, served, queries, options, body.assume, skip_unknown=body.skip_unknown
        )

    @router.get(
        "/runs/{run}/predict",
        responses=answers(models.PredictAnswer, arrow=True),
        summary="The likeliest answers to one query",
    )
    async def predict_one(
        request: Request,
        served: Served,
        head: Annotated[str | None, Query(examples=["Libya"])] = None,
        relation: Annotated[str | None, Query(examples=["has language"])] = None,
        tail: Annotated[str | None, Query(description="Leave out the part to predict.")] = None,
        top: Annotated[int, Query(ge=1)] = 10,
        include_known: bool = False,
        seen_candidates: bool = False,
    ) -> Response:
        parts = (head or None, relation or None, tail or None)
        options = PredictOptions(top, include_known, seen_candidates)
        return await answer_queries(request, served, [parts], options)

    @router.post(
        "/runs/{run}/known",
        responses=answers(models.KnownAnswer),
        summary="The answers that known facts state, which predictions leave out",
    )
    async def known(served: Served, body: models.KnownRequest) -> Response:
        parts = (body.head, body.relation, body.tail)
        check_query(parts, None)
        check_names((part for part in parts if part is not None), limits.name)

        def answer(state: State) -> Response:
            head, relation, tail = parts
            names = state.facts.known(head=head, relation=relation, tail=tail)
            return json_response({"version": state.version, "names": names})

        return await read(served, answer, body.assume)

    @router.post(
        "/runs/{run}/score",
        responses=answers(models.ScoreAnswer, arrow=True),
        summary="Scores and ranks of facts",
    )
    async def score_facts(request: Request, served: Served, body: models.ScoreRequest) -> Response:
        check_number(body.facts, limits.batch, "facts")
        check_names((part for fact in body.facts for part in fact), limits.name)
        is_arrow = wants_arrow(request)

        def answer(state: State) -> Response:
            table = score(state, body.facts, skip_unknown=body.skip_unknown)
            if is_arrow:
                return arrow_response(table, state.version)
            return json_response({"version": state.version, "facts": score_json(table)})

        return await read(served, answer, body.assume)

    @router.post(
        "/runs/{run}/embed",
        responses=answers(models.EmbedAnswer, arrow=True),
        summary="The vectors of nodes",
    )
    async def embed(request: Request, served: Served, body: models.EmbedRequest) -> Response:
        check_number(body.nodes, limits.batch, "nodes")
        check_names(body.nodes, limits.name)
        is_arrow = wants_arrow(request)

        def answer(state: State) -> Response:
            vectors = state.run.embed(body.nodes)
            if is_arrow:
                table = NamedVectors(body.nodes, vectors).to_arrow()
                return arrow_response(table, state.version)
            return json_response(
                {"version": state.version, "nodes": body.nodes, "vectors": embed_json(vectors)}
            )

        return await read(served, answer, body.assume)

    async def answer_similar(
        request: Request, served: ServedRun, body: models.SimilarRequest
    ) -> Response:
        check_number(body.nodes, limits.batch, "nodes")
        check_top(body.top, len(body.nodes), limits)
        check_names(body.nodes, limits.name)
        is_arrow = wants_arrow(request)

        def answer(state: State) -> Response:
            table = state.run.similar(body.nodes, top=body.top)
            if is_arrow:
                return arrow_response(table, state.version)
            return json_response({"version": state.version, "neighbours": similar_json(table)})

        return await read(served, answer, body.assume)

    @router.get(
        "/runs/{run}/similar",
        responses=answers(models.SimilarAnswer, arrow=True),
        summary="The nodes with the most similar vectors",
    )
    async def similar_to_one(
        request: Request,
        served: Served,
        node: Annotated[str, Query(examples=["Kenya"])],
        top: Annotated[int, Query(ge=1)] = 10,
    ) -> Response:
        body = models.SimilarRequest(nodes=[node], top=top)
        return await answer_similar(request, served, body)

    @router.post(
        "/runs/{run}/similar",
        responses=answers(models.SimilarAnswer, arrow=True),
        summary="The most similar nodes of each of some nodes",
    )
    async def similar_to_many(
        request: Request, served: Served, body: models.SimilarRequest
    ) -> Response:
        return await answer_similar(request, served, body)

    @router.post(
        "/runs/{run}/explain",
        responses=answers(models.ExplainAnswer),
        summary="Why a fact has its score",
    )
    async def explain(served: Served, body: models.ExplainRequest) -> Response:
        check_names([body.head, body.relation, body.tail], limits.name)

        def answer(state: State) -> Response:
            found = explanation(state, body.head, body.relation, body.tail)
            return json_response({"version": state.version} | found)

        return await read(served, answer, body.assume)

    @router.get(
        "/runs/{run}/classify",
        responses=answers(models.ClassAnswer),
        summary="The likeliest classes of a node (runs of node classification)",
    )
    async def classify(
        served: Served,
        node: Annotated[str, Query(examples=["Kenya"])],
        top: Annotated[int, Query(ge=1, le=1000)] = 10,
    ) -> Response:
        check_names([node], limits.name)

        def answer(state: State) -> Response:
            classes = [
                {"name": each.name, "score": each.score, "probability": each.score}
                | {"known": each.is_known}
                for each in state.run.classify(node, top=top)
            ]
            return json_response({"version": state.version, "node": node, "classes": classes})

        return await read(served, answer)

    @router.get(
        "/runs/{run}/map",
        responses=answers(models.MapAnswer)
        | {202: {"model": models.Computing, "description": "It is being computed; ask again"}},
        summary="The nodes in two dimensions, by the similarity of their vectors",
    )
    async def node_map(served: Served) -> Response:
        def stored() -> dict[str, Any] | None:
            with served.named_errors():
                return served.map.content()

        content = await service.pool.compute(stored)
        if content is None:
            return json_response({"status": "computing"}, 202)
        return await service.pool.compute(lambda: json_response(content))

    return router


def relation_list(state: State) -> Response:
    graph, names = graph_of(state.run), names_of(state.run)
    counts = relation_counts(graph)
    order = np.argsort(-counts, kind="stable").tolist()
    relations = [{"name": names.relation(each), "facts": int(counts[each])} for each in order]
    return json_response({"version": state.version, "relations": relations})


def node_list(served: ServedRun, state: State, search: str, limit: int) -> Response:
    names, counts = names_of(state.run), num_facts(state)
    found = served.finder.find(state, search, limit)
    nodes = [
        {"name": names.node(node), "facts": facts}
        for node, facts in zip(found, counts.at(np.array(found, np.int64)).tolist(), strict=True)
    ]
    return json_response({"version": state.version, "nodes": nodes})


def explanation(state: State, head: str, relation: str, tail: str) -> dict[str, Any]:
    return state.run.explain(head=head, relation=relation, tail=tail).to_json()
