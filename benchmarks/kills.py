"""kill -9 at random moments of a backfill, then the same command again: is the content what an undisturbed run gives?

    python -m benchmarks.kills chat.jsonl --rounds 5 --json out.json

Victims: the driver (the `evercore backfill` process), a Ray worker of its job, the Serve replica of a server on the same
data. Each round has a data folder and a Ray of its own. Only processes that were started here are killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from pipelines.content import visible_content_hash
from storage.ports import Row
from storage.records import Message
from storage.settings import StorageSettings
from storage.sqlite import open_backend

EVERCORE = [sys.executable, "-m", "serve.cli"]
WORKER = ("ray::MapWorker", "ray::MapBatches", "ray::Read", "ray::Write")
REPLICA = ("ray::ServeReplica",)
PATIENCE = 900


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(folder: Path, port: int) -> dict[str, str]:
    return os.environ | {"EVERCORE_DATA_DIR": str(folder), "EVERCORE_PORT": str(port)}


def start(command: list[str], folder: Path, port: int) -> subprocess.Popen[bytes]:
    with (folder.parent / f"{folder.name}.log").open("ab") as log:
        return subprocess.Popen(
            [*EVERCORE, *command], env=environment(folder, port), stdout=log, stderr=log, start_new_session=True
        )


def backfill(chat: Path, folder: Path, port: int) -> subprocess.Popen[bytes]:
    return start(["backfill", str(chat), "--json"], folder, port)


def finish(process: subprocess.Popen[bytes], what: str) -> None:
    if process.wait(PATIENCE) != 0:
        raise SystemExit(f"{what} ended with {process.returncode}")


def kill_one(root: int, titles: tuple[str, ...], chooser: random.Random) -> str:
    """SIGKILL for one descendant of `root` whose title begins so; its title, or "" where there is none."""
    found = []
    for child in psutil.Process(root).children(recursive=True):
        try:
            title = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if title.startswith(titles):
            found.append((child, title))
    if not found:
        return ""
    child, title = chooser.choice(found)
    child.kill()
    return title.strip()


async def content(folder: Path) -> tuple[str, int, int]:
    """The content hash, the number of messages, and how many messages are in no MemCell."""
    backend = open_backend(StorageSettings(evercore_data_dir=folder))
    documents = backend.tenant("default").documents
    digest = await visible_content_hash(documents)
    rows: list[Row] = [row async for row in documents.visible_rows()]
    messages = [row for row in rows if isinstance(row, Message)]
    await backend.close()
    return digest, len(messages), sum(m.memcell_id is None for m in messages)


def differences(folder: Path, port: int) -> int:
    done = subprocess.run(
        [*EVERCORE, "verify", "--json"], env=environment(folder, port), capture_output=True, text=True, check=False
    )
    return int(json.loads(done.stdout)["differences"])


def ready(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=10, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise SystemExit("the server did not become ready")


def disturbed(victim: str, chat: Path, folder: Path, moment: float, chooser: random.Random) -> str:
    """One round; what was killed."""
    port = free_port()
    server = start(["up"], folder, port) if victim == "serve" else None
    try:
        if server is not None:
            ready(port, server)
        job = backfill(chat, folder, port)
        deadline = time.monotonic() + moment
        while time.monotonic() < deadline and job.poll() is None:
            time.sleep(0.05)
        killed = ""
        if victim == "driver" and job.poll() is None:
            os.kill(job.pid, signal.SIGKILL)
            killed = "driver"
        root, titles = (server.pid, REPLICA) if server is not None else (job.pid, WORKER)
        while victim != "driver" and not killed and job.poll() is None:
            killed = kill_one(root, titles, chooser)
            time.sleep(0.05)
        job.wait(PATIENCE)
        finish(backfill(chat, folder, port), "the backfill after the kill")
        if server is not None:
            ready(port, server)
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)
            server.wait(120)
    return killed or "nothing: the job was done before"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chat", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--victims", default="driver,worker,serve")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", type=float, help="latest second for a kill (default: 0.9 of the undisturbed time)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="kills-"))
    chooser = random.Random(options.seed)
    began = time.monotonic()
    (base / "undisturbed").mkdir()
    finish(backfill(options.chat, base / "undisturbed", free_port()), "the undisturbed backfill")
    seconds = time.monotonic() - began
    wanted, count, loose = asyncio.run(content(base / "undisturbed"))
    finish(backfill(options.chat, base / "undisturbed", free_port()), "the second backfill")
    twice = asyncio.run(content(base / "undisturbed"))[0] == wanted
    print(f"undisturbed: {count} messages, {loose} loose, {seconds:.0f} s; run twice the same: {twice}", flush=True)
    rounds: list[dict[str, Any]] = []
    for victim in options.victims.split(","):
        for number in range(options.rounds):
            folder = base / f"{victim}-{number}"
            folder.mkdir()
            moment = chooser.uniform(0.1, 1.0) * (options.within or 0.9 * seconds)
            killed = disturbed(victim, options.chat, folder, moment, chooser)
            digest, messages, loose = asyncio.run(content(folder))
            rounds.append(
                {
                    "victim": victim, "killed": killed, "after s": round(moment, 1), "messages": messages, "loose": loose,
                    "same content": digest == wanted, "differences": differences(folder, free_port()),
                }
            )  # fmt: skip
            print(rounds[-1], flush=True)
            shutil.rmtree(folder)
    good = twice and all(r["same content"] and r["messages"] == count and not r["differences"] for r in rounds)
    if options.json:
        report = {"undisturbed": {"messages": count, "seconds": round(seconds), "twice": twice}, "rounds": rounds}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(base)
    raise SystemExit(0 if good else "a disturbed run differs")


if __name__ == "__main__":
    main()
