"""Running a bulk job: on the Ray of the running server, else on a Ray of this command's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from serve.configuration import Settings
from serve.instance import running_server
from serve.preflight import require_space


@contextlib.contextmanager
def ray_for_job(settings: Settings) -> Iterator[None]:
    """A connected Ray for as long as the block lasts."""
    from serve.cli_ray import own_ray, ray_of

    require_space(settings.storage.evercore_data_dir)
    server = running_server(settings.storage.evercore_data_dir)
    with ray_of(server, settings) if server is not None else own_ray(settings):
        yield
