"""Limits at which a run stops itself: errors, tokens, money."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from context_bench.errors import UsageError
from context_bench.monitors.monitor import Monitor
from context_bench.numbers import NUM_ERRORS, NUM_EXAMPLES
from context_bench.results import EvalRow

if TYPE_CHECKING:
    from context_bench.core.call import Outcome
    from context_bench.core.row import Job


@dataclass
class Limits:
    """The limits of a run. `ErrorLimit` counts errors after each row, `Budget` tokens and money before each request.

    Attributes:
        max_cost: Dollars that this run may spend.
        max_total_tokens: Prompt and completion tokens by the servers' count, else by ours.
        max_errors: Errors allowed for one system: a number ("20") or a share of its rows ("10%").
    """

    max_cost: float | None = None
    max_total_tokens: int | None = None
    max_errors: str | None = None

    @classmethod
    def read(cls, options: Any) -> Limits:
        """Read the limits from the options of a run; a missing option means no limit."""
        return cls(**{each.name: getattr(options, each.name, None) for each in fields(cls)})

    def __post_init__(self) -> None:
        for name in ("max_cost", "max_total_tokens"):
            value = getattr(self, name)
            number = read_number(value)
            if value is not None and (number is None or number < 0):
                raise UsageError(f"{name} must be a number of at least 0 (got {value!r})")
        if self.max_errors is not None and not _is_number_or_share(self.max_errors):
            raise UsageError(
                f"max_errors must be a number of errors ('20') or a share of the rows ('10%') (got {self.max_errors!r})"
            )

    @property
    def given(self) -> bool:
        return self.limits_spending or self.max_errors is not None

    @property
    def limits_spending(self) -> bool:
        return self.max_cost is not None or self.max_total_tokens is not None

    def count_allowed_errors(self, expected: int | None) -> float | None:
        """Return how many of the expected rows of one system may fail; None for no limit."""
        if self.max_errors is None:
            return None
        if not self.max_errors.endswith("%"):
            return float(self.max_errors)
        return None if expected is None else expected * float(self.max_errors[:-1]) / 100

    def is_exceeded(self, summary: dict[str, dict[str, float]]) -> bool:
        """Whether a finished run had more errors of one system than allowed."""
        for values in summary.values():
            allowed = self.count_allowed_errors(int(values[NUM_EXAMPLES]))
            if allowed is not None and values[NUM_ERRORS] > allowed:
                return True
        return False


class ErrorLimit(Monitor):
    """Stops the run when one system has failed on more examples than allowed.

    `expected` is the number of rows of each system. If it is not known, a share is checked only at the end.
    """

    def __init__(self, limits: Limits, expected: int | None) -> None:
        self._limits, self._allowed = limits, limits.count_allowed_errors(expected)
        self._errors: Counter[str] = Counter()

    def on_row(self, job: Job, row: EvalRow, outcome: Outcome) -> str | None:  # noqa: ARG002
        if row.error is None:
            return None
        self._errors[row.system] += 1
        count = self._errors[row.system]
        if self._allowed is None or count <= self._allowed:
            return None
        return f"{row.system} failed on {count} examples (--max-errors {self._limits.max_errors})"


def read_number(value: object) -> float | None:
    """Return a value from a server or system if it is a finite number, else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else None


def _is_number_or_share(text: object) -> bool:
    try:
        return isinstance(text, str) and float(text.removesuffix("%")) >= 0
    except ValueError:
        return False
