"""Charts with a row for each system: scores by dataset, tokens saved by three meters, and times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from context_bench.compare.verdicts import are_unlike
from context_bench.numbers import score, seconds, tokens
from context_bench.output.plots.chart import (
    Axis,
    Bar,
    Chart,
    Dot,
    Drawn,
    Group,
    Histogram,
    Row,
    Rows,
    Scale,
    make_score_scale,
)
from context_bench.output.plots.labels import label_system, label_systems, number_series, shorten_name
from context_bench.output.plots.pareto import choose_quality, find_baseline
from context_bench.stats.quantiles import percentile

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow
    from context_bench.stats import Interval

MAX_ROWS = 160  # most rows drawn in a chart by dataset; the table has all


class DatasetScore(NamedTuple):
    """The score of a system on a dataset; `key` is the score's key in the summary."""

    key: str
    dataset: str
    system: str
    value: float
    interval: Interval | None


def list_dataset_scores(result: EvalResult) -> list[DatasetScore]:
    """List the score of each system on each dataset, or over all examples if there is only one dataset.

    Systems with another kind of score than the baseline's are left out.
    """
    baseline = result.settings.baseline or ""
    summary = {name: own for name, own in result.summary.items() if not are_unlike(result.config, name, baseline)}
    keys = list(dict.fromkeys(key for values in summary.values() for key in values if key.startswith("dataset:")))
    only = next(iter(result.settings.datasets), "") or "all examples"
    return [
        DatasetScore(key, key.partition(":")[2] or only, name, values[key], result.intervals.get(name, {}).get(key))
        for key in keys or [choose_quality(result)]
        for name, values in summary.items()
        if math.isfinite(values.get(key, math.nan))
    ]


def draw_datasets(result: EvalResult) -> Drawn:
    """Draw the score of each system on each dataset, with its interval."""
    scores = list_dataset_scores(result)
    if not scores:
        return "no row has a score"
    baseline = result.comparison.baseline if result.comparison is not None else None
    base = {each.key: each.value for each in scores if each.system == baseline}
    order, drawn = number_series(result.summary), scores[:MAX_ROWS]
    names = label_systems(result.summary)
    tags = label_systems(dict.fromkeys(each.dataset for each in scores), 52)
    groups = []
    for key, found in groupby(drawn, key=lambda each: each.key):
        own = list(found)
        rows = [
            Row(
                names[each.system],
                Dot(each.value, _find_known(each.interval)),
                *(score(each.value), _tip(each), order[each.system]),
            )
            for each in own
        ]
        groups.append(Group(tags[own[0].dataset], rows, base.get(key)))
    notes = ["Marks are means, whiskers 95% intervals for examples drawn at random."]
    if base:
        notes.append(f"The dashed line is {label_system(baseline or '')}, the baseline.")
    if len(drawn) < len(scores):
        notes.append(f"The first {len(drawn)} of {len(scores)} are drawn.")
    verdicts = _list_verdicts(result)
    return Chart(
        "datasets",
        "score by dataset",
        _title_datasets(result, scores, base),
        notes,
        Rows(
            Axis("score", make_score_scale([each.value for each in drawn], [_find_known(x.interval) for x in drawn])),
            groups,
        ),
        ["dataset", "system", "score", "95% interval", *([f"against {baseline}"] if verdicts else [])],
        [
            [each.dataset, each.system, score(each.value), _write_interval(each.interval)]
            + ([verdicts.get((each.system, each.dataset), "")] if verdicts else [])
            for each in scores
        ],
    )


def _find_known(interval: Interval | None) -> tuple[float, float] | None:
    return (interval.low, interval.high) if interval is not None and interval.known else None


def _write_interval(interval: Interval | None) -> str:
    if interval is None or not interval.known:
        return "" if interval is None else "too few"
    return f"[{score(interval.low)}, {score(interval.high)}]"


def _tip(each: DatasetScore) -> str:
    known = each.interval is not None and each.interval.known
    within = f" {_write_interval(each.interval)}, n = {each.interval.n:,}" if known and each.interval else ""
    return f"{each.system}: {score(each.value)}{within}"


def _list_verdicts(result: EvalResult) -> dict[tuple[str, str], str]:
    """List the verdicts on each system and dataset, if there are several datasets."""
    by_dataset = {} if result.comparison is None else result.comparison.by_dataset
    return {
        (each.name, tag): f"{each.difference:+.3f} {each.word}" for tag, found in by_dataset.items() for each in found
    }


