"""HTML page of a replay: conclusion, systems, timeline of tokens and dollars, worst losses."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate

from context_bench.output.elements import Markup, element, join, table
from context_bench.output.layout import shorten
from context_bench.output.page.html_page import plain_page
from context_bench.output.plots.chart import Axis, Chart, Key, Line, Plane, Scale
from context_bench.output.plots.pareto import write_amount
from context_bench.output.plots.svg import draw_figure
from context_bench.replay.integrity import FAULTS
from context_bench.replay.outcome import ArmOutcome, SessionOutcome
from context_bench.replay.report import (
    MAX_NAME,
    OPEN_LOOP,
    conclude,
    list_notes,
    table_of_arms,
    table_of_sessions,
    table_of_turns,
)

MAX_LOSSES = 12
MAX_TOOLS = 12
MAX_CHART_POINTS = 200


def render_page(arms: Sequence[ArmOutcome]) -> str:
    """Return the page as one HTML file that loads nothing from a server."""
    measured = [arm for arm in arms if not arm.is_control]
    told = [conclude(arm) for arm in measured]
    if len(told) == 1:
        told = re.split(r"(?<=\.) ", told[0], maxsplit=1)  # the first sentence is the headline
    else:
        told.insert(0, f"What {len(told)} systems would have saved and lost" if told else "Nothing was replayed.")
    top = [element("h1", None, told[0]), *(element("p", {"class": "answer"}, each) for each in told[1:])]
    parts = {
        "systems": ("Systems", _show_table(table_of_arms(arms))),
        "timeline": ("Tokens and dollars, turn by turn", _show_timelines(measured)),
        "sessions": ("By session", join(_show_table(table_of_sessions(arms)), _note("Saved: tokens, dollars."))),
        "turns": ("By turn", _show_table(table_of_turns(measured))),
        "tools": ("By tool", _show_tools(measured)),
        "losses": ("Lost text that the next call copied", _show_losses(measured)),
        "method": ("How it was measured", _describe_method(arms)),
    }
    return plain_page("context-bench replay", parts, *top)


def _show_table(lines: Sequence[Sequence[str]]) -> Markup:
    return table(list(lines[0]), [list(line) for line in lines[1:]]) if len(lines) > 1 else element("p", None, "–")


def _show_timelines(arms: Sequence[ArmOutcome]) -> Markup:
    found = {arm.name: {each.session: each for each in arm.sessions} for arm in arms if arm.turns}
    common = [name for name in next(iter(found.values()), {}) if all(name in each for each in found.values())]
    if not common:
        return element("p", None, "No session was replayed by all systems.")
    arms = [ArmOutcome(name, [each[session] for session in common]) for name, each in found.items()]
    charts = [_draw_timeline(arms, "prompt", "total prompt tokens", "tokens")]
    if all("dollars" in turn for arm in arms for turn in arm.turns):
        charts.append(_draw_timeline(arms, "dollars", "total dollars", "dollars"))
    return join(*(join(draw_figure(each), _note(each.notes[0]), table(each.head, each.lines)) for each in charts))


def _draw_timeline(arms: Sequence[ArmOutcome], key: str, title: str, what: str) -> Chart:
    """Draw the cumulative bill by request, as recorded and with each system."""
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
        f"Cumulative {what}, with and without each system",
        ["Dashed: as recorded. Only sessions that all systems replayed."],
        Plane(
            Axis("requests", Scale(0.0, float(len(recorded)))),
            Axis(title, Scale(0.0, top * 1.05 or 1.0), tick),
            [],
            lines,
            [Key(name, series=number) for number, name in enumerate(sent)],
        ),
        ["system", f"total {what}"],
        [[name, show(end)] for name, end in ends.items()],
    )


def _write_tick(value: float) -> str:
    """Write a number of tokens short enough for an axis."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"


def _show_tools(arms: Sequence[ArmOutcome]) -> Markup:
    """Show the saved share of each tool's results, and the number of turns that lost text from these results."""
    sums: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for arm in arms:
        for session in arm.sessions:
            for tool, facts in session.facts["tools"].items():
                sums[tool][arm.name].update(facts)
    if not sums:
        return element("p", None, "No tool results were replayed.")
    largest = sorted(sums, key=lambda tool: -max(each["tokens"] for each in sums[tool].values()))[:MAX_TOOLS]
    names = [arm.name for arm in arms if arm.sessions]
    lines = [
        [tool, f"{sums[tool][names[0]]['tokens']:,}", *(_describe_tool(sums[tool][name]) for name in names)]
        for tool in largest
    ]
    note = (
        "Results are counted each time they were sent. Lost: turns whose next call copied text that these results lack."
    )
    return join(table(["tool", "tokens", *names], lines), _note(note))


