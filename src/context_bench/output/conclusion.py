"""The conclusion of a run: which systems are as good as the baseline, what they save, and the other systems."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from context_bench.caveats import NO_CONTEXT
from context_bench.compare.curves import Curve, compare_curves
from context_bench.compare.sweeps import join_settings
from context_bench.compare.verdicts import ONLY_ZEROS, Comparison
from context_bench.numbers import (
    COMPRESSION_RATIO,
    COST_PER_1K_USD,
    EVIDENCE_SURVIVAL,
    NUM_ERRORS,
    NUM_EXAMPLES,
    PROMPT_SAVINGS,
    dollars,
    percent,
)
from context_bench.output.columns import is_answered_by_script, is_own_beside_script
from context_bench.output.verdict_tables import explain_too_few
from context_bench.results import EvalResult
from context_bench.stats import THESE_GROUPS, Interval, Verdict
from context_bench.text import list_names

_MAX_NAMES = 6
THAN = {"equivalent": "to", "better": "than", "not worse": "than"}
_SAVINGS = {PROMPT_SAVINGS: "the prompt", COMPRESSION_RATIO: "the tokens"}
_ALL = "the examples"
_LEAST_SHARE = -0.0005  # a negative share that rounds to 0.0%


class Standing(NamedTuple):
    """The systems of a run that can be chosen, by verdict; each is in one list."""

    failed: list[Verdict]  # failed on every example
    zeros: list[Verdict]  # score 0 everywhere, like the baseline
    good: list[Verdict]  # shown not worse, by savings
    blind: list[Verdict]  # shown not worse on data that could not have shown a loss
    worse: list[Verdict]
    undecided: list[Verdict]


def sort_verdicts(result: EvalResult, comparison: Comparison) -> Standing:
    """Sort the systems that can be chosen by verdict."""
    standing = Standing([], [], [], [], [], [])
    for verdict in comparison.verdicts:
        if verdict.control or is_own_beside_script(result, verdict.name):
            continue
        if _has_only_errors(result, verdict.name):
            standing.failed.append(verdict)
        elif verdict.reason == ONLY_ZEROS:
            standing.zeros.append(verdict)
        elif verdict.not_worse:
            (standing.blind if comparison.is_blind(verdict.name) else standing.good).append(verdict)
        elif verdict.word in ("worse", "undecided"):
            (standing.worse if verdict.word == "worse" else standing.undecided).append(verdict)
    standing.good.sort(key=lambda verdict: find_saving(result, verdict.name)[1], reverse=True)
    return standing


def conclude(result: EvalResult, curves: Sequence[Curve] | None = None) -> str:
    """Write the conclusion for a choice in a few sentences; empty without a verdict on a system that can be chosen.

    Controls are left out, as they cannot be chosen. A saving is stated only for a system that is shown not worse.
    By default, the curves are computed from the result's rows.
    """
    comparison = result.comparison
    unneeded = "" if comparison is None else comparison.context_unneeded
    if comparison is None or all(each.control for each in comparison.verdicts):
        return unneeded and f"{unneeded[0].upper()}{unneeded[1:]}."
    if _has_only_errors(result, comparison.baseline):
        return f"{comparison.baseline} failed on every example, so no system can be compared with it."
    failed, zeros, good, blind, worse, undecided = sort_verdicts(result, comparison)
    sentences = []
    if good or worse or undecided or not (blind or zeros):
        sentences = [_recommend(result, good, comparison), *_tell_volume(result, good)]
    sentences += _list_blind(comparison, blind)
    here = _list_reasons((each.name, each.reason) for each in undecided if each.scope == THESE_GROUPS)
    sentences = [*([] if here and not good else sentences), *here]
    if result.settings.fixed_groups and any(each.scope == THESE_GROUPS for each in good):
        sentences.append("This holds only for these conversations or documents (--fixed-groups).")
    undecided = [each for each in undecided if each.scope != THESE_GROUPS]
    if unneeded:
        better = {each.name: _set_errors_apart(each) for each in good}
        sentences, undecided = [f"{unneeded[0].upper()}{unneeded[1:]}."], []
        sentences += [f"Better: {_list_systems(better)}."] if better else []
    if zeros:
        names = list_names(join_settings([each.name for each in zeros]))
        sentences.append(f"No verdict on {names}: every score is 0, also for {comparison.baseline}.")
    sentences += [f"Worse: {_list_systems({each.name: _set_errors_apart(each) for each in worse})}."] if worse else []
    sentences += [_list_undecided(result, undecided)] if undecided else []
    sentences += _list_failed(result, [each.name for each in failed])
    seen = [each.name for each in comparison.verdicts if not each.control and each not in failed + zeros]
    harmed, kept = _tell_evidence(result, [*seen, *(each.name for each in zeros)])
    recommended_lost = any(_describe_fate(result, each.name) for each in good)
    last = is_answered_by_script(result) or (good and not recommended_lost)
    sentences = [*sentences, *harmed] if last else [*harmed, *sentences]
    sentences += kept
    equal = [each.name for each in good if each.word != "better"]  # the data did not hide that a system is better
    unsure = {name: "" for name in equal if comparison.can_have_failed(name) is False}
    if unsure and not unneeded:
        sentences.append(f"It is not shown that this data could reveal a loss: {_list_systems(unsure)}.")
    if not unneeded:
        sentences += filter(None, [compare_curves(result.curves() if curves is None else curves)])
    if result.settings.read_by_script:
        sentences.append("No model answered in this run: judge by recall and probes.")
    return " ".join(sentences)


def _list_blind(comparison: Comparison, blind: Sequence[Verdict]) -> list[str]:
    """Name the systems that this data cannot distinguish from a naive cut of equal size, with the reason."""
    return _list_reasons((each.name, comparison.sensitivity[each.name].reason) for each in blind)


def _list_reasons(told: Iterable[tuple[str, str]]) -> list[str]:
    """Write the reason for each system; systems with the same reason share a sentence."""
    reasons: dict[str, list[str]] = {}
    for name, reason in told:
        reasons.setdefault(reason, []).append(name)
    return [
        f"{'Each of ' if len(names) > 1 else ''}{list_names(join_settings(names))} is {reason}."
        for reason, names in reasons.items()
    ]


def _list_failed(result: EvalResult, failed: Sequence[str]) -> list[str]:
    """List the systems that failed on every example, separately from those stopped after one request."""
    stopped = [name for name in failed if name in result.settings.stopped_systems]
    failed = [name for name in failed if name not in stopped]
    told = {"Failed on every example": failed, "Stopped, as the first request failed": stopped}
    return [f"{what}: {list_names(join_settings(names))}." for what, names in told.items() if names]


def find_monthly_saving(result: EvalResult, name: str) -> Interval | None:
    """Compute the dollars that a system saves per month of `--volume`; None if unknown or not claimed."""
    saving = None if result.comparison is None else result.comparison.savings.get(name)
    volume = result.settings.volume
    if saving is None or volume is None or not saving.per_1k.known:
        return None
    known = saving.per_1k
    return replace(known, **{end: getattr(known, end) * volume / 1000 for end in ("value", "low", "high")})


def _tell_volume(result: EvalResult, good: Sequence[Verdict]) -> list[str]:
    """Write the monthly savings of the first good system."""
    month = find_monthly_saving(result, good[0].name) if good else None
    if month is None:
        return []
    verb, more, ends = "saves", "", (month.low, month.high)
    if month.value < 0:
        verb, more, ends = "costs", " more", (-month.high, -month.low)
    limits = f"[{dollars(ends[0])}, {dollars(ends[1])}]"
    at = f"{result.settings.volume:,.0f} requests a month"
    return [f"At {at}, {good[0].name} {verb} {dollars(abs(month.value))} {limits}{more} a month."]


def describe_alone(result: EvalResult) -> str:
    """Describe losses and savings of the only system of a run, without a verdict; empty without a tap.

    A saving is stated together with the losses, because equal answer quality is not shown.
    """
    if result.comparison is not None or len(result.systems) != 1:
        return ""
    (name,) = result.systems
    harmed, kept = _tell_evidence(result, [name])
    lost = " ".join([*harmed, *kept])
    words, _ = find_saving(result, name)
    if not lost or not words:
        return ""
    return f"{lost} {name}: {_write_saving(result, name)}. No verdict without a baseline: --controls adds one."


def _tell_evidence(result: EvalResult, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Write in what share of the examples each system lost evidence, and separately which systems lost none.

    If a model answered, its answers are stated too, because it may not need the dropped words.
    """
    found = {name: fate for name in names if (fate := _describe_fate(result, name)) is not None}
    harmed = {name: fate for name, fate in found.items() if fate}
    unharmed = [name for name in found if name not in harmed]
    asides = {name: "" if (seen := _count_looked_at(result, name)) == _ALL else f" (in {seen})" for name in unharmed}
    kept = [f"No evidence lost: {_list_systems(asides)}."] if unharmed else []
    told = [_count_right(result, name, fate) for name, fate in harmed.items()]
    lost = {name: 1 - result.summary[name].get(EVIDENCE_SURVIVAL, math.nan) for name in harmed}
    if len(told) > _MAX_NAMES and min(lost.values()) > 0:
        least, most = percent(min(lost.values())), percent(max(lost.values()))
        return [f"Evidence was lost in {least} to {most} of the examples: {list_names(join_settings([*lost]))}."], kept
    return [f"{'; '.join(told)}."] if told else [], kept


