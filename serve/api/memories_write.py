"""Routes that add, flush, change and delete memories."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from pipelines.add import add
from pipelines.deletion import delete
from pipelines.flush import flush
from pipelines.indexing import embed_and_index
from pipelines.intake import messages_of_request
from pipelines.tools import Tools
from primitives.clock import now_ms
from primitives.errors import ConflictError, NotFoundError
from serve.api.answers import answer
from serve.api.body import body_of, documented
from serve.api.context import Caller, CallerDependency
from serve.api.errors import BusyError
from serve.api.incoming import incoming_messages
from serve.api.schemas import ALL, Delete, GroupAdd, GroupFlush, MessageItem, Patch, PersonalAdd, PersonalFlush
from serve.metrics import Metrics
from serve.rows import as_json
from storage.filters import All, Condition, Filter
from storage.ids import Owner

router = APIRouter(prefix="/api/v1/memories", tags=["memories"])

EVERY_CONVERSATION = 100_000
OFF_LOOP_CHARACTERS = 64 * 2**10
"""Texts of one request from which their tokens are counted in a thread, so that the event loop goes on answering."""


@router.post("", openapi_extra=documented(PersonalAdd), summary="Add messages of a person and their assistant")
async def add_personal(who: CallerDependency, body: Annotated[PersonalAdd, Depends(body_of(PersonalAdd))]) -> Response:
    return await _add(who, body.messages, owner=Owner.user(body.user_id), session_id=body.session_id)


@router.post("/group", openapi_extra=documented(GroupAdd), summary="Add messages of a group")
async def add_group(who: CallerDependency, body: Annotated[GroupAdd, Depends(body_of(GroupAdd))]) -> Response:
    if body.group_meta is not None:
        await who.documents.put_resource(
            "group", body.group_id, {"group_id": body.group_id, **body.group_meta.model_dump(exclude_none=True)}
        )
    return await _add(who, body.messages, owner=Owner.group(body.group_id), session_id=body.session_id)


async def _add(who: Caller, items: Sequence[MessageItem], *, owner: Owner, session_id: str | None) -> Response:
    incoming = incoming_messages(items, owner=owner)
    make = partial(
        messages_of_request,
        incoming,
        tenant_id=who.tenant_id,
        owner=owner,
        session_id=session_id,
        imported_at=now_ms(),
        max_bytes=who.services.settings.pipeline.message_max_bytes,
    )
    large = sum(len(one.text) for one in incoming) > OFF_LOOP_CHARACTERS
    messages = await asyncio.to_thread(make) if large else make()
    outcome = await add(who.tools, messages)
    named = {m.sender_id: m.sender_name for m, item in zip(messages, items, strict=True) if item.sender_name}
    for sender_id, name in named.items():
        await who.documents.put_resource("sender", sender_id, {"sender_id": sender_id, "name": name})
    who.services.metrics.added(who.tenant_id, len(outcome.added))
    return answer(
        who.request,
        {
            "status": "accumulated",
            "message_count": len(items),
            "added": len(outcome.added),
            "duplicates": outcome.duplicates,
            "deleted": outcome.deleted,
            "pending": outcome.pending,
            "message": "Messages accepted",
        },
    )


@router.post("/agent", include_in_schema=False)
@router.post("/agent/flush", include_in_schema=False)
async def agent(who: CallerDependency) -> Response:
    """V1's paths of agent trajectories, which would otherwise be taken for a memory's id and its methods."""
    raise NotFoundError(
        "agent memories come with a later release", hint="POST /api/v1/memories and /memories/group take messages."
    )


@router.post("/flush", openapi_extra=documented(PersonalFlush), summary="Make memories of a person's pending messages")
async def flush_personal(
    who: CallerDependency, body: Annotated[PersonalFlush, Depends(body_of(PersonalFlush))]
) -> Response:
    return await _flush(who, {"user_id": body.user_id, "session_id": body.session_id}, wait=body.wait)


@router.post(
    "/group/flush", openapi_extra=documented(GroupFlush), summary="Make memories of a group's pending messages"
)
async def flush_group(who: CallerDependency, body: Annotated[GroupFlush, Depends(body_of(GroupFlush))]) -> Response:
    return await _flush(who, {"group_id": body.group_id, "session_id": body.session_id}, wait=body.wait)


async def _flush(who: Caller, request: dict[str, Any], *, wait: bool) -> Response:
    if wait:
        return answer(who.request, await run_flush(who.tools, request, metrics=who.services.metrics))
    task_id = await who.services.tasks.start(
        who.documents, request=request, work=lambda: run_flush(who.tools, request, metrics=who.services.metrics)
    )
    return answer(who.request, {"task_id": task_id, "status": "queued"}, status=202)


async def run_flush(tools: Tools, request: dict[str, Any], *, metrics: Metrics) -> dict[str, Any]:
    """Flush one conversation, or all pending ones of an owner where no session is named."""
    try:
        report = await flush(tools, await _conversations(tools, request), wait_s=tools.settings.flush_wait_seconds)
    except ConflictError as fault:
        metrics.flushed("conflict")
        raise BusyError(fault.message, hint=fault.hint or "Try again in a few seconds.") from fault
    metrics.flushed(report.status)
    return {
        "status": report.status,
        "memcells": report.memcells,
        "memories": report.memories,
        "skipped": report.skipped,
        "message": "Flush completed",
    }


async def _conversations(tools: Tools, request: dict[str, Any]) -> list[str]:
    user_id, group_id, session_id = request.get("user_id"), request.get("group_id"), request["session_id"]
    owner = Owner.user(user_id) if user_id is not None else Owner.group(str(group_id))
    if session_id is not None:
        conversation_id = owner.conversation_id(tools.stores.tenant_id, session_id)
        return [conversation_id] if await tools.stores.documents.conversation(conversation_id) else []
    pending = await tools.stores.documents.pending_conversations(
        user_id=user_id, group_id=group_id, limit=EVERY_CONVERSATION
    )
    return [conversation.id for conversation in pending]


@router.patch("/{memory_id}", openapi_extra=documented(Patch), summary="Change the text or tags of a memory")
async def patch(who: CallerDependency, memory_id: str, body: Annotated[Patch, Depends(body_of(Patch))]) -> Response:
    row = await who.documents.update_memory(memory_id, body.model_extra or {})
    await embed_and_index(who.tools.stores, who.services.embedder, [row])
    return answer(who.request, as_json(row))


@router.post("/delete", openapi_extra=documented(Delete), status_code=204, summary="Delete memories and messages")
async def delete_memories(who: CallerDependency, body: Annotated[Delete, Depends(body_of(Delete))]) -> Response:
    if body.memory_id is not None:
        await delete(who.tools, memory_id=body.memory_id)
    else:
        await delete(who.tools, where=_where(body))
    return Response(status_code=204)


def _where(body: Delete) -> Filter:
    """V1's three states: exact, "__all__" (does not narrow), null or "" (rows without a value)."""
    asked = {
        "user_id": body.user_id,
        "group_id": body.group_id,
        "session_id": body.session_id,
        "sender_id": body.sender_id,
    }
    return All(tuple(Condition(name, "eq", value or None) for name, value in asked.items() if value != ALL))
