"""Refuses a gate that a run cannot be judged by, before its first request: a number that it cannot have, or a limit
that no value of that number can meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from context_bench.compare.conditions import Condition
from context_bench.errors import UsageError, suggest
from context_bench.metrics.evidence_shares import EvidenceShares

if TYPE_CHECKING:
    from context_bench.core.scoring import Scorer
    from context_bench.types import Metric

__all__ = ["check_gate"]

COUNTS = ("num_examples", "num_errors", "error_rate", "num_unscored")
"""Keys of every summary, also by dataset."""

_TAP = "a tap (--tap, --start or --vendor) or --reader measures it"
_BROUGHT_BY = {
    **dict.fromkeys(("prompt-savings", "upstream-tokens", "upstream-cost", "evidence-survival"), _TAP),
    **dict.fromkeys(("proxy-overhead", "token-meters", "prefix-stability"), _TAP),
    "repeats": "--repeats K measures it",
    "retention": "--controls measures it",
    "per-dataset-breakdown": "it takes more than one --dataset",
    "pareto-rank": "it takes more than one system",
    "card-pass-rate": "no dataset here has a card that recommends a threshold",
    "official-score": "of no dataset here is the official number another than the mean of its rows",
}
"""Needs of a run to have the numbers of a metric."""

_SHARES = {
    *("pass_rate", "card_pass_rate", "error_rate", "untouched_share", "pass_at_k", "pass_all_k", "repeat_flips"),
    *EvidenceShares.by_dataset,
    *("prefix_stability", "first_message_changed", "rewritten_history"),
}
_SAVINGS = {"compression_ratio", "prompt_savings", "prompt_savings_best", "prompt_savings_worst"}
"""Shares that are below 0 where a prompt gets longer."""
_SCORES = {"score", "mean_score", "macro_score"}


def check_gate(
    conditions: Sequence[Condition], systems: Sequence[Any], metrics: Sequence[Metric], datasets: Any, scorer: Scorer
) -> list[str]:
    """Refuse conditions on numbers that the run cannot have; return the numbers of the conditions, where all are known.

    Raises:
        UsageError: One sentence on what is wrong with a condition.
    """
    numbers = _Numbers(metrics, datasets.tags, datasets.tags_known, len(systems))
    own_score = _has_own_score(metrics, scorer)
    allowed = []
    for each in conditions:
        if each.kind == "verdict":
            continue
        if each.metric != "score":
            numbers.check(each)
        _check_limit(each, own_score=own_score)
        allowed.append(each.metric)
    return allowed if numbers.all_told else []


def _has_own_score(metrics: Sequence[Metric], scorer: Scorer) -> bool:
    from context_bench.core.scoring import is_own_score
    from context_bench.traits import find_score_field

    fields = {field for each in metrics if (field := find_score_field(each)) is not None}
    return any(is_own_score(scorer, field) for field in fields)


class _Numbers:
    """The keys that the summary of a run may have.

    Attributes:
        all_told: Every metric tells its keys; one of a user's may not.
    """

    def __init__(self, metrics: Sequence[Metric], tags: Sequence[str], tags_known: bool, systems: int) -> None:
        from context_bench.summary import list_suffixes
        from context_bench.tallies import list_keys
        from context_bench.traits import list_by_dataset

        self._tags, self._tags_known = tags, tags_known
        self._keys = dict.fromkeys(("score", *COUNTS))
        self.all_told = True
        for metric, suffix in zip(metrics, list_suffixes(metrics)):
            keys = list_keys(metric)
            self.all_told = self.all_told and keys is not None
            self._keys |= {
                f"{key}:{suffix}" if key in self._keys else key: None for key in keys or () if suffix is not None
            }
        if systems > 1:
            self._keys["saved_per_1k_usd"] = None
        by_dataset = dict.fromkeys((*COUNTS, *(key for metric in metrics for key in list_by_dataset(metric))))
        self._by_dataset = by_dataset if len(tags) > 1 or not tags_known else {}

    def check(self, condition: Condition) -> None:
        """Refuse a condition on a number that cannot be."""
        key = condition.metric
        if key in self._keys or not self.all_told or self._fits_tag(key):
            return
        known = [*(self._list_tagged() if "@" in key or ":" in key else ()), *self._keys]
        hint = (
            _find_need(key)
            or suggest(key, (each for each in known if "{" not in each), 0.7)
            or f"there are {', '.join(list(self._keys)[:12])} and more"
        )
        raise UsageError(f"--fail-if {condition.text!r}: {key!r} is not a number of this run: {hint}")

    def _fits_tag(self, key: str) -> bool:
        """Whether it is the number of one dataset; a file may name its datasets itself."""
        base, at, tag = key.partition("@")
        if at:
            return base in self._by_dataset and (tag in self._tags or not self._tags_known)
        kind, colon, tag = key.partition(":")
        return bool(colon) and f"{kind}:{{tag}}" in self._keys and (tag in self._tags or not self._tags_known)

    def _list_tagged(self) -> Iterator[str]:
        for tag in self._tags:
            yield from (f"{key}@{tag}" for key in self._by_dataset)
            yield from (key.format(tag=tag) for key in self._keys if "{tag}" in key)


def _find_need(key: str) -> str:
    """Say what a run lacks that would have this number; empty where no metric of ours has it."""
    from context_bench.registry import registry
    from context_bench.tallies import list_keys

    for name, need in _BROUGHT_BY.items():
        if key in (list_keys(registry.get("metric", name)()) or ()):
            return need
    return ""


def _check_limit(condition: Condition, *, own_score: bool) -> None:
    """Refuse a limit that every value meets, or none: such a gate says nothing, and hides a percentage."""
    key, number = condition.metric.partition("@")[0], condition.number
    least = 0.0 if key in _SHARES or key in _SCORES else float("-inf")
    if key not in _SHARES | _SAVINGS | _SCORES or (key in _SCORES and own_score):
        return
    if condition.needs_baseline:
        useless = number >= 1 and key not in _SAVINGS
    else:
        useless = not least <= number <= 1 or (condition.kind, number) in ((">", 1), ("<", 0), (">=", 0), ("<=", 1))
    if useless and not (key in _SAVINGS and number <= 0):
        hint = f"; {number:g}% is {number / 100:g}" if 1 <= number <= 100 else ""
        what = f"{key} lies between 0 and 1" if key not in _SAVINGS else f"{key} is at most 1"
        raise UsageError(f"--fail-if {condition.text!r} says nothing, as {what}{hint}")
