"""Faults of memory systems that a reader of the report must not overlook, each in a sentence with its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.results import EvalResult

__all__ = ["list_findings"]

_HALF = 0.5
_PROBES = ("probe_leak", "probe_update", "probe_forget")


def list_findings(result: EvalResult) -> list[str]:
    """List the faults that were found; the ways in which one system was asked count together, the worst of them."""
    reports: Mapping[str, Any] = result.config.get("reports") or {}
    systems: dict[str, tuple[dict[str, float], Mapping[str, Any]]] = {}
    for name, values in result.summary.items():
        about = (reports.get(name) or {}).get("memory") or {}
        if about.get("is_control"):
            continue
        worst, _ = systems.setdefault(str(about.get("system") or name), ({}, about))
        for key in _PROBES:
            if key in values:
                worst[key] = min(values[key], worst.get(key, 1.0))
    return [sentence for name, (worst, about) in systems.items() for sentence in _describe(name, worst, about)]


def _describe(name: str, worst: Mapping[str, float], about: Mapping[str, Any]) -> Iterator[str]:
    leak, update, forget = (worst.get(key, 1.0) for key in _PROBES)
    if leak < 1 and about.get("takes_user"):
        yield f"{name} leaks between users: what another user said came back in {1 - leak:.0%} of the probes."
    if update < _HALF:
        yield f"{name} does not update: the newest value was missing in {1 - update:.0%} of the probes."
    if forget < 1:
        yield f"{name} does not forget: what was to be deleted came back in {1 - forget:.0%} of the probes."
    again = about.get("asked_again") or {}
    if again.get("changed"):
        changed, asked = again["changed"], again["asked"]
        yield f"{name} is changed by being asked: {changed} of {asked} questions that were asked again found another text."
    late = about.get("late") or {}
    calls = late.get("calls", 0) + late.get("embed_calls", 0)
    if calls:
        yield f"{name} went on asking models after it was quiet: {calls} calls, which are charged to ingest."
    if about.get("written_twice"):
        yield f"{name}: {about['written_twice']} conversations were written twice, as it could not restore them."
