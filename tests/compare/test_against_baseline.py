"""Rows paired with those of the baseline, in whatever order they come."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from context_bench.compare.against_baseline import Comparer
from context_bench.compare.pairing import read_value
from context_bench.compare.verdicts import Comparison, DollarSaving
from context_bench.results import EvalRow
from context_bench.stats import Verdict, holm
from report_pages import make_result
from rows import failed_row, make_row

BASELINE = [1, 1, 0, 1, 0, 1, 1, 0, 1, 1]
SYSTEM = [1, 0, 0, 1, 1, 1, 1, 0, 1, 0.5]
"""The ten rows of docs/statistics.md: their difference is -0.05 [-0.43, 0.35], p 0.813."""


def _rows(name: str, scores: list[float], **facts: Any) -> list[EvalRow]:
    return [make_row(score, system=name, example_id=number, **facts) for number, score in enumerate(scores)]


def _compare(rows: list[EvalRow], *systems: str, controls: tuple[str, ...] = (), **more: Any) -> Comparison | None:
    fixed = more.pop("fixed_groups", False)
    comparer = Comparer(systems or ("a", "b"), "a", read_value("score", "score", 0.7), **more)
    comparer.add(rows)
    return comparer.compare(controls=controls, fixed_groups=fixed)


def _must(found: Comparison | None) -> Comparison:
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_worked_example_in_any_order(seed: int) -> None:
    rows = [*_rows("a", BASELINE), *_rows("b", SYSTEM)]
    random.Random(seed).shuffle(rows)
    found = _must(_compare(rows))
    (verdict,) = found.verdicts
    assert (found.baseline, found.metric, found.margin) == ("a", "mean_score", 0.02)
    assert (verdict.name, verdict.n, verdict.word, verdict.needed_n) == ("b", 10, "undecided", 704)
    assert verdict.difference == pytest.approx(-0.05)
    assert (round(verdict.interval.low, 2), round(verdict.interval.high, 2)) == (-0.43, 0.35)
    assert round(verdict.p, 3) == 0.813
    assert found.of("b") is verdict
    assert found.of("a") is None


def test_nothing_is_kept_once_all_systems_have_come() -> None:
    comparer = Comparer(("a", "b", "c"), "a", read_value("score", "score", 0.7))
    for number in range(100):
        for name in random.Random(number).sample(["a", "b", "c"], 3):
            comparer.add([make_row(1.0, system=name, example_id=number)])
        assert comparer.waiting == 0
    comparer.add([make_row(1.0, system="c", example_id="alone")])
    assert comparer.waiting == 1


def test_an_error_counts_as_zero_and_the_verdict_without_errors_stands_beside_it() -> None:
    rows = _rows("a", [1.0] * 100) + _rows("b", [1.0] * 80)
    rows += [failed_row(system="b", example_id=number) for number in range(80, 100)]
    (verdict,) = _must(_compare(rows)).verdicts
    # 20 of 100 lost: (-20)/102 = -0.196, variance (22/102 - 0.196²)/102, so that 0 is 4.7 standard errors away
    assert (verdict.difference, verdict.n, verdict.word) == (-0.2, 100, "worse")
    assert verdict.word_without_errors == "undecided"  # the 80 others agree: 0 ± 1.664·√(2/82/82), beyond the margin
    assert verdict.errors_disagree


def test_rows_without_a_score_are_no_pair() -> None:
    rows = [*_rows("a", [1.0, 1.0, 0.0]), *_rows("b", [1.0, 0.0])]
    rows.append(make_row(None, system="b", example_id=2))
    assert _must(_compare(rows)).verdicts[0].n == 2


def test_where_nothing_could_be_scored_errors_alone_are_no_comparison() -> None:
    failed = [failed_row(system=name, example_id=number) for name in "ab" for number in range(50)]
    assert _compare(failed) is None  # all failed on both sides: that is not equivalent
    unscored = [make_row(None, system=name, example_id=number) for name in "ab" for number in range(50, 99)]
    assert _compare([*failed, *unscored]) is None
    # of b nothing could be scored, so that its errors do not make it worse
    mixed = [*_rows("a", [1.0] * 60), *failed[50:], *unscored[49:]]
    assert _compare(mixed) is None


def test_nothing_paired() -> None:
    assert _compare([]) is None
    assert _compare(_rows("a", [1.0, 0.0])) is None
    assert _compare([*_rows("a", [1.0]), make_row(1.0, system="b", example_id="other")]) is None


def test_examples_that_share_a_document_are_counted_by_document() -> None:
    groups = [{"cluster": name} for name in "AABBCCDDEE"]
    rows = [*_rows("a", BASELINE), *_rows("b", SYSTEM)]
    for row, group in zip(rows, groups * 2):
        row.metadata = dict(group)
    (verdict,) = _must(_compare(rows)).verdicts
    assert verdict.interval.method == "clusters"
    assert (round(verdict.interval.low, 2), round(verdict.interval.high, 2)) == (-0.64, 0.56)  # docs/statistics.md


def test_a_group_may_have_the_name_of_one_of_its_examples() -> None:
    """Five documents of two examples, each named after the first of them; so named, a group lost that example."""
    rows = [*_rows("a", BASELINE), *_rows("b", SYSTEM)]
    for row in rows:
        row.metadata = {"cluster": int(row.example_id) // 2 * 2}
    (verdict,) = _must(_compare(rows)).verdicts
    assert (verdict.groups, round(verdict.interval.low, 2)) == (5, -0.64)  # as with any other names
    result = make_result(rows, baseline="a")
    limits = result.intervals["b"]["mean_score"]
    assert (limits.method, limits.groups) == ("clusters", 5)
    repeated = [replace(row, metadata={"cluster": ["example", row.example_id]}) for row in rows]
    assert _must(_compare(repeated)).verdicts[0].groups is None


def _conversations(lost: int, *, groups: int = 10, size: int = 50) -> list[EvalRow]:
    """Two systems on conversations of so many questions, of which the second fails on the last of each."""
    return [
        make_row(
            float(name == "a" or place >= lost),
            system=name,
            example_id=f"{group}.{place}",
            metadata={"cluster": f"c{group}"},
        )
        for name in "ab"
        for group in range(groups)
        for place in range(size)
    ]


def test_ten_conversations_show_nothing_of_others() -> None:
    rows = _conversations(0)
    (verdict,) = _must(_compare(rows)).verdicts
    assert (verdict.word, verdict.scope, verdict.not_worse) == ("undecided", "these groups", False)
    assert verdict.reason == (
        "equivalent on these 10 conversations or documents; a verdict beyond these takes at least 149"
    )
    assert verdict.narrow is not None
    assert verdict.narrow.low == pytest.approx(-(1 - 0.05**0.1))  # a loss of 0.26 at best
    assert Verdict.from_dict(verdict.to_dict()) == verdict
    fixed = _must(_compare(rows, fixed_groups=True)).verdicts[0]
    assert (fixed.word, fixed.scope) == ("equivalent", "these groups")
    assert "on these 10 conversations or documents, ignoring all others (--fixed-groups)" in fixed.reason
    assert fixed.narrow is not None
    assert fixed.narrow.low == pytest.approx(-(1 - 0.05 ** (1 / 500)))  # as 500 questions
    assert fixed.p == verdict.p  # better and worse go by conversation all the same
    many = _must(_compare(_conversations(0, groups=149, size=2))).verdicts[0]
    assert (many.word, many.scope, many.groups) == ("equivalent", "all groups", 149)


def test_worse_goes_by_conversations_that_are_fixed_too() -> None:
    (verdict,) = _must(_compare(_conversations(10), fixed_groups=True)).verdicts
    assert (verdict.word, verdict.scope) == ("worse", "all groups")


def test_a_system_that_changed_nothing_is_named() -> None:
    rows = [*_rows("a", BASELINE), *_rows("b", BASELINE), *_rows("c", BASELINE)]
    for row in rows:
        row.metadata = {"output": "context"}
        row.metadata |= {"unchanged": True} if row.system == "b" or row.example_id == 3 else {}
    assert _must(_compare(rows)).notes == ("b changed nothing on 10 of 10 examples",)


def test_who_returns_the_example_with_an_answer_may_have_changed_what_its_model_read() -> None:
    rows = [*_rows("a", BASELINE), *_rows("b", BASELINE)]
    for row in rows:
        row.metadata = {"unchanged": True, "output": "context", "answered": True}
    assert _must(_compare(rows)).notes == ()
    for row in rows:
        row.upstream_tokens = 7  # a reader of ours was sent the context
    assert _must(_compare(rows)).notes == ("b changed nothing on 10 of 10 examples",)


def test_repeats_are_one_example() -> None:
    rows = [
        make_row(score, system=name, example_id=number, repeat=repeat)
        for name, scores in (("a", BASELINE), ("b", SYSTEM))
        for number, score in enumerate(scores)
        for repeat in range(3)
    ]
    (verdict,) = _must(_compare(rows, repeats=3)).verdicts
    once = _must(_compare([row for row in rows if not row.repeat])).verdicts[0]
    assert (verdict.n, verdict.groups, verdict.word) == (10, None, once.word)
    assert (verdict.interval.low, verdict.p) == pytest.approx((once.interval.low, once.p))  # the same answers again
    late = _must(_compare(rows[:-1], repeats=3)).verdicts[0]  # one answer did not come: the other two count
    assert (late.n, late.interval.low) == (10, pytest.approx(once.interval.low))


def test_a_row_without_a_group_is_a_cluster_of_its_own() -> None:
    rows = [*_rows("a", BASELINE), *_rows("b", SYSTEM)]
    for row, group in zip(rows, "AABBCCDDE " * 2):
        row.metadata = {} if group == " " else {"cluster": group}
    (verdict,) = _must(_compare(rows)).verdicts
    assert (verdict.interval.method, verdict.groups, verdict.n) == ("clusters", 6, 10)
    assert verdict.to_dict()["groups"] == verdict.to_dict()["interval"]["groups"] == 6


def test_dollars_go_by_example_and_cluster() -> None:
    def priced(groups: str, repeats: int) -> DollarSaving:
        rows = [
            make_row(1.0, system=name, example_id=place, repeat=repeat, metadata=_price(name, group))
            for place, group in enumerate(groups)
            for name in ("a", "b")
            for repeat in range(repeats)
        ]
        comparer = Comparer(("a", "b"), "a", read_value("score", "score", 0.7), repeats=repeats)
        comparer.add(rows)
        return _must(comparer.compare(margin=0.5)).savings["b"]

    def _price(name: str, group: str) -> dict[str, Any]:
        spent = 0.01 if name == "a" else 0.002 * (ord(group) - ord("A"))
        return {"cost_usd": spent, "cluster": group}

    shared, again = priced("AABBCCDDEE", 1), priced("AABBCCDDEE", 3)
    # saved 10, 8, 6, 4, 2 dollars of a thousand; by document: 6 ± t(4) · √10/√5
    assert shared.per_1k.value == pytest.approx(6.0)
    assert (shared.per_1k.low, shared.per_1k.groups) == (pytest.approx(6 - 2.776445 * math.sqrt(2)), 5)
    assert (again.per_1k.low, again.pairs) == (pytest.approx(shared.per_1k.low), 10)


def test_a_control_never_wins_and_corrects_no_other() -> None:
    rows = [*_rows("a", [0.0] * 20), *_rows("b", [1.0] * 20), *_rows("c", [1.0] * 8 + [0.0] * 12)]
    found = _must(_compare(rows, "a", "b", "c", controls=("b",)))
    better, other = found.verdicts
    assert (better.word, better.control, better.wins) == ("better", True, False)
    assert other.p_holm == other.p


def test_several_datasets_weigh_the_same_and_are_corrected_apart() -> None:
    rows = []
    for tag, before, after in (("x", [1.0] * 30, [0.0] * 30), ("y", [0.0, 1.0] * 5, [0.0, 1.0] * 5)):
        for name, scores in (("a", before), ("b", after), ("c", before)):
            rows += _rows(name, scores, dataset=tag)
    found = _must(_compare(rows, "a", "b", "c"))
    assert found.metric == "macro_score"
    assert [verdict.difference for verdict in found.verdicts] == [-0.5, 0.0]  # (-1 + 0) / 2; pooled it were -0.75
    assert found.verdicts[0].p_holm == pytest.approx(min(1.0, 2 * found.verdicts[0].p))
    family = [found.by_dataset[tag] for tag in ("x", "y")]
    plain = [verdict.p for verdicts in family for verdict in verdicts]
    assert len(plain) == 4
    assert [verdict.p_holm for verdicts in family for verdict in verdicts] == pytest.approx(holm(plain))


def test_a_dataset_that_cannot_be_scored_is_left_out() -> None:
    rows = [*_rows("a", BASELINE, dataset="x"), *_rows("b", SYSTEM, dataset="x")]
    rows += [failed_row(system=name, example_id=0, dataset="y") for name in "ab"]
    rows += [make_row(None, system=name, example_id=1, dataset="y") for name in "ab"]
    found = _must(_compare(rows))
    assert (found.metric, found.by_dataset) == ("mean_score", {})
    assert found.verdicts[0].n == 10


# --- noise


def test_the_second_run_of_the_baseline_is_noise_and_no_verdict() -> None:
    rows = [*_rows("a", BASELINE), *_rows("a (again)", SYSTEM), *_rows("b", BASELINE)]
    found = _must(_compare(rows, "a", "a (again)", "b", twin="a (again)"))
    assert [verdict.name for verdict in found.verdicts] == ["b"]
    assert found.noise is not None
    # rows 2, 5 and 10 pass on one side alone; the half width is that of the worked example
    assert (found.noise.n, found.noise.flips) == (10, 3)
    assert round(found.noise.floor, 2) == 0.39
    assert found.noise.share.value == pytest.approx(0.3)


def test_a_flip_is_an_example_that_only_one_of_the_two_passes() -> None:
    rows = [*_rows("a", [0.9, 0.8, 0.2]), *_rows("a (again)", [0.8, 0.6, 0.3])]
    found = _must(_compare(rows, "a", "a (again)", twin="a (again)"))
    assert found.verdicts == []
    assert found.noise is not None
    assert found.noise.flips == 1


def test_repeats_of_the_baseline_feed_the_same_number() -> None:
    answers = [make_row(score, system="a", example_id=number) for number, score in enumerate(BASELINE)]
    answers += [make_row(score, system="a", example_id=number, repeat=1) for number, score in enumerate(SYSTEM)]
    others = [make_row(1.0, system="b", example_id=row.example_id, repeat=row.repeat) for row in answers]
    noise = _must(_compare([*answers, *others], repeats=2)).noise
    assert noise is not None
    assert (noise.n, noise.flips) == (10, pytest.approx(3))
    # within 0.1125 (docs/statistics.md); the difference of two means of two answers has the variance 2·0.1125/2 a pair:
    # t(9) 2.262157 · √((1.125 + 2)/12/12)
    assert noise.floor == pytest.approx(2.262157 * math.sqrt((0.1125 * 10 + 2) / 144), rel=1e-6)


def test_without_repeats_and_twin_there_is_no_noise() -> None:
    assert _must(_compare([*_rows("a", BASELINE), *_rows("b", SYSTEM)])).noise is None


# --- dollars


def _priced(name: str, dollars: list[float | None], score: float = 1.0, **facts: Any) -> list[EvalRow]:
    rows = _rows(name, [score] * len(dollars))
    for row, cost in zip(rows, dollars):
        row.metadata = {**facts, **({} if cost is None else {"cost_usd": cost})}
    return rows


def test_dollars_saved_for_a_thousand_examples() -> None:
    rows = [*_priced("a", [0.002] * 400), *_priced("b", [0.001, 0.0005] * 200)]
    saving = _must(_compare(rows)).savings["b"]
    # 0.001 and 0.0015 by turns: 1.25 for a thousand, standard deviation 0.25·√(400/399), t(399) = 1.96593
    half = 1.965927 * 0.25 * math.sqrt(400 / 399) / 20
    assert saving.per_1k.value == pytest.approx(1.25)
    assert (saving.per_1k.low, saving.per_1k.high) == (pytest.approx(1.25 - half), pytest.approx(1.25 + half))
    assert (saving.pairs, saving.note) == (400, "")


def test_what_may_be_worse_saves_nothing() -> None:
    rows = [*_priced("a", [0.002] * 400), *_priced("b", [0.001] * 400, score=0.0), *_priced("c", [0.001] * 400)]
    found = _must(_compare([*rows, *_priced("d", [0.001] * 400)], "a", "b", "c", "d", controls=("d",))).savings
    assert found["b"].note == "not claimed: its quality is worse"
    assert found["d"].note == "not claimed: it is a control"
    assert math.isnan(found["b"].per_1k.value)
    assert found["c"].per_1k.value == pytest.approx(1.0)
    few = _must(_compare([*_priced("a", [0.002] * 9), *_priced("b", [0.001] * 9)])).savings
    assert few["b"].note == "not claimed: its quality is undecided, and may be worse"


def test_costs_that_are_not_known_of_both() -> None:
    before: list[float | None] = [0.002] * 400
    rows = [*_priced("a", before), *_priced("b", [None] * 400), *_priced("c", [0.001] * 300 + [None] * 100)]
    found = _must(_compare(rows, "a", "b", "c")).savings
    assert found["b"].note == "not priced: no example has a known cost for both systems"
    assert found["c"].note == "100 examples are left out: the cost of one system is unknown"
    assert (found["c"].pairs, found["c"].per_1k.value) == (300, pytest.approx(1.0))
    assert _must(_compare([*_rows("a", BASELINE), *_rows("b", SYSTEM)])).savings == {}


def test_an_estimate_says_so() -> None:
    rows = [*_priced("a", [0.002] * 400), *_priced("b", [0.001] * 400, cost_is_estimate=True)]
    assert _must(_compare(rows)).savings["b"].note == "estimated for 400 of 400 examples"


def test_a_system_without_scores_on_a_dataset_is_compared_on_the_others_and_named() -> None:
    rows = [
        make_row(None if (name, tag) == ("b", "y") else 1.0, system=name, dataset=tag, example_id=place)
        for name in "abc"
        for tag in "xy"
        for place in range(5)
    ]
    found = _must(_compare(rows, "a", "b", "c"))
    assert [(each.name, each.n) for each in found.verdicts] == [("b", 5), ("c", 10)]
    assert found.notes == ("b is compared without y: the system or the baseline has no score there",)


def test_examples_that_one_side_alone_has_a_score_of_are_told() -> None:
    # a has scores for 10 examples, b for 5 of them (one failed: 0) and for one more: 5 pairs, 5 + 1 are left out
    rows = [*_rows("a", BASELINE), *_rows("b", SYSTEM[:4]), failed_row(system="b", example_id=4)]
    rows += [make_row(None, system="b", example_id=5), make_row(1.0, system="b", example_id=99)]
    found = _must(_compare(rows))
    assert found.verdicts[0].n == 5
    assert found.notes == ("b: 6 examples are left out of the verdict: scored on one side only",)
    assert _must(_compare([*_rows("a", BASELINE), *_rows("b", SYSTEM)])).notes == ()
    repeated = [*rows, *_rows("a", BASELINE), *_rows("b", SYSTEM[:4])]
    assert _must(_compare(repeated, repeats=2)).notes == found.notes


def test_scores_on_another_scale_say_what_the_margin_and_a_failure_mean() -> None:
    ratings = _must(_compare([*_rows("a", [1, 5]), *_rows("b", [2, 4])]))
    assert ratings.notes == (
        "scores lie between 1 and 5, so the margin of 0.02 is on that scale; losses in unseen examples are not "
        "bounded, because these scores have no known limits",
    )
    # b answers worse (-0.6 against -0.5) and fails on half of the examples, which count as 0: "better" by +0.2
    rows = _rows("a", [-0.5] * 200) + _rows("b", [-0.6] * 200)
    rows = [failed_row(system="b", example_id=row.example_id) if _is_even(row) else row for row in rows]
    found = _must(_compare(rows))
    assert (found.verdicts[0].word, found.verdicts[0].word_without_errors) == ("better", "worse")
    assert found.notes[1] == "a failed example counts as 0, which is better than a negative score"


def _is_even(row: EvalRow) -> bool:
    return row.system == "b" and int(row.example_id) % 2 == 0


def test_a_dataset_that_is_too_small_is_named_as_the_reason() -> None:
    rows = [row for name in "ab" for row in _rows(name, [1.0] * 200, dataset="x") + _rows(name, [1.0], dataset="tiny")]
    (verdict,) = _must(_compare(rows)).verdicts
    reason = "a dataset has too few examples, or all of one document or conversation"
    assert (verdict.word, verdict.n, verdict.reason) == ("undecided", 201, reason)


def test_a_dataset_without_scores_of_both_sides_is_said_to_be_in_no_verdict() -> None:
    rows = [*_rows("a", [1.0] * 20, dataset="x"), *_rows("b", [1.0] * 20, dataset="x")]
    rows += [make_row(None, system="a", dataset="y"), failed_row(system="b", dataset="y")]
    found = _must(_compare(rows))
    assert (found.metric, found.verdicts[0].n) == ("mean_score", 20)
    assert found.notes == ("y is left out of all verdicts: one side lacks scores",)
