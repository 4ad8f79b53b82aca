"""The question that a run asks and its answer, in one sentence each, with the verdict words of the statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from context_bench.plots.quality_cost import choose_quality
from context_bench.report.run_facts import RunFacts
from context_bench.reporters.layout import percent, score
from context_bench.reporters.number_cells import write_limits
from context_bench.stats import Verdict

__all__ = ["answer_sentence", "ask_sentence", "list_names"]

_SAVINGS = {"prompt_savings": "of the prompt saved", "compression_ratio": "of the tokens saved"}
_FEW = 6


def list_names(names: Sequence[str], most: int = _FEW) -> str:
    """List names as a sentence does; of many, the first ones and how many more."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "nothing"


def ask_sentence(facts: RunFacts) -> str:
    """Say what was asked."""
    datasets = facts.result.config.get("datasets") or {}
    data = list_names([f"{tag or 'the data'} ({count:,} examples)" for tag, count in datasets.items()])
    where = f" on {data}" if datasets else ""
    systems = facts.result.systems
    controls = set(facts.result.config.get("controls") or ())
    others = [name for name in systems if name != facts.baseline]
    others = [name for name in others if name not in controls] or others
    if facts.baseline is None or not others:
        return f"How well does {list_names(systems)} do{where}?"
    verb = "does" if len(others) == 1 else "do"
    return f"How {verb} {list_names(others)} compare with {facts.baseline}{where}?"


def answer_sentence(facts: RunFacts) -> str:
    """Say what came out: the verdict on each system, or the number where there is nothing to hold it against."""
    result, key = facts.result, choose_quality(facts.result)
    comparison = result.comparison
    if comparison is not None and comparison.verdicts:
        verdicts = [each for each in comparison.verdicts if not each.control] or comparison.verdicts
        told = [f"{verdict.name} is {_describe(facts, verdict)}" for verdict in verdicts[:_FEW]]
        if len(verdicts) > _FEW:
            told.append(f"{len(verdicts) - _FEW:,} more are in the table")
        return f"Against {comparison.baseline} ({_write_score(facts, comparison.baseline, key)}), {'; '.join(told)}."
    scored = [name for name in result.systems if math.isfinite(result.summary[name].get(key, math.nan))]
    if not scored:
        return "Nothing could be scored: there are tokens, times and errors only."
    told = [f"{name} has a {key.replace('_', ' ')} of {_write_score(facts, name, key)}" for name in scored[:_FEW]]
    return f"{'; '.join(told)}; there is no second system with the same examples, so no verdict."


def _describe(facts: RunFacts, verdict: Verdict) -> str:
    values = facts.result.summary.get(verdict.name, {})
    parts = [f"{verdict.difference:+.3f}"] if math.isfinite(verdict.difference) else []
    saved = next((key for key in _SAVINGS if math.isfinite(values.get(key, math.nan))), None)
    if saved is not None:
        parts.append(f"{percent(values[saved])} {_SAVINGS[saved]}")
    if verdict.word == "undecided" and verdict.needed_n:
        parts.append(f"about {verdict.needed_n:,} examples would decide")
    if verdict.control:
        parts.append("a control")
    return f"{verdict.word} ({', '.join(parts)})" if parts else verdict.word


def _write_score(facts: RunFacts, name: str, key: str) -> str:
    interval = facts.result.intervals.get(name, {}).get(key)
    value = facts.result.summary.get(name, {}).get(key, math.nan)
    if interval is not None and interval.known and not interval.mark:
        return f"{score(value)} {write_limits(interval, score)}"
    return score(value) if math.isfinite(value) else "not measured"
