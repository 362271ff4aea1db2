"""Putting one process's construction tools together."""

from __future__ import annotations

from models.factory import build_embedder
from models.protocols import Embedder
from models.settings import ModelSettings
from pipelines.boundaries.cohesion import CohesionDetector
from pipelines.extraction.extractive import ExtractiveExtractor
from pipelines.settings import PipelineSettings
from pipelines.tools import Tools
from storage.settings import StorageSettings
from storage.sqlite import open_backend
from storage.stores import Backend


async def open_tools(
    *, tenant_id: str, storage: StorageSettings, models: ModelSettings, pipeline: PipelineSettings
) -> tuple[Tools, Backend]:
    """Open stores and model in this process. Close the embedder and the backend when done."""
    backend = open_backend(storage)
    return await tools_of(backend, build_embedder(models), pipeline, tenant_id=tenant_id), backend


async def tools_of(backend: Backend, embedder: Embedder, pipeline: PipelineSettings, *, tenant_id: str) -> Tools:
    """The tools of one tenant over what is already open; the first ones make the vector index for their model."""
    stores = backend.tenant(tenant_id)
    identity = embedder.identity
    await stores.documents.add_generation("vector", model_id=identity.space, dimension=identity.dimension, first=True)
    return Tools(
        stores=stores, embedder=embedder, detector=CohesionDetector(gap_minutes=pipeline.boundary_gap_minutes),
        extractor=ExtractiveExtractor(), settings=pipeline,
    )  # fmt: skip
