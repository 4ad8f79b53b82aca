"""The default report of a run of memory systems: at most four tables. `--wide` shows all tables.

The report has the ranking at each budget, findings about each system, costs of writing and asking, and scores by type
of question. Controls come last, as they are not ranked.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from context_bench.compare.sweeps import name_briefly
from context_bench.errors import printable
from context_bench.memory.findings import find_empty_stores, find_repayments, list_findings, price_right_answer
from context_bench.numbers import (
    MEAN_SCORE,
    NUM_ERRORS,
    PROMPT_SAVINGS,
    RETRIEVAL_RECALL,
    dollars,
    percent,
    score,
    seconds,
    tokens,
)
from context_bench.output.columns import describe_memory, find_best, is_own_beside_script, is_read_by_script, write_cell
from context_bench.output.layout import fit_columns, fit_grid, markdown_width, wrap
from context_bench.output.memory import (
    choose_one_each,
    list_doubts,
    name_system,
    write_repayment,
)
from context_bench.output.verdict_tables import write_verdict
from context_bench.results import EvalResult
from context_bench.text import list_names

_GIVE_WAY = ("tokens read", "saved", "$ / right answer")


def list_summary(result: EvalResult, width: int | None) -> list[str]:
    """List the parts of the default report of memory systems, in their order."""
    found = [*list_doubts(result), *dict.fromkeys(find_empty_stores(result).values()), *_join_findings(result)]
    ranking = _list_ranking(result)
    if width is not None and markdown_width(ranking) > width:
        brief = name_briefly(result.summary)
        ranking = [[brief.get(name, name), *cells] for name, *cells in ranking]
    parts = [
        fit_columns(ranking, width, [title for title in _GIVE_WAY if title in ranking[0]]),
        "\n".join(wrap(printable(note), width) for note in found),
        *(fit_grid(lines, width) for lines in (_list_costs(result), _list_types(result)) if len(lines) > 1),
    ]
    return [part for part in parts if part]


def _join_findings(result: EvalResult) -> list[str]:
    """List the findings; systems with the same fault share a sentence."""
    names = sorted({name_system(result, name) for name in result.summary}, key=len, reverse=True)
    found: dict[str, list[str]] = {}
    for sentence in list_findings(result):
        name = next((each for each in names if sentence.startswith(each)), "")
        found.setdefault(sentence.removeprefix(name), []).append(name)
    return [
        f"{first}{fault.removesuffix('.')} (also {list_names(others)})." if others else f"{first}{fault}"
        for fault, (first, *others) in found.items()
    ]


def _list_ranking(result: EvalResult) -> list[list[str]]:
    """List the systems at each budget, the best first: by recall if a script reads, else by score."""
    key = RETRIEVAL_RECALL if is_read_by_script(result) else MEAN_SCORE
    comparison, places = result.comparison, []
    for place, (name, values) in enumerate(result.summary.items()):
        if is_own_beside_script(result, name):
            continue
        about = describe_memory(result, name)
        budget = about.get("budget")
        at = math.inf if about.get("is_control") else 1e15 if budget is None else budget
        known = [values.get(each, math.nan) for each in (key, MEAN_SCORE)]
        first, second = (math.inf if math.isnan(value) else -value for value in known)
        places.append((at, first, second, place, name))
    priced = {name: price_right_answer(result, name) for name in result.summary}
    shown = any(0 < spent < math.inf for spent in priced.values())
    head = ["ranked at each budget", "recall", "score", "saved", "tokens read"]
    failed = any(values.get(NUM_ERRORS) for values in result.summary.values())
    head += [*(["errors"] if failed else []), *(["$ / right answer"] if shown else [])]
    lines = [[*head, *(["verdict"] if comparison else [])]]
    ranked = [each[-1] for each in sorted(places)]
    best = {each: find_best(result, each, score, ranked) for each in (RETRIEVAL_RECALL, MEAN_SCORE)}
    for name in ranked:
        values = result.summary[name]
        cells = [
            *(write_cell(result, name, each, score, best=name in best[each], limits=True) for each in best),
            _write(values.get(PROMPT_SAVINGS), percent),
            _write(values.get("answer_tokens"), tokens),
        ]
        cells += [f"{values.get(NUM_ERRORS, 0):,.0f}"] if failed else []
        if shown:
            spent = priced[name]
            cells.append("none right" if math.isinf(spent) else _write(spent, dollars))
        lines.append([name, *cells, *([write_verdict(comparison, name)] if comparison else [])])
    return lines


def _list_costs(result: EvalResult) -> list[list[str]]:
    """List the costs of writing and asking, and after how many questions they are repaid."""
    repaid = find_repayments(result)
    columns: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("calls", "ingest_calls", tokens),
        ("tokens", "ingest_tokens", tokens),
        ("$", "ingest_usd", dollars),
        ("time", "ingest_seconds", seconds),
        ("time / question", "query_seconds_median", seconds),
    )
    lines = [["writing 1,000 turns", *(title for title, _, _ in columns), *(["questions to repay"] if repaid else [])]]
    for name in choose_one_each(result):
        values, system = result.summary[name], name_system(result, name)
        cells = [_write(values.get(key), show) for _, key, show in columns]
        told = [write_repayment(each) for arm, each in repaid.items() if name_system(result, arm) == system]
        best = next((cells for cells in told if cells[1] != "–"), None)
        when = "–" if best is None else f"{best[0]} (cold: {best[1]})"
        lines.append([system, *cells, *([when] if repaid else [])])
    return lines


def _list_types(result: EvalResult) -> list[list[str]]:
    """List scores by type of question, each system at its largest budget."""
    chosen: dict[str, str] = {}
    for name in result.summary:
        about = describe_memory(result, name)
        if about.get("answers") != "own" or name_system(result, name) not in chosen:
            chosen[name_system(result, name)] = name
    kinds = sorted({key for name in chosen.values() for key in result.summary[name] if key.startswith("type:")})
    lines = [["score by type", *chosen]]
    for kind in kinds:
        cells = [_write(result.summary[name].get(kind), score) for name in chosen.values()]
        lines += [[kind.partition(":")[2], *cells]] if set(cells) != {"–"} else []
    return lines


def _write(value: float | None, show: Callable[[float], str]) -> str:
    return "–" if value is None or math.isnan(value) else show(value)
