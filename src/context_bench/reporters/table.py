"""The result as a Markdown table that lines up in a terminal.

Columns for what the run computed, more tables for the single datasets, and notes for every number that is not what it
seems. A number with a note is marked with an asterisk; one that was not measured says so. With a width, no line is
longer: columns give way by importance, and a line names them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from context_bench.comparison import find_empty_score
from context_bench.datasets.catalog import Card, card_for
from context_bench.reporters.color import color_table
from context_bench.reporters.conclusion import conclude
from context_bench.reporters.curve_tables import curve_tables
from context_bench.reporters.fitting import fit_columns, fit_grid, wrap
from context_bench.reporters.layout import dollars, format_as, markdown_width, percent, score, seconds, tokens
from context_bench.reporters.number_cells import BEST, HEADLINES, find_best, write_cell
from context_bench.reporters.plain_text import escape_note
from context_bench.reporters.upstream_tables import evidence, meters, upstream_notes
from context_bench.reporters.verdict_table import explain_verdicts, verdict_table
from context_bench.results import EvalResult
from context_bench.run_plan.lock import describe_lock

__all__ = ["TableReporter"]

Column = tuple[str, str, Callable[[float], str]]
"""Title, key of the summary, and how its value is written."""

_EVIDENCE: Column = ("evidence", "evidence_survival", percent)
_COLUMNS: tuple[Column, ...] = (
    ("n", "num_examples", "{:.0f}".format),
    ("errors", "num_errors", "{:.0f}".format),
    ("unscored", "num_unscored", "{:.0f}".format),
    ("macro score", "macro_score", score),
    ("score", "mean_score", score),
    ("official", "official_score", score),
    ("pass rate", "pass_rate", percent),
    ("judge score", "mean_score:judge_score", score),
    ("card pass rate", "card_pass_rate", percent),
    ("pass@k", "pass_at_k", percent),
    ("pass^k", "pass_all_k", percent),
    ("flips", "repeat_flips", percent),
    ("repeat variance", "repeat_variance_share", percent),
    ("compression", "compression_ratio", percent),
    ("savings", "prompt_savings", percent),
    ("untouched", "untouched_share", percent),
    ("cost of pass", "cost_of_pass", tokens),
    ("model tokens / pass", "upstream_cost_of_pass", tokens),
    ("$ / pass", "cost_of_pass_usd", dollars),
    ("$ / 1k", "cost_per_1k_usd", dollars),
    ("$ saved / 1k", "saved_per_1k_usd", dollars),
    ("judge $", "judge_cost_usd", dollars),
    ("latency p50", "latency_median", seconds),
    ("p95", "latency_p95", seconds),
    ("overhead p50", "proxy_overhead_median", seconds),
    ("first token", "first_token_overhead_median", seconds),
    ("retention", "retention", percent),
    ("Pareto", "pareto_rank", "{:.0f}".format),
)
_BY_IMPORTANCE = (
    "macro_score",
    "mean_score",
    "num_errors",
    "num_unscored",
    "evidence_survival",
    "mean_score:judge_score",
    "prompt_savings",
    "compression_ratio",
    "pass_rate",
    "official_score",
    "num_examples",
    "upstream_cost_of_pass",
    "cost_of_pass",
    "cost_of_pass_usd",
    "saved_per_1k_usd",
    "pass_at_k",
    "pass_all_k",
    "repeat_flips",
    "pareto_rank",
    "retention",
    "latency_median",
    "proxy_overhead_median",
    "latency_p95",
    "cost_per_1k_usd",
    "first_token_overhead_median",
    "untouched_share",
    "card_pass_rate",
    "judge_cost_usd",
    "repeat_variance_share",
)
"""Which columns are left out last where not all fit; a column that is not named here goes first."""
_NEEDS = {"p95": "latency p50"}
"""A title that is short because another one stands before it."""
_BY_DATASET: tuple[Column, ...] = (
    ("compression by dataset", "compression_ratio", percent),
    ("savings by dataset", "prompt_savings", percent),
    ("evidence survived, by dataset", "evidence_survival", percent),
    ("model tokens / pass, by dataset", "upstream_cost_of_pass", tokens),
    ("overhead p50 by dataset", "proxy_overhead_median", seconds),
)
_WHEN_NOT_ZERO = {"num_errors", "num_unscored"}
_LESS_THAN_THE_TAP = {"compression_ratio", "cost_of_pass"}
"""Columns that say less than what a tap or a reader saw; left out where that is known of every system."""

_MARK = "*"


class TableReporter:
    """One line for each system.

    Args:
        width: Columns of the terminal that it is for; None leaves nothing out.
        color: Whether the terminal shows colours.
    """

    name = "table"

    def __init__(self, width: int | None = None, color: bool = False) -> None:
        self._width, self._color = width, color

    def render(self, result: EvalResult) -> str:
        """Render the tables of systems and, where there are several, of datasets, the notes, and the conclusion."""
        parts = [
            *self._memory(result, lead=True),
            *self._systems(result),
            *self._memory(result),
            verdict_table(result, self._width),
            meters(result, self._width),
            evidence(result, self._width),
            *self._datasets(result),
            *curve_tables(result, self._width),
            wrap(escape_note(describe_lock(result.config)), self._width),
            self._notes(result),
            wrap(escape_note(conclude(result)), self._width),
        ]
        text = "\n\n".join(part for part in parts if part) + "\n"
        return color_table(text) if self._color else text

    def list_headline(self, result: EvalResult) -> list[list[str]]:
        """List the cells of the table of systems with all intervals, titles first."""
        return _list_lines(result, "system", list(result.summary), _choose_columns(result), HEADLINES)

    def _systems(self, result: EvalResult) -> list[str]:
        """Lay out the systems; memory systems that answer by themselves have a table apart from those with a reader."""
        columns = _choose_columns(result)
        own = _list_own_answers(result)
        others = [name for name in result.summary if name not in own]
        tables = [self._lay_out(result, "system", others, columns)] if others or not own else []
        return [*tables, *([self._lay_out(result, "own query", own, columns)] if own else [])]

    def _memory(self, result: EvalResult, *, lead: bool = False) -> list[str]:
        """Lay out what only a run of memory systems has."""
        if "memory" not in result.config:
            return []
        from context_bench.reporters.memory_notes import memory_notes, memory_outcome
        from context_bench.reporters.memory_tables import leading_tables, memory_tables

        if lead:
            return [memory_outcome(result, self._width), *leading_tables(result, self._width)]
        return [*memory_tables(result, self._width), memory_notes(result, self._width)]

    def _lay_out(self, result: EvalResult, title: str, names: Sequence[str], columns: Sequence[Column]) -> str:
        """Lay out a table of systems; where it is too wide, intervals but the first give way before numbers do."""
        lines = _list_lines(result, title, names, columns, HEADLINES)
        left_out = []
        if self._width is not None and markdown_width(lines) > self._width:
            first = next((key for _, key, _ in columns if key in HEADLINES), "")
            shorter = _list_lines(result, title, names, columns, {first})
            left_out = ["other intervals"] if shorter != lines else []
            lines = shorter
        return fit_columns(lines, self._width, _order_to_give_way(columns), _NEEDS, left_out)

    def _datasets(self, result: EvalResult) -> list[str]:
        scores = sorted({key for values in result.summary.values() for key in values if key.startswith("dataset:")})
        tables = [_lines_by_dataset(result, "score by dataset", scores, score)] if len(scores) > 1 else []
        own = [(f"{key} by dataset", key, show) for key, show in _own_columns(result).items()]
        for title, key, show in (*_BY_DATASET, *own):
            keys = sorted({each for values in result.summary.values() for each in values if each.startswith(f"{key}@")})
            shown = key not in _LESS_THAN_THE_TAP or not _all_metered(result)
            if shown and any(key in values and not math.isnan(values[key]) for values in result.summary.values()):
                tables += [_lines_by_dataset(result, title, keys, show)] if len(keys) > 1 else []
        return [fit_grid(lines, self._width) for lines in tables]

    def _notes(self, result: EvalResult) -> str:
        notes = [_score_note(result), _macro_note(result), _f1_note(result)]
        if result.config.get("gold") and not any(result.config["gold"].values()) and _is_unscored(result):
            notes.append("no gold answers: tokens and time only.")
        if any("upstream_cost_of_pass" in values for values in result.summary.values()):
            notes.append("model tokens / pass = what the model read and wrote for each example that passed.")
        notes += [_explain_repeats(result), *_explain_marks(result)]
        notes.append(_explain_best(result))
        notes += upstream_notes(result)
        notes += explain_verdicts(result)
        return "\n".join(wrap(escape_note(note), self._width) for note in notes if note)


def _list_lines(
    result: EvalResult, title: str, names: Sequence[str], columns: Sequence[Column], limits: Collection[str]
) -> list[list[str]]:
    """List a line for each of these systems, titles first; the numbers of `limits` have their intervals."""
    best = {key: find_best(result, key, show, names) for _, key, show in columns}
    return [[title, *(column for column, _, _ in columns)]] + [
        [
            name,
            *(
                write_cell(result, name, key, show, best=name in best[key], limits=key in limits)
                for _, key, show in columns
            ),
        ]
        for name in names
    ]


def _list_own_answers(result: EvalResult) -> list[str]:
    """List the memory systems of a run that answer by themselves."""
    if "memory" not in result.config:
        return []
    from context_bench.reporters.memory_tables import list_own_answers

    return list_own_answers(result)


def _choose_columns(result: EvalResult) -> list[Column]:
    """Choose the columns that this run has something for."""
    columns = [column for column in _COLUMNS if _is_shown(column[1], result.summary)]
    if _all_metered(result):
        columns = [column for column in columns if column[1] not in _LESS_THAN_THE_TAP]
    if _is_shown(_EVIDENCE[1], result.summary) and _is_answered_by_script(result):
        # A script's answers say little; whether the evidence got through says what the run is about.
        places = [place for place, column in enumerate(columns) if column[1] in ("macro_score", "mean_score")]
        place = min(places, default=len(columns))
        columns.insert(place, _EVIDENCE)
    first = [key for _, key, _ in _COLUMNS]
    further = [
        (key, key, show)
        for values in result.summary.values()
        for key in values
        for plain, show in [(key.partition(":")[0], _format_of(key.partition(":")[0]))]
        if ":" in key and key not in first and plain in first and show is not None
    ]
    known = {key for _, key, _ in (*columns, *further)}
    own = [(key, key, show) for key, show in _own_columns(result).items() if key not in known]
    return [*columns, *dict.fromkeys(further), *own]


def _own_columns(result: EvalResult) -> dict[str, Callable[[float], str]]:
    """List the numbers of metrics that do not ship with the package, with how each is written."""
    columns: dict[str, str] = result.config.get("columns") or {}
    return {key: format_as(form) for key, form in columns.items() if _is_shown(key, result.summary)}


def _order_to_give_way(columns: Sequence[Column]) -> list[str]:
    """Order the titles, the least important first."""
    ranks = {key: rank for rank, key in enumerate(_BY_IMPORTANCE)}
    ordered = sorted(columns, key=lambda column: ranks.get(column[1], len(ranks)))
    return [title for title, _, _ in reversed(ordered)]


def _format_of(key: str) -> Callable[[float], str] | None:
    return next((show for _, each, show in _COLUMNS if each == key), None)


def _is_shown(key: str, summary: dict[str, dict[str, float]]) -> bool:
    values = [own[key] for own in summary.values() if key in own]
    if key.endswith("_usd"):  # where nothing is priced there is nothing to compare
        return not all(map(math.isnan, values))
    return any(values) if key in _WHEN_NOT_ZERO else bool(values)


def _lines_by_dataset(
    result: EvalResult, title: str, keys: Sequence[str], show: Callable[[float], str]
) -> list[list[str]]:
    tags = [key.partition(":" if key.startswith("dataset:") else "@")[2] for key in keys]
    lines = [[title, *tags]]
    best = {key: find_best(result, key, show) for key in keys}
    lines += [
        [name, *(write_cell(result, name, key, show, best=name in best[key]) for key in keys)]
        for name in result.summary
    ]
    return lines


def _explain_marks(result: EvalResult) -> list[str]:
    """Say what is behind each mark and each "not measured": a line for each reason, with its numbers and systems."""
    titles = {key: title for title, key, _ in _choose_columns(result)}
    titles.setdefault("cost_per_1k_usd", "dollars")  # where nothing is priced there is no column, and this says why
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for name, notes in result.notes.items():
        for key, note in notes.items():
            title = "score" if key.startswith("dataset:") else titles.get(key.partition("@")[0])
            if title is not None:
                keys, names = found.setdefault(note, ({}, {}))
                keys[title] = names[name] = None
    every = len(result.summary)
    return [
        f"{_MARK} {', '.join(keys)}{'' if len(names) == every else f' of {_some(list(names))}'}: {note}."
        for note, (keys, names) in found.items()
    ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _is_unscored(result: EvalResult) -> bool:
    return all(values.get("num_examples") == values.get("num_unscored") for values in result.summary.values())


def _is_answered_by_script(result: EvalResult) -> bool:
    reports = result.config.get("reports", {}).values()
    return any(str(report.get("answered_by", "")).startswith("scripted/") for report in reports)


def _all_metered(result: EvalResult) -> bool:
    """Whether it is known of every system what the model behind it got to read."""
    return bool(result.summary) and all("prompt_savings" in values for values in result.summary.values())


def _score_note(result: EvalResult) -> str:
    field = result.config.get("score_field", "score")
    if field != "score":
        return f"score = {field}."
    names = {}
    for tag in result.config.get("datasets", {}):
        card = card_for(tag)
        primary = result.config.get("primary", {}).get(tag)
        if primary is None and card is None:
            continue  # nothing of it was scored
        names[tag] = _name_score(primary, card)
    if not names:
        return ""
    if len(set(names.values())) == 1:
        return f"score = {next(iter(names.values()))}."
    return "score = " + ", ".join(f"{primary} for {tag}" for tag, primary in names.items()) + "."


def _macro_note(result: EvalResult) -> str:
    """Say what the macro score averages, and that ranks do not go by it."""
    if not any("macro_score" in values for values in result.summary.values()):
        return ""
    primaries = result.config.get("primary", {})
    unlike = "" if len(set(primaries.values())) < 2 else ", whose scores are unlike"
    ranked = any("pareto_rank" in values for values in result.summary.values())
    return (
        "macro score = mean over the datasets" + unlike + ("; Pareto goes by score, over all rows." if ranked else ".")
    )


def _explain_best(result: EvalResult) -> str:
    """Say what the star means, where there is one."""
    if not any(find_best(result, key, show) for _, key, show in _choose_columns(result)):
        return ""
    aside = " that compete" if result.config.get("controls") else ""
    decided = "; whether a difference is real, the verdict says" if result.comparison is not None else ""
    return f"{BEST} best value of its column among the systems{aside}{decided}."


def _explain_repeats(result: EvalResult) -> str:
    """Say what the numbers of repeats mean."""
    if not any("pass_at_k" in values for values in result.summary.values()):
        return ""
    answers = result.config.get("repeats") or "k"
    return (
        f"pass@k: at least one of {answers} answers to an example passes; pass^k: all do; flips: of two answers one "
        "passes; repeat variance: share of the spread of scores that lies between answers to one example."
    )


def _name_score(primary: str | None, card: Card | None) -> str:
    if card and primary in (None, card.primary):
        return card.primary + (" (stand-in)" if card.stand_in else "")
    return str(primary)


def _f1_note(result: EvalResult) -> str:
    """Say that the score tells nothing of quality, where it does not and no comparison says so."""
    empty = find_empty_score(result.config, result.summary)
    return f"{empty}." if empty and result.comparison is None else ""