def _title_datasets(result: EvalResult, scores: list[DatasetScore], base: Mapping[str, float]) -> str:
    """Write the main observation: the largest distance from the baseline, else the range of scores."""
    controls = set(result.settings.controls)
    away = [(each.value - base[each.key], each) for each in scores if each.key in base and each.system not in controls]
    tags = list(dict.fromkeys(each.dataset for each in scores))
    difference, far = max(away, key=lambda found: abs(found[0]), default=(0.0, scores[0]))
    if abs(difference) < 0.005:
        low, high = min(each.value for each in scores), max(each.value for each in scores)
        same = f"{low:.2f}" == f"{high:.2f}"
        return f"Scores by dataset: {f'all {low:.2f}' if same else f'from {low:.2f} to {high:.2f}'}"
    bare = [tag.partition(":")[0] for tag in tags]
    name = far.dataset.partition(":")[0] if len(set(bare)) == len(bare) else far.dataset
    where = f" on {shorten_name(name, 24)}" if len(tags) > 1 else ""
    shown = f"{difference:+.2f}".replace("-", "−")
    labels, baseline = label_systems(result.summary), find_baseline(result) or ""
    return f"Furthest from {labels.get(baseline, 'the baseline')}: {labels[far.system]}, {shown}{where}"


# --- meters

METERS = ("tap or reader", "its own claim", "the bill")


def draw_meters(result: EvalResult) -> Drawn:
    """Draw how many tokens each system saved for an example: by the tap, by its own claim, and by the bill."""
    baseline = find_baseline(result)
    found: dict[str, list[float | None]] = {}
    for name, values in result.summary.items():
        counted, claimed = (_per_row(values, meter) for meter in ("counted", "claimed"))
        meters = [counted, claimed, _save_on_bill(result, name, baseline)]
        if any(each is not None for each in meters):
            found[name] = meters
    if not found:
        how = "a tap (--tap, --start) or a reader (--reader)" if not result.settings.memory else "a reader"
        return f"tokens were not counted at the model; {how} counts them"
    known = [value for meters in found.values() for value in meters if value is not None]
    groups, lines, labels = [], [], label_systems(result.summary)
    for name, meters in found.items():
        absent = ("not measured", "no claim", "the baseline" if name == baseline else "not measured")
        rows = []
        for place, (meter, value) in enumerate(zip(METERS, meters)):
            shown = absent[place] if value is None else tokens(value)
            tip = f"{name}, {meter}: {shown} tokens saved for each example"
            rows.append(Row(meter, Bar(value), shown, tip, place))
            lines.append([name, meter, shown])
        groups.append(Group(labels[name], rows))
    what = "tokens saved for each example"
    return Chart(
        "meters",
        "tokens saved",
        "The same savings, measured in three ways",
        [
            "Saved tokens as counted at the tap or reader, as claimed by the system, and as billed by the API "
            "(compared with the baseline, in the API's own tokens)."
        ],
        Rows(Axis(what, Scale(min(0.0, *known), max(1.0, *known)), tokens), groups),
        ["system", "meter", what],
        lines,
    )


def _per_row(values: Mapping[str, float], meter: str) -> float | None:
    saved, rows = values.get(f"{meter}_tokens_saved"), values.get(f"{meter}_rows")
    return saved / rows if saved is not None and rows and math.isfinite(saved) else None


def _save_on_bill(result: EvalResult, name: str, baseline: str | None) -> float | None:
    """Subtract the API's bill from that of the baseline, if both cover equally many rows."""
    if baseline is None or name == baseline:
        return None
    own, other = result.summary[name], result.summary[baseline]
    rows = own.get("usage_rows")
    if not rows or rows != other.get("usage_rows"):
        return None
    return (other["usage_prompt_tokens"] - own["usage_prompt_tokens"]) / rows


# --- times

BINS = 55


@dataclass(frozen=True)
class Spread:
    """The distribution of one system's times: counts by bin, median and p95."""

    count: int
    bins: list[int]
    median: float
    p95: float
    slowest: float


def gather_latencies(rows: Iterable[EvalRow]) -> dict[str, list[float]]:
    """Gather the latencies of rows without an error, by system."""
    times: dict[str, list[float]] = {}
    for row in rows:
        if row.error is None:
            times.setdefault(row.system, []).append(row.latency)
    return times


