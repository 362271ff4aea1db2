"""Settings of memory construction."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class PipelineSettings(BaseSettings):
    """How conversations are cut and built. Read from the environment and from `.env`."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True)

    memcell_hard_token_limit: int = Field(default=65_536, ge=16, description="Most o200k tokens in one MemCell.")
    memcell_hard_message_limit: int = Field(default=500, ge=1, description="Most messages in one MemCell.")
    boundary_gap_minutes: float = Field(
        default=240.0, gt=0, description="Silence after which a new topic is likely (event time, where it is known)."
    )
    message_max_bytes: int = Field(default=8 * 2**20, ge=1_024, description="Largest text of one message, in UTF-8 bytes.")
    idle_flush_minutes: float = Field(
        default=30.0, ge=0, description="A conversation without a new message for so long is flushed; 0 turns it off."
    )
    flush_wait_seconds: float = Field(
        default=30.0, ge=0, description="How long a flush waits for another one of the same conversation."
    )
