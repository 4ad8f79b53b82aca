"""Compared runs as Markdown tables that fit a terminal: the verdicts, each dataset, what was fixed and broken."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_bench.compare.runs import Contest, RunComparison
from context_bench.compare.verdicts import explain_first_samples
from context_bench.config import read_settings
from context_bench.errors import printable
from context_bench.numbers import MACRO_SCORE, score
from context_bench.output.fitting import fit_columns, fit_grid, wrap
from context_bench.output.layout import escape_note
from context_bench.output.verdict_table import (
    FIXED,
    NARROWER,
    NEEDED,
    describe_clusters,
    explain_too_few,
    goes_beyond_margin,
    name_metric,
    tells_needed_n,
    write_difference,
    write_p,
    write_word,
)
from context_bench.stats import FIRST, THESE_GROUPS, Verdict

__all__ = ["build_diff_command", "render_comparison"]

_GIVE_WAY = ["p", "broken", "fixed", "score", "baseline", "n"]
_COMPARISONS = {True: "paired", False: "unpaired"}


def render_comparison(
    comparison: RunComparison, width: int | None, *, listed: int = 5, store: str | None = None
) -> str:
    """Lay out a comparison.

    Args:
        comparison: What was found.
        width: Columns of the terminal; None leaves the tables whole.
        listed: So many fixed and broken examples of each system are listed.
        store: The folder of the store, where it is not the usual one, for the commands.
    """
    parts = [_render_verdicts(comparison, width), _render_datasets(comparison, width)]
    parts += [
        "\n".join(_list_changes(each, fixed, width, listed, store))
        for each in comparison.contests
        for fixed in (False, True)
        if (each.fixed if fixed else each.broken).count
    ]
    parts.append("\n".join(wrap(escape_note(note), width) for note in _explain(comparison)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _render_verdicts(comparison: RunComparison, width: int | None) -> str:
    title = f"against {comparison.baseline}"
    metric = name_metric(comparison.metric)
    lines = [
        [title, "n", "baseline", "score", f"{metric} difference", "95% interval", "p", "fixed", "broken", "verdict"]
    ]
    lines += [_write_contest(each) for each in comparison.contests]
    return fit_columns(lines, width, _GIVE_WAY)


def _write_contest(contest: Contest) -> list[str]:
    verdict = contest.verdict
    assert verdict is not None
    ours, theirs = contest.find_means()
    changes = [f"{count:,}" for count in contest.count_changes() or ()] or ["–", "–"]
    numbers = [score(theirs), score(ours), *write_difference(verdict), write_p(verdict)]
    return [contest.name, f"{verdict.n:,}", *numbers, *changes, write_word(verdict)]


def _render_datasets(comparison: RunComparison, width: int | None) -> str:
    """Lay out the difference on each dataset, where there are several."""
    tags = sorted({tag for each in comparison.contests for tag in each.by_dataset})
    if len(tags) < 2:
        return ""
    lines = [["score difference by dataset", *tags]]
    lines += [[each.name, *(_write_dataset(each.by_dataset.get(tag)) for tag in tags)] for each in comparison.contests]
    return fit_grid(lines, width)


def _write_dataset(verdict: Verdict | None) -> str:
    return "–" if verdict is None else f"{verdict.difference:+.3f} {verdict.word}"


def _list_changes(contest: Contest, fixed: bool, width: int | None, listed: int, store: str | None) -> Iterator[str]:
    """List examples that pass on one side alone, each with the command that shows it."""
    changes = contest.fixed if fixed else contest.broken
    more = f", the first {listed}" if changes.count > listed else ""
    yield wrap(escape_note(f"{'fixed' if fixed else 'broken'} by {contest.name} ({changes.count:,}{more}):"), width)
    for tag, identity in changes.examples[:listed]:
        yield f"  {printable(build_diff_command(contest, tag, identity, store) or f'{identity} of {tag}')}"


def build_diff_command(contest: Contest, tag: str, identity: str, store: str | None = None) -> str | None:
    """Build the command that shows what the system did to an example; None where the run is in no store."""
    if contest.source.run is None:
        return None
    words = ["context-bench", "diff", contest.source.run, identity, "--system", contest.system]
    words += ["--dataset", tag] if tag else []
    words += ["--cache-dir", store] if store else []
    return shlex.join(words)


def _explain(comparison: RunComparison) -> Iterator[str]:
    kinds = {each.is_paired(tag) for each in comparison.contests for tag in each.list_datasets()}
    first = comparison.contests[0]
    scores = _name_scores(first.baseline.config, first.baseline_system)
    several = comparison.metric == MACRO_SCORE
    metric = f"the mean of the datasets' means of {scores}" if several else f"the mean of {scores} over examples"
    title = name_metric(comparison.metric)
    yield f"{title} ({comparison.metric}) = {metric}; a score of {comparison.threshold:g} passes."
    yield from _explain_pairs(comparison.contests)
    how = " and ".join(_COMPARISONS[kind] for kind in sorted(kinds, reverse=True))
    many = len(comparison.contests)
    family = sum(not each.control for each in comparison.contests)
    corrected = f", p corrected for {family} comparisons (Holm), intervals not" if family > 1 else ""
    clustered = [each.verdict for each in comparison.contests if each.verdict is not None and each.verdict.groups]
    if clustered:
        largest = max(clustered, key=lambda each: each.n)
        yield f"{describe_clusters(largest.n, largest.groups or 0, 'examples')}."
    yield f"verdict{'s' if many > 1 else ''}: {how}, margin ±{comparison.margin:g}{corrected}."
    if any(each.verdict is not None and goes_beyond_margin(each.verdict) for each in comparison.contests):
        yield NARROWER
    if any(each.verdict is not None and tells_needed_n(each.verdict) for each in comparison.contests):
        yield NEEDED
    if any(
        each.verdict is not None and each.verdict.scope == THESE_GROUPS and each.verdict.word != "undecided"
        for each in comparison.contests
    ):
        yield FIXED
    verdicts = [each.verdict for each in comparison.contests if each.verdict is not None]
    if few := explain_too_few(verdicts, comparison.margin):
        yield f"{few}."
    if comparison.first_samples:
        yield f"{FIRST}: {explain_first_samples(comparison.first_samples)}."
    yield from (f"{name} is missing in {run}." for name, run in comparison.missing)
    yield from (f"{note}." for note in comparison.notes)
    if comparison.left_out:
        yield f"left out, as the baseline has no such system: {', '.join(comparison.left_out)}."


def _name_scores(config: Mapping[str, Any], system: str) -> str:
    """Name what is scored of a system: the field that was asked for, else what counts for the datasets."""
    settings = read_settings(config)
    field = settings.score_field
    key = "context_primary" if system in settings.unread else "primary"
    primaries = dict.fromkeys(map(str, (config.get(key) or {}).values()))
    return ", ".join(primaries) if field == "score" and primaries else field


def _explain_pairs(contests: Sequence[Contest]) -> Iterator[str]:
    """Say how many examples are paired and by what; the same for several systems once."""
    said: dict[str, list[str]] = {}
    for contest in contests:
        said.setdefault(describe_pairs(contest), []).append(contest.name)
    for sentence, names in said.items():
        yield f"{sentence}." if len(said) == 1 else f"{', '.join(names)}: {sentence}."


def describe_pairs(contest: Contest) -> str:
    """Describe how examples were paired: how many, by what, and what was left out."""
    pairs = contest.pairs.n
    by = (
        "id and content"
        if contest.same_content == pairs
        else "id alone (a JSON file holds no examples, so that their content is not checked)"
    )
    if contest.source is contest.baseline:
        by = "id, within one run"
    parts = [f"{pairs:,} examples are paired by {by}"] if pairs else ["no examples are paired"]
    if contest.other_content:
        parts.append(f"{contest.other_content:,} have the same id and another content")
    for count, label in (
        (contest.only_here, contest.source.label or contest.system),
        (contest.only_in_baseline, contest.baseline.label or contest.baseline_system),
    ):
        if count:
            parts.append(f"{count:,} are only in {label}")
    unpaired = [tag or "data without a tag" for tag in contest.list_datasets() if not contest.is_paired(tag)]
    if unpaired:
        parts.append(f"means of different examples are compared (unpaired) for {', '.join(unpaired)}")
    return "; ".join(parts)
