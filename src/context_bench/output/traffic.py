"""An overview of recorded sessions: tables for a terminal, and a page that opens offline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from context_bench._version import __version__
from context_bench.numbers import dollars, percent
from context_bench.output.elements import element, join, section, table
from context_bench.output.layout import fit_listing, wrap
from context_bench.output.page.html_page import banner, page_head, page_script, write_policy
from context_bench.text import count_things
from context_bench.traffic.overview import KINDS, Overview, Sums
from context_bench.traffic.readers import Findings

MOST_LINES = 25  # of a table on a terminal and on a page
_MAX_PREVIEW_CHARS = 60
_KIND_TITLES = {
    "system": "system text",
    "tools": "tools on offer",
    "user": "user",
    "result": "tool results",
    "call": "tool calls",
    "assistant": "assistant",
}
Mask = Callable[[str], str]


class Listing(NamedTuple):
    """A table with its title; the first line holds the titles of the columns."""

    title: str
    lines: list[list[str]]
    note: str = ""


def list_tables(overview: Overview, findings: Findings, by: str | None, mask: Mask) -> Iterator[Listing]:
    """Yield the tables of an overview; `by` selects one table instead of the usual ones."""
    if by == "tool":
        yield _list_tools(overview, mask)
    elif by == "session":
        yield _list_sums("session", overview.sessions, mask)
    elif by == "day":
        yield _list_sums("day", dict(sorted(overview.days.items())), mask)
    else:
        yield _list_sums("model", overview.models, mask)
        yield _list_kinds(overview)
        yield _list_tools(overview, mask)
        yield _list_contents(overview, mask)
    yield from _list_skipped(findings, mask)


def summarize(overview: Overview, findings: Findings) -> list[str]:
    """Summarize the sessions in sentences."""
    total = overview.total
    recorded = count_things(len(overview.sessions), "session")
    sentences = [
        f"{recorded} with {count_things(total.requests, 'request')} in {count_things(overview.threads, 'thread')}."
    ]
    if total.billed:
        cached = "" if total.hit_rate is None else f", {percent(total.hit_rate)} of them read from a cache"
        output = "" if total.output is None else f", and {total.output:,} of output"
        sentences.append(f"The API counted {total.prompt:,} prompt tokens{cached}{output}.")
    if total.cost is not None and total.cost_uncached is not None:
        priced = "the requests" if not total.unpriced else f"{total.billed - total.unpriced:,} of the requests"
        without = f"without a cache they would cost {dollars(total.cost_uncached)}"
        sentences.append(f"At list prices {priced} cost {dollars(total.cost)}; {without}.")
    if total.unpriced:
        missing = sorted(name for name, sums in overview.models.items() if sums.unpriced)
        sentences.append(f"No price is known for {', '.join(missing[:5])} ({total.unpriced:,} requests): see --prices.")
    if total.billed < total.requests:
        sentences.append(f"Requests without a recorded usage: {total.requests - total.billed:,}.")
    if overview.fitted:
        sentences.append(
            f"System text and tools are not recorded in {overview.fitted:,} requests: a fit to the usage estimates "
            f"them at {overview.hidden:,} billed tokens (largest error of a request: {overview.worst:,.0f})."
        )
    if findings.others:
        others = count_things(len(findings.others), "file")
        sentences.append(f"Not counted, because they are not sessions: {others} ({name_others(findings)}).")
    return sentences


def name_others(findings: Findings) -> str:
    """Name the files that are not recordings, by kind."""
    reasons = Counter(each.reason for each in findings.others)
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())


def _list_sums(title: str, groups: dict[str, Sums], mask: Mask) -> Listing:
    shown = list(groups.items())
    if title == "session":
        shown.sort(key=lambda each: -(each[1].cost or 0.0))
    lines = [[title, "requests", "prompt", "cached", "output", "cost", "uncached"]]
    for name, sums in shown[:MOST_LINES]:
        lines.append(
            [
                mask(name),
                f"{sums.requests:,}",
                f"{sums.prompt:,}" if sums.billed else "–",
                "–" if sums.hit_rate is None else percent(sums.hit_rate),
                "–" if sums.output is None else f"{sums.output:,}",
                "–" if sums.cost is None else dollars(sums.cost),
                "–" if sums.cost_uncached is None else dollars(sums.cost_uncached),
            ]
        )
    return Listing(f"By {title}", lines, _say_more(len(groups)))


def _say_more(count: int) -> str:
    return f"{count - MOST_LINES:,} more; --output json has all of them" if count > MOST_LINES else ""


def _list_kinds(overview: Overview) -> Listing:
    whole = sum(overview.sent.values())
    lines = [["part of the prompts", "tokens sent", "share"]]
    for kind in KINDS:
        tokens = overview.sent[kind]
        if tokens:
            lines.append([_KIND_TITLES[kind], f"{tokens:,}", percent(tokens / whole)])
    if whole:
        lines.append(["(in the same prompt twice)", f"{overview.repeated:,}", percent(overview.repeated / whole)])
    return Listing("Tokens by kind", lines, "context-bench's own token count of the recordings, over all requests.")


def _list_tools(overview: Overview, mask: Mask) -> Listing:
    lines = [["tool", "results", "tokens", "tokens sent", "repeated"]]
    shown = sorted(overview.tools.items(), key=lambda each: -each[1].sent)
    for name, sums in shown[:MOST_LINES]:
        lines.append([mask(name), f"{sums.results:,}", f"{sums.tokens:,}", f"{sums.sent:,}", f"{sums.repeated:,}"])
    return Listing("Tool results", lines, _say_more(len(shown)))


def _list_contents(overview: Overview, mask: Mask) -> Listing:
    lines = [["repeated content", "tool", "tokens", "copies", "tokens sent"]]
    for each in overview.list_contents(10):
        start = mask(each.preview)
        start = start if len(start) <= _MAX_PREVIEW_CHARS else f"{start[: _MAX_PREVIEW_CHARS - 1]}…"
        lines.append([start, mask(each.tool or each.kind), f"{each.tokens:,}", f"{each.copies:,}", f"{each.sent:,}"])
    return Listing("Largest repeated contents", lines, "Texts that occur more than once in the same prompt.")


def _list_skipped(findings: Findings, mask: Mask) -> Iterator[Listing]:
    lines = [["file", "reason", "lines", "first at"]]
    for report in findings.files:
        for reason, count in report.skipped.items():
            first = ", ".join(str(line) for line in report.lines[reason] if line)
            lines.append([mask(Path(report.path).name), mask(reason), f"{count:,}", first or "–"])
    if len(lines) > 1:
        yield Listing("Lines that could not be used", lines[: MOST_LINES + 1], _say_more(len(lines) - 1))


def write_tables(sentences: Sequence[str], tables: Sequence[Listing], width: int | None) -> str:
    """Write the overview for a terminal."""
    parts = ["\n".join(wrap(each, width) if width else each for each in sentences)]
    for each in tables:
        if len(each.lines) > 1:
            give_way = ("uncached", "output", "results", "repeated", "copies", "first at")
            body = fit_listing(each.lines, width, wrapped=(0,), give_way=give_way)
            note = f"\n{wrap(each.note, width) if width else each.note}" if each.note else ""
            parts.append(f"{each.title}\n\n{body}{note}")
    return "\n\n".join(parts) + "\n"


def write_page(sentences: Sequence[str], tables: Sequence[Listing]) -> str:
    """Write the overview as one HTML file."""
    shown = [each for each in tables if len(each.lines) > 1]
    names = [each.title.lower().replace(" ", "-") for each in shown]
    sections = [
        section(
            name,
            each.title,
            table(each.lines[0], each.lines[1:]),
            element("p", {"class": "note"}, each.note) if each.note else None,
        )
        for name, each in zip(names, shown)
    ]
    body = join(
        banner({f"#{name}": each.title for name, each in zip(names, shown)}),
        element(
            "main",
            None,
            element("h1", None, "Recorded sessions"),
            *(element("p", {"class": "lead"} if place == 0 else None, each) for place, each in enumerate(sentences)),
            *sections,
        ),
        element("footer", None, f"Made by context-bench {__version__}. This file contacts no server."),
    )
    head = page_head("Recorded sessions", write_policy("common"))
    return f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n{body}\n{page_script("common")}\n</body>\n</html>\n'
