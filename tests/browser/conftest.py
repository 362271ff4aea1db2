"""Chromium on the console of a real server. A page that logs an error fails its test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvicorn
from playwright.async_api import Browser, Page, async_playwright, expect

from models.settings import ModelSettings
from pipelines.settings import PipelineSettings
from serve.api.application import create_app
from serve.configuration import Settings
from serve.services import Services
from serve.settings import ServeSettings
from storage.settings import StorageSettings
from tests.support.embedder import BagOfCharacters
from tests.support.server import Server, free_port, start, stop
from tests.support.tools import backend_in

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "the browser tests need chromium: run `apt-get install -y chromium` as root, or set CHROMIUM=/path/to/it"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

TIMEOUT_MS = 20_000
"""Long enough for the first search of a server on a busy machine."""

expect.set_options(timeout=TIMEOUT_MS)

NewPage = Callable[..., contextlib.AbstractAsyncContextManager[Page]]


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser; without one the whole run ends and says how to get it."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None or shutil.which(found) is None:
        pytest.exit(MISSING, returncode=1)
    return found


@pytest.fixture(scope="session")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`evercore up` with the fast embedder."""
    started = start(tmp_path_factory.mktemp("console") / "data", VECTORIZE_PROVIDER="local-fast")
    yield started
    stop(started)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        await opened.close()


@pytest.fixture
def new_page(browser: Browser) -> NewPage:
    """Opens a console: `async with new_page(url, locale="en-US") as page`.

    What the page logs as an error fails the test. The browser logs failed requests too: there must be none, or at least
    `refused` of them (the counters ask again by themselves).
    """

    @contextlib.asynccontextmanager
    async def opened(url: str, *, refused: int = 0, **options: Any) -> AsyncIterator[Page]:
        context = await browser.new_context(**{"locale": "zh-CN", "viewport": {"width": 1280, "height": 900}} | options)
        page = await context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        logged: list[str] = []
        page.on("console", lambda message: logged.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda fault: logged.append(f"uncaught: {fault}"))
        await page.goto(f"{url}/console")
        yield page
        await context.close()
        failed = [text for text in logged if text.startswith("Failed to load resource")]
        assert [text for text in logged if text not in failed] == []
        assert len(failed) >= refused if refused else not failed, failed

    return opened


@pytest_asyncio.fixture(loop_scope="session")
async def keyed_url(tmp_path: Path) -> AsyncIterator[str]:
    """A server with API keys, without Ray: the application and its stores in this process."""
    backend, port = backend_in(tmp_path / "data"), free_port()
    settings = Settings(
        serve=ServeSettings(_env_file=None, evercore_api_keys={"right-key": "acme"}),
        storage=StorageSettings(_env_file=None, evercore_data_dir=tmp_path / "data"),
        pipeline=PipelineSettings(_env_file=None),
        models=ModelSettings(),
    )
    services = Services(settings=settings, backend=backend, embedder=BagOfCharacters())
    await services.tools("acme")
    running = uvicorn.Server(
        uvicorn.Config(create_app(services), host="127.0.0.1", port=port, log_level="error", lifespan="off")
    )
    task = asyncio.create_task(running.serve())
    while not running.started:  # noqa: ASYNC110  # uvicorn has no event for it
        await asyncio.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    await task
    await backend.close()
