"""Plots with a line for each system: quality by dataset, three meters of tokens, times."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from context_bench.numbers import score, seconds, tokens
from context_bench.output.page.axes import Frame, Scale, draw_mark, figure, label, line, span_scores, svg, table, x_axis
from context_bench.output.page.elements import Child, Markup, element, join
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.plots.by_dataset import DatasetScore, list_dataset_scores
from context_bench.output.plots.labels import shorten_name
from context_bench.output.plots.quality_cost import find_limits
from context_bench.output.plots.times import BINS, Spreads, spread_times
from context_bench.output.tables import list_meters
from context_bench.stats import Interval

__all__ = ["plot_datasets", "plot_meters", "plot_times"]

_STEP = 20
_MOST_LINES = 160


def _say_missing(why: str) -> Markup:
    return element("p", {"class": "missing"}, f"Not measured: {why}.")


def plot_datasets(facts: RunFacts) -> Child:
    """Draw the score of each system on each dataset, with its interval."""
    order = list(facts.result.summary)
    lines = [(each, order.index(each.system)) for each in list_dataset_scores(facts.result)]
    if not lines:
        return _say_missing("no row has a score")
    drawn = lines[:_MOST_LINES]
    cut = "" if len(drawn) == len(lines) else f" The first {len(drawn)} of {len(lines)} are drawn; the table has all."
    verdicts = _list_verdicts(facts)
    numbers = table(
        ["dataset", "system", "score", "95% interval", *([f"against {facts.baseline}"] if verdicts else [])],
        [
            [each.dataset, each.system, score(each.value), _write_limits(each.interval)]
            + ([verdicts.get((each.system, each.dataset), "")] if verdicts else [])
            for each, _ in lines
        ],
        "Score by dataset",
    )
    return figure(
        "score by dataset",
        lambda frame: _draw_datasets(drawn, frame),
        f"Marks are means, whiskers 95% intervals for examples drawn at random.{cut}",
        numbers,
    )


def _list_verdicts(facts: RunFacts) -> dict[tuple[str, str], str]:
    """List the verdicts on each system and dataset, where there are several datasets."""
    comparison = facts.result.comparison
    by_dataset = {} if comparison is None else comparison.by_dataset
    return {
        (each.name, tag): f"{each.difference:+.3f} {each.word}" for tag, found in by_dataset.items() for each in found
    }


def _draw_datasets(drawn: Sequence[tuple[DatasetScore, int]], frame: Frame) -> Markup:
    """Draw a line for each score; the number of its system chooses its mark."""
    ends = span_scores([each.value for each, _ in drawn], [find_limits(each.interval) for each, _ in drawn])
    xs = Scale(*ends, frame.names, frame.values)
    bottom = 8 + len(drawn) * _STEP + len({each.key for each, _ in drawn}) * 28
    children, y, last = [x_axis(xs, bottom, 8, lambda value: f"{value:g}", "score")], 8.0, ""
    for each, number in drawn:
        if each.key != last:
            y, last = y + 28, each.key
            children.append(label(8, y - 8, shorten_name(each.dataset, 2 * frame.letters), "start", "group"))
        y += _STEP
        interval = each.interval if each.interval is not None and each.interval.known else None
        within = ""
        if interval is not None:
            within = f" [{score(interval.low)}, {score(interval.high)}], n = {interval.n:,}"
            children.append(line(xs(interval.low), y - 10, xs(interval.high), y - 10, "whisker"))
        children.append(label(frame.names - 12, y - 6, shorten_name(each.system, frame.letters), "end"))
        children.append(draw_mark(xs(each.value), y - 10, number, f"{each.system}: {score(each.value)}{within}"))
        children.append(label(frame.values + 14, y - 6, score(each.value), "start", "value"))
    about = "Score of each system on each dataset; the table beneath has the numbers."
    return svg(frame.width, bottom + 44, about, *children)


def _write_limits(interval: Interval | None) -> str:
    if interval is None or not interval.known:
        return "" if interval is None else "too few"
    return f"[{score(interval.low)}, {score(interval.high)}]"


# --- meters

_Bar = tuple[str, str, int, float | None]
"""A system, a meter, its place, and what it counted."""


def plot_meters(facts: RunFacts) -> Child:
    """Draw what each system saved for an example: by the tap, by its own claim, and by the bill."""
    summary = facts.result.summary
    bars: list[_Bar] = []
    for name, values in summary.items():
        meters = (_per_row(values, "counted"), _per_row(values, "claimed"), _save_on_bill(facts, name))
        if any(each is not None for each in meters):
            titles = ("tap or reader", "its own claim", "the bill")
            bars += [(name, title, place, each) for place, (title, each) in enumerate(zip(titles, meters))]
    counted = [table(head, lines, head[0].capitalize(), "plain") for head, *lines in list_meters(facts.result)]
    if not bars:
        how = "a tap (--tap, --start) or a reader (--reader)" if not facts.result.settings.memory else "a reader"
        why = f"nothing stood behind the systems that counts tokens; {how} does"
        return join(*counted) if counted else _say_missing(why)
    numbers = table(
        ["system", "meter", "tokens saved for each example"],
        [[name, title, _say_tokens(facts, name, place, value)] for name, title, place, value in bars],
        "Three meters",
    )
    return figure(
        "tokens saved",
        lambda frame: _draw_meters(facts, bars, frame),
        "The same savings by three meters: what the tap or the reader counted, what the system says of itself, and "
        "what the API billed less than for the baseline, in its own tokens.",
        join(numbers, *counted),
    )


def _say_tokens(facts: RunFacts, name: str, place: int, value: float | None) -> str:
    """Write what a meter counted, or why there is nothing."""
    if value is not None:
        return tokens(value)
    return ("not measured", "no claim", "the baseline" if name == facts.baseline else "not measured")[place]


def _draw_meters(facts: RunFacts, bars: Sequence[_Bar], frame: Frame) -> Markup:
    """Draw three bars for each system, beneath its name."""
    known = [value for *_, value in bars if value is not None]
    xs = Scale(min(0.0, *known), max(1.0, *known), 110, frame.values)
    bottom = 6 + len(bars) * 18 + (len(bars) // 3) * 30
    children, y, last = [x_axis(xs, bottom, 6, tokens, "tokens saved for each example")], 6.0, ""
    for name, title, place, value in bars:
        if name != last:
            y += 30
            children.append(label(8, y - 6, shorten_name(name, 2 * frame.letters), "start", "group"))
            last = name
        children.append(label(100, y + 13, title, "end", "tick"))
        if value is None:
            children.append(label(xs(0) + 6, y + 13, _say_tokens(facts, name, place, value), "start", "absent"))
        else:
            start, end = sorted((xs(0), xs(value)))
            tip = f"{name}, {title}: {tokens(value)} tokens saved for each example"
            box = {"x": start, "y": y + 3, "width": round(max(1.0, end - start), 1), "height": 12, "data-tip": tip}
            children.append(element("rect", {**box, "class": f"mark m{place}"}))
            children.append(label(end + 6, y + 13, tokens(value), "start", "value"))
        y += 18
    return svg(frame.width, bottom + 44, "Tokens saved by three meters; the table beneath has the numbers.", *children)


def _per_row(values: dict[str, float], meter: str) -> float | None:
    saved, rows = values.get(f"{meter}_tokens_saved"), values.get(f"{meter}_rows")
    return saved / rows if saved is not None and rows and math.isfinite(saved) else None


def _save_on_bill(facts: RunFacts, name: str) -> float | None:
    """Subtract what the API billed from what it billed the baseline, where both were billed for as many rows."""
    summary, baseline = facts.result.summary, facts.baseline
    if baseline is None or name == baseline:
        return None
    own, other = summary[name], summary[baseline]
    rows = own.get("usage_rows")
    if not rows or rows != other.get("usage_rows"):
        return None
    return (other["usage_prompt_tokens"] - own["usage_prompt_tokens"]) / rows


# --- times


def plot_times(facts: RunFacts, times: dict[str, array[float]], what: str) -> Child:
    """Draw how times are spread: a histogram by powers of ten for each system, with median and p95."""
    spreads = spread_times(times, facts.result.summary)
    if spreads is None:
        return _say_missing(f"no row has a {what}")
    found = spreads.systems
    numbers = table(
        ["system", "rows", "median", "p95", "slowest"],
        [
            [name, f"{spread.count:,}", *(seconds(each) for each in (spread.median, spread.p95, spread.slowest))]
            for name, spread in found.items()
        ],
        what.capitalize(),
    )
    return figure(
        what,
        lambda frame: _draw_times(spreads, list(facts.result.summary), what, frame),
        "The tall line is the median, written at the right; the short one is p95.",
        numbers,
    )


def _draw_times(spreads: Spreads, order: list[str], what: str, frame: Frame) -> Markup:
    """Draw a histogram for each system, with lines at median and p95."""
    xs = Scale(spreads.scale.low, spreads.scale.high, frame.names, frame.values, log=True)
    step = 44
    bottom = 8 + len(spreads.systems) * step
    children = [x_axis(xs, bottom, 8, _write_seconds, what)]
    for place, (name, spread) in enumerate(spreads.systems.items()):
        base = 8 + (place + 1) * step - 4
        tip = (
            f"{name}: median {seconds(spread.median)}, p95 {seconds(spread.p95)}, slowest {seconds(spread.slowest)}, "
            f"n = {spread.count:,}"
        )
        children.append(label(frame.names - 12, base - 10, shorten_name(name, frame.letters), "end"))
        children.append(_draw_histogram(spread.bins, base, order.index(name), tip, frame))
        children.append(line(xs(spread.median), base - 30, xs(spread.median), base, "median"))
        children.append(line(xs(spread.p95), base - 14, xs(spread.p95), base, "late"))
        children.append(label(frame.values + 8, base - 10, seconds(spread.median), "start", "value"))
    about = f"Histogram of {what} for each system; the table beneath has the numbers."
    return svg(frame.width, bottom + 44, about, *children)


def _draw_histogram(counts: Sequence[int], base: float, number: int, tip: str, frame: Frame) -> Markup:
    width = (frame.values - frame.names) / BINS
    most = max(counts)
    bars = "".join(
        f"M{frame.names + place * width:.1f} {base}v-{28 * count / most:.1f}h{width * 0.9:.1f}V{base}Z"
        for place, count in enumerate(counts)
        if count
    )
    return element("path", {"d": bars, "class": f"mark soft s{number % 8}", "data-tip": tip})


def _write_seconds(value: float) -> str:
    return f"{value:g} s" if value >= 1 else f"{value * 1e3:g} ms" if value >= 1e-3 else f"{value * 1e6:g} µs"
