"""What became of the evidence."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench import EvalRow
from context_bench.metrics import EvidenceShares
from rows import failed_row, make_row

STATES = ("evidence_verbatim", "evidence_recoverable", "evidence_lost", "evidence_rewritten")
SHARES = ("lost_by_system", "failed_anyway", "right_without_evidence")


def _row(survived: float, score: float) -> EvalRow:
    return make_row(scores={"evidence_survived": survived, "score": score})


def test_ten_rows_by_hand() -> None:
    # kept and right 4, kept and wrong 1, lost and right 2, lost and wrong 3
    rows = [_row(1, 1)] * 4 + [_row(1, 0)] + [_row(0, 1)] * 2 + [_row(0, 0)] * 3
    values = EvidenceShares().compute(rows)
    assert values == {
        "evidence_survival": 0.5,
        "evidence_verbatim": 0.5,
        "evidence_recoverable": 0.0,
        "evidence_lost": 0.5,
        "evidence_rewritten": 0.0,
        "lost_by_system": 0.3,
        "failed_anyway": 0.1,
        "right_without_evidence": 0.2,
        "evidence_rows": 10.0,
    }
    kept_and_right = values["evidence_survival"] - values["failed_anyway"]
    assert kept_and_right + sum(values[key] for key in SHARES) == pytest.approx(1.0)


def test_three_states_by_hand() -> None:
    # 3 verbatim, 2 recoverable (one of them wrong), 1 lost where nothing was written, 2 lost in a text of its own words
    recoverable = {"evidence_survived": 1.0, "evidence_verbatim": 0.0}
    rewritten = {"evidence-survival": {"lost": 1, "rewritten": True}}
    lost = {"evidence_survived": 0.0, "evidence_verbatim": 0.0, "score": 0.0}
    rows = [make_row(scores={"evidence_survived": 1.0, "evidence_verbatim": 1.0, "score": 1.0})] * 3
    rows += [make_row(scores={**recoverable, "score": score}) for score in (1.0, 0.0)]
    rows += [make_row(scores=lost), *[make_row(scores=lost, metadata=rewritten)] * 2]
    values = EvidenceShares().compute(rows)
    shares = {key: values[f"evidence_{key}"] for key in ("verbatim", "recoverable", "lost", "rewritten", "survival")}
    assert shares == {"verbatim": 0.375, "recoverable": 0.25, "lost": 0.375, "rewritten": 0.25, "survival": 0.625}
    assert values["failed_anyway"] == 0.125


def test_a_score_at_the_threshold_is_right() -> None:
    rows = [_row(1, 0.7), _row(1, 0.69)]
    assert EvidenceShares().compute(rows)["failed_anyway"] == 0.5
    assert EvidenceShares(threshold=0.5).compute(rows)["failed_anyway"] == 0.0
    assert EvidenceShares(threshold=0.9).compute(rows)["failed_anyway"] == 1.0


def test_the_score_that_counts_can_be_chosen() -> None:
    row = make_row(scores={"evidence_survived": 0.0, "score": 0.0, "contains": 1.0})
    assert EvidenceShares(score_field="contains").compute([row])["right_without_evidence"] == 1.0
    assert EvidenceShares().compute([row])["lost_by_system"] == 1.0


def test_rows_without_either_score_and_failed_ones_are_left_out() -> None:
    others = [
        make_row(1.0),
        make_row(1.0, field="evidence_survived"),
        make_row(),
        failed_row(scores={"evidence_survived": 1.0, "score": 1.0}),
    ]
    assert EvidenceShares().compute([_row(0, 1), *others])["evidence_rows"] == 1.0
    assert EvidenceShares().compute([_row(0, 1), *others])["right_without_evidence"] == 1.0
    assert EvidenceShares().compute(others) == {}


UNKNOWN = "it is unknown which of several calls gave the answer"


def _unknown(reason: str = UNKNOWN, **facts: Any) -> EvalRow:
    """A row whose evidence was looked for and not found out about."""
    values = {"metadata": {"answer_unknown": UNKNOWN}, "unscored": {"evidence-survival": reason}, **facts}
    return make_row(1.0, **values)


def test_rows_of_which_it_is_not_known_give_a_best_and_a_worst_case() -> None:
    rows = [_row(1, 1), _row(0, 0), _row(1, 0), _unknown(), _unknown()]
    values = EvidenceShares().compute(rows)
    assert (values["evidence_survival"], values["evidence_rows"]) == (pytest.approx(2 / 3), 3.0)
    assert (values["evidence_survival_best"], values["evidence_survival_worst"]) == (0.8, 0.4)


@pytest.mark.parametrize(
    "other",
    [
        _unknown("no evidence"),
        _unknown(metadata={}),  # a proxy without a tap, or one that sends its requests past it
        _unknown(error="TimedOut: no answer"),
        make_row(1.0),
    ],
)
def test_only_what_the_tap_could_not_tell_widens_it(other: EvalRow) -> None:
    assert set(EvidenceShares().compute([_row(1, 1), other])) == {
        "evidence_survival",
        "evidence_rows",
        *STATES,
        *SHARES,
    }


def test_nothing_known_has_no_bounds() -> None:
    assert EvidenceShares().compute([]) == {}


def test_nothing_but_unknown_rows_may_be_anything() -> None:
    bounds = {"evidence_survival_best": 1.0, "evidence_survival_worst": 0.0}
    assert EvidenceShares().compute([_unknown()]) == bounds


def test_no_rows_give_no_keys() -> None:
    assert EvidenceShares().compute([]) == {}
