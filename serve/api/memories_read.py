"""Routes that search, list and show memories."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from primitives.errors import InvalidInputError, NotFoundError
from serve.api.answers import answer
from serve.api.body import body_of, documented
from serve.api.context import CallerDependency
from serve.api.schemas import Get, Search
from serve.original_data import original_data
from serve.presentation import as_data
from serve.query import make_query
from serve.rows import LISTS, as_json
from serve.sources import sources_of
from storage.filters import parse, scope_of
from storage.records import MemoryType

router = APIRouter(prefix="/api/v1", tags=["memories"])


@router.post("/memories/search", openapi_extra=documented(Search), summary="Search memories")
async def search(who: CallerDependency, body: Annotated[Search, Depends(body_of(Search))]) -> Response:
    query = make_query(
        text=body.query,
        filters=body.filters,
        method=body.method,
        memory_types=body.memory_types,
        top_k=body.top_k,
        radius=body.radius,
        as_of=body.as_of,
        include_faded=body.include_faded,
        explain=body.explain,
        include_original_data=body.include_original_data,
    )
    async with who.services.searches.place():
        found = await (await who.services.retriever(who.tenant_id)).search(query)
    who.services.metrics.search(timings_ms=found.timings_ms, degraded=found.degraded)
    data = as_data(query, found)
    if query.include_original_data:
        data["original_data"] = await original_data(found, documents=who.documents)
    return answer(who.request, data)


@router.post("/memories/get", openapi_extra=documented(Get), summary="List memories of one type, page by page")
async def get(who: CallerDependency, body: Annotated[Get, Depends(body_of(Get))]) -> Response:
    if body.memory_type not in MemoryType._value2member_map_:
        known = ", ".join(MemoryType)
        raise InvalidInputError(f"unknown memory type {body.memory_type!r}", hint=f"Known: {known}.")
    kind = MemoryType(body.memory_type)
    rows, total = await who.documents.page(
        scope_of(parse(body.filters), [str(kind)]),
        offset=(body.page - 1) * body.page_size,
        limit=body.page_size,
        descending=body.rank_order == "desc",
    )
    data: dict[str, Any] = {LISTS[kind]: [as_json(row) for row in rows], "total_count": total, "count": len(rows)}
    return answer(who.request, data)


@router.get("/memories/{memory_id}", summary="Show one memory or message")
async def show(who: CallerDependency, memory_id: str) -> Response:
    row = (await who.documents.fetch([memory_id])).get(memory_id)
    if row is None:
        raise NotFoundError(f"no memory {memory_id}")
    return answer(who.request, as_json(row))


@router.get("/memories/{memory_id}/sources", summary="Show the topic that a memory comes from, with its messages")
async def sources(who: CallerDependency, memory_id: str) -> Response:
    row = (await who.documents.fetch([memory_id])).get(memory_id)
    if row is None:
        raise NotFoundError(f"no memory {memory_id}")
    return answer(who.request, await sources_of(row, documents=who.documents))


@router.get("/stats", summary="How many rows there are, by store and type")
async def stats(who: CallerDependency) -> Response:
    counts = await who.documents.counts()
    who.services.metrics.backlog(who.tenant_id, counts)
    generations = [
        {
            "name": g.name,
            "kind": g.kind,
            "live": g.live,
            "model": g.model_id or None,
            "dimension": g.dimension or None,
            "entries": await (await who.tools.stores.indexes.open(g.name)).count(),
        }
        for g in await who.documents.generations()
    ]
    identity = who.services.embedder.identity
    pending = counts["raw_messages"]
    return answer(
        who.request,
        {
            "tenant_id": who.tenant_id,
            "documents": {str(kind): counts[kind] for kind in MemoryType} | {"memcells": counts["memcells"]},
            "pending_messages": pending,
            "unindexed": counts.get("unindexed", 0),
            "indexes": generations,
            "embedder": {"model": identity.id, "revision": identity.revision, "dimension": identity.dimension},
        },
    )
