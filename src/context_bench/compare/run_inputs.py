"""Opens runs for a comparison (from the store, a JSON file or a result), and finds what makes them incomparable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from context_bench.compare.blind_spots import Sensitivity, read_sensitivity
from context_bench.compare.pairing import ScoredAnswer, read_answer
from context_bench.compare.verdicts import find_floors, read_intervals
from context_bench.errors import DataError, UnknownName, UsageError, printable
from context_bench.results import EvalResult, EvalRow
from context_bench.settings import RunSettings, read_settings
from context_bench.store import Store
from context_bench.summary import Intervals, Numbers

SystemAnswers: TypeAlias = Iterator[tuple[str, ScoredAnswer]]  # each answer with its system


@dataclass(frozen=True)
class RunInput:
    label: str  # the user's name for it
    systems: tuple[str, ...]  # in the order of the run
    config: Mapping[str, Any]
    read_answers: Callable[[], SystemAnswers]  # reads all answers from the beginning
    summary: Numbers = field(default_factory=dict)  # numbers by system
    intervals: Intervals = field(default_factory=dict)  # intervals of these numbers, if known
    run: str | None = None  # its id in the store, for `context-bench diff`; None if it is not stored
    finished: bool = True  # False if it was stopped
    context_unneeded: str = ""  # why its examples cannot show that a system lost nothing
    sensitivity: Mapping[str, Sensitivity] = field(default_factory=dict)  # the same by naive cuts, for each system

    @property
    def settings(self) -> RunSettings:
        return read_settings(self.config)

    @property
    def floors(self) -> frozenset[str]:
        return find_floors(self.config)

    @property
    def controls(self) -> frozenset[str]:
        return frozenset(self.settings.controls)


@dataclass(frozen=True)
class Selection:
    """A run and those of its systems to compare; `label` is the user's text."""

    source: RunInput
    systems: tuple[str, ...]
    label: str


def open_run(store: Store, name: str) -> RunInput:
    """Open a stored run; its rows are read later."""
    info = store.run(name)
    settings = info.settings
    return RunInput(
        info.id,
        tuple(info.summary or settings.systems),
        info.config,
        lambda: _read_answers(store.run_outcomes(info), settings.score_field),
        info.summary,
        read_intervals(settings.intervals),
        run=info.id,
        finished=info.status == "done",
        context_unneeded=settings.comparison.get("context_unneeded") or "",
        sensitivity=read_sensitivity(settings.comparison.get("sensitivity")),
    )


def open_file(path: Path) -> RunInput:
    result = EvalResult.load(path)
    if not result.rows:
        raise DataError(f"{path} has a summary but no rows to compare: run without --no-rows")
    return open_result(result, str(path))


def open_result(result: EvalResult, label: str = "") -> RunInput:
    return RunInput(
        label,
        tuple(result.summary),
        result.config,
        lambda: _read_answers(((row, None) for row in result.rows), result.settings.score_field),
        result.summary,
        result.intervals,
        finished=not result.settings.stopped,
        context_unneeded="" if result.comparison is None else result.comparison.context_unneeded,
        sensitivity={} if result.comparison is None else result.comparison.sensitivity,
    )


def _read_answers(rows: Iterable[tuple[EvalRow, bytes | None]], score_field: str) -> SystemAnswers:
    for row, content in rows:
        yield row.system, read_answer(row, row.scores.get(score_field), id=str(row.example_id), content=content)


def select(text: str, find_run: Callable[[str], RunInput]) -> Selection:
    """Parse an argument of `compare`: a JSON file or a run, followed by `@SYSTEM` for one of its systems."""
    path, system = text, ""
    if not Path(text).is_file() and "@" in text:
        path, _, system = text.partition("@")
    source = open_file(Path(path)) if Path(path).is_file() or path.endswith(".json") else find_run(path)
    if not source.systems:
        raise UsageError(f"{source.label} has no rows to compare")
    if system and system not in source.systems:
        raise UnknownName(f"system of {source.label}", system, source.systems)
    return Selection(source, (system,) if system else source.systems, text)


# --- what makes two runs incomparable

_FACTS = {
    "tokenizer": ("tokenizers", "token counts are not comparable"),
    "model": ("models", "a difference may be due to the model"),
    "score_field": ("score fields", "the scores measure different things"),
    "threshold": ("thresholds", "passes are not comparable; the baseline's threshold is used"),
    "text_fields": ("text fields", "token counts are not comparable"),
    "repeats": ("numbers of repeats", "each run's answers to an example are averaged"),
}
"""Settings that two runs should share: their names, and the consequence if they differ."""

