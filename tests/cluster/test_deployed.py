"""The road to a cluster on one machine: a Ray head as cluster.yaml starts it, `serve deploy`, `ray job submit`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from serve.ray_folder import remove_folder
from tests.support.server import free_port

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
TOKEN = "0123456789abcdef" * 4
READY_SECONDS = 120

pytestmark = [pytest.mark.wide, pytest.mark.timeout(400)]


@dataclass
class Head:
    """A Ray head and how to reach it."""

    environment: dict[str, str]
    dashboard: str
    port: int
    """Of the API, once it is deployed."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(command), cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=200
        )  # fmt: skip


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    home = tmp_path_factory.mktemp("home")
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text(TOKEN)
    short = tempfile.mkdtemp(prefix="ec-dep-", dir="/tmp")  # Ray makes socket names of it
    gcs, dashboard, agent, metrics, client = (free_port() for _ in range(5))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "EVERCORE_", "VECTORIZE_"))
    }
    environment |= {
        "HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "token",
        "MODEL_CACHE_DIR": os.environ.get("MODEL_CACHE_DIR", str(Path.home() / ".cache" / "evercore")),
        "VECTORIZE_PROVIDER": "local-fast",
    }  # fmt: skip
    start = (
        f". deploy/node.env && exec ray start --head --block --node-ip-address=127.0.0.1 --port={gcs} --num-cpus=2 "
        f"--object-store-memory={120 * 2**20} --dashboard-host=127.0.0.1 --dashboard-port={dashboard} "
        f"--dashboard-agent-listen-port={agent} --metrics-export-port={metrics} --ray-client-server-port={client} "
        f"--temp-dir={short}"
    )
    log = home / "ray.log"
    with log.open("w") as file:
        process = subprocess.Popen(["sh", "-c", start], cwd=ROOT, env=environment, stdout=file, stderr=file)
    started = Head(environment, f"http://127.0.0.1:{dashboard}", free_port())
    try:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        wait_for(f"{started.dashboard}/api/version", headers=headers, log=log, process=process)
        yield started
    finally:
        tree: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            tree = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        for left in psutil.wait_procs(tree, timeout=8)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                left.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait(5)
        remove_folder(short)


def wait_for(
    url: str, *, log: Path, headers: dict[str, str] | None = None, process: subprocess.Popen[bytes] | None = None
) -> None:
    deadline, seen = time.monotonic() + READY_SECONDS, ""
    while time.monotonic() < deadline and (process is None or process.poll() is None):
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.get(url, headers=headers, trust_env=False)
            if answer.is_success:
                return
            seen = answer.text
        time.sleep(0.3)
    raise AssertionError(f"no answer from {url}: {seen[:2_000]}\n{log.read_text()[-4_000:]}")


@pytest.fixture(scope="module")
def deployed(head: Head, tmp_path_factory: pytest.TempPathFactory) -> Head:
    """The shipped Serve file, on a port of this test."""
    text = (ROOT / "serve" / "config" / "cpu.yaml").read_text(encoding="utf-8")
    path = tmp_path_factory.mktemp("serve") / "cpu.yaml"
    assert "port: 1995" in text
    path.write_text(text.replace("port: 1995", f"port: {head.port}"), encoding="utf-8")
    done = head.run("serve", "deploy", str(path), "--address", head.dashboard)
    assert done.returncode == 0, done.stderr
    try:
        wait_for(f"{head.url}/health/ready", log=Path(head.environment["HOME"]) / "ray.log")
    except AssertionError as fault:
        raise AssertionError(head.run("serve", "status", "--address", head.dashboard).stdout) from fault
    return head


def test_the_dashboard_asks_for_the_token(head: Head) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        answer = httpx.get(f"{head.dashboard}/api/jobs/", headers=headers, trust_env=False)
        assert answer.status_code in (401, 403)


def test_serve_deploy_brings_the_application_up(deployed: Head) -> None:
    ready = httpx.get(f"{deployed.url}/health/ready", trust_env=False).json()["data"]
    assert ready["status"] == "ready"
    missing = httpx.get(f"{deployed.url}/nothing", trust_env=False)
    assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND")


def test_a_submitted_backfill_is_searched_at_once(deployed: Head, tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    lines = [
        {"conversation": "team", "message_id": f"m{n}", "sender": f"s{n % 3}", "text": f"point {n}: the bridge",
         "time": 1_709_629_200_000 + n * 60_000} for n in range(30)
    ]  # fmt: skip
    chat.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    backfill = (sys.executable, "-m", "serve.cli", "backfill", str(chat), "--json")
    done = deployed.run("ray", "job", "submit", "--address", deployed.dashboard, "--", *backfill)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"new": 30' in done.stdout
    assert "succeeded" in done.stdout
    body = {"query": "bridge", "filters": {"group_id": "team"}, "memory_types": ["raw_message", "episodic_memory"], "top_k": 5}
    found = httpx.post(f"{deployed.url}/api/v1/memories/search", json=body, trust_env=False).json()["data"]
    assert len(found["raw_messages"]) == 5
    assert found["episodes"]
    assert found["degraded"] == {}
