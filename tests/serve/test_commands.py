"""Commands without a server: they work on the stores directly, speak JSON, and fail in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from primitives.errors import NotFoundError
from serve import ray_folder
from serve.cli import app, main
from serve.commands.search import print_hits

ROOT = Path(__file__).parents[2]
COMMANDS = (
    "up", "down", "backfill", "parse", "search", "flush", "status", "doctor", "verify", "rebuild-index", "replay", "migrate",
    "backup", "settings",
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run one command in a process of its own, on a folder of its own."""

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


def test_one_owner_at_a_time(run: Any) -> None:
    failed = run("flush", "--user", "u1", "--group", "g1", "--json")
    assert failed.returncode == 1
    assert "both --user and --group" in json.loads(failed.stdout)["error"]["message"]


def call_backfill(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *arguments: str, job: Any = None) -> Result:
    """Run it in this process, with `job` in place of Ray."""

    def no_ray(settings: object) -> Any:
        pytest.fail("Ray was started")

    monkeypatch.setenv("EVERCORE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("serve.commands.backfill.prepare_environment", lambda folder: None)
    monkeypatch.setattr("serve.commands.backfill.ray_for_job", job or no_ray)
    return CliRunner().invoke(app, ["backfill", *arguments])


def test_backfill_looks_at_its_paths_before_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failed = call_backfill(monkeypatch, tmp_path, str(tmp_path / "nowhere"))
    assert isinstance(failed.exception, NotFoundError)


def test_a_dry_run_needs_no_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    line = {"conversation": "c", "sender": "ann", "text": "hello", "timestamp": "2024-03-05T09:00:00Z"}
    chat.write_text(json.dumps(line) + "\n")
    done = call_backfill(monkeypatch, tmp_path, str(chat), "--dry-run", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["read"] == 1


def test_nothing_that_could_be_read_is_exit_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / "empty.jsonl").write_text("")
    done = call_backfill(monkeypatch, tmp_path, str(tmp_path / "chats"), "--dry-run", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["unreadable"]["counts"] == {"empty file": 1}
    (tmp_path / "chats" / "broken.jsonl").write_text('{"conversation": \n' * 3)
    assert call_backfill(monkeypatch, tmp_path, str(tmp_path / "chats"), "--dry-run", "--json").exit_code == 1
    good = {"conversation": "c", "sender": "ann", "text": "hello", "timestamp": "2024-03-05T09:00:00Z"}
    (tmp_path / "chats" / "good.jsonl").write_text(json.dumps(good) + "\n")
    assert call_backfill(monkeypatch, tmp_path, str(tmp_path / "chats"), "--dry-run", "--json").exit_code == 0


def test_ctrl_c_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(settings: object) -> Any:
        raise KeyboardInterrupt

    (tmp_path / "chat.jsonl").write_text('{"conversation": "c", "sender": "ann", "text": "hello"}\n')
    done = call_backfill(monkeypatch, tmp_path, str(tmp_path / "chat.jsonl"), job=interrupted)
    assert done.exit_code == 130
    assert "Stopped; the same command goes on where it was." in done.stderr


def test_an_unexpected_fault_is_one_line_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setenv("EVERCORE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("serve.cli.app", broken)
    monkeypatch.setattr("sys.argv", ["evercore", "status", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    shown = json.loads(capsys.readouterr().out)["error"]
    assert (shown["code"], shown["message"]) == ("INTERNAL_ERROR", "ZeroDivisionError: first line")
    assert "Traceback" in (tmp_path / "data" / "logs" / "commands.log").read_text()

    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("EVERCORE_DATA_DIR", str(tmp_path / "file"))
    with pytest.raises(SystemExit):
        main()
    assert "commands.log" not in capsys.readouterr().out


LOST_RAY = """
import contextlib
from ray.exceptions import ActorDiedError, OutOfMemoryError, RayTaskError
import serve.cli_ray as cli_ray
from primitives.errors import ConflictError, EverCoreError
from serve.commands.jobs import ray_for_job
from serve.configuration import load_settings

cli_ray.own_ray = lambda settings: contextlib.nullcontext()
task = lambda cause: RayTaskError("f", "trace", cause).as_instanceof_cause()
for fault in (ActorDiedError(), ConnectionError("x"), task(ActorDiedError()), OutOfMemoryError("x"),
              task(ValueError("x")), task(ConflictError("held"))):
    try:
        with ray_for_job(load_settings()):
            raise fault
    except EverCoreError as known:
        print(known.code, known.hint[:3] or "-")
    except Exception:
        print("as it was")
"""


def test_a_lost_ray_is_told_from_other_faults(tmp_path: Path) -> None:
    """In a process of its own, since ray must not be imported before its environment is set."""
    variables = os.environ | {"EVERCORE_DATA_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", LOST_RAY], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lost = ["UNAVAILABLE Run"] * 3
    assert done.stdout.splitlines() == [*lost, "as it was", "as it was", "CONFLICT -"], done.stdout


def test_folders_that_dead_commands_left_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ray_folder, "TEMPORARY", tmp_path)
    monkeypatch.setattr(ray_folder, "LATE_SECONDS", 0.01)
    made = {name: tmp_path / f"evc-{name}" for name in ("living", "dead", "young", "old")}
    for folder in made.values():
        folder.mkdir()
    (made["living"] / ray_folder.OWNER_FILE).write_text(str(os.getpid()))
    (made["dead"] / ray_folder.OWNER_FILE).write_text(str(2**22 + 1))
    os.utime(made["old"], (1_000_000_000, 1_000_000_000))
    new = ray_folder.new_folder()
    assert {path.name for path in tmp_path.iterdir()} == {"evc-living", "evc-young", Path(new).name}

    def late(seconds: float) -> None:
        monkeypatch.setattr("serve.ray_folder.time.sleep", lambda seconds: None)
        Path(new).mkdir()

    monkeypatch.setattr("serve.ray_folder.time.sleep", late)
    ray_folder.remove_folder(new)
    assert not Path(new).exists()


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


def test_parse_prints_each_message_once_and_counts_the_rest(run: Any, tmp_path: Path) -> None:
    row = {"conversation": "c", "message_id": "1", "sender": "ann", "sender_name": "Ann", "text": "hello", "time": 1_709_620_800}
    lines = [row, row, row | {"text": "changed"}, row | {"message_id": "2", "text": "bye"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + "{broken\n")
    done = run("parse", "a.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["conversation"], first["sender"], first["sender_id"], first["text"], second["text"]) == ("c", "Ann", "ann", "hello", "bye")
    assert first["time"].startswith("2024-03-05T06:40:00")
    for said in ("2 messages from 5 records", "1 left out: duplicate", "1 left out: same id, other content", "1 unreadable: bad JSON", "a.jsonl:5"):
        assert said in done.stderr
    preview = run("parse", "a.jsonl", "--limit", "1")
    assert "Ann: hello" in preview.stdout
    assert "c: 1 messages" in preview.stdout
    assert not (tmp_path / "data").exists()
    (tmp_path / "_chat.txt").write_text("03/04/2024, 08:00 - Ann: hi\n")
    asked = run("parse", "_chat.txt", "--timezone", "UTC")
    assert (asked.returncode, asked.stdout) == (1, "")
    assert "--date-order" in asked.stderr
    answered = run("parse", "_chat.txt", "--timezone", "UTC", "--date-order", "day-first", "--conversation", "us", "--json")
    assert json.loads(answered.stdout)["time"].startswith("2024-04-03")
