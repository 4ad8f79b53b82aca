"""The whole result as one strict JSON document."""

from __future__ import annotations

from context_bench.results import EvalResult

__all__ = ["JsonReporter"]


class JsonReporter:
    """What `EvalResult.from_json` reads back."""

    name = "json"

    def render(self, result: EvalResult) -> str:
        """Render the document, with a line end."""
        return result.to_json() + "\n"
