"""The result as a Markdown table that lines up in a terminal.

Columns for what the run computed, a second table for the single datasets, and notes for every number
that is not what it seems.
"""

from __future__ import annotations

from collections.abc import Callable

from context_bench.datasets.catalog import card_for
from context_bench.errors import printable
from context_bench.reporters.layout import markdown, percent, score, seconds, tokens
from context_bench.reporters.upstream import evidence, meters, upstream_notes
from context_bench.results import EvalResult

__all__ = ["TableReporter"]

Summary = dict[str, float]


_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("n", "num_examples", "{:.0f}".format),
    ("errors", "num_errors", "{:.0f}".format),
    ("unscored", "num_unscored", "{:.0f}".format),
    ("score", "mean_score", score),
    ("official", "official_score", score),
    ("pass rate", "pass_rate", percent),
    ("compression", "compression_ratio", percent),
    ("savings", "prompt_savings", percent),
    ("untouched", "untouched_share", percent),
    ("cost of pass", "cost_of_pass", tokens),
    ("cost of pass", "upstream_cost_of_pass", tokens),
    ("latency p50", "latency_median", seconds),
    ("p95", "latency_p95", seconds),
    ("overhead p50", "proxy_overhead_median", seconds),
    ("first token", "first_token_overhead_median", seconds),
    ("retention", "retention", percent),
    ("Pareto", "pareto_rank", "{:.0f}".format),
)
_WHEN_NOT_ZERO = {"num_errors", "num_unscored"}
_FROM_SCORES = {"mean_score", "official_score", "pass_rate", "cost_of_pass", "upstream_cost_of_pass"}
_NOT_MEASURED = "not measured"


class TableReporter:
    """One line for each system."""

    name = "table"

    def render(self, result: EvalResult) -> str:
        """The table of systems, the table of datasets where there are several, and the notes."""
        parts = [self._systems(result), meters(result), evidence(result), self._datasets(result), self._notes(result)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _systems(self, result: EvalResult) -> str:
        summary = result.summary
        columns = [column for column in _COLUMNS if _is_shown(column[1], summary)]
        if _all_metered(result):  # then these say less than what the tap saw
            columns = [column for column in columns if column[1] not in ("compression_ratio", "cost_of_pass")]
        else:
            columns = [column for column in columns if column[1] != "upstream_cost_of_pass"]
        lines = [["system", *(title for title, _, _ in columns)]]
        for name, values in summary.items():
            lines.append([name, *(self._value(result, name, values, key, show) for _, key, show in columns)])
        return markdown(lines)

    @staticmethod
    def _value(result: EvalResult, name: str, values: Summary, key: str, show: Callable[[float], str]) -> str:
        if key not in values:
            return "–"
        if key == "compression_ratio" and _answers(result, name):
            return _NOT_MEASURED
        if key in _FROM_SCORES and values.get("num_examples", 1) == values.get("num_unscored", 0):
            return "–"
        all_failed = "num_errors" in values and values["num_errors"] == values.get("num_examples")
        if all_failed and key.startswith(("latency", "compression")):
            return "–"
        return show(values[key])

    @staticmethod
    def _datasets(result: EvalResult) -> str:
        keys = sorted({key for values in result.summary.values() for key in values if key.startswith("dataset:")})
        if len(keys) < 2:
            return ""
        lines = [["score by dataset", *(key.removeprefix("dataset:") for key in keys)]]
        for name, values in result.summary.items():
            lines.append([name, *(score(values[key]) if key in values else "–" for key in keys)])
        return markdown(lines)

    def _notes(self, result: EvalResult) -> str:
        notes = [_score_note(result), _f1_note(result)]
        if _all_metered(result):
            notes.append("cost of pass = tokens that the model read and wrote for each example that passed.")
        notes += upstream_notes(result)
        if any(_answers(result, name) and not _is_metered(result, name) for name in result.summary):
            notes.append(
                "compression is not measured for systems that return an answer: what they sent on is not seen."
            )
        return "\n".join(printable(note) for note in notes if note)


def _is_shown(key: str, summary: dict[str, Summary]) -> bool:
    values = [own[key] for own in summary.values() if key in own]
    return any(values) if key in _WHEN_NOT_ZERO else bool(values)


def _answers(result: EvalResult, name: str) -> bool:
    """Whether a system returns answers, so that its output tokens say nothing of what a model read."""
    returns: dict[str, str] = result.config.get("returns", {})
    return returns.get(name) == "response"


def _is_metered(result: EvalResult, name: str) -> bool:
    """Whether it is known what the model behind a system got to read."""
    return "prompt_savings" in result.summary[name]


def _all_metered(result: EvalResult) -> bool:
    return bool(result.summary) and all(_is_metered(result, name) for name in result.summary)


def _score_note(result: EvalResult) -> str:
    field = result.config.get("score_field", "score")
    if field != "score":
        return f"score = {field}."
    names = {}
    for tag in result.config.get("datasets", {}):
        card = card_for(tag)
        primary = result.config.get("primary", {}).get(tag, "by its fields")
        names[tag] = (card.primary + (" (stand-in)" if card.stand_in else "")) if card else primary
    if not names:
        return ""
    if len(set(names.values())) == 1:
        return f"score = {next(iter(names.values()))}."
    return "score = " + ", ".join(f"{primary} for {tag}" for tag, primary in names.items()) + "."


def _f1_note(result: EvalResult) -> str:
    """F1 holds a whole context against a short answer, so that the shortest context wins: say what to use instead."""
    primaries = set(result.config.get("primary", {}).values())
    contexts = "context" in result.config.get("returns", {}).values()
    if result.config.get("score_field") != "score" or "f1" not in primaries or not contexts:
        return ""
    return "f1 of a whole context says little: --score-field answer_in_context asks whether the answer is still there."
