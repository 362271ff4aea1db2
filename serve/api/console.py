"""GET /console: the page on which a person writes, flushes, searches and browses memories.

Everything it needs lies in `serve/console/` and comes from here: no build step, no other host. The page holds nothing
of a tenant and is therefore shown without a key; what it shows, it asks of the API with the visitor's own key.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from primitives.errors import NotFoundError

router = APIRouter(include_in_schema=False)

PAGE = "index.html"
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # text that came from users cannot become markup, even by mistake
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # ask each time, so that an upgrade never mixes two versions; most answers are 304
}


@dataclass(frozen=True)
class Asset:
    """One file of the page."""

    content: bytes
    media_type: str
    etag: str


@functools.cache
def assets() -> dict[str, Asset]:
    """All files by name. They are read once, and a name that is not among them cannot reach the file system."""
    found = {}
    for file in importlib.resources.files("serve").joinpath("console").iterdir():
        media_type = MEDIA_TYPES.get("." + file.name.rpartition(".")[2])
        if media_type is not None:
            content = file.read_bytes()
            found[file.name] = Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


@router.get("/console")
async def page(request: Request) -> Response:
    return asset_response(request, PAGE)


@router.get("/console/{name}")
async def asset(request: Request, name: str) -> Response:
    return asset_response(request, name)


def asset_response(request: Request, name: str) -> Response:
    """The file of this name, or 304 where the browser has it; NotFoundError where there is none."""
    found = assets().get(name)
    if found is None:
        raise NotFoundError(f"the console has no file {name!r}")
    headers = HEADERS | {"ETag": found.etag}
    if found.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)
