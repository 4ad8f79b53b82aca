"""An API as the checks need it: how a request is written, and what a reply or a stream says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from context_bench.wire.dialects import Dialect
from context_bench.wire.replies import ToolCall

__all__ = ["KEY", "Form", "Message", "Said"]

KEY = "sk-conformance-0123456789abcdef"
Message = dict[str, Any]


@dataclass(slots=True)
class Said:
    """The content of a reply, plain or assembled from a stream."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    finish: str | None = None
    ended: bool = True


class Form(Protocol):
    """One API."""

    api: Dialect
    path: str
    model: str
    key: tuple[str, str]
    headers: Mapping[str, str]
    settings: Mapping[str, Any]
    caller: Mapping[str, Any]
    usage: Mapping[str, int]

    def build_request(self, messages: Sequence[Message], **fields: Any) -> dict[str, Any]: ...

    def build_tool(self, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]: ...

    def read_schema(self, tool: Mapping[str, Any]) -> Any: ...

    def build_image(self, text: str, kind: str, data: str) -> Message: ...

    def build_tool_exchange(self, calls: Sequence[ToolCall], results: Sequence[str]) -> list[Message]: ...

    def read_tool_ids(self, messages: Sequence[Message]) -> tuple[list[Any], list[Any]]: ...

    def read_reply(self, document: Any) -> Said: ...

    def read_stream(self, events: Iterable[Any]) -> Said: ...
