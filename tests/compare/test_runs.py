"""Runs against each other: who is compared with whom, paired or not, and what the numbers are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from context_bench.compare.contest import Contest
from context_bench.compare.pairing import ScoredAnswer
from context_bench.compare.run_inputs import RunInput, Selection
from context_bench.compare.runs import compare_runs
from context_bench.errors import UsageError
from context_bench.stats import (
    Moments,
    PairedSums,
    average_differences,
    paired_difference,
    unpaired_difference,
)


def _row(identity: str, score: float | None, dataset: str = "d", **more: Any) -> ScoredAnswer:
    return ScoredAnswer(identity, dataset, score, **more)


def _read(systems: dict[str, list[ScoredAnswer]]) -> Iterator[tuple[str, ScoredAnswer]]:
    for name, rows in systems.items():
        for row in rows:
            yield name, row


def _run(label: str, systems: dict[str, list[ScoredAnswer]], **config: Any) -> RunInput:
    return RunInput(label, tuple(systems), config, partial(_read, systems), {name: {} for name in systems})


def _select(run: RunInput, *systems: str) -> Selection:
    return Selection(run, systems or run.systems, run.label)


def _scores(scores: list[float], dataset: str = "d", **more: Any) -> list[ScoredAnswer]:
    return [_row(f"{dataset}{place}", score, dataset, **more) for place, score in enumerate(scores)]


OLD, NEW = [1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]
"""One fixed, two broken: a mean of 0.75 and one of 0.5."""


def _only(contests: list[Contest]) -> Contest:
    (contest,) = contests
    return contest


def test_two_runs_of_one_system_each_whatever_they_are_called() -> None:
    found = compare_runs([_select(_run("A", {"old": _scores(OLD)})), _select(_run("B", {"new": _scores(NEW)}))])
    contest = _only(found.contests)
    assert (found.baseline, contest.name, found.metric, found.threshold) == ("old of A", "new", "mean_score", 0.7)
    assert contest.find_means() == (0.5, 0.75)
    assert contest.verdict is not None
    # differences 0, -1, +1, -1: sum -1, squares 3
    expected = paired_difference(PairedSums(4, -1.0, 3.0, 1, 2))
    assert (contest.verdict.difference, contest.verdict.interval) == (-0.25, expected.interval(0.95))
    assert (contest.fixed.examples, contest.broken.examples) == ([("d", "d2")], [("d", "d1"), ("d", "d3")])


def test_the_systems_of_several_runs_are_matched_by_name() -> None:
    first = _run("A", {"x": _scores(OLD), "y": _scores(NEW)})
    second = _run("B", {"y": _scores(NEW), "z": _scores(NEW), "x": _scores(NEW)})
    third = _run("C", {"x": _scores(OLD)})
    found = compare_runs([_select(first), _select(second), _select(third)])
    assert [each.name for each in found.contests] == ["y of B", "x of B", "x of C"]
    assert [each.verdict.difference for each in found.contests if each.verdict] == [0.0, -0.25, 0.0]
    assert (found.baseline, found.left_out) == ("A", ["z of B"])
    other = compare_runs([_select(first), _select(second)], baseline="B")
    assert [(each.name, each.baseline.label) for each in other.contests] == [("x", "B"), ("y", "B")]
    assert _only(compare_runs([_select(first, "x"), _select(second, "z")]).contests).baseline_system == "x"


def test_the_systems_of_one_run() -> None:
    run = _run("A", {"x": _scores(NEW), "passthrough": _scores(OLD), "oracle": _scores(OLD)}, controls=["oracle"])
    found = compare_runs([_select(run)])
    assert (found.baseline, [each.name for each in found.contests]) == ("passthrough", ["x", "oracle"])
    assert [each.control for each in found.contests] == [False, True]
    assert compare_runs([_select(run)], baseline="x").baseline == "x"
    chosen = compare_runs([_select(run, "x"), _select(run, "oracle")])
    assert (chosen.baseline, [each.name for each in chosen.contests]) == ("x", ["oracle"])
    assert found.warnings == []


@pytest.mark.parametrize(
    ("selections", "baseline", "said"),
    [
        ([{"x": OLD}], None, "A has one system, x: name another run"),
        ([{"x": OLD, "y": OLD}], "q", "baseline must be one of the systems"),
        ([{"x": OLD, "y": OLD}, {"z": OLD}], None, "no system in common .z of B, against x, y of A.: write RUN@SYSTEM"),
        ([{"x": OLD}, {"x": OLD}], "q", "unknown baseline 'q'"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(selections: list[Any], baseline: str | None, said: str) -> None:
    runs = [
        _select(_run(label, {name: _scores(scores) for name, scores in systems.items()}))
        for label, systems in zip("AB", selections)
    ]
    with pytest.raises(UsageError, match=said):
        compare_runs(runs, baseline=baseline)


def test_runs_without_a_common_dataset_are_refused() -> None:
    runs = [_run("A", {"x": _scores(OLD, "one")}), _run("B", {"x": _scores(OLD, "two")})]
    with pytest.raises(UsageError, match="no dataset has scores on both sides: B has scores for two; A has scores for"):
        compare_runs([_select(each) for each in runs])


def test_several_datasets_have_equal_weight() -> None:
    old = [*_scores(OLD), *_scores([1.0] * 10, "e")]
    new = [*_scores(NEW), *_scores([1.0] * 10, "e")]
    found = compare_runs([_select(_run("A", {"x": old})), _select(_run("B", {"x": new}))])
    contest = _only(found.contests)
    parts = [paired_difference(PairedSums(4, -1.0, 3.0, 1, 2)), paired_difference(PairedSums(10, 0.0, 0.0))]
    assert found.metric == "macro_score"
    assert contest.verdict is not None
    assert contest.verdict.interval == average_differences(parts).interval(0.95)
    assert contest.find_means() == (0.75, 0.875)
    assert {tag: each.difference for tag, each in contest.by_dataset.items()} == {"d": -0.25, "e": 0.0}


def test_runs_that_both_score_0_throughout_are_not_equivalent() -> None:
    zeros = _scores([0.0] * 300)
    runs = [replace(_run(label, {"x": zeros}), summary={"x": {"mean_score": 0.0}}) for label in "AB"]
    found = compare_runs([_select(each) for each in runs])
    verdict = _only(found.contests).verdict
    assert verdict is not None
    assert verdict.word == "undecided"
    assert found.notes[0].startswith("no verdict: every score is 0 on both sides")


def test_scores_that_cancel_out_are_not_0_throughout() -> None:
    signed = _scores([-1.0, 1.0] * 150)
    found = compare_runs([_select(_run(label, {"x": signed})) for label in "AB"])
    verdict = _only(found.contests).verdict
    assert verdict is not None
    assert (verdict.word, [note for note in found.notes if "no verdict" in note]) == ("equivalent", [])


def test_where_most_examples_differ_means_are_compared() -> None:
    old = [*_scores(OLD, content=b"1"), *[_row(f"a{n}", 1.0, content=b"1") for n in range(6)]]
    new = [*_scores(NEW, content=b"2"), *[_row(f"b{n}", 1.0, content=b"1") for n in range(6)]]
    contest = _only(compare_runs([_select(_run("A", {"x": old})), _select(_run("B", {"x": new}))]).contests)
    assert (contest.is_paired("d"), contest.other_content, contest.only_here) == (False, 4, 6)
    ours, theirs = Moments(), Moments()
    for one, other in zip([*NEW, *[1.0] * 6], [*OLD, *[1.0] * 6]):
        ours.add(one)
        theirs.add(other)
    assert contest.contrast(["d"]).difference == unpaired_difference(ours, theirs)
    assert contest.find_means() == (pytest.approx(0.8), pytest.approx(0.9))
    assert contest.verdict is not None
    assert contest.verdict.word_without_errors is None
    assert contest.count_changes() is None


def test_half_of_the_smaller_side_is_enough_to_pair() -> None:
    old = _scores(OLD)
    contest = _only(
        compare_runs(
            [_select(_run("A", {"x": old[:2]})), _select(_run("B", {"x": [*old[1:], _row("z", 1.0)]}))]
        ).contests
    )
    assert contest.pairs.n == 1
    assert not contest.is_paired("d")  # one pair has no spread
    contest = _only(compare_runs([_select(_run("A", {"x": old})), _select(_run("B", {"x": old[:2]}))]).contests)
    assert contest.is_paired("d")
    assert contest.find_means() == (1.0, 1.0)  # over the pairs alone


def test_answers_to_one_example_are_one_pair() -> None:
    rows = [_row(f"{n}", score) for n, score in enumerate(OLD) for _ in (0, 1)]
    runs = [_run(label, {"x": rows}, repeats=2) for label in "AB"]
    contest = _only(compare_runs([_select(each) for each in runs]).contests)
    assert (contest.contrast(["d"]).difference.method, contest.contrast(["d"]).difference.n) == ("paired t", 4)
    others = [_row(f"{n}", 1.0 - score) for n, score in enumerate(OLD) for _ in (0, 1)]
    turned = [_run("A", {"x": rows}, repeats=2), _run("B", {"x": others}, repeats=2)]
    changed = _only(compare_runs([_select(each) for each in turned]).contests)
    assert changed.fixed.count + changed.broken.count == 4
    assert len(changed.fixed.examples) + len(changed.broken.examples) == 4


def test_each_run_is_read_once() -> None:
    reads = []

    def read(systems: dict[str, list[ScoredAnswer]]) -> Iterator[tuple[str, ScoredAnswer]]:
        reads.append(1)
        yield from _read(systems)

    systems = {name: _scores(OLD) for name in ("passthrough", "a", "b", "c")}
    compare_runs([_select(RunInput("A", tuple(systems), {}, partial(read, systems)))])
    assert len(reads) == 1


def test_two_systems_that_failed_everywhere_are_not_equivalent() -> None:
    # 200 pairs of 0 and 0 would be: 1.653 · √2 / 202 is below 0.02
    dead = [_row(str(n), 0.0, failed=True) for n in range(200)]
    live = [_row(str(n), 1.0) for n in range(200)]
    runs = [_select(_run(name, {"x": dead, "y": live})) for name in "AB"]
    found = compare_runs(runs)
    words = {each.name: each.verdict.word for each in found.contests if each.verdict is not None}
    assert words == {"x": "undecided", "y": "equivalent"}
    assert found.notes == ["no verdict on x: both sides failed on every example"]


def test_errors_count_as_0_and_a_disagreement_without_them_is_kept() -> None:
    old = [_row(str(n), 1.0) for n in range(60)]
    new = [_row(str(n), 0.0, failed=True) if n < 20 else _row(str(n), 1.0) for n in range(60)]
    contest = _only(compare_runs([_select(_run("A", {"x": old})), _select(_run("B", {"x": new}))]).contests)
    assert contest.verdict is not None
    assert (contest.verdict.word, contest.verdict.word_without_errors) == ("worse", "undecided")
    (own,) = contest.by_dataset.values()
    assert (own.word, own.word_without_errors) == ("worse", "undecided")
    assert contest.broken.count == 20


def test_the_second_run_of_the_baseline_is_left_out() -> None:
    systems = {name: _scores(OLD) for name in ("a", "a (again)", "b")}
    one, two = (_run(label, systems, baseline="a", twin="a (again)") for label in "AB")
    assert [each.name for each in compare_runs([_select(one)]).contests] == ["b"]
    assert [each.name for each in compare_runs([_select(one), _select(two)]).contests] == ["a", "b"]
    named = compare_runs([_select(one, "a"), _select(two, "a (again)")])
    assert [each.system for each in named.contests] == ["a (again)"]


def test_one_system_of_several_has_nothing_beside_it() -> None:
    run = _run("A", {"x": _scores(OLD), "y": _scores(NEW)})
    with pytest.raises(UsageError, match="A@x names one system: name another to compare it with"):
        compare_runs([Selection(run, ("x",), "A@x")])


def test_contexts_and_answers_have_no_verdict_between_them() -> None:
    systems = {name: _scores([score] * 400) for name, score in (("x", 0.0), ("y", 1.0), ("z", 1.0))}
    found = compare_runs([_select(_run("A", systems, unread=["y"]))], baseline="x")
    words = [each.verdict.word for each in found.contests if each.verdict is not None]
    assert words == ["undecided", "better"]
    assert found.contests[0].by_dataset["d"].word == "undecided"
    (note,) = found.notes
    assert note.startswith(
        "no verdict on y: one side returns contexts that no model has read, the other returns answers"
    )
    asked = compare_runs([_select(_run("A", systems, unread=["y"], score_field="contains"))], baseline="x")
    assert asked.notes == []
    assert asked.contests[0].verdict is not None
    assert asked.contests[0].verdict.word == "better"


def test_a_floor_as_good_as_the_baseline_takes_back_that_others_are() -> None:
    half = [1.0] * 200 + [0.0] * 200
    systems = {
        "x": _scores([1.0] * 400),
        "same": _scores([1.0] * 400),
        "half": _scores(half),
        "f": _scores([1.0] * 400),
    }
    run = _run("A", systems, floors=["f"], controls=["f"])
    found = compare_runs([_select(run)], baseline="x")
    assert {each.name: each.verdict.word for each in found.contests if each.verdict} == {
        "same": "undecided",
        "half": "worse",
        "f": "equivalent",
    }
    assert found.notes == ["these examples do not need their context: f, which reads none, is not worse than x"]
    assert {each.context_unneeded for each in found.contests} == set(found.notes)
    needed = _run("A", {**systems, "f": _scores([0.0] * 400)}, floors=["f"], controls=["f"])
    same, *_ = compare_runs([_select(needed)], baseline="x").contests
    assert same.verdict is not None
    assert same.verdict.word == "equivalent"


def test_several_runs_go_by_what_each_has_found_of_its_floor() -> None:
    """The floor of a run is held against its own baseline: a system that lost everything is no better than it."""
    reason = "these examples do not need their context: f, which reads none, is not worse than x"
    old, new = (_run(label, {"lossy": _scores([0.5] * 400)}) for label in "AB")
    (plain,) = compare_runs([_select(old), _select(new)]).contests
    (doubted,) = compare_runs([_select(old), _select(replace(new, context_unneeded=reason))]).contests
    assert plain.verdict is not None
    assert doubted.verdict is not None
    assert (plain.verdict.word, doubted.verdict.word) == ("equivalent", "undecided")
    assert (plain.context_unneeded, doubted.context_unneeded) == ("", reason)
