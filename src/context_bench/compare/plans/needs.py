"""How many examples a question needs, what they cost and how long they take: from a pilot, or an assumed spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

from context_bench.compare.comparison import are_unlike
from context_bench.compare.curves.scored import compare_scores, read_scores
from context_bench.config import read_settings
from context_bench.errors import UsageError
from context_bench.stats import (
    Difference,
    find_detectable,
    n_for_difference,
    n_for_equivalence,
    n_for_non_inferiority,
    pass_fail_spread,
)

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow

__all__ = ["Needs", "Target", "assume_needs", "find_needs"]

DEFAULT_WORKERS = 8
"""Examples at a time for a system over the network, where the pilot does not say."""


@dataclass(frozen=True)
class Target:
    """The aim of a run: what it is to show.

    Attributes:
        difference: A true difference of the scores that it is to find.
        margin: Within it a difference does not matter.
        power: The share of runs that are to succeed.
        alpha: The level of the tests.
        n: A number of examples, for the smallest difference that they find; None takes the pilot's.
    """

    difference: float
    margin: float
    power: float = 0.8
    alpha: float = 0.05
    n: int | None = None


class _Costs(TypedDict):
    dollars: float | None
    tokens: float | None
    seconds: float | None


_UNKNOWN = _Costs(dollars=None, tokens=None, seconds=None)


@dataclass(frozen=True)
class Needs:
    """The examples that one system needs to be told from the baseline.

    Attributes:
        system: Its name.
        spread: Standard deviation of the difference on one example.
        to_find: Examples that find the difference of the target.
        to_equate: Examples that show it equivalent within the margin, if it truly is the same.
        to_clear: Examples that show it not worse by the margin, if it truly is the same.
        n: The number of examples that `detectable` is for.
        detectable: The smallest difference that so many examples find.
        dollars: Of one example; None where that is not known.
        tokens: That the model reads for one example; None where that is not known.
        seconds: Of one example, with the pilot's workers; None where that is not known.
        comparisons: Systems that compete, which a difference is corrected for.
    """

    system: str
    spread: float
    to_find: int | None
    to_equate: int | None
    to_clear: int | None
    n: int | None = None
    detectable: float | None = None
    dollars: float | None = None
    tokens: float | None = None
    seconds: float | None = None
    comparisons: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON can hold it."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(self).items()
        }


def assume_needs(
    target: Target, *, spread: float | None = None, discordant: float | None = None, comparisons: int = 1
) -> Needs:
    """Find what a system needs whose spread is assumed.

    Args:
        target: What is to be shown.
        spread: Standard deviation of the difference on one example.
        discordant: Of pass/fail scores: the share of examples that only one of the two passes.
        comparisons: Systems that are held against the baseline.
    """
    if (spread is None) == (discordant is None):
        raise UsageError("give either a spread or a share of discordant examples")
    if discordant is not None and discordant > 1:
        raise UsageError(f"the share of discordant examples must be at most 1 (got {discordant:g})")
    if discordant is not None and abs(target.difference) > discordant:
        raise UsageError(
            f"a difference of {target.difference:g} cannot be with only {discordant:g} of the examples discordant"
        )
    same = spread if spread is not None else pass_fail_spread(discordant or 0.0)
    apart = spread if spread is not None else pass_fail_spread(discordant or 0.0, target.difference)
    needs = _count("any", same, target, comparisons, apart=apart)
    possible = discordant is None or needs.detectable is None or needs.detectable <= discordant
    return needs if possible else replace(needs, detectable=None)  # no difference can be larger than that share


def find_needs(result: EvalResult, baseline: str, target: Target) -> list[Needs]:
    """Find what each system of a pilot needs to be told from the baseline; the baseline has its cost alone.

    Left out are the second run of the baseline, and contexts where that answers: they are not judged.

    Args:
        result: The pilot, with its rows.
        baseline: One of its systems.
        target: What is to be shown.
    """
    field = result.settings.score_field
    judged = [name for name in result.systems if not are_unlike(result.config, name, baseline)]
    rows: dict[str, list[EvalRow]] = {name: [] for name in judged if name != result.settings.twin}
    for row in result.rows:
        if row.system in rows:
            rows[row.system].append(row)
    controls = set(result.settings.controls)
    others = [name for name in rows if name != baseline]
    comparisons = max(1, sum(name not in controls for name in others))
    scores = {name: read_scores(own, field) for name, own in rows.items()}
    found = []
    for name, own in rows.items():
        costs = _measure(own, result.config)
        if name == baseline:
            found.append(Needs(name, math.nan, None, None, None, **costs))
            continue
        difference = compare_scores(scores[name], scores[baseline])
        if not difference.known:
            raise UsageError(f"the pilot has too few examples that {name} and {baseline} both have a score for")
        found.append(
            _count(
                name,
                difference.spread,
                target,
                comparisons,
                seen=difference,
                costs=costs,
            )
        )
    return found


def _count(
    system: str,
    spread: float,
    target: Target,
    comparisons: int,
    *,
    apart: float | None = None,
    seen: Difference | None = None,
    costs: _Costs | None = None,
) -> Needs:
    """Count the examples; as in a verdict, only a difference is corrected for the other comparisons.

    With clusters it is those that are counted, and the examples follow from how many of them one brings.
    """
    alpha, strict = target.alpha, target.alpha / comparisons
    share, scores = 1.0, spread <= 1
    if seen is not None:
        share, scores = (seen.independent or seen.n) / seen.n, seen.independent is not None
    root = math.sqrt(share)
    own, far = spread * root, (spread if apart is None else apart) * root
    n = target.n or (None if seen is None else seen.n)
    detectable = (
        math.inf if n is None else find_detectable(own, n * share, alpha=strict, power=target.power, scores=scores)
    )
    counts = (
        n_for_difference(far, target.difference, alpha=strict, power=target.power, scores=scores),
        n_for_equivalence(own, target.margin, alpha=alpha, power=target.power, scores=scores),
        n_for_non_inferiority(own, target.margin, alpha=alpha, power=target.power, scores=scores),
    )
    to_find, to_equate, to_clear = (None if each is None else math.ceil(each / share) for each in counts)
    return Needs(
        *(system, spread, to_find, to_equate, to_clear, n),
        detectable if math.isfinite(detectable) else None,
        **(costs or _UNKNOWN),
        comparisons=comparisons,
    )


def _measure(rows: Sequence[EvalRow], config: dict[str, Any]) -> _Costs:
    """Measure what one example costs and how long it takes, over the rows that succeeded."""
    settings = read_settings(config)
    done = [row for row in rows if row.error is None]
    if not done:
        return _UNKNOWN
    dollars = [row.metadata["cost_usd"] for row in done if isinstance(row.metadata.get("cost_usd"), int | float)]
    elsewhere = done[0].system in settings.sends_elsewhere
    workers = settings.max_workers or (DEFAULT_WORKERS if elsewhere else 1)
    return {
        "dollars": sum(dollars) / len(dollars) if dollars else None,
        "tokens": sum(map(_read_tokens, done)) / len(done),
        "seconds": sum(row.latency for row in done) / len(done) / workers,
    }


def _read_tokens(row: EvalRow) -> int:
    """Read what the model got: what was seen of it, else the context that was returned, else the prompt as it was."""
    if row.upstream_tokens is not None:
        return row.upstream_tokens
    return row.output_tokens if row.metadata.get("output") == "context" else row.input_tokens
