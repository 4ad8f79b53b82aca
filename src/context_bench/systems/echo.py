"""An answer together with the example that it answers, for those who call `process()` themselves.

A script that sends one example to a proxy wants the example back with its response. A run must not count those fields:
it asked for an answer, and a context that merely came back was not put out by the system. So the echo is marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_bench.types import Example

__all__ = ["Echo", "drop_echo"]

_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")


class Echo(dict[str, Any]):
    """The fields of an example, overlaid with an answer; `api_usage` has the tokens that the server reported."""

    def __init__(self, example: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        super().__init__({**example, **answer})
        self._echoed = {key: value for key, value in example.items() if key not in answer}
        usage = {key: answer["metadata"][key] for key in _USAGE if key in answer.get("metadata", {})}
        if usage:
            self["api_usage"] = self._echoed["api_usage"] = usage

    def answer(self) -> Example:
        """Return what is not an echo: the answer, and what the caller has changed since."""
        return {key: value for key, value in self.items() if self._echoed.get(key, self) is not value}


def drop_echo(result: Any) -> Any:
    """Return what a system said itself; anything but an echo as it is."""
    return result.answer() if isinstance(result, Echo) else result
