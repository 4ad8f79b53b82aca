"""The pages of statistics: their examples give the shown results, and so does a computation by hand."""

from __future__ import annotations

import doctest
import math
from typing import Any

import pytest

from later import Later
from pages import fences, read, table

numpy = Later("numpy")
scipy = Later("scipy.stats")
PAGES = [f"docs/{name}.md" for name in ("statistics", "verdicts", "stopping")]
TEXT = " ".join(" ".join(map(read, PAGES)).split())


def test_every_example_gives_what_the_page_says() -> None:
    test = doctest.DocTestParser().get_doctest(
        "\n".join(code for page in PAGES for code in fences(page, "python")), {}, "the pages", None, 0
    )
    assert len(test.examples) > 50
    runner, told = doctest.DocTestRunner(), []
    runner.run(test, out=told.append)
    assert runner.failures == 0, "".join(told)


def _rows() -> list[list[str]]:
    return table(PAGES[0], "id")


def test_the_table_is_what_the_examples_use() -> None:
    names: dict[str, list[float]] = {}
    exec(fences(PAGES[0], "python")[0].replace(">>> ", ""), names)
    columns = list(zip(*_rows()))
    assert names["groups"] == list(columns[1])
    for name, column in zip(("baseline", "system", "sent", "reached", "seconds"), columns[2:]):
        assert names[name] == [float(cell) for cell in column]


def test_by_hand() -> None:
    """Every figure that the text derives, from the table and textbook formulas alone."""
    _, _, baseline, system, sent, reached, _ = ([*column] for column in zip(*_rows()))
    ours, theirs = [float(cell) for cell in system], [float(cell) for cell in baseline]
    t = scipy.t.ppf(0.975, 9)
    share = t * t / 10
    half = math.sqrt(share * 0.7 * 0.3 + share * share / 4) / (1 + share)
    mean = sum(ours) / 10
    spread = sum((score - mean) ** 2 for score in ours)
    extra = 1.5 * (mean**2 + (1 - mean) ** 2)
    residuals = [int(one) - int(two) / 2 for one, two in zip(reached, sent)]
    squares, fourths = (sum(each**power for each in residuals) for power in (2, 4))
    sizes = [_size(numpy.array(half)) for half in (ours[:5], ours[5:])]
    parts = [(each * (1 - each) / size, each) for each, size in zip((3.5 / 6, 4 / 6), sizes)]
    joined = sum(part for part, _ in parts)
    lengths = [int(cell) for cell in sent]
    changes = [one - two for one, two in zip(ours, theirs)]
    variance = (sum(change**2 for change in changes) + 2) / 12 - (sum(changes) / 12) ** 2
    error = math.sqrt(variance / 12)
    seen = sum(change**2 for change in changes) / 10 - (sum(changes) / 10) ** 2
    figures = {
        "2.262": t,
        "5.117": t * t,
        "0.512": share,
        "= 0.632": (0.7 + share / 2) / (1 + share),
        "= 0.275": half,
        "2.025": spread,
        "= 2.275": 10 * mean * (1 - mean),
        "= 0.545": extra / 1.5,
        "2.8425": spread + extra,
        "3.0925": 10 * mean * (1 - mean) + extra,
        "= 10.88": 10 * (10 * mean * (1 - mean) + extra) / (spread + extra),
        "10,280,000": sum(length**2 for length in lengths),
        "= 9.73": sum(lengths) ** 2 / sum(length**2 for length in lengths),
        "212,500,000": fourths,
        "= 2.94": squares**2 / fourths,
        "5.75": sizes[1],
        "0.0486": parts[0][0],
        "0.0387": parts[1][0],
        "0.0218": joined / 4,
        "= 10.74": 0.625 * 0.375 / (joined / 4),
        "(7.9)": joined**2 / sum(part**2 / 4 for part, _ in parts),
        "5,000": sum(int(cell) for cell in reached),
        "1,429": sum(lengths) / sum(theirs),
        "= -0.0417": sum(changes) / 12,
        "= 0.3524": variance,
        "= 0.1714": error,
        "= 0.2225": seen,
        "7.849": (scipy.norm.ppf(0.975) + scipy.norm.ppf(0.8)) ** 2,
        "2.776": scipy.t.ppf(0.975, 4),
        "= 0.1125": sum((one - two) ** 2 / 2 for one, two in zip(ours, theirs)) / 10,
        "= 698.6": (scipy.norm.ppf(0.975) + scipy.norm.ppf(0.8)) ** 2 * seen / 0.05**2,
        "= 0.3347": (sum((one + two) ** 2 / 2 for one, two in zip(ours, theirs)) - 13.5**2 / 20) / 9,
        "= 53%": 100 * (1 - 10 * 0.1 / (1.25 + 9 * 0.1)),
        "= 11.5": 0.5 * 1.15 / (0.1 * 0.5),
    }
    for shown, value in figures.items():
        assert shown in TEXT
        number = shown.strip("= ()%").replace(",", "")
        assert float(number) == pytest.approx(value, abs=0.5000001 * 10.0 ** -len(number.partition(".")[2])), shown
    assert [sum(changes[place : place + 2]) for place in range(0, 10, 2)] == [-1, 0, 1, 0, -0.5]
    assert scipy.binom.cdf(1, 10, 0.5) == 11 / 1024


