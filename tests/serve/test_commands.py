"""Commands without a server: they work on the stores directly, speak JSON, and fail in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from serve.cli import app
from serve.commands.search import print_hits

ROOT = Path(__file__).parents[2]
COMMANDS = (
    "up", "down", "backfill", "search", "flush", "status", "doctor", "verify", "rebuild-index", "replay", "migrate",
    "backup", "settings",
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run one command in a process of its own, on a folder of its own."""
    import os

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = os.environ | {"EVERCORE_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)} | environment
        return subprocess.run(
            [sys.executable, "-m", "serve.cli", *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return call


def test_all_commands_are_there_with_an_example() -> None:
    found = {command.name: command.callback for command in app.registered_commands}
    assert set(found) == set(COMMANDS)
    for name, callback in found.items():
        assert callback is not None
        assert "Example: " in (callback.__doc__ or ""), name


def test_search_flush_and_status_work_on_the_stores(run: Any) -> None:
    found = run("search", "museum", "--user", "u1", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["raw_messages"] == []
    assert json.loads(run("flush", "--user", "u1", "--json").stdout)["status"] == "no_extraction"
    status = json.loads(run("status", "--json").stdout)
    assert status["server"] is None
    assert json.loads(run("verify", "--json").stdout)["differences"] == 0


def test_doctor_says_what_is_wrong(run: Any, tmp_path: Path) -> None:
    well = run("doctor", "--json", EVERCORE_PORT="20999")
    assert json.loads(well.stdout)["well"] is True, well.stdout
    (tmp_path / "file").write_text("x")
    bad = run("doctor", "--json", EVERCORE_DATA_DIR=str(tmp_path / "file"))
    assert bad.returncode == 1
    assert json.loads(bad.stdout)["findings"][-1]["advice"]
    misspelt = run("doctor", EVERCORE_PROT="1")
    assert misspelt.returncode == 1
    assert "EVERCORE_PORT" in misspelt.stdout


def test_errors_are_one_line_and_exit_1(run: Any, tmp_path: Path) -> None:
    for arguments, word in (
        (("search", "museum"), "whose"),
        (("search", "museum", "--user", "u1", "--method", "magic"), "magic"),
        (("backup", str(tmp_path / "copy")), "no stores"),
        (("migrate",), "no stores"),
    ):
        failed = run(*arguments)
        assert failed.returncode == 1, failed.stdout + failed.stderr
        assert word in failed.stderr
        assert "Traceback" not in failed.stderr
    failed = run("backup", str(tmp_path / "copy"), "--json")
    assert json.loads(failed.stdout)["error"]["code"] == "NOT_FOUND"


def test_backup_and_migrate(run: Any, tmp_path: Path) -> None:
    assert run("flush", "--user", "u1").returncode == 0
    made = json.loads(run("backup", str(tmp_path / "copy"), "--json").stdout)
    assert made["bytes"]["documents.sqlite"] > 0
    migrated = json.loads(run("migrate", "--json").stdout)
    assert migrated["before"] == migrated["after"]


def test_settings_as_markdown(run: Any) -> None:
    shown = run("settings", "--markdown").stdout
    assert "| `EVERCORE_PORT` | `1995` | Port of the HTTP API. |" in shown


def test_hits_are_printed_with_their_sources(capsys: pytest.CaptureFixture[str]) -> None:
    hit = {
        "id": "1", "memory_type": "atomic_fact", "score": 0.5, "atomic_fact": "likes [tea]", "timestamp": None,
        "source_message_ids": ["m1", "m2", "m3", "m4"],
    }  # fmt: skip
    data: dict[str, Any] = {name: [] for name in ("episodes", "foresights", "profiles", "raw_messages")}
    data |= {"atomic_facts": [hit], "agent_memory": {"cases": [], "skills": []}, "degraded": {"vector": "gone"}}
    print_hits(data)
    shown = capsys.readouterr().out
    assert "likes [tea]" in shown
    assert "undated, from m1, m2, m3 and 1 more" in shown
    assert "Without vector: gone" in shown
