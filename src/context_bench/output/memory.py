"""Tables and notes of a run of memory systems: ranking, retrieval, probes, costs and caveats."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from context_bench.memory.findings import (
    READ_PRICE,
    WRITE_PRICE,
    Repayment,
    find_empty_stores,
    find_repayments,
    list_findings,
    price_right_answer,
)
from context_bench.numbers import (
    FIRST_SESSIONS,
    FIRST_TURNS,
    FORMATS,
    MEAN_SCORE,
    RETRIEVAL,
    RETRIEVAL_RECALL,
    STORE,
    WRITING,
    dollars,
    percent,
    score,
    seconds,
)
from context_bench.output.columns import (
    HEADLINES,
    Column,
    describe_memory,
    find_best,
    is_read_by_script,
    make_columns,
    write_cell,
)
from context_bench.output.layout import fit_columns, fit_grid, markdown_width
from context_bench.results import EvalResult, EvalRow

CLAIMED = "retrieval_recall_claimed"

Cells = dict[tuple[str, int], "array[float]"]
"""Numbers by system and by length class of the history."""


class MemoryGrid(NamedTuple):
    """A table as texts: its lines, titles first.

    If not all columns fit, those in `gives_way` are left out in this order; if it is None, the table continues below.
    With `may_turn`, the table may be transposed: one column for each system.
    """

    lines: list[list[str]]
    gives_way: list[str] | None = None
    may_turn: bool = False

    def fit(self, width: int | None) -> str:
        """Lay out the table for a terminal."""
        if self.gives_way is not None:
            return fit_columns(self.lines, width, self.gives_way)
        turned = self.may_turn and width is not None and markdown_width(self.lines) > width
        return fit_grid([list(column) for column in zip(*self.lines)] if turned else self.lines, width)


_COSTS, _RETRIEVAL, _STORE = (make_columns(table) for table in (WRITING, RETRIEVAL, STORE))
"""`claimed` is shown if a system names turns without showing them."""
_OFFICIAL: dict[str, tuple[Column, ...]] = {
    "LoCoMo": (
        ("F1, categories 1 to 4", "locomo_f1", score),
        ("without known wrong golds", "locomo_f1_clean", score),
        ("category 5 refused", "locomo_refusal", percent),
        ("all five, official", "locomo_official", score),
    ),
    "LongMemEval": tuple(
        (f"{level} {title}@{depth}", f"longmemeval_{level}_{key}_at_{depth}", score)
        for level in ("turn", "session")
        for title, key in (("recall all", "recall_all"), ("nDCG", "ndcg_any"))
        for depth in (5, 10)
    ),
}
_LENGTHS = (4_000, 16_000, 64_000, 256_000, 1_000_000)


def is_claimed(values: Mapping[str, float]) -> bool:
    """Whether a system names turns without showing them; its recall then lies between the shown and the claimed one."""
    return score(values.get(CLAIMED, 0.0)) > score(values.get(RETRIEVAL_RECALL, 0.0))


def list_leading_grids(result: EvalResult) -> list[MemoryGrid]:
    """List the tables before the scores if a script reads: retrieval is then more informative than scores."""
    return list_found_grids(result) if is_read_by_script(result) else []


def list_memory_grids(result: EvalResult, lengths: HistoryLengths) -> list[MemoryGrid]:
    """List the tables for memory systems that follow the scores."""
    by_type: list[Column] = [(key.partition(":")[2], key, score) for key in _list_keys(result, "type:")]
    grids = [
        _lay_out(result, "score by type", by_type, result.summary),
        *(_lay_out(result, title, columns, result.summary) for title, columns in _OFFICIAL.items()),
        *([] if is_read_by_script(result) else list_found_grids(result)),
        _lay_out(result, "answers to probes", _list_answer_columns(result), result.summary),
        _lay_out(result, "not left in the store", _STORE, choose_one_each(result), name_system),
        _lay_out_costs(result),
        _lay_out_repayments(result),
        _lay_out_lengths(result, lengths),
    ]
    return [grid for grid in grids if grid]


def list_found_grids(result: EvalResult) -> list[MemoryGrid]:
    """List the table of retrieval and the table of its probes."""
    probes: list[Column] = [(key.removeprefix("probe_"), key, percent) for key in _list_keys(result, "probe_")]
    if not is_read_by_script(result) and _list_keys(result, "abstention"):
        probes.append(("abstention", "abstention", percent))
    first = [_lay_out(result, table, make_columns(table), result.summary) for table in (FIRST_TURNS, FIRST_SESSIONS)]
    grids = [_lay_out_retrieval(result), *first, _lay_out(result, "probes passed", probes, result.summary)]
    return [grid for grid in grids if grid]


def _lay_out_retrieval(result: EvalResult) -> MemoryGrid | None:
    """Lay out recall with its interval, marking the best competing system."""
    keys = {key for _, key, _ in _RETRIEVAL if any(key in values for values in result.summary.values())}
    keys -= set() if any(map(is_claimed, result.summary.values())) else {CLAIMED}
    shown = [column for column in _RETRIEVAL if column[1] in keys]
    names = [name for name, values in result.summary.items() if any(key in values for _, key, _ in shown)]
    if not names:
        return None
    best = {key: find_best(result, key, show, names) for _, key, show in shown}
    lines = [["retrieved", *(title for title, _, _ in shown)]]
    for name in names:
        cells = (
            write_cell(result, name, key, show, best=name in best[key], limits=key in HEADLINES)
            for _, key, show in shown
        )
        lines.append([name, *cells])
    return MemoryGrid(lines, [title for title, _, _ in reversed(shown)])


def _list_answer_columns(result: EvalResult) -> list[Column]:
    """List the probes of answers, except for a script, whose answers show no more than the retrieved text."""
    if is_read_by_script(result):
        return []
    return [
        (key.removeprefix("answer_"), key, percent) for key in _list_keys(result, "answer_") if key != "answer_tokens"
    ]


def _list_keys(result: EvalResult, prefix: str) -> list[str]:
    return sorted({key for values in result.summary.values() for key in values if key.startswith(prefix)})


def _lay_out(
    result: EvalResult,
    title: str,
    columns: Sequence[Column],
    names: Iterable[str],
    describe: Callable[[EvalResult, str], str] = lambda _, name: name,
) -> MemoryGrid | None:
    """Lay out a table without empty columns and without systems that have no number."""
    values = {name: result.summary[name] for name in names}
    shown = [column for column in columns if any(column[1] in each for each in values.values())]
    lines = [
        [describe(result, name), *(_write(each.get(key), show) for _, key, show in shown)]
        for name, each in values.items()
        if not all(math.isnan(each.get(key, math.nan)) for _, key, _ in shown)
        or (columns is _STORE and any(key in each for _, key, _ in shown))  # 0 cleared is a result
    ]
    return MemoryGrid([[title, *(name for name, _, _ in shown)], *lines]) if lines else None


def _write(value: float | None, show: Callable[[float], str]) -> str:
    if value is None:
        return "–"
    return "not measured" if math.isnan(value) else show(value)


def choose_one_each(result: EvalResult) -> list[str]:
    """Choose one line for each memory system, as the cost of writing does not depend on the questions."""
    chosen: dict[str, str] = {}
    for name in result.summary:
        chosen.setdefault(name_system(result, name), name)
    return list(chosen.values())


def name_system(result: EvalResult, name: str) -> str:
    return str(describe_memory(result, name).get("system") or name)


def _lay_out_costs(result: EvalResult) -> MemoryGrid | None:
    """Lay out the costs of writing and asking, one line for each system, with granularity and source of dates."""
    names = choose_one_each(result)
    shown = [column for column in _COSTS if any(column[1] in result.summary[name] for name in names)]
    lines = [["costs of memory", "ingested by", "dates", *(title for title, _, _ in shown)]]
    for name in names:
        about, values = describe_memory(result, name), result.summary[name]
        how = [str(about.get("granularity", "–")), str(about.get("dates", "–"))]
        lines.append([name_system(result, name), *how, *(_write(values.get(key), show) for _, key, show in shown)])
    return MemoryGrid(lines, may_turn=True) if shown else None


def _lay_out_repayments(result: EvalResult) -> MemoryGrid | None:
    found = find_repayments(result)
    if not found or result.comparison is None:
        return None
    baseline = result.comparison.baseline
    prices = {name: price_right_answer(result, name) for name in (baseline, *found)}
    spent = not all(map(math.isnan, prices.values()))
    lines = [["questions to repay", "warm cache", "cold", *(["$ / right answer"] if spent else [])]]
    if spent:
        lines.append([f"{baseline} (control)", "–", "–", _write_price(prices[baseline])])
    for name, each in found.items():
        lines.append([name, *write_repayment(each), *([_write_price(prices[name])] if spent else [])])
    return MemoryGrid(lines, ["$ / right answer"])


def _write_price(value: float) -> str:
    if math.isinf(value):
        return "none right"
    return "not measured" if math.isnan(value) else dollars(value)


def write_repayment(each: Repayment) -> list[str]:
    if each.reason:
        return [each.reason, "–"]
    return ["never" if math.isinf(value) else f"{math.ceil(value):,}" for value in (each.warm, each.cold)]


class HistoryLengths:
    """Gathers question times and disk usage by system and length of the history."""

    def __init__(self, rows: Iterable[EvalRow] = ()) -> None:
        self.times: Cells = {}
        self.sizes: Cells = {}
        for row in rows:
            self.add(row)

    def add(self, row: EvalRow) -> None:
        """Add a row, if it is one of a memory system."""
        facts, length = row.metadata.get("memory"), row.metadata.get("history_tokens")
        if row.error is not None or not isinstance(facts, dict) or not isinstance(length, int):
            return
        place = row.system, sum(length > each for each in _LENGTHS)
        self.times.setdefault(place, array("d")).append(float(facts["query"]["seconds"]))
        if (facts.get("ingest") or {}).get("disk_bytes") is not None:
            self.sizes.setdefault(place, array("d")).append(float(facts["ingest"]["disk_bytes"]))


def _lay_out_lengths(result: EvalResult, lengths: HistoryLengths) -> MemoryGrid | None:
    """Lay out question time and disk usage by length of the history."""
    names = choose_one_each(result)
    places = sorted({place for name, place in lengths.times if name in names})
    if len(places) < 2:
        return None
    titles = [f"up to {_LENGTHS[place]:,}" if place < len(_LENGTHS) else f"above {_LENGTHS[-1]:,}" for place in places]
    lines = [["time / question, by tokens of history", *titles]]
    for name in names:
        lines.append([name_system(result, name), *_write_medians(name, places, lengths.times, seconds)])
        if any((name, place) in lengths.sizes for place in places):
            kept = _write_medians(name, places, lengths.sizes, FORMATS["bytes"])
            lines.append([f"{name_system(result, name)}, on disk", *kept])
    return MemoryGrid(lines)


def _write_medians(name: str, places: Sequence[int], known: Cells, show: Callable[[float], str]) -> list[str]:
    return [show(median(known[name, place])) if (name, place) in known else "–" for place in places]


_QUALITY = ("type:", "abstention")
_OWN_TABLES = (*_QUALITY, "ingest_", "query_", "store_", "searchable_", "memories")
"""Key prefixes of numbers that only memory tables show."""


def list_doubts(result: EvalResult) -> list[str]:
    """List parts of this run that were never tested on real data."""
    name = result.settings.memory.get("unverified")
    said = f"{name} follows its authors' format but was never tested on real records: check some with diff."
    return [said] if name else []


def list_outcomes(result: EvalResult) -> list[str]:
    """Write which systems stored nothing, the ranking, and findings about each system, before all tables."""
    return [
        *list_doubts(result),
        *dict.fromkeys(find_empty_stores(result).values()),
        *list_rankings(result),
        *list_findings(result),
    ]


def list_memory_notes(result: EvalResult) -> list[str]:
    """Write how the memory systems were compared, and which numbers were not measured."""
    about, lines = result.settings.memory, []
    granularity = list(about.get("granularity") or ())
    beside = " (published tables also use turns: --granularity session,turn)" if granularity == ["session"] else ""
    if is_read_by_script(result):
        lines.append(
            "a script read the retrieved text, not a model, so scores show only what the script could find there: "
            "judge by retrieval and probes. Abstention is not measured."
        )
    lines.append(
        f"ingested by {' and '.join(granularity)}{beside}; the reader received the retrieved items in order of time, "
        "with dates, within the budget; naive, oracle and closed-book are controls without a budget."
    )
    if any(RETRIEVAL_RECALL in values for values in result.summary.values()):
        lines.append(
            "recall: of the turns with the answer, the share whose text was returned and fits fully into the budget."
        )
    if any(map(is_claimed, result.summary.values())):
        lines.append(
            "claimed: share of these turns whose ids were named, with or without their text. Facts in a memory's own "
            "words count as claimed, so the true recall lies between recall and claimed."
        )
    if any("probe_forget" in values for values in result.summary.values()):
        lines.append(
            "probes: a system that finds nothing passes forget, leak and secret; check fact and forget_neighbour too."
        )
    if any("ingest_calls" in values for values in result.summary.values()):
        lines.append("costs include background work; calls that no tap counted are not measured.")
    lines += _explain_repayment(result)
    lines += _explain_unmeasured(result)
    return lines


def list_rankings(result: EvalResult) -> list[str]:
    """Rank the systems at each budget, the best first: by recall if a script reads, else by score.

    Controls and unmeasured systems are not ranked. Turns that are claimed but not shown do not count.
    """
    key, what = (RETRIEVAL_RECALL, "recall") if is_read_by_script(result) else (MEAN_SCORE, "score")
    budgets: dict[int, list[tuple[float, str]]] = {}
    for name, values in result.summary.items():
        about = describe_memory(result, name)
        budget, value = about.get("budget"), values.get(key, math.nan)
        if isinstance(budget, int) and not about.get("is_control") and not math.isnan(value):
            shown = score(value)
            if key == RETRIEVAL_RECALL and is_claimed(values):
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
    said = ["questions to repay: per conversation, compared with sending its whole history each time"]
    if "dollars" in units:
        said.append("in dollars, at the reader's own prices for its cache")
    if "tokens" in units:
        said.append(
            f"in tokens if a price is unknown: every token costs the same, times {READ_PRICE:g} if read from a warm "
            f"cache and {WRITE_PRICE:g} if written to a cold one"
        )
    priced = "$ / right answer: cost of writing, asking and reading for each answer that passed."
    return [f"{'; '.join(said)}.", priced]


def _explain_unmeasured(result: EvalResult) -> list[str]:
    """Write why numbers of these tables are not measured, one line for each reason."""
    reasons: dict[str, dict[str, None]] = {}
    for name, notes in result.notes.items():
        for key, note in notes.items():
            values = result.summary[name]
            if math.isnan(values.get(MEAN_SCORE, 0.0)) and key.startswith(_QUALITY):
                continue  # stated for the system as a whole
            if key.startswith(_OWN_TABLES) and math.isnan(values.get(key, 0.0)):
                title = key.partition(":")[2] or key.replace("_", " ")
                reasons.setdefault(note.removeprefix("not measured: "), {})[title] = None
    return [f"not measured: {', '.join(titles)}: {reason}." for reason, titles in reasons.items()]
