"""Tables of verdicts: each system against the baseline, compared runs, and notes on intervals and words."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence

from context_bench.compare.blind_spots import Sensitivity
from context_bench.compare.contest import Contest
from context_bench.compare.runs import RunComparison
from context_bench.compare.verdicts import Comparison, explain_first_samples, find_first_samples
from context_bench.errors import printable
from context_bench.numbers import MACRO_SCORE, find_saved_key, get_number, percent, score
from context_bench.output.columns import HEADLINES, has_intervals
from context_bench.output.layout import escape_note, fit_columns, fit_grid, wrap
from context_bench.results import EvalResult
from context_bench.settings import RunSettings
from context_bench.stats import FIRST, ROUGH, THESE_GROUPS, TOO_FEW, Interval, NoiseFloor, Verdict, least_n
from context_bench.text import count_things

NEEDED = (
    "n ≥ A; B: a verdict needs at least A examples if the difference stays the same, and B if there is none. No "
    "number is promised if the 90% interval contains the margin."
)
"""Explains the numbers next to an undecided verdict."""

FIXED = "these groups: equivalent and not worse hold for the conversations or documents of this run (--fixed-groups)."
"""Explains a verdict that holds only for these groups."""

EACH_TOO_FEW = "undecided by dataset: each dataset alone has too few examples; the overall verdict is valid."
"""Explains an undecided verdict by dataset next to an overall verdict."""

NARROWER = "equivalent and not worse are decided by the 90% interval, which is narrower than the 95% one shown."
"""Explains a verdict whose 95% interval is wider than the margin."""


def _goes_beyond_margin(verdict: Verdict) -> bool:
    """Whether the shown interval seems to contradict the verdict."""
    shown, margin = verdict.interval, verdict.margin
    if not shown.known or verdict.word not in ("equivalent", "not worse"):
        return False
    return shown.low <= -margin or (verdict.word == "equivalent" and shown.high >= margin)


def verdict_table(comparison: Comparison | None, width: int | None) -> str:
    """Lay out the verdicts, one line for each system except the baseline; empty if there are none."""
    if comparison is None or not comparison.verdicts:
        return ""
    title = f"against {comparison.baseline}"
    lines = [[title, "pairs", "difference", "95% interval", "p", "verdict"]]
    lines += [
        [each.name, f"{each.n:,}", *_write_difference(each), _write_p(each), _write_word(each, comparison.sensitivity)]
        for each in comparison.verdicts
    ]
    tables = [fit_columns(lines, width, ["pairs", "p", "95% interval"])]
    if comparison.by_dataset:
        tags = list(comparison.by_dataset)
        found = {(each.name, tag): each for tag in tags for each in comparison.by_dataset[tag]}
        lines = [[f"{title}, by dataset", *tags]]
        for verdict in comparison.verdicts:
            cells = (
                _write_briefly(found.get((verdict.name, tag)), comparison.sensitivity_by_dataset.get(tag, {}))
                for tag in tags
            )
            lines.append([verdict.name, *cells])
        tables.append(fit_columns(lines, width, list(reversed(tags))))
    return "\n\n".join(tables)


def write_verdict(comparison: Comparison, name: str) -> str:
    """Write the verdict on a system in a few words, for a column of the table of systems."""
    if name == comparison.baseline:
        return "baseline"
    verdict = comparison.of(name)
    if verdict is None or verdict.control:
        return "–" if verdict is None else "control"
    return _write_word(verdict, comparison.sensitivity, brief=True)


def write_dataset_verdict(comparison: Comparison, name: str, tag: str) -> str:
    """Write the verdict on one dataset in a few words; empty if it equals the overall one."""
    verdict = next((each for each in comparison.by_dataset.get(tag, ()) if each.name == name), None)
    if verdict is None or verdict.control:
        return ""
    word = _write_word(verdict, comparison.sensitivity_by_dataset.get(tag, {}), brief=True)
    return "" if word == write_verdict(comparison, name) else word


def write_blindness(verdict: Verdict, sensitivity: Mapping[str, Sensitivity]) -> str:
    """Name the naive cut of equal size that does equally well; empty if the data could show a loss."""
    known = sensitivity.get(verdict.name)
    is_blind = verdict.not_worse and known is not None and known.word == "none"
    return f", and so is {known.name_blind_cuts()}" if is_blind and known else ""


def _write_briefly(verdict: Verdict | None, sensitivity: Mapping[str, Sensitivity] | None = None) -> str:
    if verdict is None:
        return "–"
    return f"{verdict.difference:+.3f} {verdict.word}{write_blindness(verdict, sensitivity or {})}"


def _write_difference(verdict: Verdict) -> tuple[str, str]:
    """Write the difference, and its interval with its mark."""
    interval = verdict.interval
    limits = f"[{interval.low:+.3f}, {interval.high:+.3f}]" if interval.known else TOO_FEW
    limits += f" {interval.mark}" if interval.known and interval.mark else ""
    return f"{verdict.difference:+.3f}", limits


def _write_p(verdict: Verdict) -> str:
    """Write the corrected p-value."""
    p = verdict.p_holm
    return "–" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def _write_word(verdict: Verdict, sensitivity: Mapping[str, Sensitivity] | None = None, *, brief: bool = False) -> str:
    """Write the verdict's word; if it is undecided and not `brief`, add the number of examples that would decide."""
    word = verdict.word + ("" if brief and verdict.word == "undecided" else write_aside(verdict))
    if sensitivity is not None:
        blindness = write_blindness(verdict, sensitivity)
        word += " (blind)" if brief and blindness else blindness
    return f"{word}; {verdict.word_without_errors} without errors" if verdict.errors_disagree else word


