"""Settings of the server: where it listens, who may call it, and how much it takes."""

from __future__ import annotations

import ipaddress
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


def is_loopback(host: str) -> bool:
    """Whether a host, as an address or as a name, can only be this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ServeSettings(BaseSettings):
    """How the API is served. Read from the environment and from `.env`."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True)

    evercore_host: str = Field(
        default="127.0.0.1", description="Address to listen on. Without API keys it must be a loopback address."
    )
    evercore_port: int = Field(default=1995, ge=1, le=65_535, description="Port of the HTTP API.")
    evercore_cors_origins: list[str] = Field(
        default_factory=list, description='Web origins that browsers may call from, as JSON: `["https://app.example"]`.'
    )
    evercore_api_keys: dict[str, str] = Field(
        default_factory=dict, repr=False, description='API keys and the tenant of each, as JSON: `{"key": "tenant"}`.'
    )
    evercore_max_body_bytes: int = Field(default=32 * 2**20, ge=1_024, description="Largest request body.")
    evercore_rate_per_tenant: float = Field(
        default=0.0,
        ge=0,
        description="Requests a second that one tenant may send, in bursts of twice that; 0: no limit.",
    )
    evercore_search_running: int = Field(default=8, ge=1, description="Searches that one process works on at once.")
    evercore_search_waiting: int = Field(
        default=120, ge=0, description="Searches that wait for their turn in one process; more are answered 429."
    )
    evercore_search_fusion: Literal["evidence", "rrf"] = Field(
        default="evidence",
        description="How hybrid search makes one order of words and meaning: `evidence` adds up what speaks for a memory, "
        "`rrf` is reciprocal rank fusion.",
    )
    evercore_max_ongoing_requests: int = Field(
        default=128, ge=1, description="Requests that the server works on at the same time."
    )
    evercore_max_queued_requests: int = Field(
        default=64, ge=1, description="Requests that wait for their turn; more are answered 429 with Retry-After."
    )
    evercore_object_store_bytes: int = Field(
        default=512 * 2**20, ge=80 * 2**20, description="Shared memory of the local Ray."
    )
    evercore_sweep_seconds: float = Field(
        default=30.0, gt=0, description="Pause between two rounds of background upkeep (indexing, idle flush)."
    )
    evercore_drain_seconds: float = Field(
        default=20.0, ge=0, description="How long running work may take to end when the server stops."
    )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.evercore_host)
