"""Sentences for a run of memory systems: who leads, what to beware of, how they were compared."""

from __future__ import annotations

import math

from context_bench.memory.findings import find_empty_stores, list_findings
from context_bench.memory.repayment import READ_PRICE, WRITE_PRICE, find_repayments
from context_bench.reporters.layout import score
from context_bench.reporters.memory_tables import CLAIMED, describe_memory, is_claimed, is_read_by_script
from context_bench.results import EvalResult

__all__ = ["list_memory_notes", "list_outcomes", "list_rankings"]

_QUALITY = ("type:", "abstention")
_OWN_TABLES = (*_QUALITY, "ingest_", "query_", "store_", "searchable_", "memories")
"""How the numbers begin that stand in tables of memory alone."""


def list_outcomes(result: EvalResult) -> list[str]:
    """Say who stored nothing, who leads, and what was found out about each, before all tables."""
    return [*dict.fromkeys(find_empty_stores(result).values()), *list_rankings(result), *list_findings(result)]


def list_memory_notes(result: EvalResult) -> list[str]:
    """Say how the memory systems were compared, and what was not measured."""
    about, lines = result.config["memory"], []
    granularity = list(about.get("granularity") or ())
    beside = " (a published table has turn beside it: --granularity session,turn)" if granularity == ["session"] else ""
    if is_read_by_script(result):
        lines.append(
            "read by a script, not a model: scores tell what it could find in the retrieved text; retrieval and probes "
            "come first, and abstention is not measured."
        )
    lines.append(
        f"ingested by {' and '.join(granularity)}{beside}; the reader got what was retrieved in the order "
        "of time, with dates, within the budget; naive, oracle and closed-book are controls without a budget."
    )
    if any("retrieval_recall" in values for values in result.summary.values()):
        lines.append(
            "recall: share of the turns with the answer whose text was returned and fits whole into the budget."
        )
    if any(map(is_claimed, result.summary.values())):
        lines.append(
            "claimed: share of these turns that were named (ids), whether their text was returned or not; facts in a "
            "memory's own words count as claimed, and its recall lies between the two."
        )
    if any("probe_forget" in values for values in result.summary.values()):
        lines.append("probes: who finds nothing passes forget, leak and secret; fact and forget_neighbour tell.")
    if any("ingest_calls" in values for values in result.summary.values()):
        lines.append("costs: background work until it was quiet is in them; what no tap counted is not measured.")
    lines += _explain_repayment(result)
    lines += _explain_unmeasured(result)
    return lines


def list_rankings(result: EvalResult) -> list[str]:
    """Rank the systems at each budget, the best first: by recall where a script reads, else by score.

    Controls are not ranked, nor is a system that was not measured. What is claimed and not shown earns no rank.
    """
    key, what = ("retrieval_recall", "recall") if is_read_by_script(result) else ("mean_score", "score")
    budgets: dict[int, list[tuple[float, str]]] = {}
    for name, values in result.summary.items():
        about = describe_memory(result, name)
        budget, value = about.get("budget"), values.get(key, math.nan)
        if isinstance(budget, int) and not about.get("is_control") and not math.isnan(value):
            shown = score(value)
            if key == "retrieval_recall" and is_claimed(values):
                shown = f"at least {shown} (claims {score(values[CLAIMED])})"
            budgets.setdefault(budget, []).append((value, f"{about.get('system')} {shown}"))
    sentences = []
    for budget, known in sorted(budgets.items(), key=lambda each: each[0]):
        if len(known) > 1:
            written = ", ".join(text for _, text in sorted(known, key=lambda each: -each[0]))
            sentences.append(f"ranked by {what} at {budget:,} tokens: {written}.")
    return sentences


def _explain_repayment(result: EvalResult) -> list[str]:
    found = find_repayments(result)
    if not found:
        return []
    units = {each.unit for each in found.values() if each.unit}
    said = ["questions to repay: about one conversation, against sending its whole history each time"]
    if "dollars" in units:
        said.append("in dollars, at the reader's own prices for its cache")
    if "tokens" in units:
        said.append(
            f"in tokens where something has no price: all cost the same, {READ_PRICE:g} of it read from a warm cache, "
            f"{WRITE_PRICE:g} written to a cold one"
        )
    priced = "$ / right answer: writing, asking and reading together, for each answer that passed."
    return [f"{'; '.join(said)}.", priced]


def _explain_unmeasured(result: EvalResult) -> list[str]:
    """Say why numbers of these tables are not measured: a line for each reason."""
    reasons: dict[str, dict[str, None]] = {}
    for name, notes in result.notes.items():
        for key, note in notes.items():
            values = result.summary[name]
            if math.isnan(values.get("mean_score", 0.0)) and key.startswith(_QUALITY):
                continue  # it is said of the system as a whole
            if key.startswith(_OWN_TABLES) and math.isnan(values.get(key, 0.0)):
                title = key.partition(":")[2] or key.replace("_", " ")
                reasons.setdefault(note.removeprefix("not measured: "), {})[title] = None
    return [f"not measured: {', '.join(titles)}: {reason}." for reason, titles in reasons.items()]
