"""Tool output of the three kinds (JSON, logs, code), as the `json_logs` generator gets it."""

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
