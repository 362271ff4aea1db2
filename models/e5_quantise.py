"""Chooses the 8-bit numbers that stand for the weights and for the activations of the converted model.

All scales of activations are constants or depend on one token alone, so a text's vector cannot depend on its batch.
(ONNX's own dynamic quantisation takes one scale over the whole batch: vectors then move by 2e-2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.e5_reference import E5Reference

Floats = NDArray[np.float32]

# Channels of normalised states stay within 4 to 6 standard deviations; attention averages have longer tails.
_DEVIATIONS_STATE = 5.5
_DEVIATIONS_ATTENTION = 10.0
_HEADROOM = 1.1
_SMALLEST = 1e-9


@dataclass(frozen=True, kw_only=True)
class ChannelRange:
    """``x`` becomes ``round((x - centre) / step) + 128`` in 0..255; both of shape (channels,)."""

    centre: Floats
    step: Floats


def measure_ranges(reference: E5Reference, token_lists: Iterable[Sequence[int]]) -> dict[str, ChannelRange]:
    """Run ``reference`` over texts and give a range for each watched input."""
    seen: dict[str, list[Floats]] = {}
    for ids in token_lists:
        reference.hidden_states(ids, watch=lambda name, values: seen.setdefault(name, []).append(values))
    return {name: _range(np.concatenate(parts), attention=name.endswith(".att")) for name, parts in seen.items()}


def _range(values: Floats, *, attention: bool) -> ChannelRange:
    centre = values.mean(axis=0)
    reach = np.maximum(values.max(axis=0) - centre, centre - values.min(axis=0)) * _HEADROOM
    reach = np.maximum(reach, values.std(axis=0) * (_DEVIATIONS_ATTENTION if attention else _DEVIATIONS_STATE))
    return ChannelRange(
        centre=centre.astype(np.float32),
        step=np.maximum(reach / 127, _SMALLEST).astype(np.float32),
    )


def quantise_weights(matrix: Floats) -> tuple[NDArray[np.int8], Floats]:
    """int8 values and one scale a row for a (rows, columns) matrix.

    CPUs without VNNI multiply neighbouring pairs with VPMADDUBSW, which saturates at 16 bits: 255 * (a + b) must fit,
    so two neighbours of one sign may sum to 127 at most. That limit, kept row by row, costs less precision than the
    usual 7-bit weights (cosine to float32 0.9997 instead of 0.9991) and makes every CPU compute the same integers.
    """
    pairs = matrix.reshape(len(matrix), -1, 2)
    positive = np.maximum(pairs, 0).sum(axis=2).max(axis=1)
    negative = np.maximum(-pairs, 0).sum(axis=2).max(axis=1)
    limit = np.maximum(np.maximum(positive, negative), _SMALLEST) / 127
    # Both of a pair may be rounded up by one half: 127 + 1 = 128 still fits.
    scales = limit.astype(np.float32)
    return np.clip(np.rint(matrix / scales[:, None]), -127, 127).astype(np.int8), scales