def _describe_fate(result: EvalResult, name: str) -> str | None:
    """Describe how a system changed the evidence; empty if all is verbatim, None if unknown."""
    values = result.summary.get(name, {})
    lost, dropped = 1 - values.get(EVIDENCE_SURVIVAL, math.nan), values.get("evidence_recoverable", 0.0)
    if math.isnan(lost):
        return None
    seen = _count_looked_at(result, name)
    if lost > 0:
        reworded = " (reworded evidence counts as lost)" if values.get("evidence_rewritten") else ""
        return f"evidence was lost in {percent(lost)} of {seen}{reworded}"
    return f"words of the evidence were dropped in {percent(dropped)} of {seen}" if dropped else ""


def _count_right(result: EvalResult, name: str, fate: str) -> str:
    """Prepend the count of right answers to the state of the evidence, if a model answered."""
    values = result.summary[name]
    rows = values.get("evidence_rows", math.nan)
    right = rows * (1 - values.get("lost_by_system", 0.0) - values.get("failed_anyway", 0.0))
    if math.isnan(right) or is_answered_by_script(result):
        return f"{name}: {fate}"
    return f"{name} is right in {right:,.0f} of {rows:,.0f}{', although' if round(right) == rows else ';'} {fate}"


def _count_looked_at(result: EvalResult, name: str) -> str:
    """Name the examples for which the state of the evidence is known: a number of them, or all."""
    values = result.summary.get(name, {})
    seen, every = values.get("evidence_rows", math.nan), values.get(NUM_EXAMPLES, math.nan)
    return f"the {seen:,.0f} of {every:,.0f} examples where this is known" if seen < every else _ALL


