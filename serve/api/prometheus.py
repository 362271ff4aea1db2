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
    admit(request)  # the counts are named by tenant
    services: Services = request.app.state.services
    if time.monotonic() > getattr(request.app.state, "counted_until", 0.0):
        request.app.state.counted_until = time.monotonic() + FRESH_SECONDS
        for tenant_id in await services.backend.tenants():
            services.metrics.backlog(tenant_id, await services.backend.tenant(tenant_id).documents.counts())
    return Response(services.metrics.text(), media_type=CONTENT_TYPE_LATEST)