def _describe_tool(facts: Counter[str]) -> str:
    if not facts["tokens"]:
        return "–"
    lost = f", {facts['lost']} lost" if facts["lost"] else ""
    return f"{1 - facts['sent_tokens'] / facts['tokens']:.1%}{lost}"


def _show_losses(arms: Sequence[ArmOutcome]) -> Markup:
    found = [
        (arm.name, session.session, loss)
        for arm in arms
        for session in arm.sessions
        for loss in session.facts["losses"]
    ]
    if not found:
        return element("p", None, "No text was lost that the next call copied.")
    shown = []
    for name, session, loss in sorted(found, key=lambda each: -each[2]["lost"])[:MAX_LOSSES]:
        where = f"session {shorten(session, MAX_NAME)}"
        source = f" in the result of {loss['tool']}" if loss.get("tool") else ""
        shown.append(
            join(
                element("h3", None, f"{name}: {loss['span']} ({where}, turn {loss['turn']}{source})"),
                element("pre", None, *(_show_segment(*segment) for segment in loss.get("diff", ()))),
            )
        )
    more = [_note(f"{len(found) - MAX_LOSSES} more are in the JSON output.")] if len(found) > MAX_LOSSES else []
    return join(*shown, *more)


def _show_segment(kind: str, old: str, new: str) -> Markup:
    """Show a segment of a diff: removed text, and the text sent instead."""
    if kind == "kept":
        return join(old)
    return join(*(element(tag, None, text) for tag, text in (("del", old), ("ins", new)) if text))


def _note(text: str) -> Markup:
    return element("p", {"class": "about"}, text)


def _describe_method(arms: Sequence[ArmOutcome]) -> Markup:
    measured = [arm for arm in arms if arm.sessions]
    sentences = [
        *list_notes(arms),
        OPEN_LOOP,
        *(_describe_plain_search(arm) for arm in measured if not arm.is_control),
        "Dollars come from a simulated prompt cache. The table below compares it with the recorded counters in the "
        "second half of each thread, after a fit to the first half.",
    ]
    faults = [element("li", None, f"{name}: {meaning}") for name, meaning in FAULTS.items()]
    return join(
        *(element("p", None, each) for each in dict.fromkeys(sentences)),
        _show_errors(measured[0].sessions if measured else []),
        element("p", None, "Each request is checked for these faults:"),
        element("ul", None, *faults),
    )


def _describe_plain_search(arm: ArmOutcome) -> str:
    """Describe the results of a plain search, to show that its matches are not real losses."""
    shares = {name: "–" if value is None else f"{value:.0%}" for name, value in arm.naive.items()}
    loss, chance = arm.loss, shares["foreign_spans_matched"]
    also = "" if chance == "–" else f" But it also finds {chance} of the spans in another session's calls."
    return (
        f"{arm.name}: a plain search finds a span of the next call in {shares['matched_turns']} of turns, and "
        f"{shares['lost_of_matched_turns']} of these lost one.{also} By our rule, {loss.matched} of {loss.turns} turns "
        f"copied text (by chance {loss.chance_matched}), {loss.matched_lost} lost some (by chance {loss.chance_lost})."
    )


def _show_errors(sessions: Sequence[SessionOutcome]) -> Markup:
    """Compare the errors of the simulation and of the trivial model, by session."""
    found = [(session.session, error) for session in sessions if (error := session.facts["simulation"])]
    if not found:
        return element("p", None, "No cache counters were recorded, so the simulation cannot be checked here.")
    heads = ["error in tokens", "requests", "reads", "reads, trivial", "writes", "writes, trivial", "dollars"]
    lines = [
        [
            shorten(name, MAX_NAME),
            f"{error['requests']}",
            *(_write_deviation(error[key]) for key in ("reads", "trivial_reads", "writes", "trivial_writes")),
            "–" if error["dollars"] is None else f"{error['dollars']:+.1%}",
        ]
        for name, error in found
    ]
    nearer, farther = (sum(error[key] for _, error in found) for key in ("nearer", "farther"))
    total = sum(error["requests"] for _, error in found)
    if nearer or farther:
        compared = (
            f"The simulation is closer to the recorded reads in {nearer} of {total} requests, and farther in {farther}."
        )
    else:
        compared = (
            "Here both agree: sessions that only append have no cache misses, so they cannot show whether misses are "
            "simulated correctly."
        )
    note = f"Median / 95th percentile / worst. The trivial model reads the whole previous request. {compared}"
    return join(table(heads, lines), _note(note))


def _write_deviation(deviation: Mapping[str, float]) -> str:
    return " / ".join(f"{deviation[key]:,.0f}" for key in ("median", "p95", "worst"))
