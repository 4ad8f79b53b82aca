"""The conclusion of a run: who is as good as the baseline and for how much less, who is worse, what is undecided."""

from __future__ import annotations

import math
from collections.abc import Sequence

from context_bench.comparison import Comparison, find_empty_score, find_zero_score
from context_bench.reporters.layout import dollars, percent
from context_bench.results import EvalResult
from context_bench.stats import Verdict

__all__ = ["conclude", "describe_alone", "list_names"]

_MOST_NAMES = 6
_THAN = {"equivalent": "to", "better": "than", "not worse": "than"}
_WITHOUT_CONTEXT = ("floor", "closed-book")
_SAVINGS = {"prompt_savings": "of the prompt saved", "compression_ratio": "of the tokens saved"}


def conclude(result: EvalResult) -> str:
    """Say in a few sentences what follows for a choice; empty where there is no verdict on a system to choose.

    Floors, ceilings and controls are left out: they cannot be chosen. What a system saves is told only where its
    quality was shown not to be worse.
    """
    comparison = result.comparison
    verdicts = [] if comparison is None else [each for each in comparison.verdicts if not each.control]
    if comparison is None or not verdicts or find_empty_score(result.config, result.summary):
        return ""
    if _has_only_errors(result, comparison.baseline):
        return f"{comparison.baseline} failed on every example, and cannot tell how good another is."
    failed = [each.name for each in verdicts if _has_only_errors(result, each.name)]
    verdicts = [each for each in verdicts if each.name not in failed]
    zeros = [each.name for each in verdicts if _has_only_zeros(result, each.name, comparison.baseline)]
    verdicts = [each for each in verdicts if each.name not in zeros]
    good = [each for each in verdicts if each.not_worse]
    worse = [each.name for each in verdicts if each.word == "worse"]
    undecided = [each for each in verdicts if each.word == "undecided"]
    sentences = [_recommend(result, good, comparison.baseline)] if verdicts or not zeros else []
    if zeros:
        sentences.append(f"Nothing can be said of {list_names(zeros)}: every score is 0, of {comparison.baseline} too.")
    sentences += _doubt_examples(comparison) if good else []
    sentences += [f"Worse: {list_names(worse)}."] if worse else []
    sentences += [_list_undecided(undecided)] if undecided else []
    sentences += [f"Failed on every example: {list_names(failed)}."] if failed else []
    return " ".join([*sentences, *_tell_evidence(result, [*(each.name for each in verdicts), *zeros])])


def describe_alone(result: EvalResult) -> str:
    """Say of the one system of a run what it lost and saved, and that there is no verdict; empty without a tap.

    A saving is told beside what was lost, as nothing says that the answers are as good.
    """
    if result.comparison is not None or len(result.systems) != 1:
        return ""
    (name,) = result.systems
    (lost,) = _tell_evidence(result, [name]) or ("",)
    words, share = _find_saving(result, name)
    if not lost or not words:
        return ""
    return f"{lost} {name}: {percent(share)} {words}. No verdict without a baseline: --controls adds one."


def _tell_evidence(result: EvalResult, names: Sequence[str]) -> list[str]:
    """Say in what share of the examples each system lost the evidence, where that was looked at."""
    kept = {name: result.summary.get(name, {}).get("evidence_survival", math.nan) for name in names}
    told = [f"{name} in {percent(1 - share)} of the examples" for name, share in kept.items() if share < 1]
    unharmed = [name for name, share in kept.items() if share == 1]
    if not told:
        return [f"No evidence lost: {list_names(unharmed)}."] if unharmed else []
    return [f"Evidence lost: {list_names([*told, *(f'{name} in none' for name in unharmed)])}."]


def _doubt_examples(comparison: Comparison) -> list[str]:
    """Say where a system without any context is as good as the baseline: then nothing shows what a context is worth."""
    return [
        f"But {each.name}, which reads no context, is {each.word} {_THAN[each.word]} {comparison.baseline} as well: "
        "these examples do not show what a system loses."
        for each in comparison.verdicts
        if each.control and each.name in _WITHOUT_CONTEXT and each.not_worse
    ]


def _has_only_errors(result: EvalResult, name: str) -> bool:
    values = result.summary.get(name, {})
    return 0 < values.get("num_errors", 0) == values.get("num_examples")


def _has_only_zeros(result: EvalResult, name: str, baseline: str) -> bool:
    return bool(find_zero_score(result.summary.get(name, {}), result.summary.get(baseline, {})))


def _recommend(result: EvalResult, good: Sequence[Verdict], baseline: str) -> str:
    """Name the systems that are at least as good as the baseline, the one that saves most first."""
    if not good:
        return f"No system is shown to be as good as {baseline}."
    good = sorted(good, key=lambda verdict: _find_saving(result, verdict.name)[1], reverse=True)
    told: list[str] = []
    for verdict in good[:_MOST_NAMES]:
        compared = f"{verdict.word} {_THAN[verdict.word]} {baseline}" if not told else verdict.word
        told.append(f"{verdict.name} is {compared}{_tell_savings(result, verdict.name, baseline)}")
    if len(good) > _MOST_NAMES:
        told.append(f"{len(good) - _MOST_NAMES:,} more are in the table")
    return f"{'; '.join(told)}."


def _find_saving(result: EvalResult, name: str) -> tuple[str, float]:
    """Find the share of tokens that a system saves, with the words for it: what a tap or reader saw comes first."""
    values = result.summary.get(name, {})
    for key, words in _SAVINGS.items():
        if math.isfinite(values.get(key, math.nan)):
            return words, values[key]
    return "", -math.inf


def _tell_savings(result: EvalResult, name: str, baseline: str) -> str:
    words, share = _find_saving(result, name)
    others, theirs = _find_saving(result, baseline)
    than = f" instead of {percent(theirs)}" if others == words and percent(theirs) != percent(0.0) else ""
    parts = [f"{percent(share)} {words}{than}"] if words and (than or percent(share) != percent(0.0)) else []
    own, base = (result.summary.get(each, {}).get("cost_per_1k_usd", math.nan) for each in (name, baseline))
    if math.isfinite(own) and math.isfinite(base):
        parts.append(f"{dollars(own)} instead of {dollars(base)} for 1,000 examples")
    return f", with {' and '.join(parts)}" if parts else ""


def _list_undecided(verdicts: Sequence[Verdict]) -> str:
    needed = sorted({each.needed_n for each in verdicts if each.needed_n})
    sizes = " to ".join(f"{number:,}" for number in dict.fromkeys((needed[0], needed[-1]))) if needed else ""
    decided = f" (about {sizes} examples would decide)" if needed else ""
    return f"Undecided: {list_names([each.name for each in verdicts])}{decided}."


def list_names(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """List names as a sentence does; of many, the first ones and how many more."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "nothing"