def _has_only_errors(result: EvalResult, name: str) -> bool:
    values = result.summary.get(name, {})
    return 0 < values.get(NUM_ERRORS, 0) == values.get(NUM_EXAMPLES)


def _recommend(result: EvalResult, good: Sequence[Verdict], comparison: Comparison) -> str:
    """Name the systems that are at least as good as the baseline, ordered by savings."""
    baseline = comparison.baseline
    if not good:
        working = [each for each in comparison.verdicts if not _has_only_errors(result, each.name)]
        open_one = any(each.word == "undecided" and not each.control for each in working)
        few = explain_too_few(working, comparison.margin) if open_one else ""
        return f"{few}." if few else f"No system is shown to be as good as {baseline}."
    told: list[str] = []
    beating: dict[str, dict[str, int]] = {}
    for verdict in good[:_MAX_NAMES]:
        compared = f"{verdict.word} {THAN[verdict.word]} {baseline}" if not told else verdict.word
        compared += _set_errors_apart(verdict)
        if worse := _find_worse_datasets(result, verdict.name):
            compared += f" over all datasets, but worse on {list_names(worse)}"
        told.append(f"{verdict.name} is {compared}{_tell_savings(result, verdict.name, baseline)}")
        if (known := comparison.sensitivity.get(verdict.name)) is not None and known.beats_controls:
            beating.setdefault(known.reason, {})[verdict.name] = len(told) - 1
    alike = []
    for reason, places in beating.items():
        if len(places) == 1:
            told[places.popitem()[1]] += f", and {reason}"
        else:
            alike.append(f" Each of {list_names(join_settings([*places]))} {reason}.")
    if len(good) > _MAX_NAMES:
        told.append(f"{len(good) - _MAX_NAMES:,} more are in the table")
    return f"{'; '.join(told)}.{''.join(alike)}"


