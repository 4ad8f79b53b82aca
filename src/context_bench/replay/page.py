"""The page of a replay: the conclusion, the systems, a timeline of tokens and dollars, and the worst losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from context_bench.output.elements import Markup, element, join, table
from context_bench.output.layout import shorten
from context_bench.output.page.html_page import plain_page
from context_bench.output.plots.chart import Axis, Chart, Key, Line, Plane, Scale
from context_bench.output.plots.pareto import write_amount
from context_bench.output.plots.svg import draw_figure
from context_bench.replay.integrity import FAULTS
from context_bench.replay.report import (
    MAX_NAME,
    OPEN_LOOP,
    ArmOutcome,
    conclude,
    list_notes,
    table_of_arms,
    table_of_sessions,
)

MAX_LOSSES = 12
MAX_TOOLS = 12
MAX_CHART_POINTS = 200


def render_page(arms: Sequence[ArmOutcome]) -> str:
    """Write the page as one HTML file, which asks nothing of any server."""
    measured = [arm for arm in arms if not arm.is_control]
    top = [
        element("h1", None, conclude(measured[0]) if measured else "Nothing was replayed."),
        *(element("p", {"class": "answer"}, conclude(arm)) for arm in measured[1:]),
    ]
    parts = {
        "systems": ("Systems", _show_table(table_of_arms(arms))),
        "timeline": ("Tokens and dollars, turn by turn", _show_timelines(measured)),
        "sessions": ("By session", _show_table(table_of_sessions(arms))),
        "tools": ("By tool", _show_tools(measured)),
        "losses": ("Text that the next call copied and that was gone", _show_losses(measured)),
        "method": ("How it was measured", _describe_method(arms)),
    }
    return plain_page("context-bench replay", parts, *top)


def _show_table(lines: Sequence[Sequence[str]]) -> Markup:
    return table(list(lines[0]), [list(line) for line in lines[1:]]) if len(lines) > 1 else element("p", None, "–")


def _show_timelines(arms: Sequence[ArmOutcome]) -> Markup:
    arms = [arm for arm in arms if arm.turns]
    if not arms:
        return element("p", None, "No session was replayed.")
    charts = [_draw_timeline(arms, "prompt", "tokens of prompts, in all", "tokens")]
    if all("dollars" in turn for arm in arms for turn in arm.turns):
        charts.append(_draw_timeline(arms, "dollars", "dollars, in all", "dollars"))
    return join(*map(draw_figure, charts))


def _draw_timeline(arms: Sequence[ArmOutcome], key: str, title: str, what: str) -> Chart:
    """Draw the sum so far of what was billed, request by request, as recorded and through each system."""
    recorded = list(accumulate(turn[f"recorded_{key}"] for turn in arms[0].turns))
    sent = {arm.name: list(accumulate(turn[key] for turn in arm.turns)) for arm in arms}
    step = max(1, len(recorded) // MAX_CHART_POINTS)
    places = [*range(0, len(recorded), step), len(recorded) - 1]
    lines = [Line("baseline", [(place + 1, recorded[place]) for place in places], label="as recorded")]
    for number, sums in enumerate(sent.values()):
        lines.append(Line("curve", [(place + 1, sums[min(place, len(sums) - 1)]) for place in places], number))
    top = max(recorded[-1], *(sums[-1] for sums in sent.values()))
    show = write_amount if what == "tokens" else "${:.2f}".format
    tick = _write_tick if what == "tokens" else "${:g}".format
    ends = {"as recorded": recorded[-1], **{name: sums[-1] for name, sums in sent.items()}}
    return Chart(
        f"timeline-{what}",
        f"{what} turn by turn",
        f"{what.capitalize()} so far, with and without",
        ["Dashed: as recorded."],
        Plane(
            Axis("requests", Scale(0.0, float(len(recorded)))),
            Axis(title, Scale(0.0, top * 1.05 or 1.0), tick),
            [],
            lines,
            [Key(name, series=number) for number, name in enumerate(sent)],
        ),
        ["system", f"{what} in all"],
        [[name, show(end)] for name, end in ends.items()],
    )


def _write_tick(value: float) -> str:
    """Write a number of tokens as short as the axis has room for."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def _show_tools(arms: Sequence[ArmOutcome]) -> Markup:
    """Show what the results of each tool hold, and how often a loss came from them."""
    if not arms or not arms[0].sessions:
        return element("p", None, "No session was replayed.")
    sizes: Counter[str] = Counter()
    for session in arms[0].sessions:
        sizes.update(session.facts["tools"])
    lost = {arm.name: Counter(each.get("tool", "") for s in arm.sessions for each in s.facts["losses"]) for arm in arms}
    lines = [
        [tool, f"{tokens:,}", *(f"{lost[arm.name][tool]}" for arm in arms)]
        for tool, tokens in sizes.most_common(MAX_TOOLS)
    ]
    note = "Losses are those listed below, at most three for each session."
    return join(table(["tool", "tokens of results", *(f"losses: {arm.name}" for arm in arms)], lines), _note(note))


