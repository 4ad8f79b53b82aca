"""What reached the model, as tables: three meters side by side, and what became of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from context_bench.reporters.layout import markdown, percent, tokens
from context_bench.results import EvalResult

__all__ = ["evidence", "meters", "upstream_notes"]

Column = tuple[str, str, Callable[[float], str]]

_METERS: tuple[Column, ...] = (
    ("sent", "downstream_tokens", tokens),
    ("reached the model", "upstream_tokens", tokens),
    ("saved, by the tap", "counted_tokens_saved", tokens),
    ("saved, its own claim", "claimed_tokens_saved", tokens),
    ("prompt, by API usage", "usage_prompt_tokens", tokens),
    ("extra calls", "extra_upstream_calls", "{:.0f}".format),
)
_EVIDENCE: tuple[Column, ...] = (
    ("rows", "evidence_rows", "{:.0f}".format),
    ("survived", "evidence_survival", percent),
    ("lost by the system", "lost_by_system", percent),
    ("failed anyway", "failed_anyway", percent),
    ("right without it", "right_without_evidence", percent),
)
_PREFIX: tuple[Column, ...] = (
    ("prefix kept", "prefix_stability", percent),
    ("first message changed", "first_message_changed", percent),
    ("history rewritten", "rewritten_history", percent),
)


_LOCAL = "smoke test: the model `local` is a small one on this machine; its scores say nothing about a real model"


def meters(result: EvalResult) -> str:
    """Tokens as the tap counted them, as the proxy claims them, and as the API bills them."""
    return "\n\n".join(filter(None, [_table(result, "tokens", _METERS), _table(result, "prompt cache", _PREFIX)]))


def evidence(result: EvalResult) -> str:
    """Whether what the answer needs reached the model, against whether the answer was right."""
    return _table(result, "evidence", _EVIDENCE)


def _table(result: EvalResult, title: str, columns: Sequence[Column]) -> str:
    """The systems that have any of these numbers; nothing when none has the first."""
    first = columns[0][1]
    systems = {name: values for name, values in result.summary.items() if first in values}
    shown = [column for column in columns if any(column[1] in values for values in systems.values())]
    if not systems:
        return ""
    lines = [[title, *(head for head, _, _ in shown)]]
    for name, values in systems.items():
        lines.append([name, *(show(values[key]) if key in values else "–" for _, key, show in shown)])
    return markdown(lines)


def upstream_notes(result: EvalResult) -> list[str]:
    """What must be known to read the numbers of a tap."""
    notes = []
    for name, report in result.config.get("reports", {}).items():
        if report.get("unmatched"):
            count = report["unmatched"]
            requests = "1 request fits" if count == 1 else f"{count} requests fit"
            notes.append(f"{name}: {requests} no single example and count for none.")
    labels = {report.get("label"): None for report in result.config.get("reports", {}).values()}
    if result.config.get("model") == "local" and not any(labels):
        labels[_LOCAL] = None
    return notes + [f"{label}." for label in labels if label]
