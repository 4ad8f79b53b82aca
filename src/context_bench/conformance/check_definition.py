"""The definition of a check and of its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from context_bench.wire.dialects import Dialect

if TYPE_CHECKING:
    from context_bench.conformance.bench import Bench

__all__ = ["Check", "CheckFailed", "Outcome", "check", "require"]

Run = Callable[["Bench"], Awaitable[None]]

BOTH: tuple[Dialect, ...] = ("openai", "anthropic")


class CheckFailed(Exception):
    """A check found the protocol broken: one sentence, what was sent, and what arrived."""

    def __init__(self, reason: str, sent: Any = None, arrived: Any = None) -> None:
        super().__init__(reason)
        self.reason, self.sent, self.arrived = reason, sent, arrived


@dataclass(frozen=True)
class Check:
    """One question about a proxy; `apis` are those in which it makes sense."""

    name: str
    asks: str
    run: Run
    apis: tuple[Dialect, ...] = BOTH


@dataclass(frozen=True)
class Outcome:
    """The result of one check. `sent` and `arrived` show where it failed."""

    name: str
    asks: str
    status: Literal["pass", "fail", "skip"]
    reason: str = ""
    sent: Any = None
    arrived: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can say; empty fields are left out."""
        document: dict[str, Any] = {"name": self.name, "asks": self.asks, "status": self.status}
        if self.reason:
            document["reason"] = self.reason
        if self.status == "fail":
            document |= {"sent": self.sent, "arrived": self.arrived}
        return document


def check(name: str, asks: str, apis: tuple[Dialect, ...] = BOTH) -> Callable[[Run], Check]:
    """Make a check of a coroutine function, which raises CheckFailed."""
    return lambda run: Check(name, asks, run, apis)


def require(holds: bool, reason: str, sent: Any, arrived: Any) -> None:
    """Raise CheckFailed unless it holds."""
    if not holds:
        raise CheckFailed(reason, sent, arrived)
