"""Lexical chains: which words of a conversation tie its messages together (Morris and Hirst 1991)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from primitives.text import STOP_WORDS, words

READ = 500
"""Characters of a message whose words are looked at."""
FAR = 1_000_000
MEMORY = 8
"""A word that was not said in so many messages is new."""


def chain_features(texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Features of the len(texts) - 1 gaps. Words weigh by how few messages of the conversation have them."""
    count = len(texts)
    bags = [_content(text) for text in texts]
    spread = Counter(word for bag in bags for word in bag)
    where: list[int] = []
    weights: list[float] = []
    since: list[int] = []
    until: list[int] = []
    last: dict[str, int] = {}
    for place, bag in enumerate(bags):
        for word in bag:
            before = last.get(word)
            last[word] = len(where)
            since.append(FAR if before is None else place - where[before])
            if before is not None:
                until[before] = since[-1]
            where.append(place)
            weights.append(math.log((count + 1) / spread[word]))
            until.append(FAR)
    at, weight = np.array(where, np.int64), np.array(weights, np.float64)
    back, ahead = np.array(since, np.int64), np.array(until, np.int64)

    def total(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.bincount(at[chosen], weight[chosen], count).astype(np.float64)

    whole = np.maximum(total(back > 0), 1e-9)
    introduced = total((back > MEMORY) & (ahead <= 4))
    return {
        "next_repeats_last_1": (total(back <= 1) / whole)[1:],
        "next_repeats_last_2": (total(back <= 2) / whole)[1:],
        "last_is_repeated": (total(ahead <= 2) / whole)[:-1],
        "next_introduces": (introduced / whole)[1:],
        "next_introduces_much": np.log1p(introduced[1:]),
        "next_is_new": np.log1p(total(back > MEMORY)[1:]),
        "chains_across": _across(at, back, weight, count),
    }


def _content(text: str) -> list[str]:
    return list(dict.fromkeys(w for w in words(text[:READ]) if len(w) > 1 and w not in STOP_WORDS))


def _across(
    at: NDArray[np.int64], back: NDArray[np.int64], weight: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """How much weight of words said at most three messages apart spans each gap."""
    chosen = back <= 3
    begun = np.bincount(at[chosen] - back[chosen], weight[chosen], count)
    ended = np.bincount(at[chosen], weight[chosen], count)
    return np.log1p(np.maximum(np.cumsum(begun - ended)[: count - 1], 0.0))
