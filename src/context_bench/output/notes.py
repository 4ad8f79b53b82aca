"""Notes beneath the table of systems: what the score is, what each mark means, how verdicts are made."""

from __future__ import annotations

import math
from collections.abc import Sequence

from context_bench.datasets.catalog import Card, card_for
from context_bench.numbers import (
    COST_PER_1K_USD,
    EMBEDDING_COST_USD,
    LATENCY_MEDIAN,
    MACRO_SCORE,
    NUM_ERRORS,
    NUM_EXAMPLES,
    NUM_UNSCORED,
    PARETO_FRONT,
    PASS_AT_K,
    TIMED_OUT_COST_USD,
    UPSTREAM_COST_OF_PASS,
)
from context_bench.output.columns import BEST, choose_columns, find_best, list_tables
from context_bench.output.plots.pareto import choose_cost
from context_bench.output.verdict_tables import explain_verdicts
from context_bench.results import EvalResult
from context_bench.text import count_things

_MARK = "*"
_LOCAL = "smoke test: the model `local` is a small one on this machine; its scores say nothing about a real model"


def list_notes(result: EvalResult) -> list[str]:
    """List the notes of a run, a sentence or two each."""
    given: set[str] = set().union(*result.summary.values())
    settings = result.settings
    notes = []
    if settings.stopped:
        notes.append(f"stopped early: {settings.stopped}; the numbers are those of the rows that were done by then.")
    notes.append(_score_note(result))
    if MACRO_SCORE in given:
        primaries = (result.settings.primary, result.settings.context_primary)
        unlike = "" if all(len(set(each.values())) < 2 for each in primaries) else ", whose scores are unlike"
        notes.append(f"macro score = mean over the datasets{unlike}.")
    if settings.gold and all(
        values.get(NUM_EXAMPLES) == values.get(NUM_UNSCORED) for values in result.summary.values()
    ):
        if not any(settings.gold.values()):
            notes.append("no gold answers: tokens and time only.")
        elif set(result.summary) == set(settings.unread):
            notes.append("no score fits a context alone: tokens and time only; --reader URL has a model answer.")
    if UPSTREAM_COST_OF_PASS in given:
        notes.append("model tokens / pass = what the model read and wrote for each example that passed.")
    if PASS_AT_K in given:
        notes.append(
            f"pass@k: at least one of {settings.repeats} answers to an example passes; pass^k: all do; flips: of two "
            "answers one passes; repeat variance: share of the spread of scores that lies between answers to one "
            "example."
        )
    notes += [*_explain_marks(result), _explain_best(result), _explain_front(result) if PARETO_FRONT in given else ""]
    notes += [_tell_workers(result), *list_tap_notes(result), *explain_verdicts(result)]
    return [note for note in notes if note]


def _explain_marks(result: EvalResult) -> list[str]:
    """Say what is behind each mark and each "not measured": a line for each reason, with its numbers and systems."""
    titles = {key: title for title, key, _ in choose_columns(result)}
    # where nothing is priced there is no column, and these say why
    titles = {COST_PER_1K_USD: "dollars", EMBEDDING_COST_USD: "embedding $", **titles}
    titles[TIMED_OUT_COST_USD] = "timed out"
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


def _score_note(result: EvalResult) -> str:
    field = result.settings.score_field
    if field != "score":
        return f"score = {field}."
    own = [name for name in result.summary if name not in result.settings.unread]
    answers = _name_scores(result) if own else ""
    contexts = _name_scores(result, of_contexts=True)
    if answers and contexts:
        return f"score = {answers}; of contexts that no model has read {contexts}."
    return f"score = {answers or contexts}." if answers or contexts else ""


def _name_scores(result: EvalResult, *, of_contexts: bool = False) -> str:
    """Name the score of answers, or of contexts that no model has read: for each dataset where they differ."""
    settings, names = result.settings, {}
    primaries = settings.context_primary if of_contexts else settings.primary
    for tag in settings.datasets:
        card = card_for(tag)
        if tag in primaries or (card is not None and not of_contexts):  # else nothing of it was scored
            names[tag] = _name_score(primaries.get(tag), card)
    if len(set(names.values())) == 1:
        return next(iter(names.values()))
    return ", ".join(f"{primary} for {tag}" for tag, primary in names.items())


def _explain_best(result: EvalResult) -> str:
    """Say what the star means, where there is one."""
    tables, columns = list_tables(result), choose_columns(result)
    if not any(find_best(result, key, show, names) for _, names in tables for _, key, show in columns):
        return ""
    aside = " that compete" if result.settings.controls else ""
    decided = "; whether a difference is real, the verdict says" if result.comparison is not None else ""
    return f"{BEST} best value of its column among the systems{aside}{decided}."


def _explain_front(result: EvalResult) -> str:
    """Say what the front is, and by which cost."""
    cost = choose_cost(result)
    if cost is None:
        return ""
    failed = any(values.get(NUM_ERRORS) for values in result.summary.values())
    charged = " A failure costs what the dearest system paid for that example." if failed else ""
    return (
        "Pareto: off = another system is shown better in score or cost, and not shown worse in the other (paired 95% "
        f"intervals). Cost: {cost.title}.{charged}"
    )


def _tell_workers(result: EvalResult) -> str:
    """Say under how much load latencies were measured: with more examples in flight, each takes longer."""
    workers = result.settings.workers
    if not any(LATENCY_MEDIAN in values for values in result.summary.values()):
        return ""
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
    """List what must be known to read the numbers of a tap."""
    notes = []
    for name, report in result.settings.reports.items():
        if report.get("unmatched"):
            count = report["unmatched"]
            requests = f"{count_things(count, 'request')} {'fits' if count == 1 else 'fit'}"
            kept = f"; {report['unmatched_kept']:,} of them are kept" if "unmatched_kept" in report else ""
            notes.append(f"{name}: {requests} no single example and count for none{kept}.")
    labels = {report.get("label"): None for report in result.settings.reports.values()}
    if result.settings.model == "local" and not any(labels):
        labels[_LOCAL] = None
    return notes + [f"{label}." for label in labels if label]
