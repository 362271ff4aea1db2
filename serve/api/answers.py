"""Answers as the API gives them: `{"request_id", "data"}`, written by orjson without a second validation."""

from __future__ import annotations

import json
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response


class JsonResponse(Response):
    """JSON of anything, also of text that clients sent with lone surrogates in it."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return orjson.dumps(content)
        except TypeError:
            # Only orjson refuses lone surrogates; the escapes of the standard library carry them.
            return json.dumps(content).encode("ascii")


def request_id_of(request: Request) -> str:
    return str(request.scope.get("evercore.request_id", ""))


def answer(request: Request, data: Any, *, status: int = 200) -> Response:
    """A successful answer."""
    return JsonResponse({"request_id": request_id_of(request), "data": data}, status_code=status)
