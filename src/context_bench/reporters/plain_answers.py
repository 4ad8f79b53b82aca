"""The tables in short: for each system what it loses, what it saves and whether it is as good as the baseline.

One sentence for each system that competes, and one that names the largest saving which is not worse. The numbers are
those of the tables; a saving is called one without loss only where the verdict says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from context_bench.reporters.layout import dollars, percent
from context_bench.results import EvalResult
from context_bench.stats import Verdict

__all__ = ["answer_plainly"]

_MOST = 8
"""Systems beyond which sentences say less than the tables."""
_SAME = 0.0005
"""A share of tokens that is shown as 0.0%."""


def answer_plainly(result: EvalResult, aside: Sequence[str] = ()) -> list[str]:
    """Answer in sentences; nothing where there is little to say, or where there are too many systems for it.

    Args:
        result: Of a run.
        aside: Systems that have a table of their own.
    """
    comparison = result.comparison
    if comparison is None:
        return _answer_alone(result)
    verdicts = [each for each in comparison.verdicts if not each.control and each.name not in aside]
    if not 0 < len(verdicts) <= _MOST:
        return []
    sentences = [_describe(result, each, comparison.baseline) for each in verdicts]
    winner = _name_winner(result, verdicts, comparison.baseline) if len(verdicts) > 1 else ""
    return [f"in short, against {comparison.baseline}:", *(f"{each}." for each in (*sentences, winner) if each)]


def _answer_alone(result: EvalResult) -> list[str]:
    """Say what can be said of one system without a baseline, and that there is no verdict."""
    names = [name for name in result.systems if name not in (result.config.get("controls") or ())]
    if len(names) != 1 or abs(_find_saving(result.summary[names[0]])) < _SAME:
        return []
    said = _join(_describe_loss(result.summary[names[0]]), _describe_saving(result.summary[names[0]]))
    if not said:
        return []
    advice = "no verdict without a baseline: passthrough is one, or --controls where a model answers"
    return [f"in short: {names[0]}: {said}; {advice}."]


def _describe(result: EvalResult, verdict: Verdict, baseline: str) -> str:
    """Describe one system: the word of its verdict, what it loses, and what it saves."""
    values = result.summary[verdict.name]
    if values.get("num_errors") and values["num_errors"] == values["num_examples"]:
        return f"{verdict.name}: all examples failed"
    bill = _describe_bill(result, verdict.name, baseline)
    return f"{verdict.name}: {_join(_explain_word(verdict), _describe_loss(values), _describe_saving(values), bill)}"


def _join(*clauses: str) -> str:
    return "; ".join(filter(None, clauses))


def _explain_word(verdict: Verdict) -> str:
    word = verdict.word
    if word == "undecided" and verdict.needed_n:
        word = f"undecided (about {verdict.needed_n:,} examples would decide)"
    elif word == "equivalent":
        word = f"equivalent (within {verdict.margin:g})"
    return f"{word}, {verdict.word_without_errors} without errors" if verdict.errors_disagree else word


def _describe_loss(values: dict[str, float]) -> str:
    """Say what share of the evidence is gone, where that was looked at."""
    kept = values.get("evidence_survival", values.get("retrieval_recall", math.nan))
    if math.isnan(kept):
        return ""
    if "evidence_survival" not in values:
        return f"finds {percent(kept)} of the evidence"
    return "loses no evidence" if kept == 1 else f"loses evidence in {percent(1 - kept)} of the examples"


def _describe_saving(values: dict[str, float]) -> str:
    saved = _find_saving(values)
    if math.isnan(saved):
        return ""
    if abs(saved) < _SAME:
        return "as many prompt tokens"
    return f"{percent(abs(saved))} {'fewer' if saved > 0 else 'more'} prompt tokens"


def _describe_bill(result: EvalResult, name: str, baseline: str) -> str:
    """Hold what a thousand examples cost against the same at the baseline, where both are priced."""
    ours, theirs = (result.summary[each].get("cost_per_1k_usd", math.nan) for each in (name, baseline))
    if not theirs > 0 or math.isnan(ours):
        return ""
    return f"{dollars(ours)} for 1,000 examples ({baseline}: {dollars(theirs)})"


def _find_saving(values: dict[str, float]) -> float:
    """Find the share of prompt tokens that is saved: what a tap saw, else what the context became shorter by."""
    saved = values.get("prompt_savings", math.nan)
    return values.get("compression_ratio", math.nan) if math.isnan(saved) else saved


def _name_winner(result: EvalResult, verdicts: Sequence[Verdict], baseline: str) -> str:
    """Name the system that saves most among those that are not worse."""
    savings = {each.name: _find_saving(result.summary[each.name]) for each in verdicts}
    saving = [each for each in verdicts if savings[each.name] >= _SAME]
    if not saving:
        return ""
    unharmed = [each.name for each in saving if each.not_worse]
    if unharmed:
        best = max(unharmed, key=lambda name: savings[name])
        return f"largest saving that is not worse: {best}, {percent(savings[best])}"
    if all(each.word == "worse" for each in saving):
        return f"no saving without loss: all that save are worse than {baseline}"
    return "largest saving that is not worse: none is shown to be"
