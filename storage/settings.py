"""Settings of the stores."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class StorageSettings(BaseSettings):
    """Where memories are kept. Read from the environment and from `.env`."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True)

    evercore_data_dir: Path = Field(
        default=Path(".evercore"), description="Folder of the embedded stores, the run files and the logs."
    )
    evercore_tenant: str = Field(default="default", description="Tenant that requests without an API key belong to.")
    vector_cache_bytes: int = Field(
        default=512 * 2**20,
        ge=2**20,
        description="Most memory that a process spends on vectors of recently searched owners.",
    )
