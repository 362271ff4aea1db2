"""What people say of themselves in so many words: tastes, home, work, health, family, name."""

from __future__ import annotations

import re

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (category, re.compile(pattern, re.IGNORECASE))
    for category, pattern in (
        ("name", r"我(?:的名字)?叫[^，。！？,.!?]{1,12}|\bmy name is\b"),
        ("health", r"我(?:.{0,4})?(?:对.{1,10}过敏|过敏|有.{0,6}(?:病|炎|症))|\bI(?:'m| am) (?:\w+ )?allergic to\b|\bI have (?:\w+ )?(?:asthma|diabetes|migraines?)\b"),
        ("residence", r"我(?:现在|目前|一直)?(?:住在?|搬到|搬去)[^，。！？,.!?]{1,20}|\bI(?:'m| am)? ?(?:now )?(?:live|living|moved|based) (?:in|to)\b"),
        ("work", r"我(?:现在|目前)?(?:在.{1,16}(?:工作|上班|实习)|是(?:一[名个位])?.{1,10}(?:师|员|生|家|经理|护士))|\bI (?:now )?work (?:at|for|as|in)\b"),
        ("about", r"\bI(?:'m| am) an? \w+"),
        ("family", r"我(?:有(?:一?个|两个|三个).{0,4}(?:孩子|儿子|女儿|哥哥|姐姐|弟弟|妹妹)|结婚|的?(?:老婆|老公|妻子|丈夫|女朋友|男朋友)(?:是|叫))|\bI have (?:a|an|one|two|three) (?:son|daughter|kids?|children|brother|sister|wife|husband|dog|cat)s?\b|\bmy (?:wife|husband|son|daughter|dog|cat|mom|dad|brother|sister)(?:'s name)? is\b"),
        ("preference", r"我(?:最|很|非常|特别|超|更|比较|其实|一直|也|真的?|不|从来不){0,2}(?:喜欢|爱|讨厌|偏爱|害怕|怕|吃不惯|受不了)|\bI (?:really |also |just |absolutely |still )?(?:like|love|hate|prefer|enjoy|can't stand|dislike|don't like)\b|\bmy favou?rite\b"),
        ("habit", r"我(?:每天|每周|经常|通常|习惯|从不|不吃|不喝)|\bI (?:usually|always|never|often)\b|\bevery (?:morning|day|week|evening) I\b"),
    )
)  # fmt: skip
_HEDGED = re.compile(r"如果|要是|假如|比如|开玩笑|\bif I\b|\bimagine\b|\bjust kidding\b|\bpretend\b", re.IGNORECASE)


def self_statement(text: str) -> str | None:
    """The category of an explicit self-statement, or None. What is asked, supposed or joked about is none."""
    if _HEDGED.search(text):
        return None
    return next((category for category, pattern in _PATTERNS if pattern.search(text)), None)
