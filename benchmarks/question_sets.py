"""Reads LoCoMo, LongMemEval and MemDaily files (gzipped JSON lines): who said what, and which messages answer what.

No data is kept here; the files are other people's, and two of the three are for measuring only.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pipelines.incoming import Incoming
from primitives.clock import to_ms
from storage.ids import Owner


@dataclass(frozen=True)
class Question:
    text: str
    gold: frozenset[str]
    """Units that answer it: message ids, or sessions."""
    asked_at: int | None = None


@dataclass
class Haystack:
    """All that one owner has said, by session, with the unit that each message counts as."""

    owner: Owner
    sessions: dict[str, list[Incoming]] = field(default_factory=lambda: defaultdict(list))
    unit_of: dict[str, str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)

    def say(self, session: str, message_id: str, text: str, moment: int, *, sender: str, unit: str) -> None:
        if text.strip():
            self.sessions[session].append(
                Incoming(conversation="", sender_id=sender, text=text, timestamp=moment, message_id=message_id)
            )
            self.unit_of[message_id] = unit


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def locomo(path: Path, *, sessions: bool = False) -> list[Haystack]:
    """Groups of two; the unit is the turn, or its session."""
    found = []
    for row in rows_of(path):
        haystack, talk = Haystack(Owner.group(row["sample_id"])), row["conversation"]
        for name in sorted(filter(re.compile(r"session_\d+$").match, talk), key=lambda n: int(n.split("_")[1])):
            start = to_ms(datetime.strptime(talk[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC))
            for number, turn in enumerate(talk[name]):
                text = turn["text"] + (f" [{turn['blip_caption']}]" if turn.get("blip_caption") else "")
                key = turn["dia_id"]
                haystack.say(name, key, text, start + number * 1000, sender=turn["speaker"],
                             unit=key.split(":")[0] if sessions else key)  # fmt: skip
        for item in row["qa"]:
            named = re.findall(r"D\d+:\d+", " ".join(item.get("evidence") or []))
            gold = frozenset(haystack.unit_of[key] for key in named if key in haystack.unit_of)
            if item["category"] != 5 and gold:
                haystack.questions.append(Question(item["question"], gold))
        found.append(haystack)
    return found


def memdaily(path: Path) -> list[Haystack]:
    """One user a pool; the unit is the message."""
    found: dict[str, Haystack] = {}
    china = timezone(timedelta(hours=8))
    for row in rows_of(path):
        haystack = found.setdefault(row["pool"], Haystack(Owner.user(row["pool"])))
        for item in row["messages"]:
            parts = re.fullmatch(r"(\d+)年(\d+)月(\d+)日 \S+ (\d+):(\d+)", item["time"])
            assert parts is not None, item["time"]
            year, month, day, hour, minute = map(int, parts.groups())
            moment = to_ms(datetime(year, month, day, hour, minute, tzinfo=china))
            key = f"{row['trajectory']}-{item['mid']}"
            haystack.say(str(row["trajectory"]), key, item["message"], moment, sender=row["pool"], unit=key)
        for item in row["questions"]:
            named = {f"{row['trajectory']}-{step}" for step in item["target_step_id"]}
            if gold := frozenset(named & haystack.unit_of.keys()):
                haystack.questions.append(Question(item["question"], gold))
    return list(found.values())


def longmemeval(path: Path) -> list[Haystack]:
    """One user a question, the user's turns alone; the unit is the session."""
    def day(text: str) -> int:
        return to_ms(datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC))

    found = []
    for row in rows_of(path):
        if row["question_id"].endswith("_abs"):
            continue
        haystack = Haystack(Owner.user(row["question_id"]))
        parts = zip(row["haystack_session_ids"], row["haystack_dates"], row["haystack_sessions"], strict=True)
        for place, (session, date, turns) in enumerate(parts):
            for number, turn in enumerate(turns):
                if turn["role"] == "user":
                    haystack.say(f"{place}-{session}", f"{place}-{number}", turn["content"],
                                 day(date) + number * 1000, sender=row["question_id"], unit=session)  # fmt: skip
        gold = frozenset(row["answer_session_ids"])
        haystack.questions.append(Question(row["question"], gold, day(row["question_date"])))
        found.append(haystack)
    return found
