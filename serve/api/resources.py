"""Routes of groups, senders, settings and tasks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from primitives.clock import to_iso
from primitives.errors import NotFoundError
from serve.api.answers import answer
from serve.api.body import body_of, documented
from serve.api.context import CallerDependency
from serve.api.memories_write import run_flush
from serve.api.schemas import GroupBody, GroupChange, SenderBody, SenderChange, SettingsBody
from serve.tasks import Work

router = APIRouter(prefix="/api/v1", tags=["resources"])

GROUP_FIELDS = ("group_id", "name", "description")
SENDER_FIELDS = ("sender_id", "name")
SETTINGS_FIELDS = ("llm_custom_setting",)
SETTINGS_ID = "global"


def shown(resource: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """A resource with all its fields and its times."""
    times = {name: to_iso(resource[name]) for name in ("created_at", "updated_at")}
    return {name: resource.get(name) for name in fields} | times


@router.post("/groups", openapi_extra=documented(GroupBody), summary="Make or change a group")
async def put_group(who: CallerDependency, body: Annotated[GroupBody, Depends(body_of(GroupBody))]) -> Response:
    changes = body.model_dump(exclude_unset=True)
    return answer(who.request, shown(await who.documents.put_resource("group", body.group_id, changes), GROUP_FIELDS))


@router.get("/groups/{group_id}", summary="Show a group")
async def get_group(who: CallerDependency, group_id: str) -> Response:
    return answer(who.request, shown(await _found(who, "group", group_id), GROUP_FIELDS))


@router.patch("/groups/{group_id}", openapi_extra=documented(GroupChange), summary="Change a group")
async def patch_group(
    who: CallerDependency, group_id: str, body: Annotated[GroupChange, Depends(body_of(GroupChange))]
) -> Response:
    await _found(who, "group", group_id)
    changes = body.model_dump(exclude_unset=True)
    return answer(who.request, shown(await who.documents.put_resource("group", group_id, changes), GROUP_FIELDS))


@router.post("/senders", openapi_extra=documented(SenderBody), summary="Make or change a sender")
async def put_sender(who: CallerDependency, body: Annotated[SenderBody, Depends(body_of(SenderBody))]) -> Response:
    changes = body.model_dump(exclude_unset=True)
    return answer(
        who.request, shown(await who.documents.put_resource("sender", body.sender_id, changes), SENDER_FIELDS)
    )


@router.get("/senders/{sender_id}", summary="Show a sender")
async def get_sender(who: CallerDependency, sender_id: str) -> Response:
    return answer(who.request, shown(await _found(who, "sender", sender_id), SENDER_FIELDS))


@router.patch("/senders/{sender_id}", openapi_extra=documented(SenderChange), summary="Change a sender")
async def patch_sender(
    who: CallerDependency, sender_id: str, body: Annotated[SenderChange, Depends(body_of(SenderChange))]
) -> Response:
    await _found(who, "sender", sender_id)
    changes = body.model_dump(exclude_unset=True)
    return answer(who.request, shown(await who.documents.put_resource("sender", sender_id, changes), SENDER_FIELDS))


@router.get("/settings", summary="Show the tenant's settings")
async def get_settings(who: CallerDependency) -> Response:
    return answer(who.request, shown(await _found(who, "settings", SETTINGS_ID), SETTINGS_FIELDS))


@router.put("/settings", openapi_extra=documented(SettingsBody), summary="Change the tenant's settings")
async def put_settings(
    who: CallerDependency, body: Annotated[SettingsBody, Depends(body_of(SettingsBody))]
) -> Response:
    stored = await who.documents.put_resource("settings", SETTINGS_ID, body.model_dump(exclude_unset=True))
    return answer(who.request, shown(stored, SETTINGS_FIELDS))


@router.get("/tasks/{task_id}", summary="How far a task is")
async def get_task(who: CallerDependency, task_id: str) -> Response:
    def resume(request: dict[str, Any]) -> Work:
        return lambda: run_flush(who.tools, request, metrics=who.services.metrics)

    task = await who.services.tasks.state(who.documents, task_id, resume=resume)
    data = {"task_id": task_id} | shown(task, ("status", "result", "error"))
    return answer(who.request, data)


async def _found(who: CallerDependency, kind: str, resource_id: str) -> dict[str, Any]:
    resource = await who.documents.resource(kind, resource_id)
    if resource is None:
        raise NotFoundError(f"no {kind} {resource_id}" if kind != "settings" else "the settings were never set")
    return resource
