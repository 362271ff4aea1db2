"""What Ray and its workers read from the environment. Ray reads part of it when it is imported, so this comes first."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from primitives.errors import ConfigurationError
from serve.instance import make_writable
from serve.proxy import CALLBACK

TOKEN_FILE = "ray-token"
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def cluster_address() -> str | None:
    """The Ray cluster that this command shall join, as RAY_ADDRESS says. Ray sets it in jobs that are submitted."""
    address = os.environ.get("RAY_ADDRESS") or None
    if address is not None and address.startswith("http"):
        raise ConfigurationError(
            f"RAY_ADDRESS is {address}, which takes submitted jobs only",
            hint="Run `ray job submit -- evercore ...`, or unset RAY_ADDRESS for a Ray of this command's own.",
        )
    return None if address == "local" else address


def prepare_environment(data_dir: Path, *, may_join: bool = True) -> None:
    """Set Ray up for this data folder, or for the cluster that RAY_ADDRESS names; call it before anything imports ray.

    Ray's ports mean code execution, so even on loopback only who can read this folder's token may use them. A cluster
    has a token of its own, and its environment says where.
    """
    make_writable(data_dir)
    if may_join and (address := cluster_address()) is not None:
        if not os.environ.get("RAY_AUTH_MODE"):
            raise ConfigurationError(
                f"RAY_ADDRESS is {address}, but RAY_AUTH_MODE is not set",
                hint="Set RAY_AUTH_MODE to what the cluster was started with, `token` or `disabled`.",
            )
    else:
        _own_token(data_dir)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray's own processes report to their log files; on the terminal their lines only alarm.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"] = CALLBACK
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")


def _own_token(data_dir: Path) -> None:
    token = data_dir / TOKEN_FILE
    try:
        with open(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:
        pass  # made by an earlier start; every command of this folder uses the same
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(token)
