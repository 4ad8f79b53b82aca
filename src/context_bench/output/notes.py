"""Notes under the table of systems: the score, the marks, and the method of the verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from context_bench.compare.plans import describe_lock
from context_bench.compare.sweeps import join_settings
from context_bench.datasets.catalog import Card, card_for
from context_bench.numbers import (
    COMPRESSION_RATIO,
    COST_PER_1K_USD,
    EMBEDDING_COST_USD,
    LATENCY_MEDIAN,
    MACRO_SCORE,
    MEAN_SCORE,
    NUM_ERRORS,
    NUM_EXAMPLES,
    NUM_UNSCORED,
    PARETO_FRONT,
    PASS_AT_K,
    TIMED_OUT_COST_USD,
    UPSTREAM_COST_OF_PASS,
    get_number,
    percent,
    score,
)
from context_bench.output.columns import BEST, Column, choose_columns, find_best, list_tables
from context_bench.output.plots.pareto import choose_cost
from context_bench.output.verdict_tables import explain_verdicts, is_open_by_dataset, list_verdict_caveats
from context_bench.results import EvalResult
from context_bench.text import count_things, list_names

_MARK = "*"
_LOCAL = "smoke test: `local` is a small model on this machine; its scores do not predict those of a real model"


def list_notes(result: EvalResult, shown: Sequence[Column] | None = None, best: str = BEST) -> list[str]:
    """List the notes of a run, one or two sentences each.

    Args:
        result: The run.
        shown: The columns that a reader sees; None for all columns, and for reasons why others are absent.
        best: What marks the best value of a column.
    """
    columns = choose_columns(result) if shown is None else shown
    given = set().union(*result.summary.values()) if shown is None else {key for _, key, _ in shown}
    settings = result.settings
    notes = [*_tell_stop(result), _score_note(result)]
    if MACRO_SCORE in given:
        primaries = (result.settings.primary, result.settings.context_primary)
        unlike = "" if all(len(set(each.values())) < 2 for each in primaries) else ", whose scores differ in kind"
        notes.append(f"macro score = mean over the datasets{unlike}.")
    notes += _explain_no_score(result)
    if UPSTREAM_COST_OF_PASS in given:
        notes.append("model tokens / pass = tokens that the model read and wrote for each example that passed.")
    notes += _explain_seeds(result)
    if PASS_AT_K in given:
        notes.append(
            f"pass@k: at least one of {settings.repeats} answers to an example passes; pass^k: all do; flips: exactly "
            "one of two answers passes; repeat variance: share of the score variance that lies between answers to "
            "the same example."
        )
    notes += _explain_marks(result, columns, absent=shown is None)
    notes += [_explain_best(result, columns, best), _explain_front(result) if PARETO_FRONT in given else ""]
    notes += [
        _tell_workers(result) if LATENCY_MEDIAN in given else "",
        *_tell_engagement(result),
        *list_tap_notes(result),
        *explain_verdicts(result),
    ]
    return [note for note in notes if note]


_MAX_CAVEAT_CHARS = 400  # most characters of the caveats under the main table; `--wide` shows all


def sum_up_notes(result: EvalResult) -> list[str]:
    """Return at most three lines: how to read the table, caveats of this run, and the best setting of each sweep."""
    comparison, columns = result.comparison, choose_columns(result, wide=False)
    reading = [_score_note(result).removesuffix(".")]
    if any(MACRO_SCORE in values for values in result.summary.values()):
        reading.append("macro score = mean over datasets")
    if any({MACRO_SCORE, MEAN_SCORE} & own.keys() for own in result.intervals.values()):
        reading.append("[low, high]: 95% interval")
    if _has_best(result, columns):
        reading.append(f"{BEST} = best")
    about_verdicts = []
    if comparison is not None and comparison.verdicts:
        single = "; undecided: too few examples in one dataset" if is_open_by_dataset(comparison) else ""
        about_verdicts.append(f"verdict: against {comparison.baseline}, margin ±{comparison.margin:g}{single}.")
    lines = ["; ".join([*filter(None, reading), "more: --wide"]) + "."]
    caveats = list(dict.fromkeys(list_caveats(result)))
    shown = list(caveats)
    while len(shown) > 1 and sum(map(len, shown)) > _MAX_CAVEAT_CHARS:
        shown.pop()
    more = [f"{len(caveats) - len(shown)} more notes: --wide."] if len(shown) < len(caveats) else []
    about = " ".join([*about_verdicts, *shown, *more])
    lines += [about] if about else []
    return [*lines, *_sum_up_curves(result)]


def list_caveats(result: EvalResult) -> list[str]:
    """List the caveats that are specific to this run."""
    columns = [column for column in choose_columns(result, wide=False) if column[1] != PARETO_FRONT]
    caveats = [*_tell_stop(result), *_explain_no_score(result), *_explain_marks(result, columns)]
    if result.settings.memory and result.settings.read_by_script and result.comparison is None:
        caveats.append("no model answered; a script did.")  # with a comparison, the conclusion states this
    caveats += [
        *_tell_engagement(result),
        *list_tap_notes(result),
        *list_verdict_caveats(result),
        _explain_no_month(result),
        describe_lock(result.config),
        *_explain_seeds(result),  # last, as one note for each system could crowd out the others
    ]
    return [caveat for caveat in caveats if caveat]


def _explain_no_month(result: EvalResult) -> str:
    savings = {} if result.comparison is None else result.comparison.savings
    if result.settings.volume is None or any(each.per_1k.known for each in savings.values()):
        return ""
    return "--volume shows no dollars per month: no saving is claimed, or no cost is known."


def _sum_up_curves(result: EvalResult) -> list[str]:
    """Name the best setting of each sweep in one line."""
    curves = result.curves()
    best = [(each, each.best_point) for each in curves]
    found = [f"{each.name} {percent(one.saving)} with {each.knob}={one.setting}" for each, one in best if one]
    if not found:
        return []  # the conclusion states this
    none = [each.name for each, one in best if one is None]
    found += [f"none is shown for {list_names(none)}"] if none else []
    return [f"largest saving that is not worse than {curves[0].baseline}: {'; '.join(found)}."]


def _tell_stop(result: EvalResult) -> list[str]:
    """Write that the run stopped before its end."""
    stopped = result.settings.stopped
    return [f"stopped early: {stopped}; the numbers cover the finished rows."] if stopped else []


def _explain_no_score(result: EvalResult) -> list[str]:
    """Explain why a run has no scores, if none were possible."""
    gold, values = result.settings.gold, result.summary.values()
    if not gold or any(each.get(NUM_EXAMPLES) != each.get(NUM_UNSCORED) for each in values):
        return []
    if any(gold.values()):
        uncut = len(values) > 1 and all(each.get(COMPRESSION_RATIO) == 0 for each in values)
        unread = set(result.settings.unread) == set(result.summary)
        why = "no system shortened any example, so nothing was compressed: do these examples have a context?"
        return [why] if uncut and unread else []
    return ["no gold answers: tokens and time only."]


def _explain_seeds(result: EvalResult) -> list[str]:
    """Name the systems that are means over seeds."""
    systems: dict[tuple[str, ...], list[str]] = {}
    for name, seeds in result.settings.seeds.items():
        systems.setdefault(tuple(seeds), []).append(name)
    return [
        f"{list_names(join_settings(names))}: mean over seeds {', '.join(seeds)}; --no-merge-seeds shows each."
        for seeds, names in systems.items()
    ]


def _tell_engagement(result: EvalResult) -> list[str]:
    """For each system that left rows unchanged, write how many it changed, and its savings and score on those."""
    notes = []
    for name, values in result.summary.items():
        share = values.get("acted_share", 1.0)
        if not 0 < share < 1 or name in result.settings.controls:
            continue
        acted = values["acted_rows"]
        there = [f"{percent(values['acted_savings'])} saved"] if "acted_savings" in values else []
        there += [f"score {score(values['acted_score'])}"] if "acted_score" in values else []
        aside = f" ({', '.join(there)} on those)" if there else ""
        notes.append(f"{name} acted on {acted:,.0f} of {acted / share:,.0f} rows{aside}.")
    return notes


def _explain_marks(result: EvalResult, columns: Sequence[Column], *, absent: bool = True) -> list[str]:
    """Explain each mark and each "not measured": a line for each reason, with the numbers and systems concerned.

    `absent` also explains why a run without prices has no columns of dollars.
    """
    titles = {key: title for title, key, _ in columns}
    if absent:
        titles = {COST_PER_1K_USD: "dollars", EMBEDDING_COST_USD: "embedding $", **titles}
        titles[TIMED_OUT_COST_USD] = "timed out"
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for name, notes in result.notes.items():
        for key, note in notes.items():
            title = "score" if key.startswith("dataset:") else titles.get(key.partition("@")[0])
            if title is not None:
                keys, names = found.setdefault(note, ({}, {}))
                keys[title] = names[name] = None
    lines = []
    for note, (keys, names) in found.items():
        of = "" if len(names) == len(result.summary) else f" of {list_names(join_settings(list(names)), 4)}"
        mark = "" if get_number(PARETO_FRONT).title in keys else f"{_MARK} "
        lines.append(f"{mark}{', '.join(keys)}{of}: {note}.")
    return lines


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _score_note(result: EvalResult) -> str:
    field = result.settings.score_field
    if field != "score":
        return f"score = {field}."
    own = [name for name in result.summary if name not in result.settings.unread]
    answers = _name_scores(result) if own else ""
    contexts = _name_scores(result, of_contexts=True)
    if answers and contexts:
        return f"score = {answers}; for contexts that no model has read: {contexts}."
    return f"score = {answers or contexts}." if answers or contexts else ""


def _name_scores(result: EvalResult, *, of_contexts: bool = False) -> str:
    """Name the score of answers, or of contexts that no model has read; by dataset if the scores differ."""
    settings, names = result.settings, {}
    primaries = settings.context_primary if of_contexts else settings.primary
    for tag in settings.datasets:
        card = card_for(tag)
        if tag in primaries or (card is not None and not of_contexts):  # else the dataset has no scores
            names[tag] = _name_score(primaries.get(tag), card)
    if len(set(names.values())) == 1:
        return next(iter(names.values()))
    return ", ".join(f"{primary} for {tag}" for tag, primary in names.items())


def _explain_best(result: EvalResult, columns: Sequence[Column], mark: str) -> str:
    """Explain the mark of the best value, if the table has one."""
    if not _has_best(result, columns):
        return ""
    aside = ", controls excluded" if result.settings.controls else ""
    decided = " The verdict says whether the difference is significant." if result.comparison is not None else ""
    return f"{mark} = best in column{aside}.{decided}"


def _has_best(result: EvalResult, columns: Sequence[Column]) -> bool:
    """Whether any of these columns has a star."""
    tables = list_tables(result)
    return any(find_best(result, key, show, names) for _, names in tables for _, key, show in columns)


def _explain_front(result: EvalResult) -> str:
    """Explain the front and its cost."""
    cost = choose_cost(result)
    if cost is None:
        return ""
    failed = any(values.get(NUM_ERRORS) for values in result.summary.values())
    charged = " A failed row costs as much as the most expensive system's row for that example." if failed else ""
    return (
        "Pareto: off = another system is shown to be better in score or cost, and not worse in the other (paired 95% "
        f"intervals). Cost: {cost.title}.{charged}"
    )


def _tell_workers(result: EvalResult) -> str:
    """State the load during latency measurements: with more requests in flight, each takes longer."""
    workers = result.settings.workers
    systems: dict[int, list[str]] = {}
    for name, count in (workers or {}).items():
        if not math.isnan(result.summary[name].get(LATENCY_MEDIAN, 0.0)):
            systems.setdefault(count, []).append(name)
    parts = [
        f"{count_things(count, 'worker')}{f' ({_some(names)})' if len(systems) > 1 else ''}"
        for count, names in systems.items()
    ]
    return f"latency was measured with {', '.join(parts)}." if parts else ""


def _name_score(primary: str | None, card: Card | None) -> str:
    if card and primary in (None, card.primary):
        return card.primary + (" (stand-in)" if card.stand_in else "")
    return str(primary)


def list_tap_notes(result: EvalResult) -> list[str]:
    """List the notes needed to read the numbers of a tap."""
    notes = []
    for name, report in result.settings.reports.items():
        if report.get("unmatched"):
            count = report["unmatched"]
            requests = f"{count_things(count, 'request')} {'fits' if count == 1 else 'fit'}"
            kept = f"; {report['unmatched_kept']:,} of them are kept" if "unmatched_kept" in report else ""
            notes.append(f"{name}: {requests} no single example (not counted in any row){kept}.")
        for path, count in report.get("uncounted", {}).items():
            calls = f"{count_things(count, 'call')} to {path} {'was' if count == 1 else 'were'} not counted"
            notes.append(f"{name}: {calls}: the tap cannot read the prompts of such calls.")
    labels = {report.get("label"): None for report in result.settings.reports.values()}
    if result.settings.model == "local" and not any(labels):
        labels[_LOCAL] = None
    return notes + [f"{label}." for label in labels if label]
