"""The baseline a second time: asked anew, interleaved, never ranked, never a winner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context_bench import EvalResult, evaluate
from context_bench.errors import UsageError
from context_bench.systems.adapt import Again, add_twin
from context_bench.systems.reference import Oracle, Passthrough
from context_bench.traits import find_finish, find_prepare, system_traits

GIVEN = [{"id": number, "context": "red or blue", "answer": "red"} for number in range(30)]


class Coin:
    """Answers by turns, whatever it is asked; the order of its calls is kept."""

    name = "coin"
    fingerprint = "coin/1"
    reads_gold = False

    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.calls: list[Any] = []

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(example["id"])
        return {"response": self.answers[(len(self.calls) - 1) % len(self.answers)]}


def test_it_stands_behind_the_baseline_and_does_not_compete() -> None:
    systems, twin = add_twin([Oracle(), Coin("red"), Passthrough()], None)
    assert [each.name for each in systems] == ["oracle", "coin", "passthrough", "passthrough (again)"]
    assert not system_traits(twin).competes
    alone, _ = add_twin([Coin("red")], None)
    assert [each.name for each in alone] == ["coin", "coin (again)"]
    with pytest.raises(UsageError, match="rename it"):
        add_twin([*alone], "coin")


def test_what_a_system_does_once_is_not_done_twice() -> None:
    class Started(Coin):
        async def prepare(self) -> None: ...

        def finish(self) -> None: ...

    system = Started("red")
    assert find_prepare(system) is not None
    assert find_prepare(Again(system)) is None
    assert find_finish(Again(system)) is None


def test_it_is_asked_anew_by_turns_and_not_from_the_store(tmp_path: Path) -> None:
    coin = Coin("red", "blue")  # the first run gets red, the second blue, on every example
    result = evaluate(coin, GIVEN, aa=True, cache_dir=tmp_path, progress=False)
    assert [row.system for row in result.rows[:4]] == ["coin", "coin (again)"] * 2
    assert len(coin.calls) == 60
    assert sorted(coin.calls[:20]) == sorted([*range(10), *range(10)])  # interleaved, example by example
    assert result.comparison is not None
    noise = result.comparison.noise
    assert noise is not None
    assert (noise.n, noise.flips) == (30, 30)
    again = evaluate(coin, GIVEN, aa=True, cache_dir=tmp_path, progress=False)
    assert len(coin.calls) == 60  # each has answers of its own in the store
    assert again.comparison == result.comparison


def test_it_is_not_ranked_and_has_no_verdict() -> None:
    def good(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": "red"}

    result = evaluate([Coin("blue"), good], GIVEN, aa=True, progress=False)
    assert result.comparison is not None
    assert [verdict.name for verdict in result.comparison.verdicts] == ["good"]
    assert "pareto_rank" not in result.summary["coin (again)"]
    assert result.notes["coin (again)"]["pareto_rank"] == "not ranked: it is the baseline, run again"
    assert not any("retention" in values for values in result.summary.values())
    table = result._repr_markdown_()
    # Wilson with t(29) = 2.0452: c²/n = 0.1394, and the upper limit of 0 of 30 is 0.1394/1.1394
    assert (
        "noise: no disagreement seen: coin agrees with itself on all 30 examples, so it disagrees on at most 12.2%."
        in table
    )


def test_noise_goes_to_json_and_back() -> None:
    result = evaluate(Coin("red", "blue"), GIVEN, aa=True, progress=False)
    back = EvalResult.from_json(result.to_json())
    assert back.comparison == result.comparison
    assert back.compare() == result.comparison
    flat = evaluate(Coin("red", "blue"), GIVEN, aa=True, progress=False, keep_rows=False)
    assert flat.comparison == result.comparison
