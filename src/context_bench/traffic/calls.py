"""One request that reached the tap, with what it was answered: exact, timed, and without a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from context_bench.wire.completions import Completion, read_completion
from context_bench.wire.dialects import asks_model
from context_bench.wire.requests import Prompt, read_document, read_prompt

__all__ = ["Call"]


@dataclass(eq=False)
class Call:
    """A request at the tap, while it is under way and as it is stored.

    Moments are of `time.perf_counter` under way, and seconds since our request was sent in a stored record.

    Attributes:
        path: Where it was sent, such as `/v1/chat/completions`.
        body: The exact text of the request.
        headers: By lower-case name; values that may be secrets are `***`.
        started: When the whole request was there.
        first: When the first byte of the reply's body was passed on.
        ended: When its last byte was, or when it broke off; None while it is under way.
        status: Of the reply; 0 before there is one.
        reply: The body of the reply as it was sent; for a stream all its events.
        cut: Whether it broke off: the upstream failed, or the other side went away.
    """

    path: str
    body: str
    headers: dict[str, str] = field(default_factory=dict)
    started: float = 0.0
    first: float | None = None
    ended: float | None = None
    status: int = 0
    reply: str = ""
    cut: bool = False

    @property
    def asks_model(self) -> bool:
        """Whether a model was to answer it."""
        return asks_model(self.path)

    @property
    def embeds(self) -> bool:
        """Whether it asks for embeddings, which another model makes at a price of its own."""
        return self.path.endswith("/embeddings")

    @property
    def is_answered(self) -> bool:
        """Whether a model answered it, and did not refuse."""
        return 200 <= self.status < 300

    @cached_property
    def document(self) -> dict[str, Any]:
        """The request as JSON; empty when it is none."""
        return read_document(self.body)

    @cached_property
    def prompt(self) -> Prompt | None:
        """The prompt in it; None when it holds none."""
        return read_prompt(self.document)

    @cached_property
    def spelled_prompt(self) -> Prompt | None:
        """The prompt in the one spelling of all that mean the same to a model."""
        return self.prompt.as_read() if self.prompt else None

    @cached_property
    def completion(self) -> Completion | None:
        """The answer of the model; only to be asked for once the call has ended."""
        return read_completion(self.reply)

    def as_dict(self, since: float) -> dict[str, Any]:
        """Write it as it is stored: moments become seconds after `since`."""
        return {
            "path": self.path,
            "body": self.body,
            "headers": self.headers,
            "started": self.started - since,
            "first": None if self.first is None else self.first - since,
            "ended": None if self.ended is None else self.ended - since,
            "status": self.status,
            "reply": self.reply,
            "cut": self.cut,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Call:
        """Read what `as_dict` wrote, of whatever version: what it lacks has its default."""
        known = {name: record[name] for name in cls.__dataclass_fields__ if name in record}
        return cls(**known)
