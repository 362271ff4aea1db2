from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from pipelines.extraction.ahead import plan_in
from pipelines.extraction.extractive import FACTS, ExtractiveExtractor
from pipelines.extraction.selves import self_statement
from pipelines.extraction.statements import is_noise
from pipelines.memories import evidence_of, memories_of
from pipelines.window import _memcell
from storage.ids import Owner
from storage.records import Episode, MemoryType, Message
from tests.support.embedder import BagOfCharacters
from tests.support.messages import message

SAID_AT = int(datetime(2024, 1, 15, 6, tzinfo=UTC).timestamp() * 1000)  # a Monday


async def extract(rows: list[Message]) -> dict:  # type: ignore[type-arg]
    cell = _memcell(rows, epoch=0, detector="cohesion")
    vectors = await BagOfCharacters().embed_documents([row.text for row in rows])
    return (await ExtractiveExtractor().extract(cell, rows, vectors)).result


async def test_solo_zh() -> None:
    rows = [
        message(0, "你好！", timestamp=SAID_AT),
        message(1, "我今天去了上海博物馆，看到了青铜器展览。你去过吗？", timestamp=SAID_AT),
        message(2, "听起来很棒！", role="assistant", timestamp=SAID_AT),
        message(3, "我喜欢路小雨。下周我打算和她去苏州博物馆。", timestamp=SAID_AT),
    ]
    result = await extract(rows)
    assert result["language"] == "zh"
    assert "青铜器展览" in result["episode"]["summary"]
    assert "你好" not in result["episode"]["summary"]
    assert result["facts"][0]["text"] == "2024-01-15 u1: 我今天去了上海博物馆，看到了青铜器展览。"
    assert all("棒" not in f["text"] for f in result["facts"])  # what the assistant says is no fact about the user
    assert [p["content"] for p in result["foresights"]] == ["下周我打算和她去苏州博物馆。"]
    assert [(p["category"], p["description"]) for p in result["profile"]] == [("preference", "我喜欢路小雨。")]


async def test_team_has_a_view_for_each_person() -> None:
    group = Owner.group("g")
    rows = [
        message(0, "The demo for Acme moved to Thursday at 10.", owner=group, sender="ann"),
        message(1, "I will bring the slides and the new projector.", owner=group, sender="bob"),
        message(2, "ok", owner=group, sender="cat"),
    ]
    cell = _memcell(rows, epoch=0, detector="cohesion").model_copy(update={"result": await extract(rows)})
    memories = memories_of(cell, rows)
    views = {m.user_id: m for m in memories if isinstance(m, Episode)}
    assert set(views) == {None, "ann", "bob", "cat"}
    assert "projector" in views["bob"].summary
    assert "projector" not in views["ann"].summary
    assert {m.memory_type for m in memories} == {MemoryType.EPISODE}  # facts and foresights are solo
    assert all(m.source_message_ids == ["m0", "m1", "m2"] for m in memories)
    assert len({m.embedding_text for m in memories}) == 1
    assert len({m.id for m in memories}) == 4
    assert views["bob"].partition == "u:bob"
    assert [e.user_id for e in evidence_of(cell, rows)] == []


async def test_greetings_alone_still_make_an_episode() -> None:
    result = await extract([message(0, "哈哈哈"), message(1, "ok", role="assistant")])
    assert result["episode"]["subject"] == "哈哈哈"
    assert result["facts"] == []


async def test_facts_stay_within_the_missions_number() -> None:
    rows = [message(i, f"I bought item number {i} at the market on the corner.") for i in range(40)]
    assert len((await extract(rows))["facts"]) == FACTS[1]
    rows = [
        message(i, text)
        for i, text in enumerate(["Fine by me.", "I do.", "Will do.", "I moved to Oslo with Anna in 2021."])
    ]
    facts = [fact["embedding_text"] for fact in (await extract(rows))["facts"]]
    assert "I moved to Oslo with Anna in 2021." in facts


async def test_what_cannot_be_done_is_said() -> None:
    row = message(0, "hello there my friend")
    cell = _memcell([row], epoch=0, detector="cohesion")
    found = await ExtractiveExtractor().extract(cell, [row], np.ones((1, 4), np.float32))
    assert set(found.skipped) == {"implicit_traits", "agent_case", "agent_skill"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("明天我要去医院复查", ("2024-01-16", True)), ("我打算3月12号去爬山", ("2024-03-12", True)),
        ("下周三要交报告", ("2024-01-24", True)), ("周五我们约了吃饭", ("2024-01-19", True)),
        ("两周后要搬家", ("2024-01-29", True)), ("下个月准备换工作", (None, True)), ("我昨天去了医院", (None, False)),
        ("I'm going to see the dentist tomorrow", ("2024-01-16", True)), ("We will fly on March 3rd", ("2024-03-03", True)),
        ("The deadline is 2024-02-01", ("2024-02-01", True)), ("I will call you next friday", ("2024-01-26", True)),
        ("I will do that in 3 days", ("2024-01-18", True)), ("I planned that on 2023-12-01, will report", ("2023-12-01", False)),
        ("I like tea", (None, False)), ("we will meet on February 31", (None, False)), ("下周日要去看展", ("2024-01-28", True)),
    ],
)  # fmt: skip
def test_plans(text: str, wanted: tuple[str | None, bool]) -> None:
    assert plan_in(text, SAID_AT) == wanted


def test_a_plan_without_a_known_time_has_no_day() -> None:
    assert plan_in("明天我要去医院", None) == (None, True)
    assert plan_in("the deadline is 2024-02-01", None) == ("2024-02-01", True)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("我最喜欢的是拿铁", "preference"), ("我对芒果过敏", "health"), ("我现在住在杭州", "residence"),
        ("I'm allergic to peanuts", "health"), ("I work at a bakery", "work"), ("I really love hiking", "preference"),
        ("my dog is called Biscuit", "family"), ("I live in Oslo", "residence"), ("如果我喜欢他就好了", None),
        ("他喜欢拿铁", None), ("the weather is nice", None),
    ],
)  # fmt: skip
def test_self_statements(text: str, category: str | None) -> None:
    assert self_statement(text) == category


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        ("哈哈哈！", True),
        ("ok, thanks!", True),
        ("你好呀", True),
        ("好的，明天见小王", False),
        ("great museum", False),
        ("5", False),
    ],
)
def test_noise(text: str, noise: bool) -> None:
    assert is_noise(text) is noise
