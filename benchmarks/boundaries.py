"""Learns the weights of the topic boundary detector and measures it leave-one-set-out.

    python -m benchmarks.boundaries seg_a.dev.jsonl.gz seg_b.dev.jsonl.gz ... [--engine local] [--cache DIR]
        [--write-weights] [--predictions OUT.jsonl] [--json benchmarks/results/boundaries.json]

Each file has dialogues {id, utterances [{speaker, text}], segments [lengths]}. "left out" is scored with weights that
were learned on the other files alone; "shipped" with those learned on all of them, which is what the product has. Each
set counts alike, and so does a set made of its longer segments put one behind another, which teaches cohesion.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.segmentation_scores import evaluate, gold_boundaries
from models.factory import build_embedder
from models.settings import ModelSettings
from pipelines.boundaries.cohesion import CohesionDetector
from pipelines.boundaries.features import gap_features
from storage.records import Message

ASSISTANTS = {"agent", "assistant", "sys", "system", "bot", "b"}
SIGNS = {
    "similarity_1": -1, "similarity_2": -1, "contrast": 1, "fits_what_follows": 1, "depth": 1,
    "next_repeats_last_1": -1, "next_repeats_last_2": -1, "last_is_repeated": -1, "next_introduces": 1,
    "next_introduces_much": 1, "next_is_new": 1, "chains_across": -1, "next_asks": 1, "question_is_answered": -1,
    "next_is_a_person": 1, "next_leads_topics": 1, "next_greets": 1, "last_closes": 1, "next_points_back": -1,
}  # fmt: skip
"""The direction in which each feature may count: what it means does not change with the data."""
RIDGE = 0.003
CAREFUL = {"next_asks": 10.0, "question_is_answered": 10.0, "next_is_a_person": 20.0}
"""Habits of a kind of conversation, held back more so that they do not drown cohesion elsewhere."""
TOGETHER, PIECES, PIECE = 150, (2, 8), 3
Rows = list[dict[str, Any]]
Examples = list[tuple[dict[str, np.ndarray], np.ndarray]]


def read(path: Path) -> Rows:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def put_together(rows: Rows) -> Rows:
    """Segments of PIECE utterances and more, from different dialogues, one behind another."""
    chance = random.Random(1)
    segments = []
    for row in rows:
        place = 0
        for length in row["segments"]:
            if length >= PIECE:
                segments.append(row["utterances"][place : place + length])
            place += length
    made = []
    for number in range(TOGETHER):
        parts = chance.sample(segments, chance.randint(*PIECES))
        utterances = [utterance for part in parts for utterance in part]
        made.append({"id": f"made-{number}", "utterances": utterances, "segments": [len(part) for part in parts]})
    return made


def messages_of(row: dict[str, Any]) -> list[Message]:
    out = []
    for place, utterance in enumerate(row["utterances"]):
        speaker = str(utterance.get("speaker") or "").lower()
        role = "assistant" if speaker in ASSISTANTS else "user"
        out.append(
            Message(
                id=str(place), tenant_id="t", partition="p", conversation_id="c", message_id=str(place),
                sender_id=role, sender_name=role, role=role, text=utterance["text"].strip() or "…",
            )
        )  # fmt: skip
    return out


async def embedded(engine: str, texts: list[str], cache: Path | None) -> dict[str, np.ndarray]:
    """One vector a text, remembered in `cache` where one is given."""
    name = hashlib.sha256("\0".join([engine, *texts]).encode()).hexdigest()[:16]
    file = cache / f"{engine}-{name}.npy" if cache else None
    if file is not None and file.exists():
        return dict(zip(texts, np.load(file), strict=True))
    embedder = build_embedder(ModelSettings(vectorize_provider=engine))
    parts = [await embedder.embed_documents(texts[i : i + 512]) for i in range(0, len(texts), 512)]
    await embedder.close()
    vectors = np.concatenate(parts)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, vectors)
    return dict(zip(texts, vectors, strict=True))


def examples(rows: Rows, vectors: dict[str, np.ndarray]) -> Examples:
    out: Examples = []
    for row in rows:
        messages = messages_of(row)
        features = gap_features(messages, np.stack([vectors[m.text] for m in messages])) if len(messages) > 3 else None
        if features is not None:
            cut = np.zeros(len(messages) - 1)
            cut[[end - 1 for end in gold_boundaries(row)]] = 1
            out.append((features, cut))
    return out


def learn(sets: Sequence[Examples], made: Sequence[Examples]) -> dict[str, Any]:
    """Logistic regression with signs and a ridge, by accelerated projected gradients; sets count alike."""
    groups = [*sets, *made]
    design = np.concatenate([np.stack([f[n] for n in SIGNS], axis=1) for group in groups for f, _ in group])
    cut = np.concatenate([c for group in groups for _, c in group])
    share = np.concatenate([np.full(size, 1 / size) for group in groups if (size := sum(len(c) for _, c in group))])
    share /= share.sum()
    spread = design.std(axis=0) + 1e-9
    table = np.column_stack([(design - design.mean(axis=0)) / spread, np.ones(len(cut))])
    signs = np.array([*SIGNS.values(), 0])
    ridge = np.array([RIDGE * CAREFUL.get(name, 1.0) for name in SIGNS] + [0.0])
    step = 1 / (0.25 * np.linalg.eigvalsh((table * share[:, None]).T @ table).max() + 2 * ridge.max())
    found = moved = np.zeros(table.shape[1])
    pace = 1.0
    for _ in range(600):
        wrong = 1 / (1 + np.exp(-table @ moved)) - cut
        new = moved - step * (table.T @ (share * wrong) + 2 * ridge * moved)
        new = np.where(new * signs < 0, 0.0, new)
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        moved, found, pace = new + (pace - 1) / faster * (new - found), new, faster
    coherence = [np.concatenate([f["similarity_1"] for f, _ in group]).mean() for group in sets]
    often = [np.log(np.concatenate([c for _, c in group]).mean()) for group in sets]
    slope, level = np.polyfit(coherence, often, 1)
    return {
        "weights": {name: round(float(w / s), 4) for name, w, s in zip(SIGNS, found, spread, strict=False) if w},
        "density": {
            "level": round(float(level), 4), "slope": round(float(slope), 4),
            "usual_coherence": round(float(np.mean(coherence)), 4),
        },
    }  # fmt: skip


async def predict(rows: Rows, vectors: dict[str, np.ndarray], weights: dict[str, Any]) -> dict[str, set[int]]:
    detector = CohesionDetector(gap_minutes=240, weights=weights)
    found = {}
    for row in rows:
        messages = messages_of(row)
        found[str(row["id"])] = set(await detector.boundaries(messages, np.stack([vectors[m.text] for m in messages])))
    return found


async def measure(options: argparse.Namespace) -> None:
    sets = {path.name.split(".")[0]: read(path) for path in options.files}
    made = {name: put_together(rows) for name, rows in sets.items()}
    vectors: dict[str, np.ndarray] = {}
    for rows in sets.values():
        texts = sorted({m.text for row in rows for m in messages_of(row)}, key=lambda text: (len(text), text))
        vectors |= await embedded(options.engine, texts, options.cache)
    known = {name: examples(rows, vectors) for name, rows in sets.items()}
    taught = {name: examples(rows, vectors) for name, rows in made.items()}
    everything = learn(list(known.values()), list(taught.values()))
    report: dict[str, Any] = {"engine": options.engine, "sets": {}}
    print("| set | dialogues | weights | Score | F1 | Pk | WD | predicted / gold |\n|---|---|---|---|---|---|---|---|")
    saved = []
    for name, rows in sets.items():
        others = [other for other in sets if other != name]
        left_out = learn([known[o] for o in others], [taught[o] for o in others]) if others else everything
        report["sets"][name] = {}
        for kind, weights in (("left out", left_out), ("shipped", everything)):
            found = await predict(rows, vectors, weights)
            if kind == "left out":
                saved += [{"id": i, "boundaries": sorted(cuts)} for i, cuts in found.items()]
            got = evaluate(rows, found)
            report["sets"][name][kind] = {key: round(value, 4) for key, value in got.items()}
            figures = [f"{got[key]:.3f}" for key in ("score", "f1", "pk", "wd")]
            print(f"| {name} | {len(rows)} | {kind} | {' | '.join(figures)} | {got['ratio']:.2f} |", flush=True)
    if options.predictions:
        options.predictions.write_text("".join(json.dumps(row) + "\n" for row in saved), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if options.write_weights:
        target = Path(__file__).resolve().parent.parent / "pipelines" / "boundaries" / "weights.json"
        about = f"Made by benchmarks/boundaries.py from {', '.join(sets)} with engine {options.engine}."
        target.write_text(json.dumps({"about": about, **everything}, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--engine", default="local", choices=["local", "local-fast"])
    parser.add_argument("--cache", type=Path, help="folder that keeps the vectors for the next run")
    parser.add_argument("--write-weights", action="store_true", help="write pipelines/boundaries/weights.json")
    parser.add_argument("--predictions", type=Path, help="write the boundaries found by the left-out weights")
    parser.add_argument("--json", type=Path, help="write all figures")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
