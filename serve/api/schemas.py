"""Request bodies of the API, with EverCore V1's names and limits.

Bodies that select or change something refuse unknown fields, since a misspelt filter would select too much; bodies that
add messages ignore them, since V1 clients send fields of their own.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, model_validator

from serve.api.fields import Identifier, Milliseconds, Moment, OwnerId, Selector, SessionId, Text, cleaned
from serve.query import ALL_ABOVE_THRESHOLD, MOST_TOP_K

MOST_MESSAGES = 500
ALL = "__all__"
"""V1's mark of a field that does not narrow a deletion."""


ADD_EXAMPLE: dict[str, Any] = {
    "user_id": "user-001",
    "session_id": "session-001",
    "messages": [{"role": "user", "content": "我今天去了上海博物馆", "timestamp": 1_709_629_200_000}],
}
SEARCH_EXAMPLE: dict[str, Any] = {"query": "博物馆", "method": "hybrid", "filters": {"user_id": "user-001"}, "top_k": 5}


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


# ---------------------------------------------------------------- adding


class MessageItem(Lenient):
    """One message. `content` is text, or a list of items of which those of type `text` are joined."""

    message_id: Identifier | None = None
    sender_id: Identifier | None = None
    sender_name: Annotated[Text, Field(max_length=512)] | None = None
    role: Literal["user", "assistant"]
    timestamp: Milliseconds | None = None
    content: Annotated[str | list[dict[str, Any]], BeforeValidator(cleaned)]


class PersonalAdd(Lenient):
    """Messages of one person and their assistant."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [ADD_EXAMPLE]})

    user_id: OwnerId
    session_id: SessionId | None = None
    messages: Annotated[list[MessageItem], Field(min_length=1, max_length=MOST_MESSAGES)]


class GroupMeta(Lenient):
    name: Text | None = None
    description: Text | None = None


class GroupAdd(Lenient):
    """Messages of a group; each names its sender."""

    group_id: OwnerId
    session_id: SessionId | None = None
    group_meta: GroupMeta | None = None
    messages: Annotated[list[MessageItem], Field(min_length=1, max_length=MOST_MESSAGES)]


# ---------------------------------------------------------------- flushing


class PersonalFlush(Strict):
    """Without session_id, all of the person's conversations with pending messages."""

    user_id: Identifier
    session_id: SessionId | None = None
    wait: StrictBool = True


class GroupFlush(Strict):
    group_id: Identifier
    session_id: SessionId | None = None
    wait: StrictBool = True


# ---------------------------------------------------------------- reading


class Search(Strict):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [SEARCH_EXAMPLE]})

    query: Annotated[Text, Field(min_length=1, max_length=20_000)]
    method: Literal["keyword", "vector", "hybrid", "agentic"] = "hybrid"
    memory_types: list[str] | None = None
    filters: dict[str, Any]
    top_k: StrictInt = ALL_ABOVE_THRESHOLD
    radius: Annotated[float, Field(ge=0, le=1, strict=True)] | None = None
    include_original_data: StrictBool = False
    explain: StrictBool = False
    as_of: Moment | None = None
    include_faded: StrictBool = False

    @model_validator(mode="after")
    def _top_k(self) -> Search:
        if self.top_k != ALL_ABOVE_THRESHOLD and not 1 <= self.top_k <= MOST_TOP_K:
            raise ValueError(f"top_k must be 1 to {MOST_TOP_K}, or -1 for all above the threshold")
        return self


class Get(Strict):
    memory_type: str
    filters: dict[str, Any]
    page: Annotated[StrictInt, Field(ge=1, le=10_000_000)] = 1
    page_size: Annotated[StrictInt, Field(ge=1, le=100)] = 20
    rank_by: Literal["timestamp"] = "timestamp"
    rank_order: Literal["asc", "desc"] = "desc"


class Patch(Strict):
    """The fields to change; which ones there are depends on the type of the memory."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _clean(cls, fields: Any) -> Any:
        return cleaned(fields)

    @model_validator(mode="after")
    def _no_blank_text(self) -> Patch:
        for name, value in (self.model_extra or {}).items():
            if isinstance(value, str) and not value.strip():
                raise ValueError(f"{name} is blank")
        return self


# ---------------------------------------------------------------- deleting


class Delete(Strict):
    """Either memory_id, or user_id and/or group_id, narrowed by session_id and sender_id.

    A field that is left out or "__all__" does not narrow; null or "" fits rows without a value.
    """

    memory_id: Identifier | None = None
    user_id: Selector | None = ALL
    group_id: Selector | None = ALL
    session_id: Selector | None = ALL
    sender_id: Selector | None = ALL

    @model_validator(mode="after")
    def _one_way(self) -> Delete:
        by_owner = {"user_id", "group_id", "session_id", "sender_id"} & self.model_fields_set
        if self.memory_id is not None and by_owner:
            raise ValueError("give either memory_id or user_id/group_id, not both")
        if self.memory_id is None and not any(value and value != ALL for value in (self.user_id, self.group_id)):
            raise ValueError("give memory_id, or a user_id or group_id")
        return self


# ---------------------------------------------------------------- resources


class GroupBody(Strict):
    group_id: Identifier
    name: Text | None = None
    description: Text | None = None


class SenderBody(Strict):
    sender_id: Identifier
    name: Text | None = None


class _Change(Strict):
    @model_validator(mode="after")
    def _something(self) -> _Change:
        if not self.model_fields_set:
            raise ValueError("give at least one field to change")
        return self


class GroupChange(_Change):
    name: Text | None = None
    description: Text | None = None


class SenderChange(_Change):
    name: Text | None = None


class SettingsBody(_Change):
    llm_custom_setting: Annotated[dict[str, Any], BeforeValidator(cleaned)] | None = None
