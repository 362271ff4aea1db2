"""A whole server in a process of its own: start, the mission's scenario over HTTP, clear errors, and a clean end."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.server import STOP_SECONDS, Server, free_port, start, stop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = start(tmp_path_factory.mktemp("server") / "data")
    yield started
    stop(started)


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as opened:
        yield opened


def test_the_missions_three_calls(client: httpx.Client) -> None:
    messages = [{"role": "user", "content": "我今天去了上海博物馆", "timestamp": int(time.time() * 1000)}]
    body = {"user_id": "user-001", "session_id": "session-001", "messages": messages}
    added = client.post("/api/v1/memories", json=body).json()["data"]
    assert (added["status"], added["message_count"]) == ("accumulated", 1)
    raw = json.dumps({"user_id": "user-001", "session_id": "session-001"})
    flushed = client.post("/api/v1/memories/flush", content=raw, headers={"Content-Type": "text/plain;charset=UTF-8"})
    assert flushed.json()["data"]["status"] == "extracted"
    raw = json.dumps(
        {
            "query": "博物馆",
            "method": "hybrid",
            "memory_types": ["episodic_memory", "profile"],
            "filters": {"user_id": "user-001"},
            "top_k": 5,
        }
    )
    found = client.post("/api/v1/memories/search", content=raw, headers={"Content-Type": "text/plain;charset=UTF-8"})
    data = found.json()["data"]
    assert "上海博物馆" in data["episodes"][0]["episode"]
    assert data["degraded"] == {}


def test_errors_keep_their_shape_behind_serve(client: httpx.Client) -> None:
    for answer, status in (
        (client.get("/nothing"), 404),
        (client.post("/api/v1/memories", content="{"), 400),
        (client.put("/api/v1/memories", content="{}"), 405),
        (client.post("/api/v1/memories/search", json={"query": "x", "filters": {}}), 422),
    ):
        assert answer.status_code == status
        assert set(answer.json()) == {"code", "message", "request_id", "timestamp", "path", "details"}
    assert "<html" in client.get("/docs").text
    assert "evercore_http_requests_total" in client.get("/metrics").text


def test_a_large_body_is_cut_off(client: httpx.Client) -> None:
    answer = client.post("/api/v1/memories", content=b" " * (33 * 2**20))
    assert answer.status_code == 413
    assert answer.json()["code"] == "TOO_LARGE"


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_ipv6_loopback_answers(server: Server) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no ::1 here")
    assert httpx.get(f"http://[::1]:{server.port}/health/live", trust_env=False).is_success


def test_a_second_instance_is_refused(server: Server) -> None:
    refused = server.command("up", EVERCORE_PORT=str(free_port()))
    assert refused.returncode == 1
    assert "another server already uses" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_busy_port_is_refused(server: Server, tmp_path: Path) -> None:
    refused = server.command("up", EVERCORE_DATA_DIR=str(tmp_path / "other"))
    assert refused.returncode == 1
    assert f"port {server.port}" in refused.stderr
    assert "EVERCORE_PORT" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_commands_use_the_running_server(server: Server, client: httpx.Client) -> None:
    messages = [{"role": "user", "content": "the violin teacher is Mr Okafor", "timestamp": 1_709_629_200_000}]
    assert client.post("/api/v1/memories", json={"user_id": "bea", "messages": messages}).is_success
    flushed = server.command("flush", "--user", "bea", "--json")
    assert json.loads(flushed.stdout)["status"] == "extracted", flushed.stderr
    found = json.loads(server.command("search", "violin teacher", "--user", "bea", "--json").stdout)
    assert found["raw_messages"][0]["content"] == "the violin teacher is Mr Okafor"
    status = json.loads(server.command("status", "--json").stdout)
    assert status["server"]["url"] == server.url
    assert json.loads(server.command("doctor", "--json").stdout)["well"] is True


def test_a_backfill_runs_on_the_servers_ray(server: Server, client: httpx.Client, tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    lines = [
        {
            "conversation": "team",
            "message_id": f"m{n}",
            "sender": f"s{n % 3}",
            "text": f"point {n}: the bridge",
            "time": t,
        }
        for n, t in enumerate(range(1_709_629_200_000, 1_709_629_200_000 + 30 * 60_000, 60_000))
    ]
    chat.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    done = server.command("backfill", str(chat), "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["new"] == 30
    body = {"query": "bridge", "filters": {"group_id": "team"}, "memory_types": ["raw_message"], "top_k": 5}
    found = client.post("/api/v1/memories/search", json=body).json()["data"]
    assert len(found["raw_messages"]) == 5
    assert found["degraded"] == {}
    assert json.loads(server.command("verify", "--json").stdout)["differences"] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_end_leaves_nothing(tmp_path: Path, number: int) -> None:
    started = start(tmp_path / "data")
    owners = {path.parent: int(path.read_text()) for path in Path("/tmp").glob("evc-*/owner.pid")}
    tree = stop(started, number)
    assert started.process.returncode == 0
    assert len(tree) > 3
    _, alive = psutil.wait_procs(tree, timeout=5)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert not (tmp_path / "data" / "run.json").exists()
    assert [folder for folder, pid in owners.items() if pid == started.process.pid and folder.exists()] == []


def test_down_stops_it(tmp_path: Path) -> None:
    started = start(tmp_path / "data")
    assert json.loads(started.command("down", "--json").stdout)["stopped"] is True
    assert started.process.wait(STOP_SECONDS) == 0
    assert json.loads(started.command("down", "--json").stdout)["stopped"] is False
