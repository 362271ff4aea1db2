"""Finds the constants that turn each engine's cosines into scores in [0, 1].

Pairs of a question and a message that answers it (related) are set against the same questions with messages of other
conversations (unrelated); a one-dimensional logistic regression on the cosine gives the map. Data sets count alike,
and so do the two kinds of pairs. Prints ``MIDPOINT`` and ``SLOPE`` for models/local.py and models/local_fast.py.

    python benchmarks/calibrate_embedders.py --data DIR [--engine local] [--engine local-fast]

DIR holds longmemeval_s.dev.jsonl.gz, memdaily_zh.dev.jsonl.gz and locomo.dev.jsonl.gz.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from models.factory import build_embedder
from models.protocols import Embedder
from models.settings import ModelSettings

Pair = tuple[str, str]
QUESTIONS = 150
PER_QUESTION = 3
THRESHOLDS = (0.5, 0.55, 0.6)


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a gzipped JSON Lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def longmemeval(path: Path, chance: random.Random) -> tuple[list[Pair], list[Pair]]:
    """English: user turns of the answer sessions against user turns of the other sessions."""
    related: list[Pair] = []
    unrelated: list[Pair] = []
    for row in rows(path):
        if row["question_id"].endswith("_abs"):
            continue
        inside: list[str] = []
        outside: list[str] = []
        for session, turns in zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True):
            texts = [turn["content"] for turn in turns if turn["role"] == "user" and turn["content"].strip()]
            (inside if session in row["answer_session_ids"] else outside).extend(texts)
        take = 2 * PER_QUESTION
        related += [(row["question"], text) for text in chance.sample(inside, min(take, len(inside)))]
        unrelated += [(row["question"], text) for text in chance.sample(outside, min(take, len(outside)))]
    return related, unrelated


def memdaily(path: Path, chance: random.Random) -> tuple[list[Pair], list[Pair]]:
    """Chinese: the messages that a question is about against messages of other trajectories."""
    everything = list(rows(path))
    related: list[Pair] = []
    unrelated: list[Pair] = []
    for row in chance.sample(everything, QUESTIONS):
        messages = {message["mid"]: message["message"] for message in row["messages"]}
        for question in row["questions"][:1]:
            targets = [messages[step] for step in question["target_step_id"] if step in messages]
            related += [(question["question"], text) for text in targets[:PER_QUESTION]]
            others = [chance.choice(chance.choice(everything)["messages"])["message"] for _ in targets[:PER_QUESTION]]
            unrelated += [(question["question"], text) for text in others]
    return related, unrelated


def locomo(path: Path, chance: random.Random) -> tuple[list[Pair], list[Pair]]:
    """English: the turns named as evidence against any other turns of the conversation."""
    related: list[Pair] = []
    unrelated: list[Pair] = []
    for row in rows(path):
        turns: dict[str, str] = {}
        for name, value in row["conversation"].items():
            if re.fullmatch(r"session_\d+", name):
                turns.update({turn["dia_id"]: f"{turn['speaker']}: {turn['text']}" for turn in value})
        questions = [entry for entry in row["qa"] if entry["category"] != 5]
        for entry in chance.sample(questions, min(QUESTIONS // 3, len(questions))):
            named = re.findall(r"D\d+:\d+", " ".join(entry["evidence"]))
            texts = [turns[name] for name in named if name in turns][:PER_QUESTION]
            related += [(entry["question"], text) for text in texts]
            unrelated += [(entry["question"], text) for text in chance.sample(list(turns.values()), len(texts))]
    return related, unrelated


async def cosines(embedder: Embedder, pairs: list[Pair]) -> NDArray[np.float64]:
    """One cosine a pair."""
    documents = await embedder.embed_documents([text for _, text in pairs])
    queries = np.stack([await embedder.embed_query(question) for question, _ in pairs])
    return np.asarray((queries * documents).sum(axis=1), dtype=np.float64)


def fit(values: NDArray[np.float64], labels: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[float, float]:
    """Weighted logistic regression by Newton's method; (midpoint, slope)."""
    centre, spread = values.mean(), values.std()
    design = np.stack([(values - centre) / spread, np.ones_like(values)], axis=1)
    solution = np.zeros(2)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-design @ solution))
        gradient = design.T @ (weights * (labels - chance))
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design
        solution += np.linalg.solve(curvature, gradient)
    return float(centre - spread * solution[1] / solution[0]), float(solution[0] / spread)


async def calibrate(engine: str, data: Path) -> None:
    """Measure one engine and print its constants."""
    chance = random.Random(7)
    sets = {
        "LongMemEval": longmemeval(data / "longmemeval_s.dev.jsonl.gz", chance),
        "MemDaily": memdaily(data / "memdaily_zh.dev.jsonl.gz", chance),
        "LoCoMo": locomo(data / "locomo.dev.jsonl.gz", chance),
    }
    embedder = build_embedder(ModelSettings(vectorize_provider=engine))
    measured = {name: [await cosines(embedder, pairs) for pairs in both] for name, both in sets.items()}
    await embedder.close()
    values = np.concatenate([part for both in measured.values() for part in both])
    labels = np.concatenate(
        [np.full(len(part), 1.0 - kind) for both in measured.values() for kind, part in enumerate(both)]
    )
    weights = np.concatenate([np.full(len(part), 1 / len(part)) for both in measured.values() for part in both])
    midpoint, slope = fit(values, labels, weights)
    print(f"{engine}: MIDPOINT = {midpoint:.4f}  SLOPE = {slope:.1f}")
    print(
        "| set | pairs | related cos 10/50/90% | unrelated cos 10/50/90% | AUC | kept of related / unrelated at "
        + " | at ".join(map(str, THRESHOLDS))
        + " |"
    )
    for name, (related, unrelated) in measured.items():
        area = float((related[:, None] > unrelated[None, :]).mean())
        kept = []
        for threshold in THRESHOLDS:
            cut = midpoint + np.log(threshold / (1 - threshold)) / slope
            kept.append(f"{(related >= cut).mean():.2f} / {(unrelated >= cut).mean():.2f}")
        spread = [" ".join(f"{v:.3f}" for v in np.percentile(part, [10, 50, 90])) for part in (related, unrelated)]
        print(
            f"| {name} | {len(related)}+{len(unrelated)} | {spread[0]} | {spread[1]} | {area:.3f} | "
            f"{' | '.join(kept)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of the development data")
    parser.add_argument("--engine", action="append", choices=["local", "local-fast"], help="default: both")
    arguments = parser.parse_args()
    for engine in arguments.engine or ["local", "local-fast"]:
        asyncio.run(calibrate(engine, arguments.data))


if __name__ == "__main__":
    main()
