"""Errors as the API shows them: one flat body with the right status for everything that can go wrong.

{"code": "INVALID_INPUT", "message": "...", "request_id": "...", "timestamp": "...", "path": "...", "details": {...}}
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, ClassVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from primitives.clock import now_ms, to_iso
from primitives.errors import EverCoreError, InvalidInputError, OverloadedError, UnavailableError
from serve.api.answers import JsonResponse, request_id_of

RETRY_AFTER_SECONDS = 1

logger = logging.getLogger(__name__)


class BadRequestError(EverCoreError):
    """The body is not JSON at all."""

    status = 400
    code = "BAD_REQUEST"


class UnauthorizedError(EverCoreError):
    """No API key, or one that nobody has."""

    status = 401
    code = "UNAUTHORIZED"


class ForbiddenError(EverCoreError):
    """The caller may not do this."""

    status = 403
    code = "FORBIDDEN"


class BusyError(EverCoreError):
    """Somebody else works on the same conversation; try again after `Retry-After`."""

    status = 409
    code = "CONFLICT"
    retry_after: ClassVar[int] = 5


class BodyValidationError(InvalidInputError):
    """The body is JSON of the wrong shape; `details.errors` lists every fault."""

    code = "VALIDATION_ERROR"


def path_of(request: Request) -> str:
    """The path that was asked for. `request.url` would parse the Host header, which may be anything."""
    return str(request.scope["path"])


def error_body(
    *, code: str, message: str, path: str, request_id: str, details: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The one shape of an error."""
    return {
        "code": code,
        "message": message,
        "request_id": request_id,
        "timestamp": to_iso(now_ms()),
        "path": path,
        "details": details or {},
    }


def error_response(
    request: Request,
    *,
    status: int,
    code: str,
    message: str,
    details: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    body = error_body(
        code=code, message=message, path=path_of(request), request_id=request_id_of(request), details=details
    )
    return JsonResponse(body, status_code=status, headers=headers)


def response_of(request: Request, fault: EverCoreError) -> Response:
    """An error of this project as a response."""
    details = {**fault.details, **({"hint": fault.hint} if fault.hint else {})}
    if fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("%s %s failed: %s", request.method, path_of(request), fault, exc_info=fault)
    return error_response(
        request, status=fault.status, code=fault.code, message=fault.message, details=details, headers=_headers(fault)
    )


def _headers(fault: EverCoreError) -> dict[str, str]:
    if isinstance(fault, UnauthorizedError):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(fault, BusyError):
        return {"Retry-After": str(fault.retry_after)}
    if isinstance(fault, OverloadedError | UnavailableError):
        seconds = float(fault.details.get("retry_after_seconds", RETRY_AFTER_SECONDS))
        return {"Retry-After": str(max(1, math.ceil(seconds)))}
    return {}


def validation_details(errors: Sequence[Any]) -> dict[str, Any]:
    """All faults of a body, without the values: they may be large or secret."""
    return {
        "errors": [
            {"field": ".".join(str(part) for part in fault["loc"]), "message": fault["msg"], "type": fault["type"]}
            for fault in errors
        ]
    }


def install(app: FastAPI) -> None:
    """Make every error of `app` take this shape."""

    @app.exception_handler(EverCoreError)
    async def _known(request: Request, fault: EverCoreError) -> Response:
        return response_of(request, fault)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, fault: RequestValidationError) -> Response:
        details = validation_details(fault.errors())
        return error_response(
            request, status=422, code=BodyValidationError.code, message="the request is not valid", details=details
        )

    @app.exception_handler(HTTPException)
    async def _http(request: Request, fault: HTTPException) -> Response:
        status = HTTPStatus(fault.status_code)
        message = f"nothing is at {path_of(request)}" if status is HTTPStatus.NOT_FOUND else str(fault.detail)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            message = f"{request.method} is not allowed here"
        headers = dict(fault.headers) if fault.headers else None
        return error_response(request, status=status, code=status.name, message=message, headers=headers)
