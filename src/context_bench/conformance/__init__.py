"""Does a proxy keep the protocol intact? Deterministic checks of a proxy between our own client and our own upstream.

Each check sends a request through the proxy, answers it at the tap, and compares what was sent with what arrived, in
both directions. A proxy may shorten what a model reads, but must not break it.
"""

from __future__ import annotations

from context_bench.conformance.bench import Check, ExamOutcome
from context_bench.conformance.examination import CHECKS, Findings, choose_checks, examine, render_json, render_table

__all__ = ["CHECKS", "Check", "ExamOutcome", "Findings", "choose_checks", "examine", "render_json", "render_table"]
