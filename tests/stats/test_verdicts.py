"""The five words."""

from __future__ import annotations

import json
import math

import pytest

from context_bench.stats import (
    WORDS,
    ClusterSums,
    Contrast,
    Difference,
    PairedSums,
    clustered_difference,
    decide_verdict,
    judge_family,
    paired_difference,
)
from later import Later

scipy = Later("scipy.stats")


def _difference(value: float, error: float, n: int = 500) -> Difference:
    return Difference(value, value, error * error, n - 1, n, "paired t")


@pytest.mark.parametrize(
    ("value", "error", "word"),
    [
        (0.0, 0.005, "equivalent"),
        (0.01, 0.003, "equivalent"),  # it excludes 0, and does not matter
        (-0.01, 0.003, "equivalent"),
        (0.05, 0.01, "better"),
        (-0.05, 0.01, "worse"),
        (0.015, 0.01, "not worse"),
        (0.006, 0.009, "not worse"),
        (-0.015, 0.01, "undecided"),
        (0.0, 0.05, "undecided"),
    ],
)
def test_words(value: float, error: float, word: str) -> None:
    verdict = decide_verdict(_difference(value, error))
    assert verdict.word == word
    assert word in WORDS
    assert verdict.not_worse == (word in ("equivalent", "better", "not worse"))
    assert (verdict.needed_n is not None) == (word == "undecided")
    assert verdict.interval.level == pytest.approx(0.95)


def test_the_margin_can_be_chosen() -> None:
    assert decide_verdict(_difference(0.03, 0.005), margin=0.05).word == "equivalent"
    assert decide_verdict(_difference(0.03, 0.005), margin=0.0).word == "better"


def test_undecided_says_what_would_decide() -> None:
    verdict = decide_verdict(_difference(-0.015, 0.01))
    # spread² = 500 · 0.0001; a difference of 0.015: (t + 0.8416)² · 0.05 / 0.015², with 1.96 for t 1,744.2
    assert verdict.needed_n == 1746
    # equivalent, if there is none: (t + 1.2816)² · 0.05 / 0.02², with 1.645 for t 1,070.5
    assert verdict.needed_n_if_equal == 1072
    told = "it takes at least 1,746 examples if the difference stays the same, 1,072 if there is none"
    assert verdict.reason == f"500 examples do not decide; {told}; even these may not be enough"
    assert not verdict.promised


def test_needed_examples_are_more_than_there_are() -> None:
    """In a family the correction, not the spread, may be what keeps a verdict open."""
    open_one = decide_verdict(_difference(-0.03, 0.01), p_holm=0.06, comparisons=20)
    assert open_one.word == "undecided"
    assert open_one.needed_n is not None
    assert open_one.needed_n > 500


def test_at_the_edge_of_the_margin_only_a_difference_can_be_shown() -> None:
    verdict = decide_verdict(_difference(-0.02, 0.02))
    # a spread² of 500 · 0.0004: the least n with (t + 0.8416) · √(0.2/n) at most 0.02
    needed = [(scipy.t.ppf(0.975, n - 1) + 0.8416212) * math.sqrt(0.2 / n) for n in (3926, 3927)]
    assert needed[0] > 0.02 >= needed[1]
    assert verdict.needed_n == 3927


def test_one_example_is_too_few() -> None:
    verdict = decide_verdict(paired_difference(PairedSums(1, 1.0, 1.0)))
    assert (verdict.word, verdict.reason, verdict.needed_n) == ("undecided", "too few examples: 1", None)
    assert json.dumps(verdict.to_dict(), allow_nan=False)


def test_one_conversation_is_too_few_whatever_its_length() -> None:
    sums = ClusterSums()
    for score in (0.0, -1.0, 0.0):
        sums.add("a", score)
    verdict = decide_verdict(clustered_difference(sums))
    assert (verdict.word, verdict.reason) == ("undecided", "all 3 examples are of one document or conversation")


def test_a_family_is_corrected_by_holm() -> None:
    weak, strong = _difference(0.03, 0.0135), _difference(0.08, 0.01)
    assert decide_verdict(weak).word == "better"
    verdicts = judge_family([Contrast("a", weak), Contrast("b", weak), Contrast("c", strong)])
    assert [verdict.word for verdict in verdicts] == ["not worse", "not worse", "better"]
    assert verdicts[0].p_holm == pytest.approx(2 * verdicts[0].p)
    assert verdicts[2].p_holm == pytest.approx(3 * verdicts[2].p)
    assert [verdict.name for verdict in verdicts] == ["a", "b", "c"]


def test_controls_never_win_and_correct_nobody() -> None:
    weak, strong = _difference(0.03, 0.0135), _difference(0.08, 0.01)
    system, oracle = judge_family([Contrast("mine", weak), Contrast("oracle", strong, control=True)])
    assert system.p_holm == system.p
    assert (system.wins, oracle.wins) == (True, False)
    assert oracle.word == "better"


def test_errored_pairs_left_out_may_change_the_word() -> None:
    bad, fine = _difference(-0.05, 0.01), _difference(0.0, 0.005)
    changed, same, unasked = judge_family(
        [Contrast("flaky", bad, fine), Contrast("bad", bad, bad), Contrast("plain", fine)]
    )
    assert (changed.word, changed.word_without_errors, changed.errors_disagree) == ("worse", "equivalent", True)
    assert (same.word_without_errors, same.errors_disagree) == ("worse", False)
    assert (unasked.word_without_errors, unasked.errors_disagree) == (None, False)


def test_as_json() -> None:
    data = json.loads(json.dumps(decide_verdict(_difference(0.05, 0.01), name="mine").to_dict(), allow_nan=False))
    assert (data["word"], data["name"], data["n"], data["margin"]) == ("better", "mine", 500, 0.02)
    assert data["interval"]["low"] == pytest.approx(0.05 - 1.9647 * 0.01, abs=1e-4)