def _set_errors_apart(verdict: Verdict) -> str:
    """Add the verdict without failed pairs, if it differs."""
    return f" ({verdict.word_without_errors} without errors)" if verdict.errors_disagree else ""


def _find_worse_datasets(result: EvalResult, name: str) -> list[str]:
    """Find the datasets on which a system is worse, regardless of its overall verdict."""
    by_dataset = {} if result.comparison is None else result.comparison.by_dataset
    return [tag for tag, found in by_dataset.items() for each in found if (each.name, each.word) == (name, "worse")]


def find_saving(result: EvalResult, name: str) -> tuple[str, float]:
    """Return the share of tokens that a system saves with its name; prefer the numbers of a tap or reader."""
    values, notes = result.summary.get(name, {}), result.notes.get(name, {})
    for key, words in _SAVINGS.items():
        if math.isfinite(values.get(key, math.nan)) and not notes.get(key, "").startswith(NO_CONTEXT):
            return words, values[key]
    return "", -math.inf


def _write_saving(result: EvalResult, name: str) -> str:
    """Write the share of tokens that a system saves or adds, with bounds if other systems may have made some calls."""
    what, share = find_saving(result, name)
    low, high = (percent(bound) for bound in _find_bounds(result, name, PROMPT_SAVINGS))
    if what == _SAVINGS[PROMPT_SAVINGS] and low != high:
        return f"{low} to {high} of {what} saved"
    return f"{percent(abs(share))} of {what} saved" if share > _LEAST_SHARE else f"{percent(-share)} added to {what}"


def _find_bounds(result: EvalResult, name: str, key: str) -> tuple[float, float]:
    """Return the bounds of a number; the number itself if it is certain."""
    values = result.summary.get(name, {})
    ends = [values.get(f"{key}_{case}", values.get(key, math.nan)) for case in ("best", "worst")]
    return min(ends), max(ends)


def compare_tokens(result: EvalResult, name: str) -> float | None:
    """Return the relative change from the baseline's tokens; None if the baseline saves nothing."""
    if result.comparison is None:
        return None
    words, share = find_saving(result, name)
    others, theirs = find_saving(result, result.comparison.baseline)
    if not words or others != words or percent(abs(theirs)) == percent(0.0) or theirs >= 1:
        return None
    return (1 - share) / (1 - theirs) - 1


def write_token_change(change: float) -> str:
    """Write how a system's tokens differ from the baseline's: `68.7% more tokens`."""
    if percent(abs(change)) == percent(0.0):
        return "as many tokens"
    return f"{percent(abs(change))} {'more' if change > 0 else 'fewer'} tokens"


