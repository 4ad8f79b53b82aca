"""Output of `context-bench fuzz`: a table, JUnit, a page, and the state of replayed findings."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from context_bench.fuzz.relations import Broken
    from context_bench.fuzz.session import Finding, RelationResult, Report

MAX_SHOWN_CHARS = 110
_ONCE = ("--relation", "--out", "--report", "--replay")
"""Flags that the command for one finding omits, together with their values."""

Replayed = Sequence[tuple["Finding", "Broken | None"]]
HEAD = ("relation", "tried", "broken", "rate", "95% interval", "note")


def render_replay(name: str, tried: Replayed, form: str) -> str:
    """Write which findings are still broken."""
    if form == "json":
        found = [
            {"relation": finding.relation, "case": finding.case.id, "broken": broken.reason if broken else None}
            for finding, broken in tried
        ]
        return json.dumps({"target": name, "findings": found}, indent=1, ensure_ascii=False) + "\n"
    if form == "junit":
        return _render_cases(
            name,
            [
                (f"{each.relation} ({each.case.id})", broken.reason if broken else "", "holds now")
                for each, broken in tried
            ],
        )
    lines = [
        f"{'✗' if broken else '✓'} {finding.relation}: {broken.reason if broken else 'fixed'}"
        for finding, broken in tried
    ]
    count = sum(broken is not None for _, broken in tried)
    verdict = f"{count} of {len(tried)} still broken" if count else f"all {len(tried)} fixed"
    return "\n".join((f"{name}:", *lines, "", f"{verdict}.")) + "\n"


def render_report(report: Report, form: str, options: argparse.Namespace, arguments: Sequence[str]) -> str:
    """Write the findings in the requested form."""
    if form == "json":
        return json.dumps(report.to_dict(), indent=1, ensure_ascii=False) + "\n"
    if form == "junit":
        cases = [
            (each.relation.id, each.findings[0].reason if each.findings else "", f"holds in {each.tried} tries")
            for each in report.results.values()
            if each.tried and each.counts
        ]
        return _render_cases(report.target, cases)
    return _render_table(report, options, arguments)


def _list_lines(report: Report) -> list[list[str]]:
    return [_write_result(each) for each in report.results.values()]


def _write_result(result: RelationResult) -> list[str]:
    rate, note = result.rate if result.tried else None, ""
    if result.declared:
        note = "declared"
    elif not result.relation.judged:
        note = "reported, not judged"
    elif result.varies and result.broken and not result.counts:
        note = "not significant: the system's output is random"
    elif result.excused:
        note = f"{result.excused} not counted: the system's output is random"
    elif not result.tried:
        note = "no information"
    limits = f"[{rate.low:.1%}, {rate.high:.1%}]" if rate is not None and rate.known else "–"
    share = f"{rate.value:.1%}" if rate is not None else "–"
    return [result.relation.id, f"{result.tried}", f"{result.broken}", share, limits, note]


def write_verdict(report: Report) -> str:
    """Name the broken relations in a sentence."""
    broken = [result.relation.id for result in report.broken]
    verdict = f"broken: {', '.join(broken)}" if broken else "nothing is broken"
    return f"{report.target}: {verdict} ({report.seconds:.0f} s, seed {report.seed})."


def _render_table(report: Report, options: argparse.Namespace, arguments: Sequence[str]) -> str:
    from context_bench.cli.output import table_width
    from context_bench.output.layout import fit_columns

    parts = [fit_columns([list(HEAD), *_list_lines(report)], table_width(wide=options.wide), ("95% interval", "note"))]
    parts += [
        "\n".join(
            (
                f"{finding.relation}: {_sum_up(finding)}.",
                *_show_diff(finding),
                f"  again: {_write_again(finding, arguments)}",
            )
        )
        for finding in _list_smallest(report)
    ]
    return "\n\n".join([*parts, write_verdict(report)]) + "\n"


def _list_smallest(report: Report) -> list[Finding]:
    """List the smallest finding of each broken relation."""
    return [min(each.findings, key=lambda one: len(one.case.text)) for each in report.broken if each.findings]


def _sum_up(finding: Finding) -> str:
    size = f"{len(finding.case.items)} {'item' if len(finding.case.items) == 1 else 'items'} of {finding.case.kind}"
    return f"{finding.reason} ({size})"


def _show_diff(finding: Finding) -> list[str]:
    """Show how the change altered the output."""
    lines = (line if len(line) <= MAX_SHOWN_CHARS else f"{line[:MAX_SHOWN_CHARS]}…" for line in finding.diff())
    return [f"  {line}" for line in lines]


def _write_again(finding: Finding, arguments: Sequence[str]) -> str:
    """Write the command that reproduces the finding: the command of this session, limited to one relation."""
    words, given = [], iter(arguments[1:])
    for word in given:
        if word in _ONCE:
            next(given, None)
        elif not word.startswith(tuple(f"{flag}=" for flag in _ONCE)):
            words.append(word)
    return shlex.join(["context-bench", "fuzz", *words, "--relation", finding.relation])


def _render_cases(target: str, cases: Sequence[tuple[str, str, str]]) -> str:
    """Write each relation or replayed finding as a test case: name, reason if it fails, and rate if it holds."""
    from context_bench.compare.conditions import FAILS, HOLDS
    from context_bench.compare.gates import GateOutcome
    from context_bench.output.files import render_junit

    return render_junit(
        [
            GateOutcome(target, name, FAILS if reason else HOLDS, f"{name}: {reason or holds}")
            for name, reason, holds in cases
        ]
    )


def render_page(report: Report, arguments: Sequence[str]) -> str:
    """Write the rates with their intervals, and the smallest finding of each broken relation, as one HTML file."""
    from context_bench._version import __version__
    from context_bench.output.elements import element, join, section, table
    from context_bench.output.page.html_page import page_head, write_policy

    reasons = [[each.relation.id, each.relation.reason] for each in report.results.values()]
    findings = [
        join(
            element("h3", None, f"{finding.relation}: {_sum_up(finding)}"),
            element("pre", None, "\n".join(_show_diff(finding))),
            element("pre", None, _write_again(finding, arguments)),
        )
        for finding in _list_smallest(report)
    ]
    title = f"{report.target}: context-bench fuzz"
    body = element(
        "main",
        {"id": "main"},
        element("h1", None, f"What does {report.target} break?"),
        element("p", {"class": "answer"}, write_verdict(report)),
        section("rates", "Rates by relation", table(list(HEAD), _list_lines(report), "Rates by relation", "plain")),
        section("findings", "The smallest finding of each", *(findings or [element("p", None, "Nothing is broken.")])),
        section("reasons", "Why each should hold", table(["relation", "reason"], reasons, "Reasons", "words")),
    )
    footer = element("footer", None, f"Made by context-bench {__version__}. This file contacts no server.")
    head = page_head(title, write_policy())
    return f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n{body}{footer}</body>\n</html>\n'
