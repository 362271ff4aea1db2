"""Checks a backfill message by message: is every message of these files in the store once, and found by its own text?

    evercore up &                                     # with the data folder that EVERCORE_DATA_DIR names
    evercore backfill chats_a.jsonl.gz chats_b.jsonl.gz
    python -m benchmarks.backfill_check chats_a.jsonl.gz chats_b.jsonl.gz --sample 2000 --json out.json

The files are JSON lines with the keys conv, ts (ISO or null), speaker, text; the conversation is the group. Reads the
document store directly for completeness, and searches over HTTP (hybrid) for a sample of texts of 8 characters or more.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from primitives.clock import to_ms
from primitives.text import storable
from storage.records import Message
from storage.settings import StorageSettings
from storage.sqlite import open_backend


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def wanted(paths: list[Path]) -> tuple[dict[str, list[tuple[str, int | None, str]]], int]:
    """(sender, time, text) by conversation in file order, and how many blank ones there are."""
    found: dict[str, list[tuple[str, int | None, str]]] = defaultdict(list)
    blank = 0
    for path in paths:
        for row in rows_of(path):
            if not row["text"].strip():
                blank += 1
                continue
            moment = to_ms(datetime.fromisoformat(row["ts"])) if row["ts"] else None
            found[row["conv"]].append((row["speaker"], moment, storable(row["text"])))
    return found, blank


async def stored(tenant: str) -> dict[str, list[Message]]:
    backend = open_backend(StorageSettings())
    found: dict[str, list[Message]] = defaultdict(list)
    async for row in backend.tenant(tenant).documents.visible_rows():
        if isinstance(row, Message):
            found[row.group_id or ""].append(row)
    await backend.close()
    for messages in found.values():
        messages.sort(key=lambda m: (m.order_time, m.place, m.id))
    return found


def compare(want: dict[str, list[tuple[str, int | None, str]]], have: dict[str, list[Message]]) -> dict[str, int]:
    """Counts of what is missing, there too often, out of order, or without its MemCell."""
    tally: Counter[str] = Counter(dict.fromkeys(("missing", "extra", "out of order", "in no MemCell"), 0))
    for conversation, expected in want.items():
        messages = have.get(conversation, [])
        got = [(m.sender_id, m.timestamp, m.text) for m in messages]
        left, right = Counter(expected), Counter(got)
        tally["missing"] += (left - right).total()
        tally["extra"] += (right - left).total()
        in_order = sorted(expected, key=lambda item: item[1] or 0)  # stable: equal and unknown times keep the file's order
        tally["out of order"] += sum(a != b for a, b in zip(in_order, got, strict=False))
        tally["in no MemCell"] += sum(m.memcell_id is None for m in messages)
        tally["messages"] += len(expected)
        tally["undated"] += sum(moment is None for _, moment, _ in expected)
    return dict(tally)


async def search_sample(url: str, want: dict[str, list[tuple[str, int | None, str]]], size: int) -> dict[str, Any]:
    """Hybrid searches for sampled texts among their group's messages; found = a hit with that text in the top 10."""
    texts = [(conversation, text) for conversation, rows in want.items() for _, _, text in rows if len(text) >= 8]
    chosen = random.Random(7).sample(texts, min(size, len(texts)))
    seconds: list[float] = []
    lost: list[dict[str, str]] = []
    gate = asyncio.Semaphore(4)
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:

        async def one(conversation: str, text: str) -> None:
            body = {
                "query": text, "method": "hybrid", "memory_types": ["raw_message"],
                "filters": {"group_id": conversation}, "top_k": 10,
            }  # fmt: skip
            async with gate:
                began = time.perf_counter()
                answer = await client.post("/api/v1/memories/search", json=body)
                seconds.append(time.perf_counter() - began)
            answer.raise_for_status()
            hits = answer.json()["data"]["raw_messages"]
            if text not in [hit["content"] for hit in hits]:
                lost.append({"conversation": conversation, "text": text[:200]})

        await asyncio.gather(*(one(*pair) for pair in chosen))
    seconds.sort()
    return {
        "searched": len(chosen), "not found": len(lost), "first not found": lost[:10],
        "p50 ms at 4 clients": round(1000 * seconds[len(seconds) // 2], 1),
    }  # fmt: skip


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--url", default="http://127.0.0.1:1995")
    parser.add_argument("--tenant", default="default")
    parser.add_argument("--sample", type=int, default=2_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    want, blank = wanted(options.files)
    report: dict[str, Any] = {"blank": blank, **compare(want, await stored(options.tenant))}
    if options.sample:
        report |= await search_sample(options.url, want, options.sample)
    print(json.dumps(report, ensure_ascii=False, indent=1))
    if options.json:
        options.json.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if any(report.get(key) for key in ("missing", "extra", "out of order", "in no MemCell", "not found")):
        raise SystemExit("the store and the files differ")


if __name__ == "__main__":
    asyncio.run(main())
