"""The parts of a run below its headline: charts with their numbers, errors, and the method."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from context_bench.compare.sweeps import name_briefly, write_briefly
from context_bench.numbers import percent, seconds, tokens
from context_bench.output.elements import Child, Markup, element, join, table
from context_bench.output.page.run_facts import Failure, RunFacts, clean_id, clean_name
from context_bench.output.plots.by_system import draw_datasets, draw_depths, draw_meters, draw_times
from context_bench.output.plots.chart import Chart, Drawn
from context_bench.output.plots.curve import draw_curve
from context_bench.output.plots.grids import draw_evidence, draw_heatmap
from context_bench.output.plots.pareto import draw_pareto
from context_bench.output.plots.svg import draw_figure
from context_bench.output.tables import list_dataset_numbers, list_meters, list_slices, sum_up_curve, write_difference
from context_bench.results import EvalRow
from context_bench.text import dump_json

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve


MAX_SLICE_COLUMNS = 6  # most columns of systems in a table by slice, to fit the page


def show_charts(facts: RunFacts) -> dict[str, Markup | str]:
    """Draw the charts of a run, by part of the page; a plain text explains a missing chart."""
    return {
        "pareto": _show(facts, draw_pareto(facts.result)),
        "datasets": _show_datasets(facts),
        "curve": _show_curves(facts),
        "needles": _show(facts, draw_heatmap(facts.result, facts.cells)),
        "depth": _show(facts, draw_depths(facts.depths)),
        "evidence": _show_evidence(facts),
        "meters": _show_meters(facts),
        "times": _show(facts, draw_times(facts.result, facts.latencies, "latency")),
        "overhead": _show(facts, draw_times(facts.result, facts.overheads, "overhead"))
        if facts.overheads
        else f"a tap{'' if facts.is_memory else ' (--tap, --start or --vendor)'} measures it.",
    }


def _show_datasets(facts: RunFacts) -> Markup | str:
    """Show the scores by dataset, then savings, evidence and other numbers by dataset, then the slices."""
    found, more = _show(facts, draw_datasets(facts.result)), []
    for head, *lines in list_dataset_numbers(facts.result):
        titles, *body = _shorten_names(facts, [["system", *head[1:]], *lines])
        title = head[0].capitalize()
        more.append(join(element("h3", None, title), table(titles, body, title, "plain")))
    more += _show_slices(facts)
    return found if not more else join(found if isinstance(found, Markup) else None, *more)


def _show_slices(facts: RunFacts) -> list[Markup]:
    """Show the scores by each field of `--slice`, in several tables for many systems."""
    shown, brief = [], name_briefly(facts.result.summary)
    for found in list_slices(facts.result):
        if isinstance(found, str):
            shown.append(say_missing(found))
            continue
        title = found[0][0].capitalize()
        shown.append(element("h3", None, title))
        for first in range(2, len(found[0]), MAX_SLICE_COLUMNS):
            head, *lines = ([*line[:2], *line[first : first + MAX_SLICE_COLUMNS]] for line in found)
            names = [brief.get(name, name) for name in head[2:]]
            shown.append(table([head[0].removeprefix("score by "), "n", *names], lines, title, "plain"))
    return shown


def say_missing(why: str) -> Markup:
    """Explain why a part of the page is empty."""
    return element("p", {"class": "missing"}, why)


def _show(facts: RunFacts, drawn: Drawn, *more: Child) -> Markup | str:
    """Put a chart over its caption, and its numbers in a table that unfolds, followed by more tables."""
    if isinstance(drawn, str):
        return f"{drawn}."
    lines = _shorten_names(facts, drawn.lines)
    numbers = table(drawn.head, lines, drawn.subject.capitalize())
    return join(_show_figure(drawn, element("details", None, element("summary", None, "The numbers"), numbers, *more)))


def _shorten_names(facts: RunFacts, lines: Iterable[Sequence[str]]) -> list[list[Child]]:
    """Replace the cells that name systems and datasets by their short names."""
    brief = name_briefly(facts.result.settings.datasets) | name_briefly(facts.result.summary)
    return [[brief.get(cell, cell) for cell in line] for line in lines]


def _show_figure(chart: Chart, numbers: Child) -> Markup:
    scrolls = {"class": "plot", "tabindex": 0, "role": "group", "aria-label": f"Plot: {chart.subject}"}
    caption = element("figcaption", None, " ".join([f"{chart.title}.", *chart.notes]))
    return element("figure", None, element("div", scrolls, draw_figure(chart)), caption, numbers)


def _show_evidence(facts: RunFacts) -> Markup | str:
    drawn = draw_evidence(facts.result)
    if isinstance(drawn, str) and facts.is_memory:
        drawn = "retrieved turns are compared with evidence turns; see Memory"
    elif isinstance(drawn, str) and facts.has_evidence is False:
        drawn = "the examples do not name their evidence"
    return _show(facts, drawn)


def _show_meters(facts: RunFacts) -> Markup | str:
    drawn = draw_meters(facts.result)
    counted = [
        table(head, _shorten_names(facts, lines), head[0].capitalize(), "plain")
        for head, *lines in list_meters(facts.result)
    ]
    return join(*counted) if isinstance(drawn, str) and counted else _show(facts, drawn, *counted)


def _show_curves(facts: RunFacts) -> Markup | str:
    """Lay out the curves of a run as a chart and as tables, or explain their absence."""
    if not facts.has_sweep:
        return "no system was run at several settings of a parameter (as in truncate:ratio=0.3|0.5|0.7)."
    if facts.sweep_rows is None:
        return "the run has too many rows to draw it; context-bench runs show has the numbers."
    curves = facts.draw_curves()
    if not curves:
        return "the rows were not kept."
    chart = draw_curve(facts.result, curves)
    return join(
        _show_figure(chart, None) if isinstance(chart, Chart) else None,
        *(_describe_curve(each, facts.result.systems) for each in curves),
    )


def _describe_curve(curve: Curve, names: Sequence[str]) -> Markup:
    lines: list[list[Child]] = [
        [
            element("span", {"class": "best" if point.system == curve.best else None}, f"{curve.knob}={point.setting}"),
            "not measured" if math.isnan(point.tokens) else tokens(point.tokens),
            "not measured" if math.isnan(point.saving) else percent(point.saving),
            point.quality.render(),
            "baseline" if point.difference is None else write_difference(point.difference),
        ]
        for point in curve.points
    ]
    head = ["setting", "tokens", "saved", "score", "against the baseline"]
    notes = [element("li", None, write_briefly(line, names)) for line in sum_up_curve(curve)]
    title = element("h3", None, f"{write_briefly(curve.name, names)}: {curve.knob}")
    return join(title, table(head, lines, f"Curve of {curve.name}", "plain"), element("ul", {"class": "notes"}, *notes))


# --- errors and method


def link_example(run: str, row: EvalRow) -> Markup:
    """Link to an example on the page."""
    names = (clean_name(each) for each in (run, row.system, row.dataset))
    named = dump_json([*names, clean_id(row.example_id), row.repeat])
    return element("a", {"href": "#examples", "class": "to-example", "data-example": named}, str(row.example_id)[:80])


def error_table(facts: RunFacts) -> Markup | str:
    """Group failures by kind, and show the first failure of each kind."""
    parts: list[Child] = []
    kinds = (("error", "Rows that failed", facts.errors), ("no score", "Rows without a score", facts.unscored))
    for title, caption, found in kinds:
        if found:
            parts.append(_group(facts, title, caption, found))
    if not facts.seen:
        return "the rows were not kept."
    if not facts.errors:
        parts.insert(0, element("p", None, f"None of {facts.seen:,} rows failed."))
    return join(*parts)


def _group(facts: RunFacts, title: str, caption: str, found: Mapping[str, Failure]) -> Markup:
    most = sorted(found.items(), key=lambda item: (-sum(item[1].count.values()), item[0]))[:50]
    lines: list[list[Child]] = [
        [
            kind,
            f"{sum(failure.count.values()):,}",
            ", ".join(f"{name} {count:,}" for name, count in failure.count.items()),
            element("span", {"class": "long"}, failure.message[:300]),
            link_example(facts.name, failure.example),
        ]
        for kind, failure in most
    ]
    return table([title, "rows", "by system", "first message", "first example"], lines, caption, "words failures")


def describe_method(facts: RunFacts) -> Markup:
    """List the settings needed to repeat the run."""
    lines: list[list[Child]] = [
        [name, _write_value(value)] for name, value in _list_settings(facts) if value not in _NOTHING
    ]
    return table(["setting", "value"], lines, "How it was measured", "words method")


_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _list_settings(facts: RunFacts) -> Iterator[tuple[str, Any]]:
    settings = facts.result.settings
    command = shlex.join(map(str, settings.command))
    yield "command", command and f"context-bench {command}"
    yield "run file", settings.run_file
    yield "run", facts.name
    yield "started", facts.created
    yield "context-bench", settings.version
    yield "Python", settings.python
    yield "systems", settings.systems
    yield "model", settings.model
    sources = settings.sources
    for tag, count in settings.datasets.items():
        yield f"dataset {tag or '(no tag)'}", {"examples": f"{count:,}", **_flatten(sources.get(tag))}
    yield "which examples", settings.sample if settings.max_examples else "all"
    yield "at most", settings.max_examples
    yield "seed", settings.seed
    yield "repeats", settings.repeats // max(map(len, settings.seeds.values()), default=1)
    yield "score that counts", settings.score_field
    yield "primary score", settings.primary
    yield "primary score of contexts", settings.context_primary
    yield "lowest score that passes", settings.threshold
    yield "reasoning is scored", "yes" if settings.keep_reasoning else None
    yield "baseline", facts.baseline
    yield "margin", settings.margin
    yield "evaluators", settings.evaluators
    yield "metrics", [each.get("name", "") for each in settings.metrics if isinstance(each, Mapping)]
    yield "tokenizer", settings.tokenizer
    yield "prices", settings.prices
    yield "behind the systems", settings.reports
    yield "time of each system", _join_equal({name: seconds(value) for name, value in facts.result.timing.items()})
    yield "examples at a time", _join_equal(settings.workers)
    yield "rows from the cache", settings.reused
    yield "stopped early", settings.stopped
    yield "stopped systems", settings.stopped_systems


def _join_equal(values: Mapping[str, Any]) -> Any:
    return next(iter(values.values())) if len(set(values.values())) == 1 else values


def _flatten(source: Any) -> dict[str, Any]:
    return dict(source) if isinstance(source, Mapping) else {} if source is None else {"source": source}


def _write_value(value: Any) -> Child:
    if isinstance(value, Mapping):
        shown = [element("li", None, f"{key}: ", _inline(item)) for key, item in value.items() if item not in _NOTHING]
        return element("ul", None, *shown)
    if isinstance(value, str) and ("\n" in value or value.startswith("context-bench ")):
        return element("pre", None, value)
    return _inline(value)


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(
            f"{str(key).replace('_', ' ')} {_inline(item)}" for key, item in value.items() if item not in _NOTHING
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)
