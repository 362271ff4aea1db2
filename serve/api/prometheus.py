"""GET /metrics: what the server counts, for Prometheus to read."""

from __future__ import annotations

import time

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from serve.api.access import admit
from serve.services import Services

router = APIRouter(tags=["health"])

FRESH_SECONDS = 10.0
"""How long counts of the document store are shown before they are counted again."""


@router.get("/metrics", summary="Metrics in Prometheus' text format")
async def metrics(request: Request) -> Response:
    caller = admit(request)
    services: Services = request.app.state.services
    # With keys, one tenant must not learn of the others; without, the caller is this machine and sees all.
    only = caller if request.app.state.gate.keyed else None
    counted: dict[str | None, float] = request.app.state.counted_until
    if time.monotonic() > counted.get(only, 0.0):
        counted[only] = time.monotonic() + FRESH_SECONDS
        for tenant_id in [only] if only is not None else await services.backend.tenants():
            services.metrics.backlog(tenant_id, await services.backend.tenant(tenant_id).documents.counts())
    return Response(services.metrics.text(tenant=only), media_type=CONTENT_TYPE_LATEST)
