"""Finds in what two runs differ that makes them incomparable: each fact in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.compare.inputs import RunInput
from context_bench.errors import printable

__all__ = ["find_differences", "find_other_score"]

_FACTS = {
    "tokenizer": ("tokenizers", "token counts do not compare"),
    "model": ("models", "a difference may come from the model"),
    "score_field": ("score fields", "the scores are different things"),
    "threshold": ("thresholds", "passes do not compare; the baseline's threshold is used"),
    "text_fields": ("text fields", "token counts do not compare"),
    "repeats": ("numbers of repeats", "the answers of each to an example are averaged"),
}
"""The facts that each run has one of: how it is called, and what follows where it differs."""

_LONGEST = 80
_DIGEST = re.compile(r"\b(sha256:[0-9a-f]{12})[0-9a-f]{52}\b")
"""A digest, of which the beginning tells it from another one."""


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
    """Compare by dataset, for those that both runs have."""
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
    """Leave out of two documents what they have in common."""
    while isinstance(one, dict) and isinstance(other, dict):
        differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        if len(differing) != 1:
            kept, others = ({key: each[key] for key in differing if key in each} for each in (one, other))
            return kept, others
        one, other = one.get(differing[0]), other.get(differing[0])
    return one, other


def _find_evaluators(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Compare the evaluators by version; runs of earlier versions recorded none, so that the package's own counts."""
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
    """Show a fact briefly, as a reader would write it down."""
    text = printable(_write(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _write(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_write(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_write, value))
    return _DIGEST.sub(r"\1…", str(value))
