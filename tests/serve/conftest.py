"""The HTTP application over a fresh embedded backend, without Ray and without a port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from models.settings import ModelSettings
from pipelines.settings import PipelineSettings
from serve.api.application import create_app
from serve.configuration import Settings
from serve.services import Services
from serve.settings import ServeSettings
from storage.settings import StorageSettings
from storage.sqlite.backend import SqliteBackend
from tests.support.embedder import BagOfCharacters

BASE = "http://127.0.0.1:1995"
START = 1_709_629_200_000

MakeSettings = Callable[..., Settings]


@pytest.fixture
def make_settings(tmp_path: Path) -> MakeSettings:
    """Settings of a server in a temporary folder; arguments are ServeSettings or PipelineSettings."""

    def make(**values: Any) -> Settings:
        serve = {name: value for name, value in values.items() if name in ServeSettings.model_fields}
        pipeline = {name: value for name, value in values.items() if name in PipelineSettings.model_fields}
        return Settings(
            serve=ServeSettings(_env_file=None, **serve),
            storage=StorageSettings(_env_file=None, evercore_data_dir=tmp_path / "data"),
            pipeline=PipelineSettings(_env_file=None, **pipeline),
            models=ModelSettings(),
        )

    return make


@pytest.fixture
async def services(make_settings: MakeSettings, backend: SqliteBackend) -> AsyncIterator[Services]:
    opened = Services(settings=make_settings(), backend=backend, embedder=BagOfCharacters())
    await opened.tools(opened.default_tenant)
    yield opened
    await opened.tasks.drain(5)


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(services) as opened:
        yield opened


def client_of(services: Services, **options: Any) -> httpx.AsyncClient:
    """A client of an application over `services`."""
    transport = httpx.ASGITransport(app=create_app(services), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=BASE, **options)
