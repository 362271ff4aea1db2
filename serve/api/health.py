"""Whether the server lives, and whether every part it needs does its work."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from serve.api.answers import answer
from serve.api.errors import error_response
from serve.probes import failing_parts

router = APIRouter(prefix="/health", tags=["health"])


@router.get("/live", summary="Whether the process answers")
async def live(request: Request) -> Response:
    return answer(request, {"status": "live"})


@router.get("/ready", summary="Whether stores and model work")
async def ready(request: Request) -> Response:
    """200 when all parts work; 503 names those that do not. Nothing of a tenant's is shown, so no key is asked."""
    parts = await failing_parts(request.app.state.services)
    down = {name: reason for name, reason in parts.items() if reason}
    if down:
        return error_response(
            request,
            status=503,
            code="NOT_READY",
            message=f"down: {', '.join(down)}",
            details={"parts": {name: reason or "ok" for name, reason in parts.items()}},
            headers={"Retry-After": "2"},
        )
    return answer(request, {"status": "ready", "parts": dict.fromkeys(parts, "ok")})
