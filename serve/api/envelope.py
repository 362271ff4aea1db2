"""What surrounds every request: its id, its measurement, and a clean 500 where the code itself is at fault."""

from __future__ import annotations

import logging
import re
import time
import uuid
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.api.errors import error_response
from serve.metrics import Metrics

ACCEPTED_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")

logger = logging.getLogger(__name__)


class Envelope:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((v.decode("latin-1") for k, v in scope["headers"] if k == b"x-request-id"), "")
        scope["evercore.request_id"] = given if ACCEPTED_ID.fullmatch(given) else uuid.uuid4().hex
        status = 0

        async def counting_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        began = time.perf_counter()
        try:
            await self._app(scope, receive, counting_send)
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            if status:
                raise  # half an answer is out: the connection must break, so that the client notices
            request = Request(scope, receive)
            response = error_response(request, status=500, code="INTERNAL_ERROR", message="the server is at fault")
            await response(scope, receive, counting_send)
        finally:
            self._metrics.request(
                route=route_of(scope), method=scope["method"], status=status, seconds=time.perf_counter() - began
            )


def route_of(scope: dict[str, Any] | Scope) -> str:
    """The path pattern, so that ids in paths do not make a time series each."""
    route = scope.get("route")
    return str(getattr(route, "path", "unmatched"))
