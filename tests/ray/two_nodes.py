"""A process of its own with a Ray of two nodes: `two_nodes.py FOLDER FILE`. Prints what each way in answers, as JSON.

RAY_TMPDIR is where Ray keeps its files, also the note of its address that `Cluster` writes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from pipelines.jobs.backfill import run_backfill
from pipelines.jobs.rebuild import run_rebuild
from pipelines.jobs.replay import run_replay
from pipelines.jobs.request import BackfillRequest
from pipelines.jobs.setup import Setup
from primitives.errors import EverCoreError
from serve.configuration import Settings
from serve.deployments import Gateway, build
from serve.settings import ServeSettings
from tests.ray.support import settings


def answer(work: Callable[[], Any]) -> list[str]:
    try:
        work()
    except EverCoreError as fault:
        own: Any = getattr(fault, "cause", fault)  # from a worker it comes as an error of two kinds
        return [own.code, own.message, own.hint]
    return ["DONE", "", ""]


@ray.remote(num_cpus=0)
def open_in_a_worker(setup: Setup) -> None:
    setup.stores()


async def start_replica(whole: Settings) -> None:
    """As Serve does it on whatever node has room."""
    await Gateway.__init__(Gateway.__new__(Gateway), whole)


def start(options: dict[str, Any]) -> Cluster:
    """Ray gives a node 30 s to start and has no setting for it; a busy machine may need another try."""
    for _ in range(2):
        with contextlib.suppress(Exception):
            return Cluster(initialize_head=True, head_node_args=options)
    return Cluster(initialize_head=True, head_node_args=options)


def main() -> None:
    folder, path = map(Path, sys.argv[1:3])
    parts = settings(folder)
    whole = Settings(serve=ServeSettings(_env_file=None), **parts)  # type: ignore[call-arg]
    setup = Setup("default", **parts).anywhere()
    ways: dict[str, Callable[[], Any]] = {
        "backfill": lambda: run_backfill(BackfillRequest(paths=[path]), **parts),
        "rebuild-index": lambda: run_rebuild(["keyword"], **parts),
        "replay": lambda: run_replay(tenant="default", **parts),
        "worker": lambda: ray.get(open_in_a_worker.remote(setup)),
        "serve": lambda: build(whole),
        "replica": lambda: asyncio.run(start_replica(whole)),
    }
    options: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = start(options)
    try:
        ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
        found = {"dry run": answer(lambda: run_backfill(BackfillRequest(paths=[path], dry_run=True), **parts))}
        joined = cluster.add_node(**options)
        cluster.wait_for_nodes()
        found |= {name: answer(work) for name, work in ways.items()}
        found["files"] = sorted(one.name for one in folder.glob("*.sqlite"))
        cluster.remove_node(joined)
        found["after"] = answer(ways["serve"])
        print(json.dumps(found))
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main()
