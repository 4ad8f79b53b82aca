"""The numbers of the probes over rows, with intervals by conversation."""

from __future__ import annotations

import math

import pytest

from context_bench.memory.probes import ProbeShares, find_excess_obedience
from context_bench.memory.scoring import READ_BY_SCRIPT
from context_bench.results import EvalRow


def _make_rows(values: list[float], key: str = "answer_instruction", per: int = 2) -> list[EvalRow]:
    return [
        EvalRow("s", f"c{place // per}/q{place}", {key: value, "score": 1.0}, 1, 1, {"group": f"c{place // per}"})
        for place, value in enumerate(values)
    ]


def test_each_score_is_averaged_over_the_rows_that_have_it() -> None:
    rows = [*_make_rows([1.0, 0.0, 1.0, 1.0], "probe_update"), *_make_rows([0.0, 0.0], "probe_leak")]
    assert ProbeShares().compute(rows) == {"probe_leak": 0.0, "probe_update": 0.75}
    assert ProbeShares().compute([]) == {}


def test_questions_of_one_conversation_count_for_fewer() -> None:
    together, apart = ProbeShares().start(), ProbeShares().start()
    values = [1.0] * 10 + [0.0] * 10
    for one, two in zip(_make_rows(values, "probe_update", 5), _make_rows(values, "probe_update", 1)):
        together.add(one)
        apart.add(two)
    wide, narrow = together.intervals()["probe_update"], apart.intervals()["probe_update"]
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_obedience_is_held_against_the_full_context() -> None:
    memory = _make_rows([0.0, 0.0, 0.0, 1.0])
    full = _make_rows([0.0, 1.0, 1.0, 1.0])
    found = find_excess_obedience(memory, full)
    assert found is not None
    assert found.value == pytest.approx(0.5)  # obeyed 3 of 4, the full context 1 of 4
    assert find_excess_obedience(memory, _make_rows([1.0], "probe_update")) is None


def test_abstention_is_not_measured_where_a_script_read() -> None:
    rows = [EvalRow("s", "c/q", {"score": 1.0}, 1, 1, {}, unscored={"abstention": READ_BY_SCRIPT})]
    tally = ProbeShares().start()
    tally.add(rows[0])
    assert math.isnan(tally.result()["abstention"])
    assert tally.unmeasured() == {"abstention": READ_BY_SCRIPT}
