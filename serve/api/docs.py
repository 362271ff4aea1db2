"""GET /docs: the API described on one page that needs no network.

FastAPI's own page loads its code from a content delivery network, which a machine without one cannot.
"""

from __future__ import annotations

import html
import json
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

router = APIRouter(include_in_schema=False)

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1d2433; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { background: #f4f6fa; padding: .8rem; overflow: auto; }
summary { cursor: pointer; padding: .35rem 0; } .method { display: inline-block; width: 4.5rem; font-weight: 700; }
@media (prefers-color-scheme: dark) { body { background: #14181f; color: #e2e6ee; } pre { background: #1e242e; } }
"""

EXAMPLE = """await fetch("/api/v1/memories", { method: "POST", body: JSON.stringify({
  user_id: "user-001", session_id: "session-001",
  messages: [{ role: "user", content: "我今天去了上海博物馆", timestamp: Date.now() }] }) });
await fetch("/api/v1/memories/flush", { method: "POST",
  body: JSON.stringify({ user_id: "user-001", session_id: "session-001" }) });
await fetch("/api/v1/memories/search", { method: "POST", body: JSON.stringify({
  query: "博物馆", method: "hybrid", filters: { user_id: "user-001" }, top_k: 5 }) });"""


@router.get("/docs")
async def docs(request: Request) -> Response:
    return HTMLResponse(page(request.app.openapi()))


def page(schema: dict[str, Any]) -> str:
    """The description as HTML: every operation with the schema of its body."""
    title = html.escape(f"{schema['info']['title']} {schema['info']['version']}")
    operations = [
        _operation(method, path, operation, schema.get("components", {}).get("schemas", {}))
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body><h1>{title}</h1>'
        '<p>Answers are <code>{"request_id", "data"}</code>, errors <code>{"code", "message", "request_id", '
        '"timestamp", "path", "details"}</code>. <a href="openapi.json">OpenAPI</a></p>'
        f"<h2>Example</h2><pre>{html.escape(EXAMPLE)}</pre><h2>Operations</h2>{''.join(operations)}</body></html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any], components: dict[str, Any]) -> str:
    head = f'<span class="method">{method.upper()}</span><code>{html.escape(path)}</code> '
    head += html.escape(operation.get("summary", ""))
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is None:
        return f"<details><summary>{head}</summary></details>"
    named = {name: components[name] for name in _references(body, components)}
    text = json.dumps({**body, **({"components": named} if named else {})}, indent=2, ensure_ascii=False)
    return f"<details><summary>{head}</summary><pre>{html.escape(text)}</pre></details>"


def _references(part: Any, components: dict[str, Any], found: dict[str, None] | None = None) -> list[str]:
    """The names of all schemas that `part` refers to, directly or through others."""
    names = {} if found is None else found
    if isinstance(part, dict):
        name = str(part.get("$ref", "")).rpartition("/")[2]
        if name in components and name not in names:
            names[name] = None
            _references(components[name], components, names)
        for value in part.values():
            _references(value, components, names)
    elif isinstance(part, list):
        for value in part:
            _references(value, components, names)
    return list(names)
