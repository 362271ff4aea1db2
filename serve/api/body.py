"""Reading a request's JSON body, whatever its Content-Type says and within the configured size.

The mission's own example sends no JSON content type, and browsers' `fetch` labels a string `text/plain`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from primitives.errors import TooLargeError
from serve.api.access import admit
from serve.api.errors import BadRequestError, BodyValidationError, validation_details

Body = TypeVar("Body", bound=BaseModel)

MOST_ERRORS = 50


async def read_json(request: Request, *, limit: int) -> Any:
    """The parsed body; TooLargeError as soon as it is over the limit, BadRequestError where it is not JSON."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        _too_large(limit)
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > limit:
            _too_large(limit)
    if not raw.strip():
        raise BadRequestError("the body is empty", hint="Send a JSON object.")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as fault:
        return _lenient(bytes(raw), fault)


def _lenient(raw: bytes, fault: orjson.JSONDecodeError) -> Any:
    """JSON with lone surrogates in escapes, which orjson refuses and real clients send."""
    if b"\\u" not in raw:
        raise BadRequestError(f"the body is not JSON: {fault}") from fault
    try:
        return json.loads(raw, parse_constant=_no_constants)
    except (ValueError, RecursionError) as second:
        raise BadRequestError(f"the body is not JSON: {second}") from second


def _no_constants(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _too_large(limit: int) -> NoReturn:
    raise TooLargeError(
        f"the body is over {limit} bytes", hint="Send fewer messages at once.", details={"limit": limit}
    )


def body_of(model: type[Body]) -> Callable[[Request], Awaitable[Body]]:
    """A dependency that reads the body as `model`, once the caller is let in."""

    async def read(request: Request) -> Body:
        admit(request)
        raw = await read_json(request, limit=request.app.state.services.settings.serve.evercore_max_body_bytes)
        try:
            return model.model_validate(raw)
        except ValidationError as fault:
            errors = fault.errors(include_url=False, include_context=False, include_input=False)
            first = validation_details(errors[:1])["errors"][0]
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise BodyValidationError(
                f"{first['field'] or 'body'}: {first['message']}{more}",
                details=validation_details(errors[:MOST_ERRORS]),
            ) from fault

    return read


def documented(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of a body that is read by `body_of`."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
