"""One tenant's stores, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from storage.ports import Documents, KeywordIndex, Leases, Ledger, VectorIndex


@dataclass(frozen=True)
class TenantStores:
    """The handles of one tenant. Searches use `keyword()` and `vector()`, writers `keywords()` and `vectors()`."""

    tenant_id: str
    documents: Documents
    leases: Leases
    ledger: Ledger
    indexes: Indexes


class Indexes(Protocol):
    """The index generations of one tenant, opened as the document store lists them."""

    async def keyword(self) -> KeywordIndex: ...

    async def vector(self) -> VectorIndex: ...

    async def keywords(self) -> Sequence[KeywordIndex]: ...

    async def vectors(self) -> Sequence[VectorIndex]: ...

    async def open(self, name: str) -> KeywordIndex | VectorIndex: ...


class Backend(Protocol):
    """A whole set of stores, for any tenant."""

    def tenant(self, tenant_id: str) -> TenantStores:
        """A cheap view over shared connections."""
        ...

    async def tenants(self) -> list[str]: ...

    async def close(self) -> None: ...
