"""The gate of a run or comparison: check its conditions before the run, judge them, and write the outcomes."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from context_bench.cli.messages import say
from context_bench.compare.conditions import Condition
from context_bench.errors import UsageError, suggest
from context_bench.numbers import COUNTS, MEAN_SCORE, NEEDS, NUMBERS, PROMPT_SAVINGS, SAVED_PER_1K_USD, Number

if TYPE_CHECKING:
    from context_bench.compare.gates import Candidate, GateOutcome
    from context_bench.core.judge import Scorer
    from context_bench.types import Metric

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass
class RunGate:
    conditions: Sequence[Condition]
    junit: str | None
    summary: str | None
    accept_blind: bool = False
    _writers: dict[str, Any] = field(default_factory=dict)
    _allowed: Collection[str] = ()

    @classmethod
    def read(cls, flags: Any) -> RunGate:
        if flags.junit and not flags.fail_if:
            raise UsageError("--junit has nothing to write without a condition: add --fail-if")
        return cls(flags.fail_if, flags.junit, flags.summary, flags.accept_blind)

    @contextmanager
    def open(self, allowed: Collection[str] = ()) -> Iterator[RunGate]:
        """Check before the run that the files can be written; each is replaced only when complete.

        `allowed` are numbers that the run may lack; a condition on a missing number is undecided.
        """
        from context_bench.cli.output import open_destination

        with ExitStack() as stack:
            self._allowed = allowed
            self._writers = {
                flag: stack.enter_context(open_destination(path, quiet=True, flag=flag))
                for flag, path in (("--junit", self.junit), ("--summary", self._find_summary()))
                if path
            }
            yield self

    def _find_summary(self) -> str | None:
        """Return the file of --summary; None if the summary is appended to the same file as a CI job's summary."""
        same = self.summary and self.conditions and self.summary == os.environ.get(STEP_SUMMARY)
        return None if same else self.summary

    @property
    def wants_report(self) -> bool:
        return "--summary" in self._writers or bool(self.conditions and os.environ.get(STEP_SUMMARY))

    def judge(self, candidates: Sequence[Candidate], missing: Sequence[GateOutcome] = ()) -> list[GateOutcome]:
        """Judge the conditions and print each outcome; `missing` systems have already failed."""
        if not self.conditions:
            return []
        from context_bench.compare.gates import judge_gate

        judged = judge_gate(self.conditions, candidates, self._allowed, accept_blind=self.accept_blind)
        outcomes = [*missing, *judged]
        for each in outcomes:
            say(f"gate: {each.sentence}")
        return outcomes

    def write(self, outcomes: Sequence[GateOutcome], report: str) -> int:
        """Write the files, and return the exit code: 1, 4 or 0."""
        if "--junit" in self._writers:
            from context_bench.output.files import render_junit

            self._writers["--junit"](render_junit(outcomes))
        if os.environ.get("GITHUB_ACTIONS") == "true":
            from context_bench.output.files import render_annotations

            sys.stderr.write(render_annotations(outcomes))
        if self.wants_report:
            from context_bench.output.files import render_summary

            text = render_summary(report, outcomes)
            if "--summary" in self._writers:
                self._writers["--summary"](text)
            if self.conditions and os.environ.get(STEP_SUMMARY):
                _append(Path(os.environ[STEP_SUMMARY]), text)
        if not outcomes:
            return 0
        from context_bench.compare.gates import find_exit_code

        return find_exit_code(outcomes)


def _append(path: Path, text: str) -> None:
    """Append to the summary of a CI job; a write error does not fail the run."""
    try:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        say(f"cannot append to ${STEP_SUMMARY} ({path}): {error.strerror or error}")


def check_gate(
    conditions: Sequence[Condition], systems: Sequence[Any], metrics: Sequence[Metric], datasets: Any, scorer: Scorer
) -> list[str]:
    """Refuse conditions on numbers that the run cannot have; return the conditions' numbers if all keys are known."""
    numbers = _Numbers(metrics, datasets.tags, datasets.tags_known, len(systems))
    own_score = _has_own_score(metrics, scorer)
    allowed = []
    for each in conditions:
        if each.kind == "verdict":
            continue
        if each.metric not in ("score", "saved"):
            numbers.check(each)
        _check_limit(each, own_score=own_score)
        allowed.append(each.metric)
    return allowed if numbers.all_known else []


