"""The model itself, behind a tap but no proxy: what it knows without a context, and what it can do with all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from context_bench.http.loop import run_sync
from context_bench.systems.bounds import ClosedBook, Oracle, Passthrough
from context_bench.systems.conversation import ask
from context_bench.systems.prompts import merge
from context_bench.tap.system import Tapped
from context_bench.traits import SystemTraits, system_traits
from context_bench.types import Example

__all__ = ["CONTROLS", "Control"]

CONTROLS: dict[str, Any] = {"floor": ClosedBook, "ceiling": Oracle, "direct": Passthrough}
"""No context, the evidence alone, the full context; and what makes such a prompt."""


class Control:
    """Asks the model without the proxy, for one of the prompts that a proxy is compared with.

    Args:
        name: One of CONTROLS.
        reader: A server whose address is that of its own tap.
    """

    sends_elsewhere = True
    reads_gold = True
    """The ceiling needs to know what the evidence is."""

    def __init__(self, name: str, reader: Tapped) -> None:
        self.name, self.reader, self.tap = name, reader, reader.tap
        self._maker = CONTROLS[name]()
        self.model, self.max_workers, self.local = reader.model, reader.max_workers, reader.local
        self.prepare, self.finish = reader.prepare, reader.finish

    def __context_bench_traits__(self) -> SystemTraits:
        return replace(
            system_traits(self.reader),
            parts=[self._maker, self.reader],
            max_workers=self.max_workers,
            takes_turns=self.local,
            competes=False,
            request_body=self._request_body,
        )

    def _request_body(self, example: Example) -> Mapping[str, Any] | None:
        make_body = system_traits(self.reader).request_body
        return None if make_body is None else make_body(self._make_prompt(example))

    def _make_prompt(self, example: Example) -> Example:
        return merge(example, self._maker.process(dict(example)))

    async def aprocess(self, example: Example) -> Example:
        """Make the prompt, and ask."""
        result: Example = await ask(self.reader, self._make_prompt(example))
        return result

    def process(self, example: Example) -> Example:
        """Call `aprocess` for a caller without an event loop."""
        return run_sync(self.aprocess(example))