def _tell_savings(result: EvalResult, name: str, baseline: str) -> str:
    """Write what a system saves and adds; if the baseline also saves tokens, write the change from the baseline."""
    words, share = find_saving(result, name)
    change = compare_tokens(result, name)
    saving = _write_saving(result, name) if words else ""
    gains: list[str] = []
    losses: list[str] = []
    if change is not None:
        told = f"{write_token_change(change)} ({saving}, {baseline} {percent(find_saving(result, baseline)[1])})"
        (losses if percent(change) != percent(0.0) and change > 0 else gains).append(told)
    elif saving and share <= _LEAST_SHARE:
        losses.append(saving)
    elif saving and not (percent(share) == percent(0.0) and saving.startswith(percent(0.0))):
        gains.append(saving)
    bill, dearer = _compare_bills(result, name, baseline)
    if bill:
        (losses if dearer > 0 else gains).append(bill)
    gained = f", with {' and '.join(gains)}" if gains else ""
    return gained + (f", but with {' and '.join(losses)}" if losses else "")


def _compare_bills(result: EvalResult, name: str, baseline: str) -> tuple[str, float]:
    """Compare the dollars of a system with the baseline's; also return the difference.

    Only examples with known costs on both sides count, as in `saved_per_1k_usd`.
    """
    own, base = (result.summary.get(each, {}).get(COST_PER_1K_USD, math.nan) for each in (name, baseline))
    if not (math.isfinite(own) and math.isfinite(base)) or own == base == 0:
        return "", 0.0
    saving = None if result.comparison is None else result.comparison.savings.get(name)
    change = own - base
    unsure = ""
    if saving is not None and saving.per_1k.known:
        unsure = "" if saving.per_1k.low > 0 or saving.per_1k.high < 0 else " (not significant)"
        if not math.isclose(-saving.per_1k.value, change, rel_tol=1e-6, abs_tol=1e-9):
            change = -saving.per_1k.value
            less = f"{dollars(abs(change))} {'more' if change > 0 else 'less'} for 1,000 examples"
            return f"{less}, over the {saving.pairs:,} with known costs on both sides{unsure}", change
    paid = _write_dollars(result, name)
    if paid == _write_dollars(result, baseline):
        return f"the same {dollars(own)} for 1,000 examples", 0.0
    return f"{paid} instead of {_write_dollars(result, baseline)} for 1,000 examples{unsure}", change


def _write_dollars(result: EvalResult, name: str) -> str:
    """Write the cost of 1,000 examples, with bounds if other systems may have made some calls."""
    low, high = (dollars(bound) for bound in _find_bounds(result, name, COST_PER_1K_USD))
    return low if low == high else f"{low} to {high}"


def _list_undecided(result: EvalResult, verdicts: Sequence[Verdict]) -> str:
    needed = sorted({each.needed_n for each in verdicts if each.needed_n})
    equal = [each.needed_n_if_equal for each in verdicts if each.needed_n_if_equal]
    sizes = " to ".join(f"{number:,}" for number in dict.fromkeys((needed[0], needed[-1]))) if needed else ""
    sizes += " examples if the difference stays the same" + (f", {max(equal):,} if there is none" if equal else "")
    reasons = {each.reason for each in verdicts}
    decided = f" ({reasons.pop()})" if len(reasons) == 1 and not needed else ""
    if needed:
        unsure = "" if any(each.promised for each in verdicts) else "; even these may not be enough"
        decided = f"; a decision takes at least {sizes}{unsure}"
    worse = {each.name: _find_worse_datasets(result, each.name) for each in verdicts}
    aside = {name: f" (worse on {list_names(tags)})" if tags else "" for name, tags in worse.items()}
    return f"Undecided: {_list_systems(aside)}{decided}."


def _list_systems(asides: Mapping[str, str]) -> str:
    """List systems with their remarks in parentheses; the settings of a sweep share a name."""
    shown: list[str] = []
    for aside in dict.fromkeys(asides.values()):
        own = [name for name, each in asides.items() if each == aside]
        shown += [f"{name}{aside}" for name in join_settings(own)]
    return list_names(shown)