def write_aside(verdict: Verdict) -> str:
    """Write the remark after the word: control, scope, or the number of examples that would decide."""
    if verdict.control:
        return " (control)"
    if verdict.scope == THESE_GROUPS:
        return " (these groups)" if verdict.word != "undecided" else f" ({verdict.reason.partition(';')[0]})"
    if not _tells_needed_n(verdict):
        return ""
    equal = "" if verdict.needed_n_if_equal is None else f"; {verdict.needed_n_if_equal:,}"
    return f" (n ≥ {verdict.needed_n:,}{equal})"


def _tells_needed_n(verdict: Verdict) -> bool:
    """Whether the number of examples that would decide is written after the word."""
    open_one = verdict.word == "undecided" and not verdict.control and verdict.scope != THESE_GROUPS
    return open_one and verdict.needed_n is not None


def explain_too_few(verdicts: Sequence[Verdict], margin: float) -> str:
    """Explain that there are too few examples or groups for any verdict of equivalence; empty if there are enough."""
    sizes = [(each.groups or each.n, each.groups) for each in verdicts if each.scope != THESE_GROUPS]
    if not sizes or max(sizes)[0] >= (least := least_n(margin)):
        return ""
    count, groups = max(sizes)
    one, many = ("conversation or document", "conversations or documents") if groups else ("example", "examples")
    what = f"{count:,} {one if count == 1 else many}"
    are = "is" if count == 1 else "are"
    return f"{what} {are} too few to show equivalence within ±{margin:g}: at least {least:,} are needed"


def _explain_words(verdicts: Sequence[Verdict], margin: float) -> Iterator[str]:
    """Explain the marks and words in a table of verdicts."""
    if any(map(_goes_beyond_margin, verdicts)):
        yield NARROWER
    if any(map(_tells_needed_n, verdicts)):
        yield NEEDED
    if any(each.scope == THESE_GROUPS and each.word != "undecided" for each in verdicts):
        yield FIXED
    if few := explain_too_few(verdicts, margin):
        yield f"{few}."


def explain_verdicts(result: EvalResult) -> list[str]:
    """Explain the intervals and the words, once, under the tables."""
    notes = []
    if has_intervals(result):
        notes.append("[low, high] or ±: 95% confidence interval, assuming randomly drawn examples.")
    comparison = result.comparison
    if any(each.mark == ROUGH for each in _list_shown(result)):
        notes.append(f"{ROUGH}: a few long examples dominate, so this interval is less reliable than 95%.")
    if first := find_first_samples(result.config):
        notes.append(f"{FIRST}: {explain_first_samples(first)}.")
    notes += _explain_clusters(result)
    if comparison is not None:
        known = explain_first_samples(first)
        looks = result.settings.looks
        found = _explain_comparison(comparison, f"{looks['looks']} looks" if looks else "")
        notes += [each for each in found if each != f"{known}."]
    return notes + _explain_looks(result)


