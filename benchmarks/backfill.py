"""How much of the embedding engine's own speed a backfill keeps.

    python -m benchmarks.backfill [chats.jsonl ...] [--workers 2] [--json out.json]

Runs the whole job on the files (default: the samples) in a data folder and a Ray of its own, then the bare engine on the
very texts that the job embedded, in as many processes of one thread each. Says texts a second of both, and their ratio;
the job's time is that of its build stage (cut, embed, extract, index), and of the whole command.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from models.factory import build_embedder
from models.settings import ModelSettings
from storage.settings import StorageSettings
from storage.sqlite import open_backend

ROOT = Path(__file__).parents[1]


async def embedded_texts(folder: Path) -> list[str]:
    """The texts whose vectors are in the store, each once."""
    backend = open_backend(StorageSettings(evercore_data_dir=folder))
    texts = {row.embedding_text: None async for row in backend.tenant("default").documents.visible_rows()}
    await backend.close()
    return list(texts)


def bare_engine(texts: list[str], ready: Any, go: Any, seconds: Any) -> None:
    async def run() -> float:
        embedder = build_embedder(ModelSettings())
        await embedder.embed_documents(["warm"])
        ready.release()
        await asyncio.to_thread(go.wait)
        began = time.perf_counter()
        await embedder.embed_documents(texts)
        return time.perf_counter() - began

    seconds.put(asyncio.run(run()))


def engine_rate(texts: list[str], processes: int) -> float:
    """Texts a second of `processes` processes that embed an equal share each."""
    context = multiprocessing.get_context("spawn")
    ready, go, seconds = context.Semaphore(0), context.Event(), context.Queue()
    shares = [texts[i::processes] for i in range(processes)]
    workers = [context.Process(target=bare_engine, args=(share, ready, go, seconds)) for share in shares]
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.acquire()
    go.set()
    slowest = max(seconds.get() for _ in workers)
    for worker in workers:
        worker.join()
    return len(texts) / slowest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=sorted((ROOT / "samples").glob("*.jsonl")))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        began = time.perf_counter()
        command = ["backfill", *map(str, options.files), "--workers", str(options.workers), "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "serve.cli", *command],
            env=os.environ | {"EVERCORE_DATA_DIR": str(folder)}, cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        whole = time.perf_counter() - began
        report = json.loads(done.stdout)
        texts = asyncio.run(embedded_texts(folder))
    build = next(stage["seconds"] for stage in report["stages"] if stage["name"] == "Build")
    messages = next(stage["count"] for stage in report["stages"] if stage["name"] == "Build")
    raw = engine_rate(texts, options.workers)
    result = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores", "workers": options.workers, "messages": messages,
        "texts embedded": len(texts), "texts a message": round(len(texts) / messages, 2),
        "bare engine texts/s": round(raw, 1), "build stage texts/s": round(len(texts) / build, 1),
        "build stage / bare engine": round(len(texts) / build / raw, 2),
        "whole command texts/s": round(len(texts) / whole, 1), "whole command s": round(whole, 1),
        "stages": report["stages"],
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