def _show_losses(arms: Sequence[ArmOutcome]) -> Markup:
    found = [
        (arm.name, session.session, loss)
        for arm in arms
        for session in arm.sessions
        for loss in session.facts["losses"]
    ]
    if not found:
        return element("p", None, "No text that a next call copied was gone.")
    shown = []
    for name, session, loss in found[:MAX_LOSSES]:
        where = f"session {shorten(session, MAX_NAME)}"
        source = f" in the result of {loss['tool']}" if loss.get("tool") else ""
        shown.append(
            element(
                "details",
                None,
                element("summary", None, f"{name}: {loss['span']} ({where}, turn {loss['turn']}{source})"),
                element("pre", None, *(_show_segment(*segment) for segment in loss.get("diff", ()))),
            )
        )
    more = [_note(f"{len(found) - MAX_LOSSES} more are in the JSON.")] if len(found) > MAX_LOSSES else []
    return join(*shown, *more)


def _show_segment(kind: str, old: str, new: str) -> Markup:
    """Show a stretch of a diff: what was recorded and gone, and what was sent in its place."""
    if kind == "kept":
        return join(old)
    return join(*(element(tag, None, text) for tag, text in (("del", old), ("ins", new)) if text))


def _note(text: str) -> Markup:
    return element("p", {"class": "about"}, text)


def _describe_method(arms: Sequence[ArmOutcome]) -> Markup:
    sentences = [
        *list_notes(arms),
        "Dollars are those of a simulated prompt cache, which was run over the recorded requests first.",
        *_tell_errors(arms),
    ]
    faults = table(["fault", "meaning"], [[name, meaning] for name, meaning in FAULTS.items()])
    return join(*(element("p", None, each) for each in dict.fromkeys([*sentences, OPEN_LOOP])), faults)


def _tell_errors(arms: Sequence[ArmOutcome]) -> list[str]:
    """Tell how far the simulation is from the recorded counters, by session."""
    told = []
    for session in arms[0].sessions if arms else ():
        found, billed = session.facts["simulation"], session.facts["billed_dollars"]
        if found is None:
            continue
        reads, trivial = found["reads"], found["trivial_reads"]
        dollars = ""
        if billed and session.facts["dollars"]["recorded"] is not None:
            dollars = f"; dollars {session.facts['dollars']['recorded'] / billed - 1:+.1%} of what was billed"
        told.append(
            f"Session {shorten(session.session, MAX_NAME)}: in {found['requests']} requests that the fit has not seen, "
            f"simulated cache reads are off by {reads['median']:,.0f} tokens in the median and {reads['worst']:,.0f} "
            f"at worst (by {trivial['median']:,.0f} and {trivial['worst']:,.0f} if each request read all of the one "
            f"before){dollars}."
        )
    if told:
        told.append("A session that only appends has no misses, so it cannot show that misses are simulated right.")
    return told
