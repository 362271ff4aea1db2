"""Fixtures that many suites share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipelines.tools import Tools
from storage.sqlite.backend import SqliteBackend
from tests.support.tools import backend_in, tools_over


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With two test processes (`make test`) all Ray tests run in one, since they share a session and mostly wait."""
    for item in items:
        for name in ("ray", "cluster"):
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncIterator[SqliteBackend]:
    opened = backend_in(tmp_path / "data")
    yield opened
    await opened.close()


@pytest.fixture
async def tools(backend: SqliteBackend) -> Tools:
    return await tools_over(backend)
