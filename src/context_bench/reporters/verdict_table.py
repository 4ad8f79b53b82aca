"""How sure the numbers are: what can be said of each system against the baseline, and what the intervals mean."""

from __future__ import annotations

import math

from context_bench.comparison import Comparison
from context_bench.reporters.fitting import fit_columns
from context_bench.reporters.number_cells import has_intervals
from context_bench.results import EvalResult
from context_bench.stats import TOO_FEW, NoiseFloor, Verdict

__all__ = ["explain_verdicts", "name_metric", "verdict_table"]


def name_metric(metric: str) -> str:
    """Name what is compared as the table does."""
    return {"macro_score": "macro score", "mean_score": "score", "pass_rate": "pass rate"}.get(metric, metric)


def verdict_table(result: EvalResult, width: int | None) -> str:
    """Lay out the verdicts, a line for each system but the baseline; nothing where there are none."""
    comparison = result.comparison
    if comparison is None:
        return ""
    if not comparison.verdicts:
        return ""
    title = f"against {comparison.baseline}"
    lines = [[title, "pairs", "difference", "95% interval", "p", "verdict"]]
    lines += [_write_verdict(verdict) for verdict in comparison.verdicts]
    tables = [fit_columns(lines, width, ["pairs", "p", "95% interval"])]
    if comparison.by_dataset:
        tags = list(comparison.by_dataset)
        found = {(each.name, tag): each for tag in tags for each in comparison.by_dataset[tag]}
        lines = [[f"{title}, by dataset", *tags]]
        for verdict in comparison.verdicts:
            own = [found.get((verdict.name, tag)) for tag in tags]
            lines.append(
                [verdict.name, *("–" if each is None else f"{each.difference:+.3f} {each.word}" for each in own)]
            )
        tables.append(fit_columns(lines, width, list(reversed(tags))))
    return "\n\n".join(tables)


def _write_verdict(verdict: Verdict) -> list[str]:
    interval, word = verdict.interval, verdict.word
    limits = f"[{interval.low:+.3f}, {interval.high:+.3f}]" if interval.known else TOO_FEW
    if verdict.control:
        word += " (control)"
    elif word == "undecided" and verdict.needed_n is not None:
        word += f" (n ≈ {verdict.needed_n:,})"
    if verdict.errors_disagree:
        word += f"; {verdict.word_without_errors} without errors"
    p = "–" if math.isnan(verdict.p_holm) else "<0.001" if verdict.p_holm < 0.001 else f"{verdict.p_holm:.3f}"
    return [verdict.name, f"{verdict.n:,}", f"{verdict.difference:+.3f}", limits, p, word]


def explain_verdicts(result: EvalResult) -> list[str]:
    """Say what the intervals and the words mean, once, beneath the tables."""
    notes = []
    if has_intervals(result):
        notes.append("[low, high] or ±: 95% interval of the number before it, for examples drawn at random.")
    comparison = result.comparison
    if comparison is not None and comparison.noise is not None:
        notes.append(_explain_noise(comparison, comparison.noise))
    if comparison is not None and comparison.verdicts:
        what = name_metric(comparison.metric)
        count = len(comparison.verdicts)
        family = sum(not verdict.control for verdict in comparison.verdicts)
        corrected = f", p corrected for {family} comparisons (Holm), intervals not" if family > 1 else ""
        how = f"difference of {what}, paired by example, margin ±{comparison.margin:g}{corrected}"
        notes.append(f"{'verdicts' if count > 1 else 'verdict'}: {how}.")
        if any(verdict.word == "undecided" and verdict.needed_n for verdict in comparison.verdicts):
            notes.append("n ≈: examples that would decide in four runs of five, if the difference stays as it is.")
        notes += [f"{note}." for note in comparison.notes]
    return notes


def _explain_noise(comparison: Comparison, noise: NoiseFloor) -> str:
    """Say what the baseline differs from itself by, and which systems differ by no more."""
    share = noise.share
    limits = f" [{share.low:.1%}, {share.high:.1%}]" if share.known else ""
    within = [each.name for each in comparison.verdicts if abs(each.difference) <= noise.floor]
    which = f"; {', '.join(within)} {'differ' if len(within) > 1 else 'differs'} by no more" if within else ""
    floor = "too few examples to tell a floor" if math.isnan(noise.floor) else f"differences up to {noise.floor:.3f}"
    return (
        f"noise: {comparison.baseline} disagrees with itself on {share.value:.1%}{limits} of pairs of answers "
        f"(n = {noise.n:,}); that alone gives {floor}{which}."
    )