def _explain_comparison(comparison: Comparison, looks: str) -> Iterator[str]:
    """Say how the verdicts were made, and what their words mean; `looks` is a text such as "5 looks"."""
    if comparison.noise is not None:
        yield _explain_noise(comparison, comparison.noise)
    if not comparison.verdicts:
        return
    family = sum(not verdict.control for verdict in comparison.verdicts)
    corrected = f", p corrected for {family} comparisons (Holm), intervals uncorrected" if family > 1 else ""
    if looks:
        many = f"{family} comparisons and " if family > 1 else ""
        corrected = f", p corrected for {many}{looks}, intervals for the looks"
    what = f"difference of {get_number(comparison.metric).title}"
    how = f"{what}, paired by example, margin ±{comparison.margin:g}{corrected}"
    yield f"{'verdicts' if len(comparison.verdicts) > 1 else 'verdict'}: {how}."
    yield from _explain_words(comparison.verdicts, comparison.margin)
    if is_open_by_dataset(comparison):
        yield EACH_TOO_FEW
    yield from (f"{note}." for note in comparison.notes)


def render_verdicts(comparison: Comparison) -> str:
    """Lay out the verdicts of one run, with the notes needed to read them."""
    methods = (verdict.interval.method for verdict in comparison.verdicts)
    looks = next((method for method in methods if method.endswith(" looks")), "")
    notes = [*_explain_comparison(comparison, looks)]
    notes += [f"{comparison.context_unneeded}."] if comparison.context_unneeded else []
    return "\n\n".join([verdict_table(comparison, None), "\n".join(map(escape_note, notes))])


def list_verdict_caveats(result: EvalResult) -> list[str]:
    """List the caveats of this run's verdicts and intervals."""
    first = find_first_samples(result.config)
    notes = [f"{FIRST}: {explain_first_samples(first)}."] if first else []
    comparison = result.comparison
    if comparison is None:
        return notes
    if comparison.noise is not None:
        notes.append(_explain_noise(comparison, comparison.noise))
    if any(each.scope == THESE_GROUPS and each.word != "undecided" for each in comparison.verdicts):
        notes.append(FIXED)
    known = explain_first_samples(first)
    return [*notes, *(f"{note}." for note in comparison.notes if note != known)]


def is_open_by_dataset(comparison: Comparison) -> bool:
    """Whether a system with an overall verdict has none on some dataset, for lack of examples."""
    decided = {each.name for each in comparison.verdicts if each.word != "undecided"}
    return any(
        each.word == "undecided" and each.name in decided and each.narrow is not None and each.narrow.known
        for found in comparison.by_dataset.values()
        for each in found
    )


def _explain_looks(result: EvalResult) -> list[str]:
    """Write how far each system was run, if systems were stopped when decided."""
    looked = result.settings.looks
    if not looked:
        return []
    sizes = ", ".join(f"{size:,}" for size in looked["sizes"])
    notes = [
        f"stopped when decided: {looked['looks']} looks, at {sizes} examples in random order (seed {looked['seed']}); "
        "the difference of a system that stopped early is slightly overestimated."
    ]
    for name, each in looked["systems"].items():
        left = f"; {each['not_run']:,} examples were not run" if each["not_run"] else "; all were run"
        how = f"{each['verdict']['word']} at look {each['look']}, after {each['examples']:,} of {looked['planned']:,}"
        if not each["settled"]:
            how = f"not settled, after {each['examples']:,} of {looked['planned']:,}"
        notes.append(f"{name}: {how}{left}.")
    others = [f"{name} ({left:,})" for name, left in looked["not_run"].items() if left]
    if others:
        notes.append(f"examples not run, as nothing was left to decide: {', '.join(others)}.")
    return notes


