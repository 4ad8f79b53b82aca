"""One request that reached the tap, with what it was answered: exact, timed, and without a secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Call"]


@dataclass(slots=True)
class Call:
    """A request at the tap. Moments are of `time.perf_counter`.

    Attributes:
        path: Where it was sent, such as `/v1/chat/completions`.
        body: The exact text of the request.
        headers: By lower-case name; values that may be secrets are `***`.
        started: When the whole request was there.
        first: When the first byte of the reply's body was passed on.
        ended: When its last byte was, or when it broke off; None while it is under way.
        cut: Whether it broke off: the upstream failed, or the other side went away.
        status: Of the reply.
        reply: The body of the reply as it was sent; for a stream all its events.
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

    def as_dict(self, since: float) -> dict[str, Any]:
        """As it is stored: moments become seconds after `since`."""
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
