"""One small local Ray for all of these tests, in a temporary folder of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
import ray


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    folder = tempfile.mkdtemp(prefix="ec-ray-", dir="/tmp")  # short: Ray makes socket names of it
    ray.init(
        address="local", num_cpus=2, object_store_memory=200 * 2**20, include_dashboard=False, _temp_dir=folder,
        logging_level="ERROR", log_to_driver=False,
    )  # fmt: skip
    yield
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)