def _explain_clusters(result: EvalResult) -> list[str]:
    """Name the number of clusters behind intervals and verdicts, if they are not computed by row."""
    shared = max((each for each in _list_shown(result) if each.groups), key=lambda each: each.n, default=None)
    notes = []
    if shared is not None:
        notes.append(f"intervals: {_describe_clusters(shared.n, shared.groups or 0, 'rows')}.")
    verdicts = [] if result.comparison is None else result.comparison.verdicts
    clustered = max((each for each in verdicts if each.groups), key=lambda each: each.n, default=None)
    if clustered is not None:
        notes.append(f"verdicts: {_describe_clusters(clustered.n, clustered.groups or 0, 'examples')}.")
    return notes


def _list_shown(result: EvalResult) -> list[Interval]:
    """List the intervals of the most important numbers."""
    return [each for own in result.intervals.values() for key, each in own.items() if key in HEADLINES]


def _describe_clusters(n: int, groups: int, what: str) -> str:
    """Describe how many clusters the examples or rows form."""
    clusters = count_things(groups, "cluster")
    if what == "rows":
        return f"{n:,} rows count as {clusters} (rows of one document, conversation or example go together)"
    return f"{n:,} examples count as {clusters} (those of one document or conversation go together)"


def _explain_noise(comparison: Comparison, noise: NoiseFloor) -> str:
    """Describe the noise of the baseline, and name the systems that differ from it by no more."""
    share = noise.share
    if noise.nothing_seen:
        most = f", so it disagrees on at most {share.high:.1%}" if share.known else ""
        name = comparison.baseline
        return f"noise: no disagreement seen: {name} agrees with itself on all {noise.n:,} examples{most}."
    limits = f" [{share.low:.1%}, {share.high:.1%}]" if share.known else ""
    within = [each.name for each in comparison.verdicts if abs(each.difference) <= noise.floor]
    which = f"; {', '.join(within)} {'differ' if len(within) > 1 else 'differs'} by no more than that" if within else ""
    floor = f"noise alone gives differences up to {noise.floor:.3f}"
    if math.isnan(noise.floor):
        floor = "too few examples for a noise floor"
    return (
        f"noise: {comparison.baseline} disagrees with itself on {share.value:.1%}{limits} of pairs of answers "
        f"(n = {noise.n:,}); {floor}{which}."
    )


_COMPARED_GIVE_WAY = ["p", "broken", "fixed", "saved", "score", "baseline", "n"]


