"""What Ray Serve's HTTP proxy itself answers (overload, no replica), in the one shape of errors.

The proxy calls `middlewares` because RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH names it. Its own answers are plain
text; those of the application are JSON and pass through untouched.
"""

from __future__ import annotations

from typing import Any

import orjson
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from primitives.clock import now_ms, to_iso

CALLBACK = "serve.proxy:middlewares"
CODES = {404: "NOT_FOUND", 408: "TIMEOUT", 429: "OVERLOADED", 500: "INTERNAL_ERROR", 503: "UNAVAILABLE"}
MESSAGES = {
    404: "no application is running here",
    408: "the request took too long",
    429: "the server is overloaded; try again after Retry-After",
    500: "the server is at fault",
    503: "the server is not available; try again after Retry-After",
}
RETRY_AFTER = b"1"


def middlewares() -> list[Middleware]:
    return [Middleware(ProxyErrors)]


class ProxyErrors:
    """Rewrites plain-text errors of the proxy."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        rewriting: int = 0

        async def rewrite(message: Message) -> None:
            nonlocal rewriting
            if message["type"] == "http.response.start":
                headers = dict(message.get("headers", ()))
                if message["status"] in CODES and b"json" not in headers.get(b"content-type", b""):
                    rewriting = message["status"]
                    return
            if not rewriting:
                await send(message)
            elif not message.get("more_body", False):
                for part in _error(scope, rewriting):
                    await send(part)

        await self._app(scope, receive, rewrite)


def _error(scope: Scope, status: int) -> list[Any]:
    request_id = next((v.decode("latin-1") for k, v in scope["headers"] if k == b"x-request-id"), "")
    body = orjson.dumps(
        {
            "code": CODES[status],
            "message": MESSAGES[status],
            "request_id": request_id,
            "timestamp": to_iso(now_ms()),
            "path": scope["path"],
            "details": {},
        }
    )
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status in (429, 503):
        headers.append((b"retry-after", RETRY_AFTER))
    return [
        {"type": "http.response.start", "status": status, "headers": headers},
        {"type": "http.response.body", "body": body},
    ]
