"""Plots with a line for each system: quality by dataset, three meters of tokens, times."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from context_bench.plots.by_dataset import list_dataset_scores
from context_bench.plots.times import BINS, spread_times
from context_bench.report.axes import Scale, clip_name, draw_mark, figure, label, line, svg, table, x_axis
from context_bench.report.elements import Child, Markup, element
from context_bench.report.run_facts import RunFacts
from context_bench.reporters.layout import score, seconds, tokens
from context_bench.stats import Interval

__all__ = ["plot_datasets", "plot_meters", "plot_times"]

_WIDTH, _LEFT, _END, _STEP = 760, 210, 650, 20
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
    values = [each.value for each, _ in drawn]
    xs, children, y, last = Scale(min([0.0, *values]), max([1.0, *values]), _LEFT, _END), [], 8.0, ""
    bottom = 8 + len(drawn) * _STEP + len({each.key for each, _ in drawn}) * 28
    children.append(x_axis(xs, bottom, 8, lambda value: f"{value:g}", "score"))
    for each, number in drawn:
        interval = each.interval
        if each.key != last:
            y, last = y + 28, each.key
            children.append(label(8, y - 8, clip_name(each.dataset, 60), "start", "group"))
        y += _STEP
        known = interval is not None and interval.known
        within = f" [{score(interval.low)}, {score(interval.high)}], n = {interval.n:,}" if interval and known else ""
        children.append(label(_LEFT - 12, y - 6, clip_name(each.system), "end"))
        if interval is not None and known:
            children.append(line(xs(interval.low), y - 10, xs(interval.high), y - 10, "whisker"))
        children.append(draw_mark(xs(each.value), y - 10, number, f"{each.system}: {score(each.value)}{within}"))
        children.append(label(_END + 14, y - 6, score(each.value), "start", "value"))
    cut = "" if len(drawn) == len(lines) else f" The first {len(drawn)} of {len(lines)} are drawn; the table has all."
    numbers = table(
        ["dataset", "system", "score", "95% interval"],
        [[each.dataset, each.system, score(each.value), _write_limits(each.interval)] for each, _ in lines],
        "Score by dataset",
    )
    picture = svg(
        _WIDTH, bottom + 44, "Score of each system on each dataset; the table beneath has the numbers.", *children
    )
    return figure(
        "score by dataset",
        picture,
        f"Marks are means, whiskers 95% intervals for examples drawn at random.{cut}",
        numbers,
    )


def _write_limits(interval: Interval | None) -> str:
    if interval is None or not interval.known:
        return "" if interval is None else "too few"
    return f"[{score(interval.low)}, {score(interval.high)}]"


# --- meters


def plot_meters(facts: RunFacts) -> Child:
    """Draw what each system saved for an example: by the tap, by its own claim, and by the bill."""
    summary = facts.result.summary
    bars: list[tuple[str, str, int, float | None]] = []
    for name, values in summary.items():
        meters = (_per_row(values, "counted"), _per_row(values, "claimed"), _save_on_bill(facts, name))
        if any(each is not None for each in meters):
            titles = ("tap or reader", "its own claim", "the bill")
            bars += [(name, title, place, each) for place, (title, each) in enumerate(zip(titles, meters))]
    if not bars:
        return _say_missing(
            "nothing stood behind the systems that counts tokens; a tap (--tap, --start) or a reader (--reader) does"
        )
    known = [value for *_, value in bars if value is not None]
    xs = Scale(min(0.0, *known), max(1.0, *known), _LEFT + 90, _END)
    children, y, last = [], 6.0, ""
    bottom = 6 + len(bars) * 18 + (len(bars) // 3) * 12
    children.append(x_axis(xs, bottom, 6, tokens, "tokens saved for each example"))
    for name, title, place, value in bars:
        if name != last:
            y += 12
            children.append(label(8, y + 13, clip_name(name, 24), "start", "group"))
            last = name
        children.append(label(_LEFT + 80, y + 13, title, "end", "tick"))
        if value is None:
            children.append(label(xs(0) + 6, y + 13, "not measured", "start", "absent"))
        else:
            start, end = sorted((xs(0), xs(value)))
            tip = f"{name}, {title}: {tokens(value)} tokens saved for each example"
            children.append(
                element(
                    "rect",
                    {"x": start, "y": y + 3, "width": round(max(1.0, end - start), 1), "height": 12, "data-tip": tip}
                    | {"class": f"mark m{place}"},
                )
            )
            children.append(label(end + 6, y + 13, tokens(value), "start", "value"))
        y += 18
    picture = svg(_WIDTH, bottom + 44, "Tokens saved by three meters; the table beneath has the numbers.", *children)
    numbers = table(
        ["system", "meter", "tokens saved for each example"],
        [[name, title, "not measured" if value is None else tokens(value)] for name, title, _, value in bars],
        "Three meters",
    )
    return figure(
        "tokens saved",
        picture,
        "The same savings by three meters: what the tap or the reader counted, what the system says of itself, and "
        "what the API billed less than for the baseline, in its own tokens.",
        numbers,
    )


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
    xs = Scale(spreads.scale.low, spreads.scale.high, _LEFT, _END, log=True)
    step, children = 44, []
    bottom = 8 + len(found) * step
    children.append(x_axis(xs, bottom, 8, _write_seconds, f"{what}, on a scale by powers of ten"))
    order = list(facts.result.summary)
    for place, (name, spread) in enumerate(found.items()):
        base = 8 + (place + 1) * step - 4
        tip = (
            f"{name}: median {seconds(spread.median)}, p95 {seconds(spread.p95)}, slowest {seconds(spread.slowest)}, "
            f"n = {spread.count:,}"
        )
        children.append(label(_LEFT - 12, base - 10, clip_name(name), "end"))
        children.append(_draw_histogram(spread.bins, base, order.index(name), tip))
        children.append(line(xs(spread.median), base - 30, xs(spread.median), base, "median"))
        children.append(line(xs(spread.p95), base - 14, xs(spread.p95), base, "late"))
        children.append(label(_END + 14, base - 10, seconds(spread.median), "start", "value"))
    picture = svg(
        _WIDTH, bottom + 44, f"Histogram of {what} for each system; the table beneath has the numbers.", *children
    )
    numbers = table(
        ["system", "rows", "median", "p95", "slowest"],
        [
            [name, f"{spread.count:,}", *(seconds(each) for each in (spread.median, spread.p95, spread.slowest))]
            for name, spread in found.items()
        ],
        what.capitalize(),
    )
    return figure(what, picture, "The tall line is the median, written at the right; the short one is p95.", numbers)


def _draw_histogram(counts: Sequence[int], base: float, number: int, tip: str) -> Markup:
    width = (_END - _LEFT) / BINS
    most = max(counts)
    bars = "".join(
        f"M{_LEFT + place * width:.1f} {base}v-{28 * count / most:.1f}h{width - 0.8:.1f}V{base}Z"
        for place, count in enumerate(counts)
        if count
    )
    return element("path", {"d": bars, "class": f"mark soft s{number % 8}", "data-tip": tip})


def _write_seconds(value: float) -> str:
    return f"{value:g} s" if value >= 1 else f"{value * 1e3:g} ms" if value >= 1e-3 else f"{value * 1e6:g} µs"
