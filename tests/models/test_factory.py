"""Settings from the environment and the embedder that they build."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models.batching import MicroBatcher
from models.caching import CachingEmbedder
from models.factory import build_embedder
from models.protocols import Embedder
from models.settings import ModelSettings
from primitives.errors import ConfigurationError

from .conftest import FirstStart


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ModelSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


async def test_the_default_is_local_behind_a_batcher_behind_a_cache(
    monkeypatch: pytest.MonkeyPatch, first_start: FirstStart
) -> None:
    monkeypatch.setenv("MODEL_CACHE_DIR", str(first_start.cache_dir))
    embedder = build_embedder(ModelSettings.load())
    assert isinstance(embedder, CachingEmbedder)
    assert isinstance(embedder.engine, MicroBatcher)
    assert isinstance(embedder, Embedder)
    assert embedder.identity.dimension == 384
    vectors = await embedder.embed_documents(["好", "好", "ok"])
    assert np.array_equal(vectors[0], vectors[1])
    assert embedder.texts_embedded == 2
    await embedder.close()


def test_every_setting_is_described_and_has_the_name_of_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(field.description for field in ModelSettings.model_fields.values())
    monkeypatch.setenv("VECTORIZE_THREADS", "2")
    monkeypatch.setenv("VECTORIZE_MODEL", "")
    settings = ModelSettings.load()
    assert settings.vectorize_threads == 2
    assert settings.vectorize_model is None
    assert settings.cache_dir == Path.home() / ".cache" / "evercore"


@pytest.mark.parametrize("provider", ["vllm", "openai", "deepinfra", "sentence_transformers"])
def test_providers_of_a_later_release_are_refused(provider: str) -> None:
    with pytest.raises(ConfigurationError, match="later release, use 'local'"):
        build_embedder(ModelSettings.model_validate({"vectorize_provider": provider}))


def test_wrong_settings_name_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECTORIZE_PROVIDER", "word2vec")
    with pytest.raises(ConfigurationError, match="VECTORIZE_PROVIDER"):
        ModelSettings.load()


def test_a_dimension_or_model_of_another_engine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="384"):
        build_embedder(ModelSettings(vectorize_dimensions=1024))
    with pytest.raises(ConfigurationError, match="VECTORIZE_MODEL"):
        build_embedder(ModelSettings(vectorize_model="Qwen/Qwen3-Embedding-4B"))
