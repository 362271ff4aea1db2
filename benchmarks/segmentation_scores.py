"""Pk, WindowDiff, F1 and Score of predicted topic boundaries, as SuperDialseg reports them.

Score = (2 F1 + (1 - Pk) + (1 - WindowDiff)) / 4, with F1 over all boundaries of a set and Pk and WindowDiff averaged
over its dialogues. Boundaries are 1-based: 3 is a cut after the third utterance.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any


def gold_boundaries(row: dict[str, Any]) -> set[int]:
    """The ends of all segments but the last."""
    return set(accumulate(row["segments"][:-1]))


def window_errors(gold: set[int], predicted: set[int], count: int) -> tuple[float, float]:
    """Pk and WindowDiff of one dialogue of `count` utterances; the window is half the mean gold segment."""
    width = max(1, round(count / (len(gold) + 1) / 2))
    width = width if count > width else 1
    any_differs = number_differs = 0
    for start in range(count - width):
        places = range(start + 1, start + width + 1)
        real, said = sum(p in gold for p in places), sum(p in predicted for p in places)
        any_differs += (real == 0) != (said == 0)
        number_differs += real != said
    return any_differs / (count - width), number_differs / (count - width)


def evaluate(rows: list[dict[str, Any]], predictions: dict[str, set[int]]) -> dict[str, float]:
    """Figures of one set; dialogues of one utterance are left out."""
    used = [row for row in rows if len(row["utterances"]) > 1]
    pk = wd = 0.0
    hits = said = real = 0
    for row in used:
        gold, predicted = gold_boundaries(row), predictions[str(row["id"])]
        a, b = window_errors(gold, predicted, len(row["utterances"]))
        pk, wd = pk + a / len(used), wd + b / len(used)
        hits, said, real = hits + len(gold & predicted), said + len(predicted), real + len(gold)
    f1 = 2 * hits / (said + real) if said + real else 1.0
    return {"score": (2 * f1 + 2 - pk - wd) / 4, "f1": f1, "pk": pk, "wd": wd, "ratio": said / max(real, 1)}
