"""What construction works with. Online and bulk differ in what is injected here, and in nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from models.protocols import Embedder
from pipelines.settings import PipelineSettings
from storage.records import MemCell, Message
from storage.stores import TenantStores


class BoundaryDetector(Protocol):
    """Finds where one topic ends and the next begins."""

    name: str

    async def boundaries(self, messages: Sequence[Message], vectors: NDArray[np.float32]) -> list[int]:
        """Split-after positions, 1-based and ascending, without the end. `vectors` has one row a message."""
        ...


@dataclass(frozen=True)
class Extraction:
    """What an extractor found in one MemCell: JSON-serialisable, so that it can be stored before it is used."""

    result: dict[str, Any]
    skipped: dict[str, str] = field(default_factory=dict)
    """Kinds that were left out, with the reason."""


class Extractor(Protocol):
    """Makes memories out of one MemCell's messages."""

    name: str

    async def extract(self, cell: MemCell, messages: Sequence[Message], vectors: NDArray[np.float32]) -> Extraction: ...


@dataclass(frozen=True)
class Tools:
    """Stores of one tenant, models and settings."""

    stores: TenantStores
    embedder: Embedder
    detector: BoundaryDetector
    extractor: Extractor
    settings: PipelineSettings
