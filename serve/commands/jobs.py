"""Running a bulk job: on the Ray of the running server, else on a Ray of this command's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from primitives.errors import EverCoreError, UnavailableError
from serve.configuration import Settings
from serve.instance import running_server
from serve.preflight import require_space


@contextlib.contextmanager
def ray_for_job(settings: Settings) -> Iterator[None]:
    """A connected Ray for as long as the block lasts; UnavailableError where it is lost meanwhile."""
    from ray.exceptions import RayError

    from serve.cli_ray import own_ray, ray_of

    require_space(settings.storage.evercore_data_dir)
    server = running_server(settings.storage.evercore_data_dir)
    try:
        with ray_of(server, settings) if server is not None else own_ray(settings):
            yield
    except EverCoreError:
        raise  # also one that a worker raised, which Ray hands on as an error of both kinds
    except (RayError, ConnectionError) as fault:
        if not is_loss(fault):
            raise
        what = "the server that ran this job was stopped" if server is not None else "the Ray of this command ended"
        raise UnavailableError(what, hint="Run the same command again: it goes on where it was.") from fault


def is_loss(fault: Exception) -> bool:
    """Whether Ray itself is gone. An error of a task's own code, and a lack of memory or disk, are something else."""
    from ray.exceptions import ObjectStoreFullError, OutOfDiskError, OutOfMemoryError, RayError, RayTaskError

    if isinstance(fault, RayTaskError):
        return isinstance(fault.cause, RayError | ConnectionError)
    return not isinstance(fault, ObjectStoreFullError | OutOfDiskError | OutOfMemoryError)
