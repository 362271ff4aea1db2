"""Running a bulk job: on the cluster of RAY_ADDRESS, else on the running server's Ray, else on one of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from primitives.errors import EverCoreError, UnavailableError
from serve.configuration import Settings
from serve.instance import running_server
from serve.preflight import require_space
from serve.ray_environment import cluster_address


@contextlib.contextmanager
def ray_for_job(settings: Settings) -> Iterator[None]:
    """A connected Ray for as long as the block lasts; UnavailableError where it is lost meanwhile."""
    from ray.exceptions import RayError

    from serve.cli_ray import joined_ray, own_ray

    require_space(settings.storage.evercore_data_dir)
    cluster = cluster_address()
    server = None if cluster is not None else running_server(settings.storage.evercore_data_dir)
    try:
        if cluster is not None:
            ray_there = joined_ray(cluster, hint="RAY_ADDRESS names it; unset it for a Ray of this command's own.")
        elif server is not None:
            ray_there = joined_ray(
                server.ray_address, hint="`evercore status` shows the server; `evercore down` stops it."
            )
        else:
            ray_there = own_ray(settings)
        with ray_there:
            yield
    except EverCoreError:
        raise  # also one that a worker raised, which Ray hands on as an error of both kinds
    except (RayError, ConnectionError) as fault:
        if not is_loss(fault):
            raise
        what = "the Ray of this command ended"
        if cluster is not None:
            what = f"the Ray cluster at {cluster} was lost"
        elif server is not None:
            what = "the server that ran this job was stopped"
        raise UnavailableError(what, hint="Run the same command again: it goes on where it was.") from fault


def is_loss(fault: Exception) -> bool:
    """Whether Ray itself is gone. An error of a task's own code, and a lack of memory or disk, are something else."""
    from ray.exceptions import ObjectStoreFullError, OutOfDiskError, OutOfMemoryError, RayError, RayTaskError

    if isinstance(fault, RayTaskError):
        return isinstance(fault.cause, RayError | ConnectionError)
    return not isinstance(fault, ObjectStoreFullError | OutOfDiskError | OutOfMemoryError)
