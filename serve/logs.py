"""The server's own log: one file in the data folder, kept small."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOGGERS = ("serve", "pipelines", "storage", "models")
MOST_BYTES = 10 * 2**20
KEPT_FILES = 3


def log_to_file(data_dir: Path) -> Path:
    """Write this project's log records of level INFO and above to `logs/server.log`, and return its path."""
    path = data_dir / "logs" / "server.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(path, maxBytes=MOST_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
    return path
