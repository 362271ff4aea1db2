"""What the API works with: stores, model, settings and metrics of one server process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from models.factory import build_embedder
from models.protocols import Embedder, Reranker
from pipelines.assemble import tools_of
from pipelines.tools import Tools
from serve.admission import Admission
from serve.configuration import Settings
from serve.metrics import Metrics
from serve.retrieval import Retriever
from serve.tasks import Tasks
from storage.sqlite import open_backend
from storage.stores import Backend


@dataclass
class Services:
    """Shared by all requests of one process; tenants are cheap views over the same connections."""

    settings: Settings
    backend: Backend
    embedder: Embedder
    reranker: Reranker | None = None
    metrics: Metrics = field(default_factory=Metrics)
    tasks: Tasks = field(default_factory=Tasks)
    searches: Admission = field(init=False)
    _tools: dict[str, Tools] = field(default_factory=dict)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        serve = self.settings.serve
        self.searches = Admission(running=serve.evercore_search_running, waiting=serve.evercore_search_waiting)

    @property
    def default_tenant(self) -> str:
        return self.settings.storage.evercore_tenant

    async def tools(self, tenant_id: str) -> Tools:
        """The construction tools of one tenant."""
        if tenant_id not in self._tools:
            async with self._opening:
                if tenant_id not in self._tools:
                    self._tools[tenant_id] = await tools_of(
                        self.backend, self.embedder, self.settings.pipeline, tenant_id=tenant_id
                    )
        return self._tools[tenant_id]

    async def retriever(self, tenant_id: str) -> Retriever:
        """The search of one tenant."""
        stores = (await self.tools(tenant_id)).stores
        fusion = self.settings.serve.evercore_search_fusion
        return Retriever(stores=stores, embedder=self.embedder, reranker=self.reranker, fusion=fusion)

    async def close(self) -> None:
        """Let running tasks end, then let go of models and stores."""
        await self.tasks.drain(self.settings.serve.evercore_drain_seconds)
        await self.embedder.close()
        await self.backend.close()


async def open_services(settings: Settings) -> Services:
    """Open stores and model as the settings say. StoreError, ModelError or ConfigurationError where that fails."""
    backend = open_backend(settings.storage)
    try:
        embedder = build_embedder(settings.models)
        services = Services(settings=settings, backend=backend, embedder=embedder)
        await services.tools(services.default_tenant)
        await embedder.embed_query("ready?")  # loads the model, and makes it at first use
    except BaseException:
        await backend.close()
        raise
    return services
