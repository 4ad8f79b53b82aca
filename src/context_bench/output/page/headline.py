"""The head of a run on the page: the question it asks, its answer, its numbers, and notes on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from context_bench.compare.sweeps import join_settings
from context_bench.numbers import MEAN_SCORE, score
from context_bench.output.columns import (
    HEADLINES,
    Column,
    choose_columns,
    find_best,
    list_tables,
    write_cell,
    write_limits,
)
from context_bench.output.conclusion import conclude, describe_alone
from context_bench.output.elements import Child, Markup, element, join, table
from context_bench.output.notes import list_notes
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.plots.pareto import choose_quality
from context_bench.output.plots.svg import draw_symbol
from context_bench.output.verdict_tables import write_aside
from context_bench.stats import Verdict
from context_bench.text import count_things, list_names

_APART = {
    "own query": "Own query: systems that answer by themselves",
    "context, not read": "Contexts that no model has read",
}
"""The heading of a table that stands apart."""


def headline_table(facts: RunFacts) -> Markup:
    """Lay out a line for each system: its verdict, and its numbers with their intervals; the best has a star.

    Systems whose scores are of another kind than the first ones' have a table apart.
    """
    first, *others = list_tables(facts.result) or [("system", [])]
    apart = [(_APART.get(title, "Systems that answer"), names) for title, names in others]
    return join(
        _lay_out(facts, "Headline numbers", first[1]) if first[1] else None,
        *(join(element("h3", None, title), _lay_out(facts, title, names)) for title, names in apart),
    )


def _lay_out(facts: RunFacts, title: str, names: Sequence[str]) -> Markup:
    columns = _choose_columns([facts])
    best = {key: find_best(facts.result, key, show, names) for _, key, show in columns}
    lines: list[list[Child]] = []
    for number, name in enumerate(facts.result.summary):
        if name in names:
            cells: list[Child] = [_name_system(number, name), _write_verdict(facts, name)]
            cells += [_write_value(facts, name, key, show, best=name in best[key]) for _, key, show in columns]
            lines.append(cells)
    head = ["system", "verdict", *(title for title, *_ in columns)]
    return table(head, lines, title, "headline")


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
    """Choose the columns that the terminal shows of any of the runs, in its order."""
    found: list[Column] = []
    for facts in runs:
        place = 0
        for column in choose_columns(facts.result):
            known = next((at for at, each in enumerate(found) if each[1] == column[1]), None)
            if known is None:
                found.insert(place, column)
            place = (place if known is None else known) + 1
    return found


def _name_system(number: int, name: str) -> Markup:
    return element("span", {"class": "system"}, draw_symbol(number), name)


def _write_value(facts: RunFacts, name: str, key: str, show: Callable[[float], str], *, best: bool) -> Child:
    """Write a number as the terminal does, with its interval beneath it."""
    values, note = facts.result.summary[name], facts.result.notes.get(name, {}).get(key)
    text = write_cell(facts.result, name, key, show, best=best)
    if math.isnan(values.get(key, math.nan)):
        return element("span", {"class": "none", "title": note}, text)
    shown = element("span", {"class": "best" if best else None, "title": note}, text)
    interval = facts.result.intervals.get(name, {}).get(key) if key in HEADLINES else None
    return join(shown, None if interval is None else element("small", None, write_limits(interval, show)))


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
        write_aside(verdict) or None,
        element("small", None, ", ".join(filter(None, more))),
    )


def note_headline(facts: RunFacts) -> Markup:
    """List what has to be known to read the numbers, as the terminal does."""
    items = list_notes(facts.result)
    return element("ul", {"class": "notes"}, *(element("li", None, item) for item in items)) if items else join()


def describe_memory(facts: RunFacts) -> Markup:
    """Lay out what only a run of memory systems has: what was found and probed, what it cost, what to beware of."""
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
    for head, *lines in (grid.lines for grid in grids):
        title = head[0].capitalize()
        parts += [element("h3", None, title), table(["system", *head[1:]], list(lines), title, "plain")]
    notes = [element("li", None, note) for note in list_memory_notes(facts.result)]
    return join(*parts, element("ul", {"class": "notes"}, *notes))


_MAX_SYSTEMS_TOLD = 6  # systems whose numbers are told


def ask_sentence(facts: RunFacts) -> str:
    """Say what was asked."""
    datasets = facts.result.settings.datasets
    data = list_names([f"{tag or 'the data'} ({count_things(count, 'example')})" for tag, count in datasets.items()])
    where = f" on {data}" if datasets else ""
    systems = facts.result.systems
    controls = set(facts.result.settings.controls)
    others = [name for name in systems if name != facts.baseline]
    others = [name for name in others if name not in controls] or others
    if facts.baseline is None or not others:
        return f"How well does {list_names(join_settings(systems))} do{where}?"
    asked = join_settings(others)
    verb = "does" if len(asked) == 1 else "do"
    return f"How {verb} {list_names(asked)} compare with {facts.baseline}{where}?"


def answer_sentence(facts: RunFacts) -> str:
    """Say what came out: what the verdicts conclude, or the numbers where there is nothing to hold them against."""
    result, key = facts.result, choose_quality(facts.result)
    concluded = conclude(result) or describe_alone(result)
    if concluded:
        return concluded
    scored = [name for name in result.systems if math.isfinite(result.summary[name].get(key, math.nan))]
    if not scored:
        return "Nothing could be scored: there are tokens, times and errors only."
    told = [
        f"{name} has a {key.replace('_', ' ')} of {_write_score(facts, name, key)}"
        for name in scored[:_MAX_SYSTEMS_TOLD]
    ]
    return f"{'; '.join(told)}; there is {_explain_silence(facts)}, so no verdict."


def _explain_silence(facts: RunFacts) -> str:
    """Say why there is no verdict."""
    comparison, unread = facts.result.comparison, facts.result.settings.unread
    if comparison is None and 0 < len(unread) < len(facts.result.systems):
        return "no score that contexts and answers have in common"
    if comparison is None or not comparison.verdicts:
        return "no second system with the same examples"
    if all(verdict.control for verdict in comparison.verdicts):
        return "no system beside the baseline and the controls"
    return "no score that tells of quality"


def _write_score(facts: RunFacts, name: str, key: str) -> str:
    interval = facts.result.intervals.get(name, {}).get(key)
    value = facts.result.summary.get(name, {}).get(key, math.nan)
    if interval is not None and interval.known and not interval.mark:
        return f"{score(value)} {write_limits(interval, score)}"
    return score(value) if math.isfinite(value) else "not measured"
