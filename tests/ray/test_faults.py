"""Killed drivers and workers, dead letters and replay: nothing is lost, nothing doubles."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pipelines.jobs.build_stage import describe
from pipelines.jobs.replay import run_replay
from storage.ports import Span, Window
from tests.ray.support import backfill, content, differences, settings, stores, write_chats

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chats") / "chats.jsonl"
    write_chats(path, conversations=20, messages=40)
    return path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, chats: Path, local_ray: None) -> str:
    folder = tmp_path_factory.mktemp("undisturbed")
    backfill(folder, chats)
    return content(folder)


def imported(folder: Path) -> int:
    return counted(folder, "import_counts", "read")


def counted(folder: Path, what: str, key: str) -> int:
    ledger = stores(folder).ledger
    jobs = asyncio.run(ledger.jobs()) if (folder / "documents.sqlite").exists() else []
    return asyncio.run(getattr(ledger, what)(jobs[0].name)).get(key, 0) if jobs else 0


def wait_until(reached: Callable[[], bool], *, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "did not get so far"
        time.sleep(0.05)


@pytest.mark.parametrize("moment", ["importing", "building"])
def test_a_killed_driver_resumes(chats: Path, undisturbed: str, tmp_path: Path, moment: str) -> None:
    folder = tmp_path / "data"
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.ray.driver", str(folder), str(chats)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    try:
        if moment == "importing":
            wait_until(lambda: imported(folder) > 0)
        else:
            wait_until(lambda: counted(folder, "window_counts", "done") > 0)
    finally:
        family = psutil.Process(driver.pid).children(recursive=True)
        driver.kill()
        driver.wait()
        for process in psutil.wait_procs(family, timeout=4)[1]:  # workers end by themselves, Ray's agents do not
            process.kill()
    report = backfill(folder, chats)
    assert (report.state, report.read, report.new, report.dead_letters) == ("done", 800, 800, 0)
    assert content(folder) == undisturbed
    assert differences(folder).differences == []


@pytest.mark.parametrize("name", ["Write", "WindowBuilder"])
def test_a_killed_worker_is_replaced(chats: Path, undisturbed: str, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "data"
    killed: list[int] = []

    def kill() -> None:
        done = (lambda: imported(folder) > 0) if name == "Write" else (
            lambda: counted(folder, "window_counts", "done") > 0)  # fmt: skip
        wait_until(done)
        for process in psutil.Process().children(recursive=True):
            title = " ".join(process.cmdline())
            if "ray::" in title and name in title and not killed:
                os.kill(process.pid, signal.SIGKILL)
                killed.append(process.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    report = backfill(folder, chats)
    killer.join()
    assert killed
    assert (report.read, report.new, report.dead_letters) == (800, 800, 0)
    assert content(folder) == undisturbed
    assert differences(folder).differences == []


def test_dead_letters_and_replay(chats: Path, tmp_path: Path) -> None:
    """A window of a conversation that does not exist cannot be built: it fails alone, and again."""
    folder = tmp_path / "data"
    report = backfill(folder, chats, limit=120)
    assert report.dead_letters == 0
    ledger = stores(folder).ledger
    span = Span((0, 0, ""), (2**60, 0, ""))
    asyncio.run(ledger.plan(report.job, [Window(0, "nobody", span, messages=1)], conversations=[]))
    (planned,) = asyncio.run(ledger.windows(report.job))
    asyncio.run(ledger.finish_windows(report.job, [replace(planned, state="failed", error="lost")]))
    again = run_replay(tenant="default", **settings(folder))
    assert (again.tried, again.resolved, again.failed) == (1, 0, 1)
    assert "no conversation" in again.examples[0]
    assert len(asyncio.run(ledger.dead_letters())) == 1


def test_an_error_is_told_in_one_line() -> None:
    assert describe(ValueError("x" * 900)).startswith("ValueError: xxx")
    assert len(describe(ValueError("x" * 900))) == 500
