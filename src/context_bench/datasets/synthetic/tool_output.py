"""What the three kinds of tool output (JSON, logs, code) hand to the `json_logs` generator."""

from __future__ import annotations

from typing import NamedTuple

from context_bench.datasets.synthetic.fit import Stock


class ToolOutput(NamedTuple):
    """Filler of one kind, and the fact to hide in it: `unit` states it, `evidence` is the part that matters."""

    stock: Stock
    unit: str
    evidence: str
    question: str
    answer: str
    layout: str
