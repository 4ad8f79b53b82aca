"""The record of a run (`result.config`) as typed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.config import DEFAULT_MARGIN, RecordedOptions
from context_bench.options import option


class RunSettings(RecordedOptions):
    """The record of a run (`result.config`) as typed values; missing values have their default."""

    # options as the run used them, where that is another type than was given
    score_field: str = option(default="score")
    margin: float = option(default=DEFAULT_MARGIN)
    tokenizer: str | None = option()
    # options of the command line
    model: str | None = None
    model_given: bool = True
    sample: str | None = None
    seed: int | None = None
    threshold_given: bool = False
    added_systems: Sequence[str] = ()  # by the command itself
    origins: Mapping[str, str] = {}
    # the run
    version: str | None = None
    python: str | None = None
    command: Sequence[str] = ()
    run_file: str | None = None
    plan: Mapping[str, Any] | None = None
    memory: Mapping[str, Any] = {}
    systems: Mapping[str, str | None] = {}
    controls: Sequence[str] = ()
    floors: Sequence[str] = ()
    twin: str | None = None
    sends_elsewhere: Sequence[str] = ()
    workers: Mapping[str, int] = {}
    datasets: Mapping[str, int] = {}
    samples: Mapping[str, str] = {}
    sources: Mapping[str, Any] = {}
    evaluators: Sequence[str] | None = None
    evaluator_versions: Mapping[str, str | None] = {}
    primary: Mapping[str, Any] = {}
    context_primary: Mapping[str, Any] = {}
    metrics: Sequence[Mapping[str, Any]] = ()
    prices: Mapping[str, Any] = {}
    slices: Sequence[str] = ()
    volume: float | None = None
    seeds: Mapping[str, Sequence[str]] = {}
    # its outcome
    run: str | None = None
    file: str | None = None
    gold: Mapping[str, bool] = {}
    weak_thresholds: Mapping[str, str] = {}
    returns: Mapping[str, str] = {}
    unread: Sequence[str] = ()
    reports: Mapping[str, Mapping[str, Any]] = {}
    reused: int | None = None
    stopped: str | None = None
    stopped_systems: Mapping[str, str] = {}
    looks: Mapping[str, Any] = {}
    looks_before: Mapping[str, Any] = {}
    columns: Mapping[str, str] = {}
    failed_metrics: Mapping[str, str] = {}
    # as the store keeps it
    comparison: Mapping[str, Any] = {}
    intervals: Mapping[str, Any] = {}

    def __init__(self, config: Mapping[str, Any]) -> None:
        known = {key: value for key, value in config.items() if value is not None and key in _RECORD_KEYS}
        self.__dict__ = {**_RECORD_DEFAULTS, **known}

    @property
    def read_by_script(self) -> bool:
        """Whether a script answered from the texts that memory systems retrieved."""
        return bool(self.memory.get("read_by_script"))


_RECORD_DEFAULTS = {name: each.default for name, each in RunSettings.declared().items()}
_RECORD_KEYS = _RECORD_DEFAULTS.keys() | RunSettings.__annotations__.keys()


def read_settings(config: Mapping[str, Any]) -> RunSettings:
    """Read the record of a run; unknown keys are left out."""
    return RunSettings(config)
