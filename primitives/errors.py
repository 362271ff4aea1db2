"""The one exception tree of the project.

Every error that this project raises on purpose derives from :class:`EverCoreError`. Each class names the HTTP status
it becomes at the API and a stable machine-readable ``code``; ``hint`` tells the way out in one sentence.
"""

from __future__ import annotations

from typing import Any, ClassVar


class EverCoreError(Exception):
    """Root of the tree. ``details`` is JSON-serialisable and is handed to API clients as it is."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, message: str, *, hint: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details or {}

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[Any, ...]:
        """Picklable with all its parts, since Ray carries errors between processes."""
        return _rebuild, (type(self), self.message, self.hint, self.details)


def _rebuild(kind: type[EverCoreError], message: str, hint: str, details: dict[str, Any]) -> EverCoreError:
    return kind(message, hint=hint, details=details)


class ConfigurationError(EverCoreError):
    """A setting is unknown, malformed or contradicts another one."""

    code = "CONFIGURATION_ERROR"


class InvalidInputError(EverCoreError):
    """The request or the file is wrong, and sending it again will not help."""

    status = 422
    code = "INVALID_INPUT"


class UnreadableInputError(InvalidInputError):
    """A file, or one record of it, could not be parsed."""

    code = "UNREADABLE_INPUT"


class InvalidFilterError(InvalidInputError):
    """A search filter names an unknown field, an unknown operator or no owner."""

    code = "INVALID_FILTER"


class NotFoundError(EverCoreError):
    """The named thing does not exist for this tenant."""

    status = 404
    code = "NOT_FOUND"


class ConflictError(EverCoreError):
    """The same key exists with other content, or somebody else holds the lease."""

    status = 409
    code = "CONFLICT"


class LeaseLostError(ConflictError):
    """The lease ran out or was taken over; whatever was in flight was rolled back."""

    code = "LEASE_LOST"


class StaleEpochError(ConflictError):
    """The owner was deleted from while this work ran; the work was rolled back."""

    code = "STALE_EPOCH"


class TooLargeError(EverCoreError):
    """A body or a message is over its configured limit."""

    status = 413
    code = "TOO_LARGE"


class OverloadedError(EverCoreError):
    """The server sheds load; try again after ``Retry-After``."""

    status = 429
    code = "OVERLOADED"


class UnavailableError(EverCoreError):
    """A store or a model does not answer."""

    status = 503
    code = "UNAVAILABLE"


class StoreError(UnavailableError):
    """A store failed or is not usable (full disk, no rights, wrong schema version)."""

    code = "STORE_ERROR"


class ModelError(UnavailableError):
    """An embedding, reranking or language model failed."""

    code = "MODEL_ERROR"
