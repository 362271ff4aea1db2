"""multilingual-e5-small in float32 numpy: slow, exact, and the yardstick of the converted model.

The conversion uses it twice: to see which range each channel takes, and to check the finished graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from models.e5_weights import E5Weights

Floats = NDArray[np.float32]
Watch = Callable[[str, Floats], None]


class E5Reference:
    """The encoder with its 4-bit weights expanded (85 MB); nothing in it is quantised further."""

    def __init__(self, weights: E5Weights) -> None:
        self._weights = weights
        self._shape = weights.shape
        hidden, intermediate = self._shape.hidden, self._shape.intermediate
        values, scales = weights.blocks("emb.word", columns=hidden)
        self._word_values, self._word_scales = values, scales
        self._place = position_table(weights)
        self._matrices: dict[str, Floats] = {}
        for layer in range(self._shape.layers):
            for name in ("q", "k", "v", "ao", "fi"):
                key = f"l{layer}.{name}"
                self._matrices[key] = weights.matrix(f"{key}.w", columns=hidden)
            self._matrices[f"l{layer}.fo"] = weights.matrix(f"l{layer}.fo.w", columns=intermediate)

    def embed(self, ids: Sequence[int]) -> Floats:
        """The unit vector of one tokenised text, shape (hidden,)."""
        mean = self.hidden_states(ids).mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)

    def hidden_states(self, ids: Sequence[int], *, watch: Watch | None = None) -> Floats:
        """The last layer's states, shape (len(ids), hidden). ``watch`` sees each matrix's input under its name."""
        see = watch or (lambda name, values: None)
        chosen = np.asarray(ids)
        word = (self._word_values[chosen].astype(np.float32) - 8).reshape(len(chosen), -1, 32)
        word *= self._word_scales[chosen].astype(np.float32)[:, :, None]
        state = self._normalise(word.reshape(len(chosen), -1) + self._place[: len(chosen)], "emb.ln")
        for layer in range(self._shape.layers):
            see(f"l{layer}.in", state)
            attended = self._attention(state, layer)
            see(f"l{layer}.att", attended)
            state = self._normalise(state + self._linear(attended, f"l{layer}.ao"), f"l{layer}.aln")
            see(f"l{layer}.mid", state)
            inner = gelu(self._linear(state, f"l{layer}.fi"))
            state = self._normalise(state + self._linear(inner, f"l{layer}.fo"), f"l{layer}.oln")
        return state

    def _linear(self, state: Floats, key: str) -> Floats:
        return np.asarray(state @ self._matrices[key].T + self._weights.vector(f"{key}.b"), dtype=np.float32)

    def _attention(self, state: Floats, layer: int) -> Floats:
        heads = self._shape.heads
        query, key, value = (
            self._linear(state, f"l{layer}.{name}").reshape(len(state), heads, -1).transpose(1, 0, 2)
            for name in ("q", "k", "v")
        )
        logits = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1]))
        logits = np.exp(logits - logits.max(axis=-1, keepdims=True))
        mixed = (logits / logits.sum(axis=-1, keepdims=True)) @ value
        joined: Floats = mixed.transpose(1, 0, 2).reshape(len(state), -1)
        return joined

    def _normalise(self, state: Floats, key: str) -> Floats:
        centred = state - state.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        scaled = centred / deviation * self._weights.vector(f"{key}.w")
        return np.asarray(scaled + self._weights.vector(f"{key}.b"), dtype=np.float32)


def position_table(weights: E5Weights) -> Floats:
    """Position embeddings with the (only used) first token type added, shape (positions, hidden)."""
    hidden = weights.shape.hidden
    places = weights.vector("emb.pos").reshape(-1, hidden)
    table: Floats = places + weights.vector("emb.type").reshape(-1, hidden)[0]
    return table


def gelu(values: Floats) -> Floats:
    """x * Phi(x) with the error function of Abramowitz and Stegun 7.1.26 (absolute error 1.5e-7)."""
    scaled = np.abs(values) / np.float32(np.sqrt(2.0))
    t = 1.0 / (1.0 + 0.3275911 * scaled)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    error = np.sign(values) * (1.0 - series * np.exp(-scaled * scaled))
    return np.asarray(values * 0.5 * (1.0 + error), dtype=np.float32)
