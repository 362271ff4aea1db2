"""What a route handler needs of its request: the caller's tenant and the services, behind the gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from pipelines.tools import Tools
from serve.api.access import admit
from serve.services import Services
from storage.ports import Documents


@dataclass(frozen=True)
class Caller:
    """Who asks, and with what he is served."""

    request: Request
    services: Services
    tenant_id: str
    tools: Tools

    @property
    def documents(self) -> Documents:
        return self.tools.stores.documents


async def caller(request: Request) -> Caller:
    """The admitted caller; UnauthorizedError, ForbiddenError or OverloadedError."""
    tenant_id = admit(request)
    services: Services = request.app.state.services
    return Caller(request, services, tenant_id, await services.tools(tenant_id))


CallerDependency = Annotated[Caller, Depends(caller)]
