"""Opens the runs that are compared (stored, JSON file or result), and says what makes two of them incomparable."""

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

SystemAnswers: TypeAlias = Iterator[tuple[str, ScoredAnswer]]  # answers with the system that gave each


@dataclass(frozen=True)
class RunInput:
    label: str  # what the user calls it
    systems: tuple[str, ...]  # their names, in the order of the run
    config: Mapping[str, Any]  # how it was made
    read_answers: Callable[[], SystemAnswers]  # reads the answers, from the beginning each time
    summary: Numbers = field(default_factory=dict)  # its numbers, by system
    intervals: Intervals = field(default_factory=dict)  # how sure they are, where that is known
    run: str | None = None  # its id, where it is in a store: `context-bench diff` can show its rows
    finished: bool = True  # whether it came to its end
    context_unneeded: str = ""  # why its examples cannot show that a system lost nothing, where it has found that
    sensitivity: Mapping[str, Sensitivity] = field(default_factory=dict)  # the same, by naive cuts to a system's size

    @property
    def settings(self) -> RunSettings:
        return read_settings(self.config)

    @property
    def floors(self) -> frozenset[str]:
        return find_floors(self.config)

    @property
    def controls(self) -> frozenset[str]:
        """Systems that are not in the competition: floors, ceilings, and the model that got everything."""
        return frozenset(self.settings.controls)


@dataclass(frozen=True)
class Selection:
    """A run, and those of its systems that are compared; `label` is what was typed."""

    source: RunInput
    systems: tuple[str, ...]
    label: str


def open_run(store: Store, name: str) -> RunInput:
    """Open a run of a store; its rows are read when they are asked for."""
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
        raise DataError(f"{path} has a summary and no rows, so that nothing can be compared: leave --no-rows out")
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
    """Read one argument of `compare`: a JSON file or a run, with `@SYSTEM` behind it for one of its systems."""
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
    "tokenizer": ("tokenizers", "token counts do not compare"),
    "model": ("models", "a difference may come from the model"),
    "score_field": ("score fields", "the scores are different things"),
    "threshold": ("thresholds", "passes do not compare; the baseline's threshold is used"),
    "text_fields": ("text fields", "token counts do not compare"),
    "repeats": ("numbers of repeats", "the answers of each to an example are averaged"),
}
"""Facts about a run: how each is called, and what follows where two runs differ in it."""

MAX_FACT_CHARS = 80
_DIGEST = re.compile(r"\b(sha256:[0-9a-f]{12})[0-9a-f]{52}\b")
"""A digest; its beginning is enough to tell it from another one."""


def find_differences(one: RunInput, baseline: RunInput) -> list[str]:
    """Say in what two runs differ that a comparison takes for equal."""
    names = f"{one.label} and {baseline.label}"
    found = [f"{names} have different {what}" for what in _find_all(one.config, baseline.config)]
    found += [
        f"{each.label} did not come to its end: only what it recorded is compared"
        for each in (one, baseline)
        if not each.finished
    ]
    return found


def find_other_score(one: RunInput, baseline: RunInput) -> str:
    """Say that two runs count different scores, which no verdict can compare; empty where they count the same."""
    if one.settings.score_field != baseline.settings.score_field:
        return "the runs count different scores"
    keys = ("primary", "context_primary")
    other = [what for key in keys for what in _find_in(one.config, baseline.config, key, "", "")]
    return "the runs count different scores" if other else ""


def _find_all(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for key, (what, consequence) in _FACTS.items():
        if key in one and key in other and one[key] != other[key]:
            yield f"{what} ({_show(one[key])}; {_show(other[key])}): {consequence}"
    if one.get("score_field") == other.get("score_field"):
        for key, what in (("primary", "scores that count for"), ("context_primary", "scores of contexts for")):
            yield from _find_in(one, other, key, what, "the scores are different things")
    ours, theirs = ({"sources": _name_by_content(each.get("sources") or {})} for each in (one, other))
    yield from _find_in(ours, theirs, "sources", "data behind", "the examples may be others")
    yield from _find_evaluators(one, other)
    yield from _find_prices(one, other)


def _find_in(one: Mapping[str, Any], other: Mapping[str, Any], key: str, what: str, consequence: str) -> Iterator[str]:
    ours, theirs = one.get(key) or {}, other.get(key) or {}
    for tag in ours:
        if tag in theirs and ours[tag] != theirs[tag]:
            first, second = _narrow(ours[tag], theirs[tag])
            yield f"{what} {tag} ({_show(first)}; {_show(second)}): {consequence}"


def _name_by_content(sources: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out where the files of each dataset lie: the same bytes in another place are the same data."""
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
    """Compare the evaluators by version; where a run recorded none, the version of the package counts."""
    ours, theirs = one.get("evaluator_versions"), other.get("evaluator_versions")
    if ours is None or theirs is None:
        if one.get("version") != other.get("version"):
            versions = f"{_show(one.get('version'))}; {_show(other.get('version'))}"
            yield f"versions of context-bench ({versions}): evaluators may differ; `context-bench score` scores again"
        return
    changed = [name for name in ours if name in theirs and ours[name] != theirs[name]]
    if changed:
        yield f"versions of {', '.join(changed)}: `context-bench score` scores a recorded run again"


def _find_prices(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    ours, theirs = (each.get("prices") or {} for each in (one, other))
    ours, theirs = ours.get("models") or {}, theirs.get("models") or {}
    changed = [model for model in ours if model in theirs and ours[model] != theirs[model]]
    if changed:
        yield f"prices of {', '.join(changed)}: dollars do not compare"


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
