"""The main table of a run on the page, with the notes on its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from context_bench.compare.sweeps import name_briefly, write_briefly
from context_bench.numbers import MEAN_SCORE
from context_bench.output.columns import (
    HEADLINES,
    Column,
    choose_columns,
    find_best,
    list_tables,
    tell_apart,
    write_cell,
    write_limits,
)
from context_bench.output.elements import Child, Markup, element, join, table
from context_bench.output.notes import list_caveats, list_notes
from context_bench.output.page.answer import link_counts
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.plots.labels import number_series
from context_bench.output.plots.svg import draw_symbol
from context_bench.output.verdict_tables import write_aside, write_blindness
from context_bench.stats import Verdict

_APART = {
    "own query": "Own query: systems that answer by themselves",
    "context, not read": "Contexts that no model has read",
}
"""The headings of separate tables."""


def headline_table(facts: RunFacts) -> Markup:
    """Lay out a line for each system: verdict, and numbers with intervals; the best has a star.

    Systems with another kind of score get a separate table.
    """
    first, *others = list_tables(facts.result) or [("system", [])]
    apart = [(_APART.get(title, "Systems that answer"), names) for title, names in others]
    return join(
        _lay_out(facts, "Headline numbers", first[1]) if first[1] else None,
        *(join(element("h3", None, title), _lay_out(facts, title, names)) for title, names in apart),
    )


def _lay_out(facts: RunFacts, title: str, names: Sequence[str]) -> Markup:
    """Lay out the default columns of the terminal, and all columns in a fold below."""
    main, every = (_list_systems(facts, title, names, wide=wide) for wide in (False, True))
    folded = element("details", {"class": "all", "open": facts.wide}, element("summary", None, "All columns"), every)
    return join(main, folded if every != main else None)


def _list_systems(facts: RunFacts, title: str, names: Sequence[str], *, wide: bool) -> Markup:
    columns = _choose_columns([facts], wide=wide)
    best = {key: find_best(facts.result, key, show, names) for _, key, show in columns}
    lines: list[list[Child]] = []
    brief, numbers = name_briefly(facts.result.summary), number_series(facts.result.summary)
    linked = not wide and any(facts.counts.values())
    for name in facts.result.summary:
        if name in names:
            cells: list[Child] = [_name_system(numbers[name], name, brief[name]), _write_verdict(facts, name)]
            cells += [_write_value(facts, name, key, show, best=name in best[key]) for _, key, show in columns]
            lines.append([*cells, *([element("small", None, *link_counts(facts, name, brief=True))] if linked else [])])
    head = ["system", "verdict", *(title for title, *_ in columns), *(["look at"] if linked else [])]
    return table(head, lines, f"{title}, all columns" if wide else title, "headline")


def compare_headlines(runs: Sequence[RunFacts]) -> Markup:
    """Lay out a line for each system of each run, grouped by system."""
    columns = _choose_columns(runs, wide=False)
    numbers = number_series(dict.fromkeys(name for facts in runs for name in facts.result.summary))
    brief = name_briefly(numbers)
    lines: list[list[Child]] = []
    for name, number in numbers.items():
        for facts in runs:
            if name in facts.result.summary:
                cells: list[Child] = [_name_system(number, name, brief[name]), facts.name, _write_verdict(facts, name)]
                cells += [_write_value(facts, name, key, show, best=False) for _, key, show in columns]
                lines.append(cells)
    head = ["system", "run", "verdict", *(title for title, *_ in columns)]
    return table(head, lines, "Runs side by side", "headline runs")


def _choose_columns(runs: Sequence[RunFacts], *, wide: bool) -> list[Column]:
    """Choose the columns that the terminal shows for any of the runs, in its order."""
    found: list[Column] = []
    for facts in runs:
        place = 0
        for column in choose_columns(facts.result, wide=wide):
            known = next((at for at, each in enumerate(found) if each[1] == column[1]), None)
            if known is None:
                found.insert(place, column)
            place = (place if known is None else known) + 1
    return tell_apart(found)


def _name_system(number: int, name: str, brief: str) -> Markup:
    return element("span", {"class": "system", "title": name}, draw_symbol(number), brief)


def _write_value(facts: RunFacts, name: str, key: str, show: Callable[[float], str], *, best: bool) -> Child:
    """Write a number like the terminal, with its interval below."""
    values, note = facts.result.summary[name], facts.result.notes.get(name, {}).get(key)
    text = write_cell(facts.result, name, key, show, best=best)
    if math.isnan(values.get(key, math.nan)):
        return element("span", {"class": "none", "title": note}, text)
    shown = element("span", {"class": "best" if best else None, "title": note}, text)
    interval = facts.result.intervals.get(name, {}).get(key) if key in HEADLINES else None
    return join(shown, None if interval is None else element("small", None, write_limits(interval, show)))


_SIGNS = {"better": "▲", "worse": "▼", "equivalent": "=", "not worse": "≥", "undecided": "?"}


def verdict_words(verdict: Verdict) -> Markup:
    """Write a verdict with a sign, readable without colour."""
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
        return element(
            "span", {"class": "none", "title": facts.result.notes.get(name, {}).get(MEAN_SCORE)}, "no verdict"
        )
    p = "" if math.isnan(verdict.p_holm) else "p < 0.001" if verdict.p_holm < 0.001 else f"p = {verdict.p_holm:.3f}"
    limits = ""
    if verdict.interval.known:
        limits = f"{verdict.difference:+.3f} [{verdict.interval.low:+.3f}, {verdict.interval.high:+.3f}]"
    more = [limits, p]
    if verdict.errors_disagree:
        more.append(f"{verdict.word_without_errors} without errors")
    return element(
        "span",
        {"title": verdict.reason},
        verdict_words(verdict),
        write_aside(verdict) or write_blindness(verdict, comparison.sensitivity) or None,
        element("small", None, ", ".join(filter(None, more))),
    )


def note_headline(facts: RunFacts) -> Markup:
    """List the caveats of this run; explanations of columns and marks are folded."""
    names = facts.result.systems
    caveats = list(dict.fromkeys(list_caveats(facts.result)))
    meanings = [note for note in list_notes(facts.result) if note not in caveats]
    shown, folded = (
        element("ul", {"class": "notes"}, *(element("li", None, write_briefly(note, names)) for note in notes))
        for notes in (caveats, meanings)
    )
    summary = element("summary", None, "How to read this table")
    return join(
        shown if caveats else None,
        element("details", {"class": "reading"}, summary, folded) if meanings else None,
    )


def describe_memory(facts: RunFacts) -> Markup:
    """Lay out the parts specific to memory systems: retrieval, probes, costs and caveats."""
    from context_bench.output.memory import (
        HistoryLengths,
        list_leading_grids,
        list_memory_grids,
        list_memory_notes,
        list_outcomes,
    )

    grids = [*list_leading_grids(facts.result), *list_memory_grids(facts.result, facts.lengths or HistoryLengths())]
    found = [element("li", None, note) for note in list_outcomes(facts.result)]
    parts: list[Child] = [element("ul", {"class": "notes"}, *found)] if found else []
    brief = name_briefly(facts.result.systems)
    for head, *lines in (grid.lines for grid in grids):
        title = f"{head[0][:1].upper()}{head[0][1:]}"
        named = [[brief.get(name, name), *cells] for name, *cells in lines]
        parts += [element("h3", None, title), table(["system", *head[1:]], named, title, "plain")]
    notes = [element("li", None, note) for note in list_memory_notes(facts.result)]
    return join(*parts, element("ul", {"class": "notes"}, *notes))
