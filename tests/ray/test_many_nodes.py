"""Embedded stores lie on one machine: on a Ray of two nodes every way to open them is refused, with the way out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.ray.support import write_chats

pytestmark = pytest.mark.wide
ROOT = Path(__file__).parents[2]


def test_embedded_stores_are_refused_on_two_nodes(tmp_path: Path) -> None:
    write_chats(tmp_path / "chats.jsonl", conversations=1, messages=4)
    folder = tmp_path / "data"
    with tempfile.TemporaryDirectory(prefix="ec-two-", dir="/tmp", ignore_cleanup_errors=True) as short:
        done = subprocess.run(
            [sys.executable, "-m", "tests.ray.two_nodes", str(folder), str(tmp_path / "chats.jsonl")],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": short},
            capture_output=True,
            text=True,
            timeout=240,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["dry run"][0] == "DONE", "reading needs no stores"
    for way in ("backfill", "rebuild-index", "replay", "worker", "serve", "replica"):
        code, message, hint = found[way]
        assert code == "CONFIGURATION_ERROR", way
        assert "2 nodes" in message
        assert "EVERCORE_DATA_DIR" in message
        assert "stores on servers" in hint
    assert found["files"] == [], "nothing was opened"
    assert found["after"][0] == "DONE", "alone again, the head may serve"
