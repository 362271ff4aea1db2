"""Search latency and throughput of a running server, beside the same searches by direct calls in one process.

    python -m benchmarks.search [--memories 100000] [--owners 1000] [--largest 10000] [--json out.json]

Fills a data folder with made-up chats through the ordinary construction (their vectors are random, since an exact
search takes equally long whatever they are; queries are embedded by the configured engine), and counts what lies in
both indexes. Then every method at every number of clients, each waiting for its answer before it asks again: first
`Retriever.search` in this process, then POST /api/v1/memories/search on `evercore up`. One search in four is in the
largest owner. Client and server share the machine; `client cpu` is the share of one core the client used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from benchmarks.chatter import chat, question
from benchmarks.kills import free_port, ready, start
from models.factory import build_embedder
from models.protocols import ModelIdentity, Vectors
from models.settings import ModelSettings
from pipelines.add import add
from pipelines.assemble import tools_of
from pipelines.flush import flush
from pipelines.intake import Ownership, SourceOrder, to_messages
from pipelines.settings import PipelineSettings
from serve.configuration import Settings
from serve.query import make_query
from serve.services import open_services
from serve.settings import ServeSettings
from storage.settings import StorageSettings
from storage.sqlite import open_backend

METHODS = ("keyword", "vector", "hybrid")
TOP_K = 10
Search = Callable[[str, str, str], Awaitable[None]]
"""(method, owner, query)."""


class RandomVectors:
    """Stands in for the engine while the store is filled: unit vectors of its dimension, under its name."""

    def __init__(self, identity: ModelIdentity) -> None:
        self.identity = identity
        self._numbers = np.random.default_rng(1)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        made = self._numbers.standard_normal((len(texts), self.identity.dimension), dtype=np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    async def embed_query(self, text: str) -> Vectors:
        return (await self.embed_documents([text]))[0]

    def calibrate(self, cosines: Any) -> Any:
        return np.clip(cosines, 0.0, 1.0)

    async def close(self) -> None:
        return None


async def fill(folder: Path, *, memories: int, owners: int, largest: int) -> dict[str, Any]:
    """Chats of `owners` groups until about `memories` rows are searchable; what was stored, and how fast."""
    backend = open_backend(StorageSettings(evercore_data_dir=folder))
    embedder = RandomVectors(build_embedder(ModelSettings()).identity)
    tools = await tools_of(backend, embedder, PipelineSettings(), tenant_id="default")
    began = time.perf_counter()
    messages = 0

    async def build(name: str, count: int) -> None:
        nonlocal messages
        order = SourceOrder()
        made = to_messages(
            map(order.place, chat(name, count, seed=1)), tenant_id="default", ownership=Ownership(), imported_at=0
        )
        for first in range(0, len(made), 500):
            await add(tools, made[first : first + 500])
        await flush(tools, [made[0].conversation_id], wait_s=60)
        messages += count

    async def rows() -> int:
        counts = await tools.stores.documents.counts()
        return sum(n for kind, n in counts.items() if kind in ("raw_message", "episodic_memory", "atomic_fact", "foresight"))

    sample = 240
    await build("owner-1", sample)
    share = await rows() / sample  # searchable rows that one message becomes
    await build("owner-0", int(largest / share))
    each = max(1, int((memories - await rows()) / share / max(1, owners - 2)))
    for number in range(2, owners):
        await build(f"owner-{number}", each)
    seconds = time.perf_counter() - began
    found = {
        "messages": messages, "searchable rows": await rows(), "fill s": round(seconds),
        "messages/s": round(messages / seconds),
    }  # fmt: skip
    await backend.close()
    return found


async def measure(search: Search, method: str, *, clients: int, requests: int, owners: int) -> dict[str, Any]:
    """`requests` searches by `clients` at a time."""
    chance = random.Random(f"{method}-{clients}")
    asked = [(f"owner-{0 if n % 4 == 0 else chance.randrange(1, owners)}", question(chance)) for n in range(requests)]
    waiting = iter(asked)
    taken: list[float] = []

    async def client() -> None:
        for owner, text in waiting:
            began = time.perf_counter()
            await search(method, owner, text)
            taken.append(time.perf_counter() - began)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(client() for _ in range(clients)))
    seconds = time.perf_counter() - began
    p50, p95, p99 = (round(float(q) * 1000, 1) for q in np.quantile(taken, (0.5, 0.95, 0.99)))
    return {
        "method": method, "clients": clients, "n": requests, "p50 ms": p50, "p95 ms": p95, "p99 ms": p99,
        "searches/s": round(requests / seconds, 1), "client cpu": round((time.process_time() - cpu) / seconds, 2),
    }  # fmt: skip


async def levels(name: str, search: Search, options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for method in options.methods.split(","):
        await measure(search, method, clients=4, requests=options.warm, owners=options.owners)
        for clients in map(int, options.clients.split(",")):
            row = await measure(search, method, clients=clients, requests=options.requests, owners=options.owners)
            rows.append({"by": name, **row})
            print(json.dumps(rows[-1]), flush=True)
    return rows


async def direct(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    services = await open_services(
        Settings(ServeSettings(), StorageSettings(evercore_data_dir=folder), PipelineSettings(), ModelSettings())
    )
    retriever = await services.retriever("default")

    async def search(method: str, owner: str, text: str) -> None:
        answer = await retriever.search(make_query(text=text, filters={"group_id": owner}, method=method, top_k=TOP_K))
        if answer.degraded:
            raise SystemExit(f"degraded: {answer.degraded}")

    try:
        return await levels("direct", search, options)
    finally:
        await services.close()


async def over_http(port: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    async with aiohttp.ClientSession(
        f"http://127.0.0.1:{port}", connector=aiohttp.TCPConnector(limit=0), trust_env=False
    ) as session:

        async def search(method: str, owner: str, text: str) -> None:
            body = {"query": text, "method": method, "top_k": TOP_K, "filters": {"group_id": owner}}
            async with session.post("/api/v1/memories/search", json=body) as answer:
                found = await answer.json()
                if answer.status != 200 or found["data"]["degraded"]:
                    raise SystemExit(f"{answer.status}: {found}")

        return await levels("http", search, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--owners", type=int, default=1_000)
    parser.add_argument("--largest", type=int, default=10_000)
    parser.add_argument("--clients", default="1,4,16,64")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--warm", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="a folder to fill and keep, or one filled before")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name) / "data"
        filled: dict[str, Any] = {"folder": "filled before"}
        if not (folder / "documents.sqlite").exists():
            sizes = {"memories": options.memories, "owners": options.owners, "largest": options.largest}
            filled = asyncio.run(fill(folder, **sizes))
        print(json.dumps(filled), flush=True)
        rows = asyncio.run(direct(folder, options))
        port = free_port()
        server = start(["up"], folder, port)
        try:
            ready(port, server)
            rows += asyncio.run(over_http(port, options))
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(120)
    by = {(row["by"], row["method"], row["clients"]): row for row in rows}
    added = {
        method: round(by["http", method, 1]["p50 ms"] - by["direct", method, 1]["p50 ms"], 1)
        for method in options.methods.split(",")
        if ("http", method, 1) in by
    }
    report = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "load before": os.getloadavg()[0]},
        "store": filled, "added by HTTP and Serve at one client, p50 ms": added, "rows": rows,
    }  # fmt: skip
    print(json.dumps({"added by HTTP and Serve at one client, p50 ms": added}))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
