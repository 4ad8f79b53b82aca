"""Tables of a run of memory systems: quality by type, what was found and probed, what it cost, what to beware of."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

from context_bench.memory.findings import list_findings
from context_bench.memory.repayment import READ_PRICE, WRITE_PRICE, Repayment, find_repayments
from context_bench.reporters.fitting import fit_columns
from context_bench.reporters.layout import dollars, percent, score, seconds, tokens
from context_bench.results import EvalResult, EvalRow

__all__ = [
    *("Grid", "QuestionTimes", "add_question_time", "list_leading_grids", "list_memory_grids", "list_memory_notes"),
    "time_questions",
]

Column = tuple[str, str, Callable[[float], str]]
"""Title, key of the summary, and how its value is written."""

QuestionTimes = dict[tuple[str, int], "array[float]"]
"""Seconds of the questions by system, and by which of the lengths of history they belong to."""


class Grid(NamedTuple):
    """A table as texts: its lines, titles first, and which columns give way first where not all fit."""

    lines: list[list[str]]
    gives_way: list[str]

    def fit(self, width: int | None) -> str:
        """Lay it out for a terminal."""
        return fit_columns(self.lines, width, self.gives_way)


_COSTS: tuple[Column, ...] = (
    ("turns", "ingest_turns", tokens),
    ("calls / 1k turns", "ingest_calls", "{:,.1f}".format),
    ("tokens / 1k turns", "ingest_tokens", tokens),
    ("embedded / 1k turns", "ingest_embed_tokens", tokens),
    ("$ / 1k turns", "ingest_usd", dollars),
    ("time / 1k turns", "ingest_seconds", seconds),
    ("searchable after", "searchable_seconds", seconds),
    ("disk", "disk_bytes", lambda value: f"{value / 1024:,.0f} kB"),
    ("memories", "memories", tokens),
    ("calls / question", "query_calls", "{:,.1f}".format),
    ("tokens / question", "query_tokens", tokens),
    ("$ / question", "query_usd", dollars),
    ("time / question", "query_seconds_median", seconds),
)
_RETRIEVAL: tuple[Column, ...] = (
    ("recall", "retrieval_recall", score),
    ("recall@10", "retrieval_recall_at_10", score),
    ("nDCG", "retrieval_ndcg", score),
    ("precision", "retrieval_precision", score),
)
_LENGTHS = (4_000, 16_000, 64_000, 256_000, 1_000_000)


def _about(result: EvalResult, name: str) -> dict[str, Any]:
    report = (result.config.get("reports") or {}).get(name) or {}
    return report.get("memory") or {}


def list_leading_grids(result: EvalResult) -> list[Grid]:
    """List what comes before the scores where a script reads: they say less than what was retrieved."""
    return _list_found(result) if _is_read_by_script(result) else []


def list_memory_grids(result: EvalResult, times: QuestionTimes) -> list[Grid]:
    """List the tables that only memory systems have, after the scores."""
    by_type: list[Column] = [(key.partition(":")[2], key, score) for key in _list_keys(result, "type:")]
    grids = [
        _lay_out(result, "score by type", by_type, result.summary),
        *([] if _is_read_by_script(result) else _list_found(result)),
        _lay_out(result, "answers to probes", _list_answer_columns(result), result.summary),
        _lay_out(result, "costs of memory", _COSTS, _choose_one_each(result), _describe_system),
        _lay_out_repayments(result),
        _lay_out_lengths(result, times),
    ]
    return [grid for grid in grids if grid]


def _list_found(result: EvalResult) -> list[Grid]:
    """List what was retrieved, and the probes of it."""
    probes: list[Column] = [(key.removeprefix("probe_"), key, percent) for key in _list_keys(result, "probe_")]
    more: list[Column] = [(key.replace("_", " "), key, percent) for key in _list_keys(result, "store_")]
    if not _is_read_by_script(result):
        more += [("abstention", "abstention", percent)] if _list_keys(result, "abstention") else []
    grids = [
        _lay_out(result, "retrieved", _RETRIEVAL, result.summary),
        _lay_out(result, "probes passed", [*probes, *more], result.summary),
    ]
    return [grid for grid in grids if grid]


def _list_answer_columns(result: EvalResult) -> list[Column]:
    """List the probes of answers; of a script that reads, its answers tell nothing that the retrieved text does not."""
    if _is_read_by_script(result):
        return []
    return [
        (key.removeprefix("answer_"), key, percent) for key in _list_keys(result, "answer_") if key != "answer_tokens"
    ]


def _list_keys(result: EvalResult, prefix: str) -> list[str]:
    return sorted({key for values in result.summary.values() for key in values if key.startswith(prefix)})


def _is_read_by_script(result: EvalResult) -> bool:
    return (result.config.get("memory") or {}).get("reader") == "extract"


def _lay_out(
    result: EvalResult,
    title: str,
    columns: Sequence[Column],
    names: Iterable[str],
    describe: Callable[[EvalResult, str], str] = lambda _, name: name,
) -> Grid | None:
    """Lay out a table of those columns that some system has a number for, and of the systems that have any."""
    values = {name: result.summary[name] for name in names}
    shown = [column for column in columns if any(column[1] in each for each in values.values())]
    lines = [
        [describe(result, name), *(_write(each.get(key), show) for _, key, show in shown)]
        for name, each in values.items()
        if any(key in each for _, key, _ in shown)
    ]
    if not shown or not lines:
        return None
    titles = [name for name, _, _ in shown]
    return Grid([[title, *titles], *lines], titles[::-1])


def _write(value: float | None, show: Callable[[float], str]) -> str:
    if value is None:
        return "–"
    return "not measured" if math.isnan(value) else show(value)


def _choose_one_each(result: EvalResult) -> list[str]:
    """Choose one line for each memory system: what it took to write does not depend on how it is asked."""
    chosen: dict[str, str] = {}
    for name in result.summary:
        chosen.setdefault(str(_about(result, name).get("system") or name), name)
    return list(chosen.values())


def _describe_system(result: EvalResult, name: str) -> str:
    about = _about(result, name)
    return f"{about.get('system') or name} ({about.get('granularity', '')}, dates {about.get('dates', '')})"


def _lay_out_repayments(result: EvalResult) -> Grid | None:
    found = find_repayments(result)
    if not found:
        return None
    spent = any("cost_of_pass_usd" in values for values in result.summary.values())
    lines = [["questions to repay writing", "warm cache", "cold", *(["$ / right answer"] if spent else [])]]
    for name, each in found.items():
        cost = result.summary[name].get("cost_of_pass_usd", math.nan)
        more = ["–" if math.isnan(cost) else dollars(cost)] if spent else []
        lines.append([name, *_write_repayment(each), *more])
    return Grid(lines, ["$ / right answer"])


def _write_repayment(each: Repayment) -> list[str]:
    if each.reason:
        return [each.reason, "–"]
    return ["never" if math.isinf(value) else f"{math.ceil(value):,}" for value in (each.warm, each.cold)]


def time_questions(rows: Iterable[EvalRow]) -> QuestionTimes:
    """Gather how long questions took, by system and length of the history."""
    times: QuestionTimes = {}
    for row in rows:
        add_question_time(times, row)
    return times


def add_question_time(times: QuestionTimes, row: EvalRow) -> None:
    """Add the time of a question, if the row is one of a memory system."""
    facts, length = row.metadata.get("memory"), row.metadata.get("history_tokens")
    if row.error is None and isinstance(facts, dict) and isinstance(length, int):
        place = sum(length > each for each in _LENGTHS)
        times.setdefault((row.system, place), array("d")).append(float(facts["query"]["seconds"]))


def _lay_out_lengths(result: EvalResult, times: QuestionTimes) -> Grid | None:
    """Lay out the time of a question against the length of the history."""
    names = _choose_one_each(result)
    places = sorted({place for name, place in times if name in names})
    if len(places) < 2:
        return None
    titles = [f"up to {_LENGTHS[place]:,}" if place < len(_LENGTHS) else f"above {_LENGTHS[-1]:,}" for place in places]
    lines = [["time / question, by tokens of history", *titles]]
    for name in names:
        known = [times.get((name, place)) for place in places]
        lines.append([name, *("–" if each is None else seconds(median(each)) for each in known)])
    return Grid(lines, titles[::-1])


def list_memory_notes(result: EvalResult) -> list[str]:
    """Say how the memory systems were compared, and what was found out about them."""
    about = result.config["memory"]
    lines = list_findings(result)
    reader = about.get("reader")
    if reader == "extract":
        lines.append(
            "read by a script, not a model: scores tell what it could find in the retrieved text; retrieval and probes "
            "come first, and abstention is not measured."
        )
    lines.append(
        f"ingested by {' and '.join(about.get('granularity') or ())}; the reader got what was retrieved in the order "
        "of time, with dates, within the budget; naive, oracle and closed-book are controls without a budget."
    )
    if any("ingest_calls" in values for values in result.summary.values()):
        lines.append("costs: background work until it was quiet is in them; what no tap counted is not measured.")
    if find_repayments(result):
        lines.append(
            f"questions to repay: about one conversation, against sending its history; every token costs the same, "
            f"{READ_PRICE:g} of it read from a warm cache, {WRITE_PRICE:g} written to a cold one."
        )
    return lines
