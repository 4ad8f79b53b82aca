"""How sure the numbers are: what can be said of each system against the baseline, and what the intervals mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

from context_bench.compare.blind_spots import CONTROL_NAMES
from context_bench.compare.verdicts import Comparison, explain_first_samples, find_first_samples
from context_bench.numbers import NUMBERS
from context_bench.output.fitting import fit_columns
from context_bench.output.number_cells import HEADLINES, has_intervals
from context_bench.results import EvalResult
from context_bench.stats import FIRST, ROUGH, THESE_GROUPS, TOO_FEW, Interval, NoiseFloor, Verdict, least_n
from context_bench.text import count_things

__all__ = [
    "FIXED",
    "NARROWER",
    "NEEDED",
    "describe_clusters",
    "explain_too_few",
    "explain_verdicts",
    "goes_beyond_margin",
    "name_metric",
    "tells_needed_n",
    "verdict_table",
    "write_aside",
    "write_blindness",
    "write_difference",
    "write_p",
    "write_word",
]

NEEDED = (
    "n ≥ A; B: a verdict takes at least A examples if the difference stays as it is, and B if there is none. No number "
    "is promised where the 90% interval holds the margin."
)
"""Explains the numbers beside an open verdict."""

FIXED = "these groups: equivalent and not worse hold for the conversations or documents of this run (--fixed-groups)."
"""Explains a verdict that speaks of no other groups."""

EACH_TOO_FEW = "undecided by dataset: each dataset alone has too few examples; the verdict over all of them stands."
"""Explains an open verdict by dataset beside one over all of them."""

NARROWER = "equivalent and not worse go by the 90% interval, which is narrower than the one shown."
"""Explains a verdict whose 95% interval is wider than the margin."""


def goes_beyond_margin(verdict: Verdict) -> bool:
    """Whether the interval that is shown seems to contradict the word."""
    shown, margin = verdict.interval, verdict.margin
    if not shown.known or verdict.word not in ("equivalent", "not worse"):
        return False
    return shown.low <= -margin or (verdict.word == "equivalent" and shown.high >= margin)


def name_metric(metric: str) -> str:
    """Name what is compared as the table does."""
    return NUMBERS[metric].title if metric in NUMBERS else metric


def verdict_table(result: EvalResult, width: int | None) -> str:
    """Lay out the verdicts, a line for each system but the baseline; nothing where there are none."""
    comparison = result.comparison
    if comparison is None:
        return ""
    if not comparison.verdicts:
        return ""
    title = f"against {comparison.baseline}"
    lines = [[title, "pairs", "difference", "95% interval", "p", "verdict"]]
    lines += [_write_verdict(verdict, comparison) for verdict in comparison.verdicts]
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


def _write_verdict(verdict: Verdict, comparison: Comparison) -> list[str]:
    word = write_word(verdict) + write_blindness(verdict, comparison)
    return [verdict.name, f"{verdict.n:,}", *write_difference(verdict), write_p(verdict), word]


def write_blindness(verdict: Verdict, comparison: Comparison) -> str:
    """Write which naive cut of the same size is as good, where one is; empty where the data could show a loss."""
    if not verdict.not_worse or not comparison.is_blind(verdict.name):
        return ""
    blind = [each for each in comparison.sensitivity[verdict.name].controls if each.loss.not_worse]
    names = dict.fromkeys(CONTROL_NAMES[each.name].partition(" (")[0] for each in blind)
    return f", and so is {' and '.join(names)}"


def write_difference(verdict: Verdict) -> tuple[str, str]:
    """Write the difference, and its interval with the mark that it has."""
    interval = verdict.interval
    limits = f"[{interval.low:+.3f}, {interval.high:+.3f}]" if interval.known else TOO_FEW
    limits += f" {interval.mark}" if interval.known and interval.mark else ""
    return f"{verdict.difference:+.3f}", limits


def write_p(verdict: Verdict) -> str:
    """Write the corrected p-value."""
    p = verdict.p_holm
    return "–" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def write_word(verdict: Verdict) -> str:
    """Write the word, with the number of examples that would decide where it is open."""
    word = verdict.word + write_aside(verdict)
    return f"{word}; {verdict.word_without_errors} without errors" if verdict.errors_disagree else word


def write_aside(verdict: Verdict) -> str:
    """Write what stands behind the word: that it is a control, its scope, or the examples that would decide."""
    if verdict.control:
        return " (control)"
    if verdict.scope == THESE_GROUPS:
        return " (these groups)" if verdict.word != "undecided" else f" ({verdict.reason.partition(';')[0]})"
    if not tells_needed_n(verdict):
        return ""
    equal = "" if verdict.needed_n_if_equal is None else f"; {verdict.needed_n_if_equal:,}"
    return f" (n ≥ {verdict.needed_n:,}{equal})"


def tells_needed_n(verdict: Verdict) -> bool:
    """Whether the number of examples that would decide stands beside the word."""
    open_one = verdict.word == "undecided" and not verdict.control and verdict.scope != THESE_GROUPS
    return open_one and verdict.needed_n is not None


def explain_too_few(verdicts: Sequence[Verdict], margin: float) -> str:
    """Say that there are too few examples, or groups, for any verdict of equivalence; empty where there are not."""
    sizes = [(each.groups or each.n, each.groups) for each in verdicts if each.scope != THESE_GROUPS]
    if not sizes or max(sizes)[0] >= (least := least_n(margin)):
        return ""
    count, groups = max(sizes)
    what = f"{count:,} conversations or documents" if groups else count_things(count, "example")
    return f"{what} cannot show any system equivalent within ±{margin:g}: that takes at least {least:,}"


def explain_verdicts(result: EvalResult) -> list[str]:
    """Say what the intervals and the words mean, once, beneath the tables."""
    notes = []
    if has_intervals(result):
        notes.append("[low, high] or ±: 95% interval of the number before it, for examples drawn at random.")
    comparison = result.comparison
    if any(each.mark == ROUGH for each in _list_shown(result)):
        notes.append(
            f"{ROUGH}: a few long examples outweigh the rest, and the interval misses more often than it says."
        )
    if first := find_first_samples(result.config):
        notes.append(f"{FIRST}: {explain_first_samples(first)}.")
    notes += _explain_clusters(result)
    if comparison is not None and comparison.noise is not None:
        notes.append(_explain_noise(comparison, comparison.noise))
    if comparison is not None and comparison.verdicts:
        what = name_metric(comparison.metric)
        count = len(comparison.verdicts)
        family = sum(not verdict.control for verdict in comparison.verdicts)
        corrected = f", p corrected for {family} comparisons (Holm), intervals not" if family > 1 else ""
        if looked := result.settings.looks:
            many = f"{family} comparisons and " if family > 1 else ""
            corrected = f", p corrected for {many}{looked['looks']} looks, intervals for the looks"
        how = f"difference of {what}, paired by example, margin ±{comparison.margin:g}{corrected}"
        notes.append(f"{'verdicts' if count > 1 else 'verdict'}: {how}.")
        if any(map(goes_beyond_margin, comparison.verdicts)):
            notes.append(NARROWER)
        if any(map(tells_needed_n, comparison.verdicts)):
            notes.append(NEEDED)
        if any(each.scope == THESE_GROUPS and each.word != "undecided" for each in comparison.verdicts):
            notes.append(FIXED)
        if few := explain_too_few(comparison.verdicts, comparison.margin):
            notes.append(f"{few}.")
        if _is_open_by_dataset(comparison):
            notes.append(EACH_TOO_FEW)
        known = explain_first_samples(first)
        notes += [f"{note}." for note in comparison.notes if note != known]
    return notes + _explain_looks(result)


def _is_open_by_dataset(comparison: Comparison) -> bool:
    """Whether a system with a verdict over all datasets has none on one of them, for want of examples."""
    decided = {each.name for each in comparison.verdicts if each.word != "undecided"}
    return any(
        each.word == "undecided" and each.name in decided and each.narrow is not None and each.narrow.known
        for found in comparison.by_dataset.values()
        for each in found
    )


def _explain_looks(result: EvalResult) -> list[str]:
    """Say how far each system was run, where they were stopped when they were decided."""
    looked = result.settings.looks
    if not looked:
        return []
    sizes = ", ".join(f"{size:,}" for size in looked["sizes"])
    notes = [
        f"stopped when decided: {looked['looks']} looks, at {sizes} examples in an order by seed {looked['seed']}; "
        "a difference at which a system stops early is somewhat too large."
    ]
    for name, each in looked["systems"].items():
        left = f"; {each['not_run']:,} examples were not run" if each["not_run"] else "; all were run"
        how = f"{each['verdict']['word']} at look {each['look']}, after {each['examples']:,} of {looked['planned']:,}"
        if not each["settled"]:
            how = f"not settled, after {each['examples']:,} of {looked['planned']:,}"
        notes.append(f"{name}: {how}{left}.")
    others = [f"{name} ({left:,})" for name, left in looked["not_run"].items() if left]
    if others:
        notes.append(f"nothing was left to decide, so that examples were not run of {', '.join(others)}.")
    return notes


def _explain_clusters(result: EvalResult) -> list[str]:
    """Say how many clusters the intervals and the verdicts go by, where they do not go by rows."""
    shared = max((each for each in _list_shown(result) if each.groups), key=lambda each: each.n, default=None)
    notes = []
    if shared is not None:
        notes.append(f"intervals: {describe_clusters(shared.n, shared.groups or 0, 'rows')}.")
    verdicts = [] if result.comparison is None else result.comparison.verdicts
    clustered = max((each for each in verdicts if each.groups), key=lambda each: each.n, default=None)
    if clustered is not None:
        notes.append(f"verdicts: {describe_clusters(clustered.n, clustered.groups or 0, 'examples')}.")
    return notes


def _list_shown(result: EvalResult) -> list[Interval]:
    """List the intervals of the numbers that are read first."""
    return [each for own in result.intervals.values() for key, each in own.items() if key in HEADLINES]


def describe_clusters(n: int, groups: int, what: str) -> str:
    """Describe by how many clusters so many examples or rows are counted."""
    clusters = count_things(groups, "cluster")
    if what == "rows":
        return f"{n:,} rows count as {clusters} (rows of one document, conversation or example go together)"
    return f"{n:,} examples count as {clusters} (those of one document or conversation go together)"


def _explain_noise(comparison: Comparison, noise: NoiseFloor) -> str:
    """Say what the baseline differs from itself by, and which systems differ by no more."""
    share = noise.share
    if noise.nothing_seen:
        most = f", so at most {share.high:.1%}" if share.known else ""
        name = comparison.baseline
        return f"noise: no disagreement seen: {name} agrees with itself on all of {noise.n:,} examples{most}."
    limits = f" [{share.low:.1%}, {share.high:.1%}]" if share.known else ""
    within = [each.name for each in comparison.verdicts if abs(each.difference) <= noise.floor]
    which = f"; {', '.join(within)} {'differ' if len(within) > 1 else 'differs'} by no more" if within else ""
    floor = "too few examples to tell a floor" if math.isnan(noise.floor) else f"differences up to {noise.floor:.3f}"
    return (
        f"noise: {comparison.baseline} disagrees with itself on {share.value:.1%}{limits} of pairs of answers "
        f"(n = {noise.n:,}); that alone gives {floor}{which}."
    )
