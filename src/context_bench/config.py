"""The options of a run, and `RunSettings`: the typed view of what a run recorded of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["DEFAULT_MARGIN", "DEFAULT_THRESHOLD", "RunSettings", "read_settings"]

DEFAULT_MARGIN = 0.02
"""A difference of scores within it does not matter."""

DEFAULT_THRESHOLD = 0.7
"""The lowest score that passes."""


@dataclass(frozen=True)
class RunSettings:
    """The record of a run (`result.config`) as typed values; what the record does not have takes its default."""

    # the options
    baseline: str | None = None
    fixed_groups: bool = False
    keep_reasoning: bool = False
    margin: float = DEFAULT_MARGIN
    max_examples: int | None = None
    max_workers: int | None = None
    model: str | None = None
    model_given: bool = True
    repeats: int = 1
    sample: str | None = None
    score_field: str = "score"
    seed: int | None = None
    text_fields: Sequence[str] | None = None
    threshold: float | None = None
    threshold_given: bool = False
    tokenizer: str | None = None
    # what was run
    version: str | None = None
    python: str | None = None
    command: Sequence[str] = ()
    run_file: str | None = None
    plan: Mapping[str, Any] | None = None
    memory: Mapping[str, Any] = field(default_factory=dict)
    systems: Mapping[str, str | None] = field(default_factory=dict)
    controls: Sequence[str] = ()
    floors: Sequence[str] = ()
    twin: str | None = None
    sends_elsewhere: Sequence[str] = ()
    workers: Mapping[str, int] = field(default_factory=dict)
    datasets: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    evaluators: Sequence[str] | None = None
    primary: Mapping[str, Any] = field(default_factory=dict)
    context_primary: Mapping[str, Any] = field(default_factory=dict)
    metrics: Sequence[Mapping[str, Any]] = ()
    prices: Mapping[str, Any] = field(default_factory=dict)
    # what came of it
    run: str | None = None
    file: str | None = None
    gold: Mapping[str, bool] = field(default_factory=dict)
    weak_thresholds: Mapping[str, str] = field(default_factory=dict)
    returns: Mapping[str, str] = field(default_factory=dict)
    unread: Sequence[str] = ()
    reports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reused: int | None = None
    stopped: str | None = None
    stopped_systems: Mapping[str, str] = field(default_factory=dict)
    looks: Mapping[str, Any] = field(default_factory=dict)
    looks_before: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    failed_metrics: Mapping[str, str] = field(default_factory=dict)
    # as the store keeps it
    comparison: Mapping[str, Any] = field(default_factory=dict)
    intervals: Mapping[str, Any] = field(default_factory=dict)

    @property
    def read_by_script(self) -> bool:
        """Whether a script answered from what memory systems retrieved."""
        return bool(self.memory.get("read_by_script"))


_NAMES = frozenset(each.name for each in fields(RunSettings))


def read_settings(config: Mapping[str, Any]) -> RunSettings:
    """Read the record of a run; keys that we do not know are left out."""
    return RunSettings(**{key: value for key, value in config.items() if value is not None and key in _NAMES})
