"""Compares runs, or the systems of one run, with a baseline: by dataset and overall, paired if examples agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from context_bench.compare.contest import BASELINE, SYSTEM, Contest
from context_bench.compare.pairing import Pairing, ScoredAnswer
from context_bench.compare.run_inputs import RunInput, Selection, find_differences, find_other_score, open_result
from context_bench.compare.shown import ShownComparison
from context_bench.compare.verdicts import (
    LOOKED,
    ONLY_ZEROS,
    check_margin,
    choose_baseline,
    explain_floor,
    find_first_samples,
    mark_verdict,
    was_stopped_by_looks,
    withhold_unneeded,
    withhold_verdict,
)
from context_bench.config import DEFAULT_THRESHOLD
from context_bench.errors import UnknownName, UsageError
from context_bench.numbers import choose_score_key
from context_bench.registry import import_object
from context_bench.results import EvalResult
from context_bench.stats import Verdict, judge_family


@dataclass(frozen=True, repr=False)
class RunComparison(ShownComparison):
    """Verdicts on systems compared with the systems of another run, or with one system of their own run."""

    threshold: float
    contests: list[Contest]  # in the order of the runs
    warnings: list[str]  # differences between the runs that make the comparison doubtful
    left_out: list[str]  # systems without a counterpart in the baseline's run
    # datasets of which only the first examples were used, not a random sample
    first_samples: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # systems of the baseline's run that another run lacks, with that run's label
    missing: list[tuple[str, str]] = field(default_factory=list)

    def list_verdicts(self) -> list[Verdict]:
        return [each.verdict for each in self.contests if each.verdict is not None]

    def __str__(self) -> str:
        """Render the verdicts like `context-bench compare`, followed by the warnings."""
        text: str = import_object("context_bench.output.verdict_tables:render_comparison")(self, None)
        return "\n\n".join([text.strip(), *(f"Warning: {each}." for each in self.warnings)])


def compare_results(result: EvalResult, baseline: EvalResult, margin: float | None = None) -> RunComparison:
    """Compare each system of a result with its counterpart in another result, for `EvalResult.compare`."""
    labels = [each.settings.run or name for each, name in ((baseline, "baseline"), (result, "result"))]
    if labels[0] == labels[1]:
        labels = ["baseline", "result"]
    if margin is not None:
        check_margin(margin)
    opened = [open_result(each, label) for each, label in zip((baseline, result), labels)]
    for each, own in zip(opened, (baseline, result)):
        if not own.rows:
            raise UsageError(f"{each.label} has no rows to compare: run without keep_rows=False (--no-rows)")
    return compare_runs([Selection(each, each.systems, each.label) for each in opened], margin=margin)


def compare_runs(
    selections: Sequence[Selection],
    *,
    baseline: str | None = None,
    margin: float | None = None,
    fixed_groups: bool | None = None,
    renamed: Mapping[str, str] | None = None,
) -> RunComparison:
    """Compare all selections with the baseline.

    For a single run, `baseline` names one of its systems. For several runs, it names a run (default: the first) as the
    user typed it; each system is compared with the system of the same name in that run, or with its only system. The
    margin and `fixed_groups` default to those of the baseline's run. `renamed` maps names in the baseline's run to new
    names.
    """
    label, contests, left_out, missing = _match(_merge_runs(selections), baseline, renamed or {})
    if not contests:
        raise UsageError(_explain_no_match(selections, left_out))
    given = contests[0].baseline.settings.threshold
    threshold = DEFAULT_THRESHOLD if given is None else float(given)
    _read_all(contests, threshold)
    for each in contests:
        if not each.list_datasets():
            raise UsageError(_explain_no_dataset(each))
    if margin is None:
        margin = contests[0].baseline.settings.margin
    if fixed_groups is None:
        fixed_groups = contests[0].baseline.settings.fixed_groups
    _judge(contests, margin, fixed_groups)
    warnings: dict[str, None] = {}
    for each in contests:
        if each.source is not each.baseline:
            warnings |= dict.fromkeys(find_differences(each.source, each.baseline))
    if any(was_stopped_by_looks(each.config) for contest in contests for each in (contest.source, contest.baseline)):
        warnings[LOOKED] = None
    metric = choose_score_key(max(len(each.list_datasets()) for each in contests))
    first, notes = _mark_samples(contests), _withhold(contests)
    return RunComparison(label, metric, margin, threshold, contests, list(warnings), left_out, first, notes, missing)


def _withhold(contests: Sequence[Contest]) -> list[str]:
    """Withhold verdicts on scores that say nothing about quality, as the run itself does; return the reasons."""
    reasons: dict[str, list[str]] = {}
    for contest in contests:
        if contest.verdict is not None and (reason := _explain_silence(contest)):
            contest.verdict = withhold_verdict(contest.verdict, reason)
            contest.by_dataset = {tag: withhold_verdict(each, reason) for tag, each in contest.by_dataset.items()}
            reasons.setdefault(reason, []).append(contest.name)
    everyone = len(contests)
    notes = [
        f"no verdict{'' if len(names) == everyone else ' on ' + ', '.join(names)}: {reason}"
        for reason, names in reasons.items()
    ]
    return [*notes, *_withhold_unneeded(contests)]


def _withhold_unneeded(contests: Sequence[Contest]) -> list[str]:
    """Withhold verdicts of equal quality if a system that reads no context does as well; return the reasons."""
    notes: dict[str, None] = {}
    found = {
        tag: _explain_floors(contests, tag) for tag in sorted({tag for each in contests for tag in each.by_dataset})
    }
    overall = _explain_floors(contests)
    for contest in contests:
        floors = contest.source.floors
        reason = overall or contest.source.context_unneeded or contest.baseline.context_unneeded
        for tag, verdict in contest.by_dataset.items():
            if why := reason or found[tag]:
                contest.by_dataset[tag] = withhold_unneeded(verdict, floors, why)
                notes[why if reason else f"{tag or 'data without a tag'}: {why}"] = None
        if contest.verdict is not None and reason:
            contest.context_unneeded = reason
            contest.verdict = withhold_unneeded(contest.verdict, floors, reason)
    return list(notes)


def _explain_silence(contest: Contest) -> str:
    """Say why the scores of two sides cannot be compared or show nothing; "" if they can."""
    sides = ((contest.source, contest.system), (contest.baseline, contest.baseline_system))
    tags = contest.list_datasets()
    if all(pairs.both_failed == pairs.n > 0 for pairs in map(contest.get_pairs, tags)):
        return "both sides failed on every example"
    default = all(run.settings.score_field == "score" for run, _ in sides)
    if default and len({name in run.settings.unread for run, name in sides}) > 1:
        return "one side returns contexts that no model has read, the other returns answers: no score applies to both"
    if contest.source is not contest.baseline and (reason := find_other_score(contest.source, contest.baseline)):
        return reason
    if contest.sensitivity is not None and contest.sensitivity.word == "void":
        return contest.sensitivity.reason
    if not any(scores[tag].join().squares for scores in (contest.scores, contest.baseline_scores) for tag in tags):
        return ONLY_ZEROS
    return ""


def _explain_floors(contests: Sequence[Contest], tag: str | None = None) -> str:
    """Say why the examples of one run, or of one of its datasets, do not need their context; "" for several runs.

    Each of several runs has recorded this itself, relative to its own baseline.
    """
    first = contests[0]
    if any(each.source is not first.baseline for each in contests):
        return ""
    verdicts = [each.verdict if tag is None else each.by_dataset.get(tag) for each in contests]
    sides = [
        scores[own].join()
        for contest in contests
        for own in contest.list_datasets()
        for scores in (contest.scores, contest.baseline_scores)
        if tag in (None, own)
    ]
    perfect = all(side.total == side.squares == side.n for side in sides)
    known = [each for each in verdicts if each is not None]
    return explain_floor(known, first.source.floors, first.baseline_system, perfect=perfect)


def _mark_samples(contests: Sequence[Contest]) -> list[str]:
    """Mark intervals over datasets of which a side used only the first examples; return these datasets."""
    every: dict[str, None] = {}
    for contest in contests:
        first = {tag for each in (contest.source, contest.baseline) for tag in find_first_samples(each.config)}
        found = [tag for tag in contest.list_datasets() if tag in first]
        for tag in found:
            contest.by_dataset[tag] = mark_verdict(contest.by_dataset[tag])
        if found and contest.verdict is not None:
            contest.verdict = mark_verdict(contest.verdict)
        every |= dict.fromkeys(found)
    return list(every)


def _merge_runs(selections: Sequence[Selection]) -> list[Selection]:
    """Merge the selections into one if all are of the same run."""
    sources = {id(each.source) for each in selections}
    if len(sources) > 1 or len(selections) == 1:
        return list(selections)
    systems = tuple(dict.fromkeys(name for each in selections for name in each.systems))
    return [Selection(selections[0].source, systems, selections[0].label)]


def _match(
    selections: Sequence[Selection], baseline: str | None, renamed: Mapping[str, str]
) -> tuple[str, list[Contest], list[str], list[tuple[str, str]]]:
    if len(selections) == 1:
        if renamed:
            raise UsageError("--map-system needs at least two runs")
        return *_match_within(selections[0], baseline), [], []
    first = _find_baseline(selections, baseline)
    others = [each for each in selections if each is not first]
    _check_renamed(renamed, first, others)
    earlier = {new: old for old, new in renamed.items()}
    contests, left_out = [], []
    for other in others:
        for system in _leave_out_twin(other):
            alone = len(other.systems) == len(first.systems) == 1
            partner = first.systems[0] if alone else earlier.get(system, system)
            if partner not in first.systems:
                left_out.append(f"{system} of {other.source.label}")
                continue
            name = system if system not in earlier else f"{system} (was {partner})"
            name = name if len(others) == 1 else f"{name} of {other.source.label}"
            control = system in other.source.controls and not alone
            contests.append(Contest(name, other.source, system, first.source, partner, control))
    run = first.source.label
    shown = f"{first.systems[0]} of {run}" if len(first.systems) == 1 else run
    return shown, contests, left_out, _find_missing(first, others, contests)


def _check_renamed(renamed: Mapping[str, str], first: Selection, others: Sequence[Selection]) -> None:
    new_names = [name for each in others for name in each.systems]
    for old, new in renamed.items():
        if old not in first.systems:
            raise UnknownName("system", old, list(first.systems))
        if new not in new_names:
            raise UnknownName("system", new, new_names)


def _find_missing(first: Selection, others: Sequence[Selection], contests: Sequence[Contest]) -> list[tuple[str, str]]:
    compared = {(id(each.source), each.baseline_system) for each in contests}
    return [
        (name, other.source.label)
        for other in others
        for name in _leave_out_twin(first)
        if name not in first.source.controls and (id(other.source), name) not in compared
    ]


def _leave_out_twin(selection: Selection) -> list[str]:
    """List the systems without the second run of the baseline, unless the user named it or it is the only one."""
    source = selection.source
    others = [name for name in selection.systems if name != source.settings.twin]
    return others if selection.systems == source.systems and len(others) > 1 else list(selection.systems)


def _match_within(selection: Selection, given: str | None) -> tuple[str, list[Contest]]:
    source = selection.source
    stored = source.settings.baseline
    wanted = stored if given is None and stored in selection.systems else given
    name = choose_baseline(selection.systems, wanted, source.controls) or selection.systems[0]
    contests = [
        Contest(system, source, system, source, name, system in source.controls)
        for system in _leave_out_twin(selection)
        if system != name
    ]
    return name, contests


def _find_baseline(selections: Sequence[Selection], given: str | None) -> Selection:
    if given is None:
        return selections[0]
    for each in selections:
        if given in (each.label, each.source.label):
            return each
    raise UnknownName("baseline", given, [each.label for each in selections])


def _explain_no_match(selections: Sequence[Selection], left_out: Sequence[str]) -> str:
    if len(selections) == 1:
        only = selections[0]
        if len(only.source.systems) > 1:
            return f"{only.label} names one system: name another to compare it with"
        return f"{only.source.label} has one system, {only.systems[0]}: name another run to compare it with"
    return (
        f"the runs have no system in common ({', '.join(left_out)}, against {', '.join(selections[0].systems)} of "
        f"{selections[0].source.label}): write RUN@SYSTEM to choose one of each"
    )


def _explain_no_dataset(contest: Contest) -> str:
    names = [
        f"{name} has scores for {', '.join(tags) or 'none'}"
        for name, tags in ((contest.source.label, contest.scores), (contest.baseline.label, contest.baseline_scores))
    ]
    return f"{contest.name} cannot be compared: no dataset has scores on both sides: {'; '.join(names)}"


def _read_all(contests: Sequence[Contest], threshold: float) -> None:
    """Read each run once, in turns, and pass each answer to its comparisons."""
    takers: dict[tuple[int, str], list[tuple[Pairing, str]]] = {}
    pairings = [each.start_pairing(threshold) for each in contests]
    sources: dict[int, RunInput] = {}
    for contest, pairing in zip(contests, pairings):
        sides = ((contest.source, contest.system, SYSTEM), (contest.baseline, contest.baseline_system, BASELINE))
        for source, system, side in sides:
            sources[id(source)] = source
            takers.setdefault((id(source), system), []).append((pairing, side))
    for place, system, answer in _read_by_turns(list(sources.items())):
        for pairing, side in takers.get((place, system), ()):
            pairing.add(side, answer)
    for contest, pairing in zip(contests, pairings):
        pairing.close()
        contest.only_here, contest.only_in_baseline = pairing.count_unpaired()


def _read_by_turns(sources: Sequence[tuple[int, RunInput]]) -> Iterator[tuple[int, str, ScoredAnswer]]:
    """Read one answer of each run in turn: runs in the same order then need little memory."""
    reading = [(place, source.read_answers()) for place, source in sources]
    while reading:
        for each in [*reading]:
            found = next(each[1], None)
            if found is None:
                reading.remove(each)
            else:
                yield each[0], *found


def _judge(contests: Sequence[Contest], margin: float, fixed_groups: bool) -> None:
    """Judge the headlines as one family of comparisons, and all datasets as another."""
    headlines = [each.contrast(each.list_datasets()) for each in contests]
    for contest, verdict in zip(contests, judge_family(headlines, margin=margin, fixed_groups=fixed_groups)):
        contest.verdict = verdict
    places = [(each, tag) for each in contests for tag in each.list_datasets()]
    family = [contest.contrast([tag]) for contest, tag in places]
    for (contest, tag), verdict in zip(places, judge_family(family, margin=margin, fixed_groups=fixed_groups)):
        contest.by_dataset[tag] = verdict
