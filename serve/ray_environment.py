"""What Ray and its workers read from the environment. Ray reads part of it when it is imported, so this comes first."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from serve.instance import make_writable
from serve.proxy import CALLBACK

TOKEN_FILE = "ray-token"
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def prepare_environment(data_dir: Path) -> None:
    """Set Ray up for this data folder; call it before anything imports ray.

    Ray's ports mean code execution, so even on loopback only who can read this folder's token may use them.
    """
    make_writable(data_dir)
    token = data_dir / TOKEN_FILE
    try:
        with open(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:
        pass  # made by an earlier start; every command of this folder uses the same
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(token)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray's own processes report to their log files; on the terminal their lines only alarm.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"] = CALLBACK
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
