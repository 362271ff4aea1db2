"""The plain tokenizer gives what the package ``tokenizers`` gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from models.e5_sentences import SENTENCES, long_passage
from models.e5_tokens import UnigramTokenizer, normalise
from models.e5_weights import E5Weights, weights_path


@pytest.fixture(scope="module")
def both() -> tuple[UnigramTokenizer, Any]:
    weights = E5Weights(weights_path())
    scores = weights.scores.tolist()
    unknown = weights.shape.unknown_id
    theirs = Tokenizer(models.Unigram(list(zip(weights.pieces, scores, strict=True)), unk_id=unknown))
    theirs.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    theirs.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    pieces = [piece.replace("▁", " ") for piece in weights.pieces]
    return UnigramTokenizer(pieces=pieces, scores=scores, unknown_id=unknown), theirs


def test_sentences_in_many_languages(both: tuple[UnigramTokenizer, Any]) -> None:
    ours, theirs = both
    for text in [*SENTENCES, long_passage()]:
        framed = f"passage: {text}"
        assert ours.encode(framed, limit=10_000) == theirs.encode(framed).ids


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    text=st.text(
        alphabet=st.characters(max_codepoint=0x2FFF, exclude_categories=("Cs", "Cn"))
        | st.sampled_from("你好 的a、。　ﬁ①\n\t"),
        max_size=40,
    )
)
def test_any_text(both: tuple[UnigramTokenizer, Any], text: str) -> None:
    ours, theirs = both
    framed = f"query: {text}."  # a closing space would be a token there
    if "<" not in framed:  # special tokens are plain text for us
        assert ours.encode(framed, limit=10_000) == theirs.encode(framed).ids


def test_special_tokens_in_a_text_are_plain(both: tuple[UnigramTokenizer, Any]) -> None:
    ours, _ = both
    assert not {0, 1, 2, 250001} & set(ours.encode("<s> </s> <pad> <mask>", limit=100))


def test_limit_and_normal_form(both: tuple[UnigramTokenizer, Any]) -> None:
    ours, _ = both
    assert len(ours.encode("word " * 1000, limit=7)) == 7
    assert ours.encode("", limit=5) == []
    assert normalise("  a\t\nb　ｃ\x07 ") == "a b c"
