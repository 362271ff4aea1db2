"""The Ray Serve application. Laptop profile: gateway, retriever and embedder in one process, without a CPU of its own.

A handle between deployments costs about 2 ms, as much as the search itself, so nothing is split without need.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings
from ray import serve as ray_serve
from ray.serve.config import BackpressureConfig
from ray.serve.context import _get_global_client

from models.settings import ModelSettings
from pipelines.jobs.nodes import require_one_node
from pipelines.settings import PipelineSettings
from primitives.errors import UnavailableError
from serve.api.application import create_app
from serve.background import Background
from serve.configuration import Settings, anywhere, load_settings, require_safe_address
from serve.logs import log_to_file
from serve.probes import failing_parts
from serve.services import open_services
from serve.settings import ServeSettings
from storage.settings import StorageSettings

APPLICATION = "evercore"
RETRY_AFTER_SECONDS = 1.0
HEALTH_CHECK_SECONDS = 10.0


SETTINGS_OF: dict[str, type[BaseSettings]] = {
    "serve": ServeSettings,
    "storage": StorageSettings,
    "pipeline": PipelineSettings,
    "models": ModelSettings,
}


class AppArguments(BaseModel):
    """Arguments of the application, as a Serve YAML file gives them.

    Settings left out come from the environment. Serve drops unknown keys of its YAML without a word, so they are
    refused here.
    """

    model_config = ConfigDict(extra="forbid")

    serve: ServeSettings = Field(default_factory=ServeSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    pipeline: PipelineSettings = Field(default_factory=PipelineSettings)
    models: ModelSettings = Field(default_factory=ModelSettings)

    @field_validator("serve", "storage", "pipeline", "models", mode="before")
    @classmethod
    def _known_keys(cls, value: Any, info: Any) -> Any:
        if isinstance(value, dict):
            kind = SETTINGS_OF[info.field_name]
            unknown = sorted(set(value) - set(kind.model_fields))
            if unknown:
                raise ValueError(
                    f"unknown settings {', '.join(unknown)}; known: {', '.join(sorted(kind.model_fields))}"
                )
        return value


@ray_serve.ingress()
class Gateway:
    """One server process: the HTTP API with stores and model in it."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Ray Serve awaits it
        require_one_node()  # again: a replica that is replaced may come to a node that joined meanwhile
        log_to_file(settings.storage.evercore_data_dir)
        self._services = await open_services(settings)
        self._background = Background(self._services)
        self._background.start()

    def __serve_build_asgi_app__(self) -> FastAPI:
        return create_app(self._services)

    async def check_health(self) -> None:
        """Raise where a part does not work; Serve then replaces the replica."""
        down = {name: reason for name, reason in (await failing_parts(self._services)).items() if reason}
        if down:
            raise UnavailableError(f"not healthy: {down}")

    async def __del__(self) -> None:
        """Serve awaits this when the replica stops, after the last request."""
        if hasattr(self, "_services"):
            await self._background.stop()
            await self._services.close()


def build(settings: Settings) -> ray_serve.Application:
    """The application for these settings. ConfigurationError where it would be open to a network, or on many nodes."""
    require_safe_address(settings.serve)
    require_one_node()
    deployment = ray_serve.deployment(
        Gateway,
        name="gateway",
        num_replicas=1,
        ray_actor_options={"num_cpus": 0},
        max_ongoing_requests=settings.serve.evercore_max_ongoing_requests,
        max_queued_requests=settings.serve.evercore_max_queued_requests,
        backpressure_config=BackpressureConfig(status_code=429, retry_after_s=RETRY_AFTER_SECONDS),
        health_check_period_s=HEALTH_CHECK_SECONDS,
        health_check_timeout_s=60.0,
        graceful_shutdown_timeout_s=settings.serve.evercore_drain_seconds + 5,
        graceful_shutdown_wait_loop_s=0.2,
    )
    bound: ray_serve.Application = deployment.bind(settings)  # type: ignore[attr-defined]
    return bound


def application(raw: dict[str, Any]) -> ray_serve.Application:
    """What a Serve YAML file imports: `import_path: serve.deployments:application`. Runs in the cluster.

    Serve would make `AppArguments` of the arguments itself, but only where the annotation is no string.
    """
    arguments = AppArguments.model_validate(raw)
    load_settings()  # refuses unknown names in the environment and in .env, which the arguments do not look at
    listening = _get_global_client().http_config  # type: ignore[union-attr]
    serve = arguments.serve.model_copy(update={"evercore_host": listening.host, "evercore_port": listening.port})
    return build(Settings(serve, anywhere(arguments.storage), arguments.pipeline, arguments.models))
