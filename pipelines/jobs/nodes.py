"""How many machines a Ray cluster has, for stores that lie on one machine."""

from __future__ import annotations

import ray

from primitives.errors import ConfigurationError


def require_one_node() -> None:
    """ConfigurationError where this Ray has several living nodes: each would open embedded stores of its own.

    Callable from a driver and from any worker, since a node may join after a job or an application has started.
    """
    count = len([node for node in ray.nodes() if node["Alive"]])  # type: ignore[no-untyped-call]
    if count > 1:
        raise ConfigurationError(
            f"this Ray cluster has {count} nodes, and the embedded stores (EVERCORE_DATA_DIR) lie on one machine",
            hint=(
                "A cluster of several nodes needs stores on servers (MongoDB, Elasticsearch, Milvus, Redis), which "
                "come with a later release; until then keep to the head alone (no workers)."
            ),
            details={"nodes": count, "setting": "EVERCORE_DATA_DIR"},
        )
