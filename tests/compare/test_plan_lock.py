"""A plan that was fixed in advance, and what a run says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from context_bench.compare.plans import Lock, count_earlier, describe_lock, find_deviations, read_lock, write_lock
from context_bench.errors import UsageError

LOCK = Lock("mean_score", "score", 0.02, "a", 200, ("a", "b"), ("d",), "2026-01-02")
KEPT: dict[str, Any] = {
    "score_field": "score",
    "margin": 0.02,
    "baseline": "a",
    "systems": {"a": "", "b": ""},
    "datasets": {"d": 200},
}


def test_it_is_read_as_it_was_written_and_never_overwritten(tmp_path: Path) -> None:
    write_lock(LOCK, tmp_path / "plan.json")
    assert read_lock(tmp_path / "plan.json") == LOCK
    with pytest.raises(UsageError, match="already exists"):
        write_lock(LOCK, tmp_path / "plan.json")


def test_a_run_that_kept_to_it() -> None:
    assert find_deviations(LOCK, KEPT) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"margin": 0.05}, "the margin is 0.05, planned 0.02"),
        ({"score_field": "f1"}, "the score is f1, planned score"),
        ({"baseline": "b"}, "the baseline is b, planned a"),
        ({"datasets": {"d": 150}}, "the number of examples is 150, planned 200"),
        ({"systems": {"a": ""}}, "the system b is missing"),
        ({"systems": {"a": "", "b": "", "c": ""}}, "the system c is not in the plan"),
        ({"stopped": "interrupted"}, "the run stopped early (interrupted)"),
        ({"stopped_systems": {"b": "wrong key"}}, "b was stopped"),
    ],
)
def test_what_deviates(change: dict[str, Any], said: str) -> None:
    assert find_deviations(LOCK, {**KEPT, **change}) == [said]


def test_another_dataset_changes_the_metric_too() -> None:
    found = find_deviations(LOCK, {**KEPT, "datasets": {"d": 100, "e": 100}})
    assert found == ["the metric is macro_score, planned mean_score", "the dataset e is not in the plan"]


def test_earlier_runs_of_the_same_comparison() -> None:
    others = [{**KEPT, "systems": {"a": ""}}, {**KEPT, "datasets": {"x": 1}}, {}]
    assert count_earlier(LOCK, [KEPT, *others, {**KEPT, "margin": 0.5}]) == 2


def test_the_sentence() -> None:
    plan = {"file": "p.json", "lock": LOCK.to_dict(), "earlier_runs": 1}
    assert describe_lock({**KEPT, "plan": plan}) == (
        "as planned (p.json, locked 2026-01-02). The store has 1 earlier run of the same comparison."
    )
    other = describe_lock({**KEPT, "margin": 0.1, "plan": {**plan, "earlier_runs": None}})
    assert other.startswith("not as planned (p.json, locked 2026-01-02): the margin is 0.1, planned 0.02.")
    assert "are unknown" in other
    assert describe_lock(KEPT) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "invalid JSON"),
        ("[]", "is not a plan"),
        ("{}", "is not a plan"),
        (json.dumps({"context_bench_plan": 1}), "is missing"),
        (json.dumps({"context_bench_plan": 1, **LOCK.to_dict(), "n": "many"}), "n must be an integer"),
        (json.dumps({"context_bench_plan": 1, **LOCK.to_dict(), "margin": 2}), "margin must be a number between"),
        (json.dumps({"context_bench_plan": 1, **LOCK.to_dict(), "systems": "a"}), "systems must be a list"),
        (json.dumps({"context_bench_plan": 1, **LOCK.to_dict(), "color": "red"}), "'color' is not part of a plan"),
    ],
)
def test_a_file_that_is_not_a_plan(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(UsageError, match=said):
        read_lock(tmp_path / "p.json")


def test_a_plan_that_cannot_be() -> None:
    for change in ({"baseline": "z"}, {"systems": ("a",)}, {"datasets": ()}):
        with pytest.raises(UsageError):
            replace(LOCK, **change)
