"""The contracts between the rest of the project and whatever model runs behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ModelIdentity:
    """Which vector space a vector lives in.

    ``id`` and ``revision`` are stored with each vector; vectors of two identities must never be compared.
    ``dimension`` is the length of a vector. ``query_instruction`` is the text that the engine puts before a query
    by itself ("" for none); callers never add it.
    """

    id: str
    revision: str
    dimension: int
    query_instruction: str = ""

    @property
    def space(self) -> str:
        """Name of the vector space: what is stored with an index and must agree at query time."""
        return f"{self.id}@{self.revision}"


@runtime_checkable
class Embedder(Protocol):
    """Texts to unit vectors.

    A text's vector does not depend on the texts embedded with it (max abs difference 1e-6), no text is refused for
    its content or length, and every method may be called from many tasks at once.
    """

    @property
    def identity(self) -> ModelIdentity:
        """The vector space of every vector this embedder returns."""

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of stored texts, shape (len(texts), dimension), L2-normalised, in the order given.

        Raises ``ModelError`` where the model fails and ``OverloadedError`` where a queue is full.
        """

    async def embed_query(self, text: str) -> Vectors:
        """Vector of a search query, shape (dimension,), L2-normalised. Raises as :meth:`embed_documents`."""

    def calibrate(self, cosines: NDArray[Any]) -> NDArray[np.float64]:
        """Monotone map of query-document cosines to scores in [0, 1], same shape.

        0.5 is where related and unrelated pairs are equally likely, so that one threshold fits every engine.
        """

    async def close(self) -> None:
        """Release threads and memory; calling it twice does no harm."""


@runtime_checkable
class Reranker(Protocol):
    """Scores documents against a query by reading both together."""

    async def rerank(self, query: str, documents: Sequence[str]) -> list[float]:
        """One score in [0, 1] per document, in the order given. Raises ``ModelError``."""

    async def close(self) -> None:
        """Release what the engine holds."""


@runtime_checkable
class ChatModel(Protocol):
    """A language model that answers a conversation."""

    async def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        json_schema: Mapping[str, Any] | None = None,
        temperature: float = 0.0,
        max_tokens: int | None = None,
    ) -> str:
        """The answer's text; ``messages`` are ``{"role", "content"}``. Raises ``ModelError``.

        With ``json_schema`` the endpoint is asked to constrain its answer to it; callers validate all the same.
        """

    async def close(self) -> None:
        """Release connections."""
