"""One converted model for all tests, made by three processes that start at the same moment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from models.local import LocalEmbedder

ROOT = Path(__file__).resolve().parents[2]
_FIRST_START = """
import asyncio, json, sys
from pathlib import Path
import models.local as local
made = []
original = local._convert
local._convert = lambda source, folder: made.append(1) or original(source, folder)
async def main():
    embedder = local.LocalEmbedder(cache_dir=Path(sys.argv[1]))
    vector = (await embedder.embed_documents(["我喜欢路小雨"]))[0]
    await embedder.close()
    print(json.dumps({"made": len(made), "vector": vector.tolist()}))
asyncio.run(main())
"""


@dataclass(frozen=True)
class FirstStart:
    """What the three processes reported, and the cache they shared."""

    cache_dir: Path
    answers: list[dict[str, Any]]


@pytest.fixture(scope="session")
def first_start(tmp_path_factory: pytest.TempPathFactory) -> FirstStart:
    cache_dir = tmp_path_factory.mktemp("models") / "cache"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _FIRST_START, str(cache_dir)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    answers = []
    for worker in workers:
        output, errors = worker.communicate(timeout=240)
        assert worker.returncode == 0, errors
        answers.append(json.loads(output))
    return FirstStart(cache_dir=cache_dir, answers=answers)


@pytest.fixture
async def local(first_start: FirstStart) -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder(cache_dir=first_start.cache_dir)
    yield embedder
    await embedder.close()
