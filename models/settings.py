"""Settings of the models, read from the environment; README's table is made of the descriptions here."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from primitives.errors import ConfigurationError

Provider = Literal["local", "local-fast", "vllm", "openai", "deepinfra", "sentence_transformers"]


class ModelSettings(BaseSettings):
    """Each field is the environment variable of the same name in capitals."""

    model_config = SettingsConfigDict(extra="ignore", env_ignore_empty=True, frozen=True, protected_namespaces=())

    vectorize_provider: Provider = Field(
        default="local",
        description="Embedding engine: `local` (multilingual-e5-small, offline, default) or `local-fast` (Universal "
        "Sentence Encoder, offline, several times faster, less exact; extra `local-fast`). `vllm`, `openai`, "
        "`deepinfra` and `sentence_transformers` arrive with a later release and are refused.",
    )
    vectorize_model: str | None = Field(
        default=None,
        description="Model of the engine. The offline engines have one each; leave it empty or name exactly that.",
    )
    vectorize_dimensions: int | None = Field(
        default=None,
        ge=1,
        description="Length of the vectors, checked against the engine: 384 for `local`, 512 for `local-fast`.",
    )
    vectorize_threads: int = Field(
        default=1,
        ge=1,
        le=256,
        description="CPU threads of an embedding engine in one process. Keep 1 and scale by processes.",
    )
    vectorize_batch_tokens: int = Field(
        default=1024,
        ge=64,
        description="Tokens (estimated) in one engine batch. A search waits for at most one such batch.",
    )
    vectorize_queue_texts: int = Field(
        default=20_000,
        ge=1,
        description="Texts that may wait for the engine in one process; beyond it calls are refused with 429.",
    )
    vectorize_cache_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=0,
        description="Memory for remembered vectors in one process, in bytes; 0 remembers none.",
    )
    model_cache_dir: Path = Field(
        default=Path("~/.cache/evercore"),
        description="Folder of the converted embedding model (80 MB, made once at first use).",
    )
    model_verify: bool = Field(
        default=False,
        description="Hash the converted model's files at every load instead of comparing their sizes (0.3 s).",
    )

    @property
    def cache_dir(self) -> Path:
        """``model_cache_dir`` with ``~`` replaced."""
        return self.model_cache_dir.expanduser()

    @classmethod
    def load(cls) -> ModelSettings:
        """Settings from the environment. Raises ``ConfigurationError`` that names the variable at fault."""
        try:
            return cls()
        except ValidationError as error:
            faults = "; ".join(f"{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors())
            raise ConfigurationError(f"The model settings are wrong. {faults}.") from error