def render_comparison(
    comparison: RunComparison, width: int | None, *, listed: int = 5, store: str | None = None
) -> str:
    """Lay out a comparison.

    Args:
        comparison: The compared runs.
        width: Columns of the terminal; None leaves the tables whole.
        listed: Most fixed and broken examples to list for each system.
        store: The folder of the store for the commands, if not the default.
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
    metric = get_number(comparison.metric).title
    columns = [
        "n",
        "baseline",
        "score",
        f"{metric} difference",
        "95% interval",
        "p",
        "fixed",
        "broken",
        "saved",
        "verdict",
    ]
    lines = [[title, *columns]]
    lines += [_write_contest(each) for each in comparison.contests]
    return fit_columns(lines, width, _COMPARED_GIVE_WAY)


def _write_contest(contest: Contest) -> list[str]:
    verdict = contest.verdict
    assert verdict is not None
    ours, theirs = contest.find_means()
    changes = [f"{count:,}" for count in contest.count_changes() or ()] or ["–", "–"]
    numbers = [score(theirs), score(ours), *_write_difference(verdict), _write_p(verdict)]
    known = {} if contest.sensitivity is None else {verdict.name: contest.sensitivity}
    sides = (contest.baseline.summary.get(contest.baseline_system, {}), contest.source.summary.get(contest.system, {}))
    saved = " → ".join(dict.fromkeys(_write_saved(values) for values in sides))
    return [contest.name, f"{verdict.n:,}", *numbers, *changes, saved, _write_word(verdict, known)]


def _write_saved(values: Mapping[str, float]) -> str:
    share = values.get(find_saved_key(values), math.nan)
    return "–" if math.isnan(share) else percent(share)


def _render_datasets(comparison: RunComparison, width: int | None) -> str:
    """Lay out the difference on each dataset, if there are several."""
    tags = sorted({tag for each in comparison.contests for tag in each.by_dataset})
    if len(tags) < 2:
        return ""
    lines = [["score difference by dataset", *tags]]
    lines += [[each.name, *(_write_briefly(each.by_dataset.get(tag)) for tag in tags)] for each in comparison.contests]
    return fit_grid(lines, width)


def _list_changes(contest: Contest, fixed: bool, width: int | None, listed: int, store: str | None) -> Iterator[str]:
    """List examples that pass on only one side, each with the command that shows it."""
    changes = contest.fixed if fixed else contest.broken
    more = f", the first {listed}" if changes.count > listed else ""
    yield wrap(escape_note(f"{'fixed' if fixed else 'broken'} by {contest.name} ({changes.count:,}{more}):"), width)
    for tag, identity in changes.examples[:listed]:
        name = f"{identity} of {tag}" if tag else identity
        yield f"  {printable(build_diff_command(contest, tag, identity, store) or name)}"


def build_diff_command(contest: Contest, tag: str, identity: str, store: str | None = None) -> str | None:
    """Build the command that shows how the system changed an example; None if the run is in no store."""
    if contest.source.run is None:
        return None
    words = ["context-bench", "diff", contest.source.run, identity, "--system", contest.system]
    words += ["--dataset", tag] if tag else []
    words += ["--cache-dir", store] if store else []
    return shlex.join(words)


def _explain(comparison: RunComparison) -> Iterator[str]:
    first = comparison.contests[0]
    scores = _name_scores(first.baseline.settings, first.baseline_system)
    several = comparison.metric == MACRO_SCORE
    metric = f"the mean of the datasets' means of {scores}" if several else f"the mean of {scores} over examples"
    title = get_number(comparison.metric).title
    family = sum(not each.control for each in comparison.contests)
    corrected = f", p corrected for {family} comparisons (Holm), intervals uncorrected" if family > 1 else ""
    passing = f"a score of {comparison.threshold:g} passes; margin ±{comparison.margin:g}{corrected}"
    yield f"{title} ({comparison.metric}) = {metric}; {passing}."
    yield from _explain_pairs(comparison.contests)
    verdicts = [each.verdict for each in comparison.contests if each.verdict is not None]
    if clustered := [each for each in verdicts if each.groups]:
        largest = max(clustered, key=lambda each: each.n)
        yield f"{_describe_clusters(largest.n, largest.groups or 0, 'examples')}."
    yield from _explain_words(verdicts, comparison.margin)
    yield from (
        f"{each.name} is {known.reason}."
        for each in comparison.contests
        if (known := each.sensitivity) is not None and known.word == "none"
    )
    if comparison.first_samples:
        yield f"{FIRST}: {explain_first_samples(comparison.first_samples)}."
    yield from (f"{name} is missing in {run}." for name, run in comparison.missing)
    yield from (f"{note}." for note in comparison.notes)
    if comparison.left_out:
        yield f"left out, because the baseline does not have them: {', '.join(comparison.left_out)}."


def _name_scores(settings: RunSettings, system: str) -> str:
    """Name the score of a system: the requested field, else the primary scores of the datasets."""
    primary = settings.context_primary if system in settings.unread else settings.primary
    primaries = dict.fromkeys(map(str, primary.values()))
    return ", ".join(primaries) if settings.score_field == "score" and primaries else settings.score_field


def _explain_pairs(contests: Sequence[Contest]) -> Iterator[str]:
    """Describe the pairing of examples, once for systems with equal pairing."""
    said: dict[str, list[str]] = {}
    for contest in contests:
        said.setdefault(describe_pairs(contest), []).append(contest.name)
    for sentence, names in said.items():
        yield f"{sentence}." if len(said) == 1 else f"{', '.join(names)}: {sentence}."


def describe_pairs(contest: Contest) -> str:
    """Describe how many examples are paired, by which key, and which are left out."""
    pairs = contest.pairs.n
    by = (
        "id and content"
        if contest.same_content == pairs
        else "id only (at least one side is not from a store, so their content is not compared)"
    )
    if contest.source is contest.baseline:
        by = "id, within one run"
    parts = [f"{pairs:,} examples are paired by {by}"] if pairs else ["no examples are paired"]
    if contest.other_content:
        parts.append(f"{contest.other_content:,} have the same id but different content")
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
