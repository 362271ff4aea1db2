"""The folder of a Ray of our own: made, removed for good, and what killed processes left of theirs removed too."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import psutil

TEMPORARY = Path("/tmp")
"""Sockets of Ray lie in the folder, and a socket's path may have 107 characters only."""
FOLDER_PREFIX = "evc-"
OWNER_FILE = "owner.pid"
ABANDONED_SECONDS = 600.0
"""Age from which a folder without an owner is nobody's; a younger one may be being made right now."""
LATE_SECONDS = 0.3
MOST_REMOVALS = 10


def new_folder() -> str:
    """A folder for one Ray. Those that killed processes left are removed on the way."""
    for left in TEMPORARY.glob(f"{FOLDER_PREFIX}*"):
        if _abandoned(left):
            shutil.rmtree(left, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=TEMPORARY)
    (Path(folder) / OWNER_FILE).write_text(str(os.getpid()))
    return folder


def remove_folder(folder: str) -> None:
    """Remove the folder until it stays away: processes of Ray that end late write into it once more."""
    for _ in range(MOST_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(LATE_SECONDS)
        if not os.path.exists(folder):
            return


def _abandoned(folder: Path) -> bool:
    try:
        return not psutil.pid_exists(int((folder / OWNER_FILE).read_text()))
    except FileNotFoundError:
        return _old_and_ours(folder)
    except (OSError, ValueError):
        return False  # somebody else's, or being made or removed right now


def _old_and_ours(folder: Path) -> bool:
    try:
        status = folder.stat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and time.time() - status.st_mtime > ABANDONED_SECONDS
