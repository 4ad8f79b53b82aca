"""The Protocols that components satisfy, and nothing else.

Implement the methods on any class: nothing has to be imported or subclassed. Optional members are
named in the docstrings; the engine uses them where they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow

__all__ = ["Evaluator", "Example", "MemorySystem", "Metric", "Reporter", "System"]

Example = dict[str, Any]


@runtime_checkable
class System(Protocol):
    """What is being measured: takes an example, returns what it makes of it.

    The returned dict carries a `response`, a new `context` (a compressor) or `documents` (a reranker);
    `metadata` in it is kept on the row, and so are the token counts of `api_usage`; `turn_responses` has the reply to
    each turn of a conversation. Optional members: `aprocess(example)`, awaited instead of
    `process`; `process_conversation(turns)`; `fingerprint`, what makes its answers differ; `reads_gold`,
    False when its answers do not depend on the gold, which is in the example that it is given; `sends_elsewhere`,
    true when it sends its prompt to a server and returns the answer alone, so that its output tokens say nothing
    about compression.
    """

    @property
    def name(self) -> str: ...

    def process(self, example: Example) -> Example: ...


@runtime_checkable
class Evaluator(Protocol):
    """Compares an example before and after a system, and returns named scores.

    Optional members: `score_fields`, the keys that it can emit; `ascore`, awaited instead of `score`;
    `version`, changed whenever its verdicts change.
    """

    @property
    def name(self) -> str: ...

    def score(self, original: Example, processed: Example) -> dict[str, float]: ...


@runtime_checkable
class Metric(Protocol):
    """Turns all the rows of one system into summary numbers.

    Optional members: `start()`, which returns a tally (`add(row)`, `result()`), so that no row has to be kept;
    `by_dataset`, the keys that a run over several datasets also gives as `<key>@<dataset>` (needs `start`).
    """

    @property
    def name(self) -> str: ...

    def compute(self, rows: list[EvalRow]) -> dict[str, float]: ...


@runtime_checkable
class Reporter(Protocol):
    """Renders a finished result as text."""

    @property
    def name(self) -> str: ...

    def render(self, result: EvalResult) -> str: ...


@runtime_checkable
class MemorySystem(Protocol):
    """Takes in a conversation once, then answers questions about it."""

    @property
    def name(self) -> str: ...

    def reset(self) -> None: ...

    def ingest(self, turns: Sequence[dict[str, Any]]) -> None: ...

    def query(self, question: str) -> str: ...
