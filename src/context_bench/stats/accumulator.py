"""The base of every running sum: merges with another one, and goes to JSON and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, TypeVar

__all__ = ["Accumulator", "keep_largest", "keep_smallest"]

Own = TypeVar("Own", bound="Accumulator")


def keep_smallest() -> Any:
    """Make a field that holds a minimum."""
    return field(default=math.inf, metadata={"merge": min})


def keep_largest() -> Any:
    """Make a field that holds a maximum."""
    return field(default=-math.inf, metadata={"merge": max})


def _add(one: Any, other: Any) -> Any:
    return one + other


class Accumulator:
    """Parent of the dataclasses whose fields are sums; a field that is not a sum says how it is merged.

    Two accumulators over two parts of the data, merged, equal one over all of it. The state is strict JSON.
    """

    def merge(self, other: Any) -> None:
        """Take in what another accumulator of this kind has."""
        for each in fields(self):  # type: ignore[arg-type]
            join: Callable[[Any, Any], Any] = each.metadata.get("merge", _add)
            setattr(self, each.name, join(getattr(self, each.name), getattr(other, each.name)))

    def state(self) -> dict[str, Any]:
        """Give the fields as JSON can hold them; an empty minimum or maximum is null."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {name: None if value in (math.inf, -math.inf) else value for name, value in values.items()}

    @classmethod
    def from_state(cls: type[Own], state: Mapping[str, Any]) -> Own:
        """Make an accumulator again from its state."""
        return cls(**{name: value for name, value in state.items() if value is not None})
