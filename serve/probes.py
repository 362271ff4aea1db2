"""Small real work on every part of a server, to tell whether it does its job and not only whether it exists."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from primitives.errors import EverCoreError, StoreError
from serve.services import Services
from storage.filters import Scope
from storage.records import MemoryType

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10.0
NOWHERE = Scope(("g:gen_probe",), (str(MemoryType.EPISODE),))
"""An owner that nobody has, so that a probe reads an index and finds nothing."""


async def failing_parts(services: Services) -> dict[str, str]:
    """Every part's name with "" or the reason why it does not work."""
    stores = services.backend.tenant(services.default_tenant)

    async def keyword() -> object:
        return await (await stores.indexes.keyword()).search(["probe"], NOWHERE, limit=1)

    async def vector() -> object:
        index = await stores.indexes.vector()
        if index.generation.model_id != services.embedder.identity.space:
            raise StoreError(
                f"the vector index holds vectors of {index.generation.model_id}",
                hint="Run `evercore rebuild-index`, or configure the model that made them.",
            )
        return await index.vectors(["probe"])

    parts: dict[str, Awaitable[object]] = {
        "documents": stores.documents.resource("probe", "probe"),
        "keyword": keyword(),
        "vector": vector(),
        "embedder": services.embedder.embed_query("ready?"),
    }
    reasons = await asyncio.gather(*(_reason(work) for work in parts.values()))
    return dict(zip(parts, reasons, strict=True))


async def _reason(work: Awaitable[object]) -> str:
    try:
        await asyncio.wait_for(work, TIMEOUT_SECONDS)
    except EverCoreError as fault:
        return str(fault)
    except TimeoutError:
        return f"no answer within {TIMEOUT_SECONDS:g} s"
    except Exception as fault:
        # A part that fails in an unforeseen way is down all the same, and the others must still be asked.
        logger.exception("a probe failed")
        return f"{type(fault).__name__}: {fault}"
    return ""
