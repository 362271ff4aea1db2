"""`evercore up` in a process of its own, for tests that need a whole server."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).parents[2]
READY_SECONDS = 240
STOP_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A started `evercore up` and what is needed to call more commands on its data."""

    process: subprocess.Popen[bytes]
    environment: dict[str, str]
    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "serve.cli", *arguments],
            cwd=ROOT,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=240,
        )

    def tree(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


def start(folder: Path, **environment: str) -> Server:
    port = free_port()
    variables = os.environ | {
        "EVERCORE_DATA_DIR": str(folder),
        "EVERCORE_PORT": str(port),
        "EVERCORE_SWEEP_SECONDS": "5",
        "PYTHONPATH": str(ROOT),
    }
    variables |= environment
    output = folder.parent / f"{folder.name}.log"
    with output.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "serve.cli", "up"], cwd=ROOT, env=variables, stdout=file, stderr=subprocess.STDOUT
        )
    server = Server(process, dict(variables), port, folder)
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if (folder / "run.json").exists() and httpx.get(f"{server.url}/health/ready").is_success:
                return server
        time.sleep(0.3)
    stop(server)
    raise AssertionError(f"the server did not start:\n{output.read_text(encoding='utf-8')}")


def stop(server: Server, number: int = signal.SIGINT) -> list[psutil.Process]:
    """Signal the server and return the processes it had."""
    try:
        tree = server.tree()
    except psutil.NoSuchProcess:
        tree = []
    if server.process.poll() is None:
        server.process.send_signal(number)
    try:
        server.process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        for process in [*tree, psutil.Process(server.process.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        server.process.wait(10)
        raise
    return tree
