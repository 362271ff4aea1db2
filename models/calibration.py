"""Turns a model's cosines into scores that mean the same for every model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def logistic(cosines: NDArray[Any], *, midpoint: float, slope: float) -> NDArray[np.float64]:
    """``1 / (1 + exp(-slope * (cosine - midpoint)))``: strictly rising, 0.5 at ``midpoint``, same shape."""
    values = np.asarray(cosines, dtype=np.float64)
    return np.asarray(1.0 / (1.0 + np.exp(-slope * (values - midpoint))), dtype=np.float64)
