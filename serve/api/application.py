"""The HTTP application: routes, errors and surroundings put together. It knows nothing of Ray."""

from __future__ import annotations

import importlib.metadata

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from serve.api import console, docs, errors, health, memories_read, memories_write, openapi, prometheus, resources
from serve.api.access import Gate
from serve.api.envelope import Envelope
from serve.configuration import Settings
from serve.metrics import Metrics
from serve.services import Services

TITLE = "EverCore on Ray"


def create_app(services: Services) -> FastAPI:
    """The application over services that are open already."""
    app = bare_app(services.settings, services.metrics)
    app.state.services = services
    return app


def bare_app(settings: Settings, metrics: Metrics) -> FastAPI:
    """The application without services, which must be put into `app.state.services` before the first request."""
    app = FastAPI(title=TITLE, version=version(), docs_url=None, redoc_url=None)
    app.state.gate = Gate(settings.serve, default_tenant=settings.storage.evercore_tenant)
    app.state.counted_until = {}
    errors.install(app)
    # Fixed paths stand before /memories/{memory_id}, which would take them for an id.
    for part in (console, docs, health, prometheus, memories_write, memories_read, resources):
        app.include_router(part.router)
    app.add_middleware(Envelope, metrics=metrics)
    if settings.serve.evercore_cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.serve.evercore_cors_origins,
            allow_methods=["GET", "POST", "PATCH", "PUT"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
    app.openapi = lambda: openapi.describe(app)  # type: ignore[method-assign]
    return app


def version() -> str:
    """The installed version; a checkout that is run without being installed has none."""
    try:
        return importlib.metadata.version("evercore-ray")
    except importlib.metadata.PackageNotFoundError:
        return "0.0.0"