def _jackknife(above: Any, below: Any) -> float:
    left = (above.sum() - above) / (below.sum() - below)
    return float((len(left) - 1) / len(left) * ((left - left.mean()) ** 2).sum())


def _wilson(mean: float, size: float, critical: float) -> tuple[float, float]:
    share = critical**2 / size
    half = math.sqrt(share * mean * (1 - mean) + share**2 / 4)
    return (mean + share / 2 - half) / (1 + share), (mean + share / 2 + half) / (1 + share)


def _size(scores: Any) -> float:
    mean, n = scores.mean(), len(scores)
    extra = 1.5 * (mean**2 + (1 - mean) ** 2)
    return float(n * (n * mean * (1 - mean) + extra) / (((scores - mean) ** 2).sum() + extra))


def test_the_limits_by_hand() -> None:
    """The intervals that the text does not derive step by step, again without our functions."""
    columns = list(zip(*_rows()))
    baseline, system, sent, _ = (numpy.array([float(cell) for cell in column]) for column in columns[2:6])
    expected: dict[str, tuple[float, float]] = {
        "0.650 [0.33, 0.88]": _wilson(0.65, _size(system), scipy.t.ppf(0.975, 9))
    }

    squares = (sent - 10_000 / 7 * baseline) ** 2
    alike = squares.sum() ** 2 / (squares**2).sum()
    assert alike < 10_000**2 / (sent**2).sum()
    half = scipy.t.ppf(0.975, alike - 1) * math.sqrt(_jackknife(sent, baseline)) * 7 / 10_000
    cost = (10_000 / 7 * math.exp(-half), 10_000 / 7 * math.exp(half))
    assert cost == pytest.approx((805, 2536), rel=0.01)  # the jackknife in full; ours leaves out what is below 1/n³

    sides = [numpy.append(side, [0, 1]) for side in (system, baseline)]
    parts = [side.var() / 12 for side in sides]
    half = scipy.t.ppf(0.975, sum(parts) ** 2 / sum(part**2 / 9 for part in parts)) * math.sqrt(sum(parts))
    centre = sides[0].mean() - sides[1].mean()
    expected["-0.050 [-0.44, 0.36]"] = (centre - half, centre + half)

    two = numpy.full(5, 2.0)
    variance = (
        _jackknife((system - baseline).reshape(5, 2).sum(1), two) * (5 / 6) ** 2 + 1 / 6**2
    )  # two pairs are one cluster
    half = scipy.t.ppf(0.975, 4) * math.sqrt(variance)
    expected["-0.050 [-0.64, 0.56]"] = (-0.5 / 12 - half, -0.5 / 12 + half)

    extra = (0.65**2 + 0.35**2) * 1.5
    size = 10 * (2.275 + extra / 2) / (100 * _jackknife(system.reshape(5, 2).sum(1), two) + extra)
    expected["0.650 [0.31, 0.88]"] = _wilson(0.65, size, scipy.t.ppf(0.975, 4))

    halves = [(half.mean(), _size(half)) for half in (system[:5], system[5:])]
    shrunk = [(mean * 5 + 0.5) / 6 for mean, _ in halves]
    parts = [each * (1 - each) / size for each, (_, size) in zip(shrunk, halves)]
    middle, t = sum(shrunk) / 2, scipy.t.ppf(0.975, sum(parts) ** 2 / sum(part**2 / 4 for part in parts))
    expected["0.650 [0.32, 0.88]"] = _wilson(0.65, middle * (1 - middle) / (sum(parts) / 4), t)

    both = (system + baseline) / 2
    expected["0.675 [0.37, 0.88]"] = _wilson(0.675, _size(both), scipy.t.ppf(0.975, 9))

    ratio = 3.0125 / 9 / 0.1125
    tails = [max(1.0, ratio / scipy.f.ppf(share, 9, 10)) for share in (0.025, 0.975)]
    expected["0.503 [0.16, 1.00]"] = (2 / (tails[0] + 1), 2 / (tails[1] + 1))

    for shown, limits in expected.items():
        assert shown in TEXT
        assert f"[{limits[0]:.2f}, {limits[1]:.2f}]" in shown, shown
