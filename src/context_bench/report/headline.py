"""The tables that are read first: the numbers of each system with their intervals, and the verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from context_bench.report.axes import draw_mark, svg, table
from context_bench.report.elements import Child, Markup, element, join
from context_bench.report.run_facts import RunFacts
from context_bench.reporters.layout import dollars, percent, score, seconds, tokens
from context_bench.reporters.number_cells import find_best
from context_bench.reporters.verdict_table import explain_verdicts, name_metric
from context_bench.stats import Interval, Verdict

__all__ = ["compare_headlines", "headline_table", "list_notes", "verdict_words"]

Column = tuple[str, str, Callable[[float], str]]
"""Title, key of the summary, and how a value is written."""

_COLUMNS: tuple[Column, ...] = (
    ("examples", "num_examples", "{:,.0f}".format),
    ("errors", "num_errors", "{:,.0f}".format),
    ("unscored", "num_unscored", "{:,.0f}".format),
    ("macro score", "macro_score", score),
    ("score", "mean_score", score),
    ("official", "official_score", score),
    ("pass rate", "pass_rate", percent),
    ("judge score", "mean_score:judge_score", score),
    ("evidence survived", "evidence_survival", percent),
    ("compression", "compression_ratio", percent),
    ("prompt savings", "prompt_savings", percent),
    ("tokens / pass", "cost_of_pass", tokens),
    ("model tokens / pass", "upstream_cost_of_pass", tokens),
    ("$ / pass", "cost_of_pass_usd", dollars),
    ("$ / 1,000", "cost_per_1k_usd", dollars),
    ("latency p50", "latency_median", seconds),
    ("latency p95", "latency_p95", seconds),
    ("overhead p50", "proxy_overhead_median", seconds),
    ("retention", "retention", percent),
    ("Pareto rank", "pareto_rank", "{:.0f}".format),
)
_ONLY_WHEN_NOT_ZERO = ("num_errors", "num_unscored")


def headline_table(facts: RunFacts) -> Markup:
    """Lay out a line for each system: its verdict, and its numbers with their intervals; the best is marked."""
    columns = _choose_columns([facts])
    best = {key: find_best(facts.result, key, show) for _, key, show in columns}
    lines: list[list[Child]] = []
    for number, name in enumerate(facts.result.summary):
        cells: list[Child] = [_name_system(number, name), _write_verdict(facts, name)]
        cells += [_write_value(facts, name, key, show, best=name in best[key]) for _, key, show in columns]
        lines.append(cells)
    head = ["system", "verdict", *(title for title, *_ in columns)]
    return table(head, lines, "Headline numbers", "headline")


def compare_headlines(runs: Sequence[RunFacts]) -> Markup:
    """Lay out a line for each system of each run; systems of the same name stand beneath one another."""
    columns = _choose_columns(runs)
    numbers = {
        name: number
        for number, name in enumerate(dict.fromkeys(name for facts in runs for name in facts.result.summary))
    }
    lines: list[list[Child]] = []
    for name, number in numbers.items():
        for facts in runs:
            if name in facts.result.summary:
                cells: list[Child] = [_name_system(number, name), facts.name, _write_verdict(facts, name)]
                cells += [_write_value(facts, name, key, show, best=False) for _, key, show in columns]
                lines.append(cells)
    head = ["system", "run", "verdict", *(title for title, *_ in columns)]
    return table(head, lines, "Runs side by side", "headline runs")


def _choose_columns(runs: Sequence[RunFacts]) -> list[Column]:
    """Choose the columns that any of the runs has a number for."""
    columns = [column for column in _COLUMNS if any(_is_shown(facts, column[1]) for facts in runs)]
    own = {
        key: None
        for facts in runs
        for key in (facts.result.config.get("columns") or {})
        if any(math.isfinite(values.get(key, math.nan)) for values in facts.result.summary.values())
    }
    return [*columns, *((key, key, "{:.4g}".format) for key in own)]


def _is_shown(facts: RunFacts, key: str) -> bool:
    values = [own[key] for own in facts.result.summary.values() if key in own]
    return any(values) if key in _ONLY_WHEN_NOT_ZERO else any(map(math.isfinite, values))


def _name_system(number: int, name: str) -> Markup:
    return element("span", {"class": "system"}, svg(16, 16, "", draw_mark(8, 8, number, "")), name)


def _write_value(facts: RunFacts, name: str, key: str, show: Callable[[float], str], *, best: bool) -> Child:
    values, note = facts.result.summary[name], facts.result.notes.get(name, {}).get(key)
    value = values.get(key)
    if value is None or math.isnan(value):
        text = "not priced" if (note or "").startswith("not priced") else "not measured" if key in values else "–"
        return element("span", {"class": "none", "title": note}, text)
    kind = "best" if best else None
    shown = element("span", {"class": kind, "title": note}, show(value) + ("*" if note else ""))
    mark = element("span", {"class": "sr"}, " (best)") if best else None
    return join(shown, mark, _write_limits(facts.result.intervals.get(name, {}).get(key), show))


def _write_limits(interval: Interval | None, show: Callable[[float], str]) -> Markup | None:
    if interval is None:
        return None
    if not interval.known or interval.mark == "too few":
        return element("small", None, "too few")
    return element(
        "small", None, f"[{show(interval.low)}, {show(interval.high)}]", f" {interval.mark}" if interval.mark else None
    )


_SIGNS = {"better": "▲", "worse": "▼", "equivalent": "=", "not worse": "≥", "undecided": "?"}


def verdict_words(verdict: Verdict) -> Markup:
    """Write the word of a verdict with a sign, so that it does not depend on colour."""
    kind = verdict.word.replace(" ", "-")
    return element("span", {"class": f"verdict {kind}"}, f"{_SIGNS.get(verdict.word, '')} {verdict.word}".strip())


def _write_verdict(facts: RunFacts, name: str) -> Child:
    comparison = facts.result.comparison
    if comparison is None:
        return element("span", {"class": "none"}, "no comparison")
    if name == comparison.baseline:
        return element("span", {"class": "verdict base"}, "baseline")
    verdict = comparison.of(name)
    if verdict is None:
        return element("span", {"class": "none"}, "no pairs")
    p = "" if math.isnan(verdict.p_holm) else "p < 0.001" if verdict.p_holm < 0.001 else f"p = {verdict.p_holm:.3f}"
    limits = ""
    if verdict.interval.known:
        limits = f"{verdict.difference:+.3f} [{verdict.interval.low:+.3f}, {verdict.interval.high:+.3f}]"
    more = [limits, p, "control" if verdict.control else ""]
    if verdict.errors_disagree:
        more.append(f"{verdict.word_without_errors} without errors")
    return element(
        "span", {"title": verdict.reason}, verdict_words(verdict), element("small", None, ", ".join(filter(None, more)))
    )


def list_notes(facts: RunFacts) -> Markup:
    """List what has to be known to read the numbers: each note once, with the numbers and systems that it is about."""
    titles = {key: title for title, key, *_ in _COLUMNS}
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for name, notes in facts.result.notes.items():
        for key, note in notes.items():
            keys, names = found.setdefault(note, ({}, {}))
            plain = key.partition("@")[0]
            keys[titles.get(plain, plain)] = names[name] = None
    items = [f"* {', '.join(keys)} of {', '.join(names)}: {note}." for note, (keys, names) in found.items()]
    comparison = facts.result.comparison
    if comparison is not None:
        metric = name_metric(comparison.metric)
        items.append(f"The difference is that of the {metric} from {comparison.baseline}, on the same examples.")
    items += explain_verdicts(facts.result)
    return element("ul", {"class": "notes"}, *(element("li", None, item) for item in items)) if items else join()
