"""Made-up chats of any size, for measurements that are about speed: the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from pipelines.incoming import Incoming

PEOPLE = ("Ann", "Ben", "Chen", "Dora", "小林", "阿明")
START = 1_609_459_200_000
HOUR = 3_600_000

_THINGS = (
    "garden", "train", "guitar", "visa", "dentist", "recipe", "marathon", "flat", "invoice", "camera", "bicycle", "concert",
    "museum", "passport", "router", "birthday", "soup", "novel", "harbour", "tent", "花园", "火车票", "吉他", "牙医", "菜谱",
    "马拉松", "房租", "相机", "自行车", "演唱会", "博物馆", "护照", "路由器", "生日", "小说", "帐篷",
)  # fmt: skip
_PLACES = ("Vienna", "Lyon", "Osaka", "Porto", "Leeds", "Oslo", "杭州", "成都", "厦门", "苏州", "西安", "青岛")
_SAYINGS = (
    "I finally sorted out the {thing} in {place}, it took {number} days",
    "did anybody hear back about the {thing}? {place} was closed when I called",
    "we should go to {place} again and bring the {thing}, say at {number} o'clock",
    "the {thing} costs {number} euros there, I would rather wait",
    "我在{place}看到了{thing}，比上次便宜{number}块",
    "{thing}的事情周{number}再说吧，我人还在{place}",
    "你们还记得{place}的那个{thing}吗？我找了{number}次都没找到",
    "my sister swears by her {thing} from {place}, number {number} of them by now",
)


def sentence(chance: random.Random) -> str:
    """One line that somebody might write, with a thing, a place and a number in it."""
    return chance.choice(_SAYINGS).format(
        thing=chance.choice(_THINGS), place=chance.choice(_PLACES), number=chance.randrange(2, 9_000)
    )


def question(chance: random.Random) -> str:
    """One search for a thing and a place."""
    return chance.choice(("where is the {} from {}", "{} {}", "{}的{}在哪里", "what did we say about the {} in {}?")).format(
        chance.choice(_THINGS), chance.choice(_PLACES)
    )


def chat(name: str, messages: int, *, seed: int) -> Iterator[Incoming]:
    """A group chat: a few lines an hour, topics some hours apart."""
    chance = random.Random(f"{seed}-{name}")
    moment = START
    for number in range(messages):
        moment += chance.randrange(5, 300) * 1_000 if number % 12 else chance.randrange(6, 60) * HOUR
        person = chance.choice(PEOPLE)
        yield Incoming(
            conversation=name, sender_id=person, sender_name=person, text=sentence(chance), timestamp=moment,
            message_id=f"{name}-{number}",
        )  # fmt: skip