def tell_needs(conditions: Sequence[Condition], datasets: Any, margin: float, *, quiet: bool) -> None:
    """Print how many examples the conditions need and whether the run has them, before any request is sent."""
    from context_bench.compare.gates import count_needed
    from context_bench.core.run_settings import count_examples
    from context_bench.text import count_things

    needs = {each.text: count_needed(each, len(datasets.sources), margin) for each in conditions}
    known = {text: needed for text, needed in needs.items() if needed is not None}
    if not known or quiet:
        return
    count_examples(datasets, None, progress=True)
    listed = ", ".join(f"{text!r} {needed:,}" for text, needed in known.items())
    where = " of each dataset" if len(datasets.sources) > 1 else ""
    say(f"gate: smallest number of examples{where} that can pass, if no answer changes or fails: {listed}")
    with suppress(TypeError):
        fewest = min(datasets.list_lengths())
        if short := [text for text, needed in known.items() if needed > fewest]:
            words = f"this run has {count_things(fewest, 'example')}{where}: too few for {', '.join(map(repr, short))}"
            say(f"gate: {words}, so exit code 4 (undecided) is likely")


def _has_own_score(metrics: Sequence[Metric], scorer: Scorer) -> bool:
    from context_bench.core.examples import is_own_score
    from context_bench.traits import find_score_field

    fields = {field for each in metrics if (field := find_score_field(each)) is not None}
    return any(is_own_score(scorer, field) for field in fields)


class _Numbers:
    """The keys that a run's summary may have; `all_known` is false if a user's metric declares no keys."""

    def __init__(self, metrics: Sequence[Metric], tags: Sequence[str], tags_known: bool, systems: int) -> None:
        from context_bench.summary import list_suffixes
        from context_bench.tallies import list_keys
        from context_bench.traits import list_by_dataset

        self._tags, self._tags_known = tags, tags_known
        self._keys = dict.fromkeys(("score", "saved", *COUNTS))
        self.all_known = True
        for metric, suffix in zip(metrics, list_suffixes(metrics)):
            keys = list_keys(metric)
            self.all_known = self.all_known and keys is not None
            self._keys |= {
                f"{key}:{suffix}" if key in self._keys else key: None for key in keys or () if suffix is not None
            }
        if systems > 1:
            self._keys[SAVED_PER_1K_USD] = None
        by_dataset = dict.fromkeys((*COUNTS, *(key for metric in metrics for key in list_by_dataset(metric))))
        self._by_dataset = by_dataset if len(tags) > 1 or not tags_known else {}

    def check(self, condition: Condition) -> None:
        key = condition.metric
        if key in self._keys or not self.all_known or self._fits_tag(key):
            return
        known = [*(self._list_tagged() if "@" in key or ":" in key else ()), *self._keys]
        hint = (
            (NEEDS.get(NUMBERS[key].metric) if key in NUMBERS else None)
            or suggest(key, (each for each in known if "{" not in each), 0.7)
            or f"there are {', '.join(list(self._keys)[:12])} and more"
        )
        raise UsageError(f"--fail-if {condition.text!r}: {key!r} is not a number of this run: {hint}")

    def _fits_tag(self, key: str) -> bool:
        """Whether the key is a number of one dataset; if the datasets are not yet known, every dataset's name fits."""
        base, at, tag = key.partition("@")
        if at:
            return base in self._by_dataset and (tag in self._tags or not self._tags_known)
        kind, colon, tag = key.partition(":")
        return bool(colon) and f"{kind}:{{tag}}" in self._keys and (tag in self._tags or not self._tags_known)

    def _list_tagged(self) -> Iterator[str]:
        for tag in self._tags:
            yield from (f"{key}@{tag}" for key in self._by_dataset)
            yield from (key.format(tag=tag) for key in self._keys if "{tag}" in key)


def _check_limit(condition: Condition, *, own_score: bool) -> None:
    """Refuse a limit that all values meet or no value meets; usually a percentage was meant."""
    key, limit = condition.metric.partition("@")[0], condition.number
    number = NUMBERS.get({"score": MEAN_SCORE, "saved": PROMPT_SAVINGS}.get(key, key), Number(key))
    if math.isinf(number.high) or (number.unit == "score" and own_score):
        return
    signed = math.isinf(number.low)  # a prompt may also get longer
    if condition.needs_baseline:
        useless = limit >= 1 and not signed
    else:
        ends = ((">", 1), ("<", 0), (">=", 0), ("<=", 1))
        useless = not number.low <= limit <= number.high or (condition.kind, limit) in ends
    if useless and not (signed and limit <= 0):
        hint = f"; {limit:g}% is {limit / 100:g}" if 1 <= limit <= 100 else ""
        what = f"{key} is at most 1" if signed else f"{key} lies between 0 and 1"
        raise UsageError(f"--fail-if {condition.text!r} tests nothing: {what}{hint}")
