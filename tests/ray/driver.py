"""A driver process of its own, to be killed: `driver.py FOLDER FILE`. Prints `ready` when Ray is up."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import ray

from tests.ray.support import backfill


def main() -> None:
    folder, path = map(Path, sys.argv[1:3])
    ray.init(
        address="local", num_cpus=2, object_store_memory=200 * 2**20, include_dashboard=False,
        _temp_dir=tempfile.mkdtemp(prefix="ec-drv-", dir="/tmp"), logging_level="ERROR", log_to_driver=False,
    )  # fmt: skip
    print("ready", flush=True)
    backfill(folder, path)
    print("done", flush=True)


if __name__ == "__main__":
    main()
