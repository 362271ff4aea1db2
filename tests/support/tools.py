"""Construction tools over a fresh embedded backend."""

from __future__ import annotations

from pathlib import Path

from pipelines.boundaries.cohesion import CohesionDetector
from pipelines.extraction.extractive import ExtractiveExtractor
from pipelines.settings import PipelineSettings
from pipelines.tools import Tools
from storage.settings import StorageSettings
from storage.sqlite import open_backend
from storage.sqlite.backend import SqliteBackend
from tests.support.embedder import BagOfCharacters
from tests.support.messages import TENANT


def backend_in(folder: Path) -> SqliteBackend:
    return open_backend(StorageSettings(evercore_data_dir=folder, _env_file=None))  # type: ignore[call-arg]


async def tools_over(backend: SqliteBackend, *, tenant: str = TENANT, **settings: object) -> Tools:
    pipeline = PipelineSettings(_env_file=None, **settings)  # type: ignore[call-arg,arg-type]
    stores = backend.tenant(tenant)
    identity = BagOfCharacters.identity
    await stores.documents.add_generation("vector", model_id=identity.space, dimension=identity.dimension, first=True)
    return Tools(
        stores=stores, embedder=BagOfCharacters(), detector=CohesionDetector(gap_minutes=pipeline.boundary_gap_minutes),
        extractor=ExtractiveExtractor(), settings=pipeline,
    )  # fmt: skip
