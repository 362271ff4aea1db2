from __future__ import annotations

import json
import re
from pathlib import Path

import jieba
import pytest
import rjieba
from hypothesis import given
from hypothesis import strategies as st

from primitives.text import CJK, STOP_WORDS, fold, language_of, query_words, sentences, storable, words

SAMPLES = Path(__file__).parents[2] / "samples"


def test_rjieba_gives_jiebas_words() -> None:
    runs = [
        run
        for path in SAMPLES.glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
        for run in re.findall(f"[{CJK}]+", json.loads(line)["text"])
    ]
    assert len(runs) > 1_000
    for run in runs:
        assert list(rjieba.cut_for_search(run)) == list(jieba.cut_for_search(run))


@given(st.text(alphabet="我喜欢路小雨博物馆明天上海去了的一二三", min_size=1, max_size=30))
def test_rjieba_gives_jiebas_words_for_anything(text: str) -> None:
    assert list(rjieba.cut_for_search(text)) == list(jieba.cut_for_search(text))


@given(st.text())
def test_words_never_fail_and_a_query_finds_its_text(text: str) -> None:
    found = words(text)
    assert all(word == word.strip() and word for word in found)
    assert set(query_words(text)) <= set(found)
    left = set(found) - STOP_WORDS
    assert set(query_words(text)) == (left if len(left) > 1 else set(found))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("我喜欢谁", ["我", "喜欢", "谁"]), ("我喜欢路小雨", ["喜欢", "路", "小雨"]), ("我", ["我"]), ("Ｃafé O'Neil", ["cafe", "oneil"]), ("the 5", ["the", "5"]), ("", []),
        ("IPHONE手机", ["iphone", "手机"]), ("\ud83d lone", ["lone"]),
    ],
)  # fmt: skip
def test_query_words(text: str, wanted: list[str]) -> None:
    assert query_words(text) == wanted


def test_language() -> None:
    assert [language_of(t) for t in ("你好", "hello", "我在用 iPhone 15", "see you at 博物馆 tomorrow morning", "")] == [
        "zh", "en", "zh", "en", "en",
    ]  # fmt: skip


def test_storable() -> None:
    assert storable("a\ud800b") == "a\ufffdb"
    assert storable("\ud83d\ude00") == "😀"
    storable("\udc00\ud800 mixed").encode()


def test_sentences() -> None:
    assert sentences("你好。今天不错！v1.2 is out\nline two? Yes.") == ["你好。", "今天不错！", "v1.2 is out", "line two?", "Yes."]
    assert sentences("  \n ") == []


def test_fold() -> None:
    assert fold("ＡＢＣ Straße É") == "abc strasse e"
