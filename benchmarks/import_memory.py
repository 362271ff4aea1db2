"""Resident memory of all processes while one large file is imported.

    python -m benchmarks.import_memory conversations.json --user anna [--json out.json]

Starts `evercore up` on a data folder of its own and lets it come to rest: that is idle. Then a backfill of the file runs
on its Ray; the server, Ray and the command are sampled every half second until the import stage is done, and the job is
stopped there. PSS counts memory that processes share once; RSS counts it in each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.kills import EVERCORE, environment, free_port, ready, start
from storage.settings import StorageSettings
from storage.sqlite import open_backend

REST_SECONDS = 10


def resident(roots: list[int]) -> tuple[int, int]:
    """(PSS, RSS) in bytes of these processes and all that descend from them."""
    pss = rss = 0
    for root in roots:
        for process in [psutil.Process(root), *psutil.Process(root).children(recursive=True)]:
            try:
                memory = process.memory_full_info()
            except psutil.Error:
                continue
            pss, rss = pss + getattr(memory, "pss", memory.uss), rss + memory.rss
    return pss, rss


async def imported(folder: Path) -> tuple[str, int]:
    """The job's state and how many messages it read."""
    backend = open_backend(StorageSettings(evercore_data_dir=folder))
    ledger = backend.tenant("default").ledger
    jobs = await ledger.jobs()
    read = (await ledger.import_counts(jobs[0].name)).get("read", 0) if jobs else 0
    await backend.close()
    return (jobs[0].state if jobs else "none"), read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--user")
    parser.add_argument("--seconds", type=float, default=3600, help="stop the import after so long")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and the job would too
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name) / "data", free_port()
        folder.mkdir()
        server = start(["up"], folder, port)
        try:
            ready(port, server)
            time.sleep(REST_SECONDS)
            idle = resident([server.pid])
            owner = ["--user", options.user] if options.user else []
            job = subprocess.Popen(
                [*EVERCORE, "backfill", str(options.file), *owner, "--json"], env=environment(folder, port),
                stdout=subprocess.DEVNULL, stderr=sys.stderr,
            )  # fmt: skip
            began, peak, state, read = time.monotonic(), (0, 0), "none", 0
            while state in ("none", "importing") and job.poll() is None and time.monotonic() - began < options.seconds:
                now = resident([server.pid, job.pid])
                peak = max(peak[0], now[0]), max(peak[1], now[1])
                state, read = asyncio.run(imported(folder))
                time.sleep(0.5)
            seconds = time.monotonic() - began
            if job.poll() is None:
                os.kill(job.pid, signal.SIGINT)
                job.wait(60)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(120)
    megabytes = {
        "file MB": options.file.stat().st_size >> 20, "messages": read, "stage reached": state, "import s": round(seconds),
        "idle PSS MB": idle[0] >> 20, "peak PSS above idle MB": (peak[0] - idle[0]) >> 20,
        "idle RSS MB": idle[1] >> 20, "peak RSS above idle MB": (peak[1] - idle[1]) >> 20,
    }  # fmt: skip
    print(json.dumps(megabytes, indent=1))
    if options.json:
        options.json.write_text(json.dumps(megabytes, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
