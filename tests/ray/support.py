"""Small chats and short ways to run jobs on them. Importable by Ray's workers and by driver processes."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from models.settings import ModelSettings
from pipelines.content import visible_content_hash
from pipelines.jobs.backfill import run_backfill
from pipelines.jobs.report import BackfillReport
from pipelines.jobs.request import BackfillRequest
from pipelines.jobs.setup import Setup
from pipelines.maintenance import VerifyReport, verify
from pipelines.settings import PipelineSettings
from storage.settings import StorageSettings
from storage.stores import TenantStores

PEOPLE = ("Ann", "Ben", "Chen")
TOPICS = (
    ("the garden", "tomatoes", "I planted the tomatoes behind the house", "water them every evening"),
    ("the trip", "train tickets", "we will take the night train to Vienna", "the hotel is next to the station"),
    ("书", "读书会", "我在读一本关于海的小说", "下周五我们一起去读书会吧"),
    ("the band", "guitar", "I love playing the guitar with my sister", "our concert is in the old cinema"),
)


def settings(folder: Path) -> dict[str, Any]:
    """Settings of a run in `folder`, with the fast embedding engine."""
    return {
        "storage": StorageSettings(evercore_data_dir=folder, _env_file=None),  # type: ignore[call-arg]
        "models": ModelSettings(vectorize_provider="local-fast"),
        "pipeline": PipelineSettings(_env_file=None),  # type: ignore[call-arg]
    }


def stores(folder: Path, tenant: str = "default") -> TenantStores:
    return Setup(tenant_id=tenant, **settings(folder)).anywhere().stores()


def write_chats(path: Path, *, conversations: int, messages: int, seed: int = 1) -> int:
    """A JSONL file of group chats, half of the conversations without ids and times; returns how many messages."""
    chance = random.Random(seed)
    with path.open("w", encoding="utf-8") as out:
        for number in range(conversations):
            moment = 1_709_620_800_000 + number * 86_400_000
            for place in range(messages):
                topic = TOPICS[(place // 6 + number) % len(TOPICS)]
                moment += chance.randrange(5, 400) * 1_000
                row: dict[str, Any] = {
                    "conversation": f"chat-{number}", "sender": chance.choice(PEOPLE),
                    "text": f"{chance.choice(topic)}, {chance.choice(topic)} {place}",
                }  # fmt: skip
                if number % 2:
                    row |= {"message_id": f"{number}-{place}", "time": moment}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return conversations * messages


def backfill(folder: Path, *paths: Path, **request: Any) -> BackfillReport:
    return run_backfill(BackfillRequest(paths=list(paths), **request), **settings(folder))


def content(folder: Path, tenant: str = "default") -> str:
    return asyncio.run(visible_content_hash(stores(folder, tenant).documents))


def differences(folder: Path) -> VerifyReport:
    async def run() -> VerifyReport:
        tools, backend = await Setup(tenant_id="default", **settings(folder)).tools()
        try:
            return await verify(tools)
        finally:
            await tools.embedder.close()
            await backend.close()

    return asyncio.run(run())
