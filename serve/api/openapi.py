"""What /openapi.json says: FastAPI's description, with the bodies that routes read and the one shape of answers."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from serve.api import schemas

TEXT_ROUTES = ("/metrics",)
ACCEPTED_ROUTES = ("/api/v1/memories/flush", "/api/v1/memories/group/flush")
UNUSED = ("HTTPValidationError", "ValidationError")
TEXT: dict[str, Any] = {"type": "string"}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"request_id": TEXT, "data": {"type": "object"}},
    "required": ["request_id", "data"],
    "additionalProperties": False,
}
ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": TEXT,
        "message": {"type": "string", "minLength": 1},
        "request_id": TEXT,
        "timestamp": {"type": "string", "format": "date-time"},
        "path": TEXT,
        "details": {"type": "object"},
    },
    "required": ["code", "message", "request_id", "timestamp", "path", "details"],
    "additionalProperties": False,
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The description of an application, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        components = schema.setdefault("components", {}).setdefault("schemas", {})
        for name in UNUSED:
            components.pop(name, None)
        for model in (schemas.PersonalAdd, schemas.GroupAdd):
            full = model.model_json_schema(ref_template="#/components/schemas/{model}")
            components |= full.get("$defs", {})
        components |= {"Answer": ANSWER, "Error": ERROR}
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                operation["responses"] = _responses(path, operation["responses"])
        app.openapi_schema = schema
    return app.openapi_schema


def _responses(path: str, made: dict[str, Any]) -> dict[str, Any]:
    """The success as FastAPI found it, in our wrapper; everything else is an error of the one shape."""
    (status,) = (code for code in made if code.startswith("2"))
    success: dict[str, Any] = {"description": "Success"}
    if path in TEXT_ROUTES:
        success["content"] = {"text/plain": {"schema": TEXT}}
    elif status != "204":
        success["content"] = _json("Answer")
    found = {status: success, "default": {"description": "An error", "content": _json("Error")}}
    if path in ACCEPTED_ROUTES:
        found["202"] = {"description": "Begun; GET /api/v1/tasks/{task_id} tells how far it is", "content": _json("Answer")}
    return found


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
