"""Fitting: no line is wider than the terminal, what gave way is named, and a grid loses no number."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest

from banks import each_case
from context_bench import EvalResult
from context_bench.output.layout import fit_columns, fit_grid, fit_listing, shorten, wrap
from context_bench.reporters import TableReporter

LONG = "a-very-long-name-of-a-system-that-differs-in-its-middle-{}-and-goes-on-and-on-and-on"


def columns(text: str) -> int:
    """The widest line, counted here: wide characters take two columns, combining ones none."""
    return max(
        sum(
            0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
            for char in line
        )
        for line in text.splitlines()
    )


def summary(number: int, datasets: int, tap: bool) -> dict[str, float]:
    """Every number that the table may show, all different."""
    values = {
        "num_examples": 1000.0 + number,
        "num_errors": 3.0,
        "num_unscored": 2.0,
        "mean_score": 0.5 + number / 1000,
        "pass_rate": 0.25 + number / 1000,
        "compression_ratio": 0.125,
        "cost_of_pass": 123456.0,
        "latency_median": 0.25,
        "latency_p95": 1.25,
        "pareto_rank": 1.0,
    }
    if tap:
        values |= {
            "prompt_savings": 0.3,
            "untouched_share": 0.1,
            "upstream_cost_of_pass": 1_234_567.0,
            "proxy_overhead_median": 0.02,
            "first_token_overhead_median": 0.03,
            "retention": 0.9,
            "sent_tokens": 10_000_000.0 + number,
            "upstream_tokens": 7_000_000.0 + number,
            "counted_tokens_saved": 3_000_000.0 + number,
            "claimed_tokens_saved": 4_000_000.0 + number,
            "usage_prompt_tokens": 7_500_000.0 + number,
            "extra_upstream_calls": 12.0,
            "evidence_rows": 500.0,
            "evidence_survival": 0.75,
            "lost_by_system": 0.25,
            "failed_anyway": 0.125,
            "right_without_evidence": 0.0625,
        }
    for place in range(datasets if datasets > 1 else 0):
        values[f"dataset:needle:length={place}000,depth=0.5,n=1000"] = place + number / 1000
    return values


def result(systems: int, datasets: int, tap: bool) -> EvalResult:
    names = ["日本語システムの名前はとても長いので困ります", "plain", LONG.format(1), LONG.format(2), "a|b\\|c"]
    names += [f"truncate:ratio=0.{place}" for place in range(7)]
    notes = {"plain": {"pass_rate": "few reach it, " + "for a reason that takes many words to tell " * 4}}
    config: dict[str, Any] = {"score_field": "score", "datasets": {"needle:" + "x" * 200: 1}}
    numbers = {name: summary(place, datasets, tap) for place, name in enumerate(names[:systems])}
    return EvalResult([], numbers, {}, config, notes=notes if systems > 1 else {})


@each_case("tap", [False, True])
@each_case("datasets", [1, 3, 10])
@each_case("systems", [1, 3, 12])
@each_case("width", [40, 80, 132])
def test_no_line_of_a_report_is_wider_than_the_terminal(width: int, systems: int, datasets: int, tap: bool) -> None:
    text = TableReporter(width=width, wide=True).render(result(systems, datasets, tap))
    assert columns(text) <= width


@pytest.mark.parametrize("systems", [1, 3, 12])
def test_every_score_by_dataset_is_there_however_narrow_it_is(systems: int) -> None:
    text = TableReporter(width=80, wide=True).render(result(systems, 10, tap=False))
    tables = [part for part in text.split("\n\n") if part.startswith("| score by dataset")]
    shown = sorted(cell for part in tables for cell in re.findall(r"\d\.\d{3}", part))
    assert shown == sorted(f"{place + number / 1000:.3f}" for place in range(10) for number in range(systems))


def test_the_tables_of_a_tap_lose_no_number() -> None:
    text = TableReporter(width=80, wide=True).render(result(12, 1, tap=True))
    for start in (10_000_000, 7_000_000, 3_000_000, 4_000_000, 7_500_000):
        for number in range(12):
            assert f"{start + number:,}" in text


def test_without_a_width_everything_is_whole() -> None:
    text = TableReporter(wide=True).render(result(12, 10, tap=True))
    assert LONG.format(1) in text
    assert "…" not in text
    assert "left out" not in text
    assert text == TableReporter(width=100_000, wide=True).render(result(12, 10, tap=True))


def test_what_gave_way_is_named_and_the_score_and_errors_stay() -> None:
    text = TableReporter(width=60, wide=True).render(result(3, 1, tap=True))
    head = text.splitlines()[0]
    titles = [cell.strip() for cell in head.strip("|").split("|")]
    assert {"system", "score", "errors", "unscored"} <= set(titles)
    named = re.search(r"^left out: (.*?) \(--wide shows all\)$", text.replace("\n  ", " "), re.MULTILINE)
    assert named is not None
    whole = TableReporter(wide=True).render(result(3, 1, tap=True)).splitlines()[0]
    everything = {cell.strip() for cell in whole.strip("|").split("|")}
    assert set(named[1].split(", ")) == everything - set(titles)


def test_a_title_that_needs_another_does_not_stand_alone() -> None:
    lines = [["s", "score", "latency p50", "p95"], ["x", "1", "2", "3"]]
    text = fit_columns(lines, 24, ("p95", "latency p50", "score"), {"p95": "latency p50"})
    assert text.splitlines()[0] == "| s   | score |"
    assert text.endswith("left out: latency p50,\n  p95 (--wide shows all)")


def test_names_that_would_look_alike_are_told_apart() -> None:
    text = fit_columns([["s", "score"], [LONG.format(1), "1"], [LONG.format(2), "2"]], 40, ("score",))
    first, second = (line.split("|")[1] for line in text.splitlines()[2:4])
    assert first != second
    assert "…" in first


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abc…fg"), ("日本語日本語", 7, "日…本語"), ("abc", 1, "…")],
)
def test_a_text_is_shortened_in_its_middle(text: str, width: int, short: str) -> None:
    assert columns(shorten(text, width)) <= width
    assert shorten(text, width)[0] == short[0]
    assert ("…" in shorten(text, width)) == ("…" in short)
    if text == "abcdefg":
        assert shorten(text, width) == short


def test_a_grid_is_turned_when_that_fits() -> None:
    tags = [f"dataset-{place}" for place in range(10)]
    text = fit_grid([["score", *tags], ["mine", *"0123456789"]], 40)
    lines = text.splitlines()
    assert lines[0].split("|")[1].strip() == "score"
    assert lines[0].split("|")[2].strip() == "mine"
    assert len(lines) == 12


def test_parameters_go_before_names_are_cut() -> None:
    lines = [["score", "needle:length=4000,n=40", "kv:length=4000,n=40"], *([f"s{n}", "1", "2"] for n in range(9))]
    assert "| needle:… |" in fit_grid(lines, 40)
    assert columns(fit_grid(lines, 40)) <= 40


def test_notes_are_wrapped_and_lose_no_word() -> None:
    text = "one two three four five " + "x" * 50
    wrapped = wrap(text, 20)
    assert columns(wrapped) <= 20
    assert wrapped.replace("\n", "").replace(" ", "") == text.replace(" ", "")
    assert wrap(text, None) == text


def test_wrapping_keeps_what_stands_at_the_start_of_a_line() -> None:
    assert wrap("    sent:    abc\n\nend\n", 40) == "    sent:    abc\n\nend\n"


def test_a_listing_wraps_texts_and_leaves_columns_out() -> None:
    lines = [
        ["name", "kind", "licence", "what it is"],
        ["alpha", "k" * 10, "l" * 20, "words " * 12 + "last"],
        ["beta", "kind", "MIT", "short"],
    ]
    text = fit_listing(lines, 50, give_way=("licence", "kind"))
    assert columns(text) <= 50
    assert text.count("words") == 12
    assert "last" in text
    assert text.endswith("left out: licence (--wide shows all)")
    assert fit_listing(lines, None, give_way=("licence", "kind")).count("\n") == 2
