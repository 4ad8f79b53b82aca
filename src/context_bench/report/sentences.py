"""The question that a run asks and its answer, in one sentence each, with the verdict words of the statistics."""

from __future__ import annotations

import math

from context_bench.curves.knobs import join_settings
from context_bench.plots.quality_cost import choose_quality
from context_bench.report.run_facts import RunFacts
from context_bench.reporters.conclusion import conclude, describe_alone
from context_bench.reporters.layout import score
from context_bench.reporters.number_cells import write_limits
from context_bench.text.wording import count_things, list_names

__all__ = ["answer_sentence", "ask_sentence"]

_MOST = 6
"""Systems whose numbers are told."""


def ask_sentence(facts: RunFacts) -> str:
    """Say what was asked."""
    datasets = facts.result.config.get("datasets") or {}
    data = list_names([f"{tag or 'the data'} ({count_things(count, 'example')})" for tag, count in datasets.items()])
    where = f" on {data}" if datasets else ""
    systems = facts.result.systems
    controls = set(facts.result.config.get("controls") or ())
    others = [name for name in systems if name != facts.baseline]
    others = [name for name in others if name not in controls] or others
    if facts.baseline is None or not others:
        return f"How well does {list_names(join_settings(systems))} do{where}?"
    asked = join_settings(others)
    verb = "does" if len(asked) == 1 else "do"
    return f"How {verb} {list_names(asked)} compare with {facts.baseline}{where}?"


def answer_sentence(facts: RunFacts) -> str:
    """Say what came out: what the verdicts conclude, or the numbers where there is nothing to hold them against."""
    result, key = facts.result, choose_quality(facts.result)
    concluded = conclude(result) or describe_alone(result)
    if concluded:
        return concluded
    scored = [name for name in result.systems if math.isfinite(result.summary[name].get(key, math.nan))]
    if not scored:
        return "Nothing could be scored: there are tokens, times and errors only."
    told = [f"{name} has a {key.replace('_', ' ')} of {_write_score(facts, name, key)}" for name in scored[:_MOST]]
    return f"{'; '.join(told)}; there is {_explain_silence(facts)}, so no verdict."


def _explain_silence(facts: RunFacts) -> str:
    """Say why there is no verdict."""
    comparison, unread = facts.result.comparison, facts.result.config.get("unread") or ()
    if comparison is None and 0 < len(unread) < len(facts.result.systems):
        return "no score that contexts and answers have in common"
    if comparison is None or not comparison.verdicts:
        return "no second system with the same examples"
    if all(verdict.control for verdict in comparison.verdicts):
        return "no system beside the baseline and the controls"
    return "no score that tells of quality"


def _write_score(facts: RunFacts, name: str, key: str) -> str:
    interval = facts.result.intervals.get(name, {}).get(key)
    value = facts.result.summary.get(name, {}).get(key, math.nan)
    if interval is not None and interval.known and not interval.mark:
        return f"{score(value)} {write_limits(interval, score)}"
    return score(value) if math.isfinite(value) else "not measured"