def spread_times(times: Mapping[str, Sequence[float]], names: Iterable[str]) -> tuple[Scale, dict[str, Spread]] | None:
    """Sort times into equal bins of a logarithmic scale; None if no system took any time.

    The scale goes from the fastest hundredth to the slowest.
    """
    found = {name: sorted(times[name]) for name in names if times.get(name)}
    found = {name: values for name, values in found.items() if values[-1] > 0}
    if not found:
        return None
    low = max(1e-7, min(percentile([each for each in values if each > 0], 0.01) for values in found.values()))
    high = max(max(values[-1] for values in found.values()), low * 10)
    scale = Scale(low / 1.2, high * 1.05, log=True)
    spreads = {}
    for name, values in found.items():
        bins = [0] * BINS
        for value in values:
            bins[min(BINS - 1, int(scale.find_share(value) * BINS))] += 1
        spreads[name] = Spread(len(values), bins, percentile(values, 0.5), percentile(values, 0.95), values[-1])
    return scale, spreads


def draw_times(result: EvalResult, times: Mapping[str, Sequence[float]], what: str) -> Drawn:
    """Draw the distribution of times: a logarithmic histogram for each system, with median and p95."""
    order, names = number_series(result.summary), label_systems(result.summary)
    found = spread_times(times, order)
    if found is None:
        return f"no row has a {what}, or the rows were not kept"
    scale, spreads = found
    rows, lines = [], []
    for name, each in spreads.items():
        median, p95, slowest = (seconds(value) for value in (each.median, each.p95, each.slowest))
        tip = f"{name}: median {median}, p95 {p95}, slowest {slowest}, n = {each.count:,}"
        rows.append(Row(names[name], Histogram(each.bins, each.median, each.p95), median, tip, order[name]))
        lines.append([name, f"{each.count:,}", median, p95, slowest])
    return Chart(
        what,
        what,
        _title_times(spreads, what),
        ["The tall line is the median, written at the right; the short one is p95."],
        Rows(Axis(what, scale, _write_tick), [Group("", rows)]),
        ["system", "rows", "median", "p95", "slowest"],
        lines,
    )


def _write_tick(value: float) -> str:
    return f"{value:g} s" if value >= 1 else f"{value * 1e3:g} ms" if value >= 1e-3 else f"{value * 1e6:g} µs"


def _title_times(spreads: Mapping[str, Spread], what: str) -> str:
    """Write the main observation: the fastest and the slowest system by median."""
    (first, quick), *_, (last, slow) = [*sorted(spreads.items(), key=lambda found: found[1].median)] * 2
    if len(spreads) == 1:
        return f"{what.capitalize()} of {label_system(first)}: {seconds(quick.median)} at the median"
    labels = label_systems(spreads)
    return f"Median {what}: {seconds(quick.median)} ({labels[first]}) to {seconds(slow.median)} ({labels[last]})"


def draw_depths(depths: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Drawn:
    """Draw the positions of the evidence in the contexts of each dataset.

    Args:
        depths: By dataset: for each example, the share of its tokens before the first evidence and before the last.
    """
    if not depths:
        return "no context contains its evidence or answer"
    scale, rows, lines, names = Scale(0.0, 1.0), [], [], label_systems(depths)
    for place, (tag, (first, last)) in enumerate(depths.items()):
        ordered, name = sorted(first), tag or "(no tag)"
        bins = [0] * BINS
        for value in first:
            bins[min(BINS - 1, int(value * BINS))] += 1
        middle = percentile(ordered, 0.5)
        median, earliest, latest = (f"{value:.1%}" for value in (middle, ordered[0], max(last)))
        tip = f"{name}: median {median}, from {earliest} to {latest} of the tokens, n = {len(first):,}"
        rows.append(Row(names[tag], Histogram(bins, middle, percentile(ordered, 0.95)), median, tip, place))
        lines.append([name, f"{len(first):,}", earliest, median, latest])
    return Chart(
        "depth",
        "share of the context before the evidence",
        _title_depths(depths),
        [
            "Each strip is the context from its start to its end; the tall line is the median, the short one is p95.",
            "If the evidence is always at one end, the data cannot show the losses of truncation.",
        ],
        Rows(Axis("share of the tokens before the first evidence", scale, "{:.0%}".format), [Group("", rows)]),
        ["dataset", "examples", "earliest", "median", "latest"],
        lines,
    )


def _title_depths(depths: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> str:
    """Write the main observation: the range of positions of the evidence."""
    low = min(min(first) for first, _ in depths.values())
    high = max(max(last) for _, last in depths.values())
    return f"The evidence comes after {low:.0%} to {high:.0%} of the context"