MAX_FACT_CHARS = 80
_DIGEST = re.compile(r"\b(sha256:[0-9a-f]{12})[0-9a-f]{52}\b")
"""A digest, of which messages show only the start."""


def find_differences(one: RunInput, baseline: RunInput) -> list[str]:
    """Describe the differences between two runs that make a comparison doubtful."""
    names = f"{one.label} and {baseline.label}"
    found = [f"{names} have different {what}" for what in _find_all(one.config, baseline.config)]
    found += [
        f"{each.label} is unfinished: only its recorded rows are compared"
        for each in (one, baseline)
        if not each.finished
    ]
    return found


def find_other_score(one: RunInput, baseline: RunInput) -> str:
    """Say that two runs have different primary scores, which no verdict can compare; "" if they agree."""
    if one.settings.score_field != baseline.settings.score_field:
        return "the runs have different primary scores"
    keys = ("primary", "context_primary")
    other = [what for key in keys for what in _find_in(one.config, baseline.config, key, "", "")]
    return "the runs have different primary scores" if other else ""


def _find_all(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for key, (what, consequence) in _FACTS.items():
        if key in one and key in other and one[key] != other[key]:
            yield f"{what} ({_show(one[key])}; {_show(other[key])}): {consequence}"
    if one.get("score_field") == other.get("score_field"):
        for key, what in (("primary", "primary scores for"), ("context_primary", "scores of contexts for")):
            yield from _find_in(one, other, key, what, "the scores measure different things")
    ours, theirs = ({"sources": _name_by_content(each.get("sources") or {})} for each in (one, other))
    yield from _find_in(ours, theirs, "sources", "data behind", "the examples may differ")
    yield from _find_evaluators(one, other)
    yield from _find_prices(one, other)


def _find_in(one: Mapping[str, Any], other: Mapping[str, Any], key: str, what: str, consequence: str) -> Iterator[str]:
    ours, theirs = one.get(key) or {}, other.get(key) or {}
    for tag in ours:
        if tag in theirs and ours[tag] != theirs[tag]:
            first, second = _narrow(ours[tag], theirs[tag])
            yield f"{what} {tag or 'data without a tag'} ({_show(first)}; {_show(second)}): {consequence}"


def _name_by_content(sources: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the paths of each dataset's files: the same bytes elsewhere are the same data."""
    return {
        tag: {**facts, "files": sorted(map(str, facts["files"].values()))}
        if isinstance(facts, Mapping) and isinstance(facts.get("files"), Mapping)
        else facts
        for tag, facts in sources.items()
    }


def _narrow(one: Any, other: Any) -> tuple[Any, Any]:
    while isinstance(one, dict) and isinstance(other, dict):
        differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        if len(differing) != 1:
            kept, others = ({key: each[key] for key in differing if key in each} for each in (one, other))
            return kept, others
        one, other = one.get(differing[0]), other.get(differing[0])
    return one, other


def _find_evaluators(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Compare the versions of evaluators; if a run recorded none, the package's version counts."""
    ours, theirs = one.get("evaluator_versions"), other.get("evaluator_versions")
    if ours is None or theirs is None:
        if one.get("version") != other.get("version"):
            versions = f"{_show(one.get('version'))}; {_show(other.get('version'))}"
            yield f"versions of context-bench ({versions}): evaluators may differ; `context-bench score` rescores a run"
        return
    changed = [name for name in ours if name in theirs and ours[name] != theirs[name]]
    if changed:
        yield f"versions of {', '.join(changed)}: `context-bench score` scores a run again"


def _find_prices(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    ours, theirs = (each.get("prices") or {} for each in (one, other))
    ours, theirs = ours.get("models") or {}, theirs.get("models") or {}
    changed = [model for model in ours if model in theirs and ours[model] != theirs[model]]
    if changed:
        yield f"prices of {', '.join(changed)}: dollars are not comparable"


def _show(value: Any) -> str:
    text = printable(_write(value))
    return text if len(text) <= MAX_FACT_CHARS else f"{text[: MAX_FACT_CHARS - 1]}…"


def _write(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_write(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_write, value))
    return _DIGEST.sub(r"\1…", str(value))
