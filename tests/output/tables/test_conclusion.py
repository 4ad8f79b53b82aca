"""What a run concludes: the words follow the verdicts, and savings are told only of systems that are not worse."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench import EvalResult
from context_bench.metrics import EvidenceShares
from context_bench.output.conclusion import conclude, describe_alone
from context_bench.output.verdict_tables import explain_verdicts
from context_bench.reporters import TableReporter
from context_bench.text.evidence_state import STATE_SCORES
from report_pages import make_result
from rows import failed_row, make_row

COSTS = {"whole": 1000, "third": 300, "half": 500, "lossy": 100, "floor": 10}


def _result(n: int, wrong: dict[str, int], **config: Any) -> EvalResult:
    """Contexts of 1,000 tokens; each system is wrong on its first so many of n examples."""
    rows = [
        make_row(
            float(number >= count),
            system=name,
            example_id=number,
            input_tokens=1000,
            output_tokens=COSTS[name],
            metadata={"output": "context"},
        )
        for name, count in wrong.items()
        for number in range(n)
    ]
    return make_result(rows, returns=dict.fromkeys(wrong, "context"), **config)


UNSHOWN = " It is not shown that this data could reveal a loss: third."
"""What follows where no context is known to hold what an answer needs."""


def test_the_largest_saving_that_is_not_worse_comes_first() -> None:
    # 200 equal pairs: 90% limits ±1.65/201 = ±0.008 lie within the margin of 0.02. 80 of 200 lost: worse.
    result = _result(200, {"whole": 0, "half": 0, "third": 0, "lossy": 80})
    assert conclude(result) == (
        "third is equivalent to whole, with 70.0% of the tokens saved; half is equivalent, with 50.0% of the tokens "
        "saved. Worse: lossy. It is not shown that this data could reveal a loss: third and half."
    )


def test_a_saving_stands_beside_that_of_a_baseline_which_saves_too() -> None:
    result = _result(200, {"half": 0, "third": 0})
    said = "third is equivalent to half, with 40.0% fewer tokens (70.0% of the tokens saved, half 50.0%)."  # 300 of 500
    assert conclude(result) == said + UNSHOWN


def test_a_saving_and_a_bill_that_are_not_sure_are_told_with_their_bounds() -> None:
    result = _result(200, {"whole": 0, "third": 0})
    result.summary["whole"]["cost_per_1k_usd"] = 10.0
    result.summary["third"].update(
        {"prompt_savings": 0.7, "prompt_savings_best": 0.7, "prompt_savings_worst": 0.2},
        cost_per_1k_usd=3.0,
        cost_per_1k_usd_best=3.0,
        cost_per_1k_usd_worst=8.0,
    )
    assert conclude(result) == (
        "third is equivalent to whole, with 20.0% to 70.0% of the prompt saved and $3.00 to $8.00 instead of $10.00 "
        "for 1,000 examples." + UNSHOWN
    )


def test_a_verdict_that_the_interval_shown_seems_to_contradict_is_explained() -> None:
    # 20 of 820 gained, 20 lost: √42 / 822 = 0.0079, so that the 90% limits are ±0.0130 and the 95% ones ±0.0155
    rows = [
        make_row(float(number // 20 != place), system=name, example_id=number)
        for place, name in enumerate(("whole", "third"))
        for number in range(820)
    ]
    said = "equivalent and not worse are decided by the 90% interval, which is narrower than the 95% one shown."
    assert said in TableReporter(wide=True).render(make_result(rows, margin=0.014))
    assert said not in TableReporter(wide=True).render(_result(300, {"whole": 0, "third": 0}))


def test_a_short_answer_is_no_saving() -> None:
    # both answer with 1 token to a prompt of 10: "compression" is 90%, and nothing is known of what a model read
    facts = {"input_tokens": 10, "output_tokens": 1, "metadata": {"output": "response"}}
    rows = [make_row(1.0, system=name, example_id=number, **facts) for name in "ab" for number in range(200)]
    result = make_result(rows)
    assert result.summary["b"]["compression_ratio"] == pytest.approx(0.9)
    assert conclude(result) == "b is equivalent to a."


def test_what_a_worse_system_saves_is_not_told() -> None:
    text = conclude(_result(200, {"whole": 0, "lossy": 80}))
    assert text == "No system is shown to be as good as whole. Worse: lossy."
    text = conclude(_result(100, {"whole": 0, "lossy": 80}))
    assert text == "No system is shown to be as good as whole. Worse: lossy."


def test_what_is_undecided_says_how_many_examples_would_decide() -> None:
    result = _result(50, {"whole": 0, "third": 1})
    assert result.comparison is not None
    (verdict,) = result.comparison.verdicts
    assert verdict.word == "undecided"
    assert conclude(result) == (
        "50 examples are too few to show equivalence within ±0.02: at least 149 are needed. Undecided: third; a "
        f"decision takes at least {verdict.needed_n:,} examples if the difference stays the same, "
        f"{verdict.needed_n_if_equal:,} if there is none; even these may not be enough."
    )
    assert few_notes(result) == ["50 examples are too few to show equivalence within ±0.02: at least 149 are needed."]


def few_notes(result: EvalResult) -> list[str]:
    return [note for note in explain_verdicts(result) if "too few to show" in note]


def test_what_holds_for_these_conversations_alone_is_said_so() -> None:
    result = _result(200, {"whole": 0, "third": 0})
    for row in result.rows:
        row.metadata = {**row.metadata, "cluster": f"c{int(row.example_id) % 10}"}
    known = {"returns": {"whole": "context", "third": "context"}}
    here = "equivalent on these 10 conversations or documents; a verdict beyond these takes at least 149"
    again = make_result(result.rows, **known)
    assert conclude(again).startswith(f"third is {here}.")
    assert "undecided (equivalent on these 10 conversations or documents)" in TableReporter(wide=True).render(again)
    fixed = make_result(result.rows, fixed_groups=True, **known)
    said = "third is equivalent to whole, with 70.0% of the tokens saved. "
    assert conclude(fixed) == f"{said}This holds only for these conversations or documents (--fixed-groups).{UNSHOWN}"
    assert "equivalent (these groups)" in TableReporter(wide=True).render(fixed)
    assert "hold for the conversations or documents of this run (--fixed-groups)." in TableReporter(wide=True).render(
        fixed
    )


def test_what_no_number_would_decide_says_why() -> None:
    said = conclude(_result(1, {"whole": 0, "third": 0}))
    few = "1 example is too few to show equivalence within ±0.02: at least 149 are needed."
    assert said == f"{few} Undecided: third (too few examples: 1)."


def test_the_settings_of_a_sweep_share_a_name() -> None:
    rows = [make_row(1.0, system="whole", example_id=number) for number in range(200)]
    rows += [
        make_row(float(number >= lost), system=f"cut:ratio=0.{lost // 10}", example_id=number)
        for lost in (20, 40, 60)
        for number in range(200)
    ]
    assert conclude(make_result(rows)).endswith(" Worse: cut:ratio=0.2|0.4|0.6.")
    assert conclude(make_result(rows[200:], baseline="cut:ratio=0.2")).endswith(" Worse: cut:ratio=0.4|0.6.")


def test_several_that_are_undecided_share_a_sentence() -> None:
    result = _result(50, {"whole": 0, "third": 1, "half": 3})
    assert result.comparison is not None
    few, many = sorted(verdict.needed_n or 0 for verdict in result.comparison.verdicts)
    assert 0 < few < many
    told = f"Undecided: third and half; a decision takes at least {few:,} to {many:,} examples if the difference stays"
    assert told in conclude(result)


def test_examples_that_need_no_context_are_said_so_and_nothing_is_saved() -> None:
    result = _result(200, {"whole": 0, "third": 0, "lossy": 80, "floor": 0}, controls=["floor"])
    assert conclude(result) == (
        "These examples do not need their context: floor, which reads none, is not worse than whole. Worse: lossy."
    )
    table = TableReporter(wide=True).render(result)
    assert "★" not in table
    assert "Pareto" not in table
    assert not any("pareto_rank" in values for values in result.summary.values())


def test_a_floor_whose_mean_alone_is_as_high_shows_nothing() -> None:
    """Of 100 examples a floor misses one: its mean is within 0.02, and it may still lose 3 points."""
    result = _result(100, {"whole": 0, "third": 0, "floor": 1}, controls=["floor"])
    assert "do not need" not in conclude(result)


def test_where_everybody_and_the_floor_are_always_right_nothing_can_be_lost() -> None:
    result = _result(20, {"whole": 0, "third": 0, "floor": 0}, controls=["floor"])
    assert conclude(result) == (
        "These examples do not need their context: every score is 1, also with floor, which reads none."
    )
    assert "do not need" not in conclude(_result(20, {"whole": 0, "third": 1, "floor": 0}, controls=["floor"]))
    assert "do not need" not in conclude(_result(20, {"whole": 0, "third": 0}))


def test_what_is_better_than_a_baseline_that_needs_no_context_is_named() -> None:
    result = _result(300, {"whole": 150, "third": 0, "floor": 150}, controls=["floor"])
    said = "These examples do not need their context: floor, which reads none, is not worse than whole. Better: third."
    assert conclude(result) == said


def test_a_baseline_that_failed_on_every_example_tells_nothing() -> None:
    rows = [make_row(1.0, system="good", example_id=number) for number in range(40)]
    rows += [failed_row(system="whole", example_id=number) for number in range(40)]
    said = "whole failed on every example, so no system can be compared with it."
    assert conclude(make_result(rows, baseline="whole")) == said


def test_that_nothing_is_saved_is_not_told() -> None:
    rows = [
        make_row(float(name == "same"), system=name, example_id=number, input_tokens=9, output_tokens=9)
        for name in ("whole", "same")
        for number in range(200)
    ]
    rows[0].scores["score"] = 1.0
    assert conclude(make_result(rows)) == "same is better than whole."


def test_floors_and_ceilings_cannot_be_chosen() -> None:
    result = _result(200, {"whole": 0, "third": 0, "floor": 200}, controls=["floor"])
    assert conclude(result) == f"third is equivalent to whole, with 70.0% of the tokens saved.{UNSHOWN}"
    alone = _result(200, {"whole": 0, "floor": 200}, controls=["floor"])
    assert conclude(alone) == ""


def test_a_system_that_failed_on_every_example_is_not_undecided() -> None:
    rows = [make_row(1.0, system="whole", example_id=number) for number in range(4)]
    rows += [failed_row(system="dead", example_id=number) for number in range(4)]
    result = make_result(rows)
    assert conclude(result) == ("No system is shown to be as good as whole. Failed on every example: dead.")
    result.config["stopped_systems"] = {"dead": "nobody listens"}
    assert conclude(result).endswith("as whole. Stopped, as the first request failed: dead.")


def test_scores_that_cancel_out_are_not_0_throughout() -> None:
    pairs = [(name, number, (-1.0, 1.0)[number % 2]) for name in ("whole", "third") for number in range(200)]
    result = make_result([make_row(score, system=name, example_id=number) for name, number, score in pairs])
    assert [values["mean_score"] for values in result.summary.values()] == [0.0, 0.0]
    assert "every score is 0" not in conclude(result)
    assert result.comparison is not None
    assert [verdict.word for verdict in result.comparison.verdicts] == ["equivalent"]


def test_where_nobody_scored_anything_nothing_is_equivalent() -> None:
    # 200 pairs of 0 and 0 differ by nothing, within any margin: a broken model would make every compressor a good one.
    result = _result(200, {"whole": 200, "third": 200, "half": 0})
    assert result.comparison is not None
    zero, other = result.comparison.verdicts
    assert (zero.word, zero.not_worse, other.word) == ("undecided", False, "better")
    assert "every score is 0 on both sides" in zero.reason
    assert any(note.startswith("no verdict on third: every score is 0") for note in result.comparison.notes)
    assert conclude(result) == (
        "half is better than whole, with 50.0% of the tokens saved. "
        "No verdict on third: every score is 0, also for whole."
    )
    alone = _result(200, {"whole": 200, "third": 200})
    assert conclude(alone) == "No verdict on third: every score is 0, also for whole."
    again = alone.compare(margin=0.1)
    assert again is not None
    assert [each.word for each in again.verdicts] == ["undecided"]


def test_without_a_second_system_nothing_is_concluded() -> None:
    assert conclude(_result(200, {"whole": 0})) == ""


def test_dollars_are_told_where_both_are_priced() -> None:
    result = _result(200, {"whole": 0, "third": 0})
    result.summary["whole"]["cost_per_1k_usd"], result.summary["third"]["cost_per_1k_usd"] = 2.5, 0.75
    assert conclude(result).endswith(
        f"70.0% of the tokens saved and $0.75 instead of $2.50 for 1,000 examples.{UNSHOWN}"
    )


def _priced(costs: dict[str, list[float | None]], words: list[float] | None = None) -> EvalResult:
    """Systems that all pass, with what each example cost; `words` are the shares of the prompt that they save."""
    rows = [
        make_row(1.0, system=name, example_id=number, metadata={} if cost is None else {"cost_usd": cost})
        for name, own in costs.items()
        for number, cost in enumerate(own)
    ]
    result = make_result(rows)
    for name, own in costs.items():
        known = [cost for cost in own if cost is not None]
        result.summary[name] = {**result.summary[name], "cost_per_1k_usd": 1000 * sum(known) / len(known)}
    for name, share in zip(list(costs)[1:], words or []):
        result.summary[name]["prompt_savings"] = share
    return result


@pytest.mark.parametrize(
    ("cost", "share", "told"),
    [
        (0.0013, -0.3, ", but with 30.0% added to the prompt and $1.30 instead of $1.00 for 1,000 examples."),
        (0.0013, 0.5, ", with 50.0% of the prompt saved, but with $1.30 instead of $1.00 for 1,000 examples."),
        (0.0005, 0.5, ", with 50.0% of the prompt saved and $0.50 instead of $1.00 for 1,000 examples."),
        (0.001, -0.0001, ", with 0.0% of the prompt saved and the same $1.00 for 1,000 examples."),
    ],
)
def test_what_costs_more_is_not_told_as_a_saving(cost: float, share: float, told: str) -> None:
    result = _priced({"direct": [0.001] * 200, "mine": [cost] * 200}, [share])
    assert conclude(result) == f"mine is equivalent to direct{told}"


def test_a_bill_of_nothing_is_not_told() -> None:
    assert conclude(_priced({"direct": [0.0] * 200, "mine": [0.0] * 200})) == "mine is equivalent to direct."


def test_bills_are_compared_over_the_examples_whose_cost_is_known_of_both() -> None:
    # Ten examples cost direct $0.10 each, and nobody knows what they cost mine: the means are $5.95 and $0.50 for
    # 1,000, while the 190 others differ by $0.001 - $0.0005 each, which is $0.50 for 1,000
    direct: list[float | None] = [0.001 + (number >= 190) * 0.099 for number in range(200)]
    mine: list[float | None] = [0.0005] * 190 + [None] * 10
    told = (
        "mine is equivalent to direct, with $0.50 less for 1,000 examples, over the 190 with known costs on both sides."
    )
    assert conclude(_priced({"direct": direct, "mine": mine})) == told


def test_a_bill_that_differs_by_chance_is_said_to() -> None:
    # 100 pairs differ by +$0.002 and 100 by -$0.0019: the mean, $0.05 for 1,000, is far within ±1.97 · 1.95 / √200
    result = _priced({"direct": [0.01] * 200, "mine": [0.012, 0.0081] * 100})
    assert conclude(result).endswith(", but with $10.05 instead of $10.00 for 1,000 examples (not significant).")


def test_a_word_that_errors_decide_is_told_with_the_other_one() -> None:
    # 30 of 200 failed and count as 0: worse. The 170 others are the same: 1.654 · √2 / 172 = 0.0136 < 0.02
    rows = [make_row(1.0, system="whole", example_id=number) for number in range(200)]
    rows += [failed_row(system="shaky", example_id=number) for number in range(30)]
    rows += [make_row(1.0, system="shaky", example_id=number) for number in range(30, 200)]
    assert conclude(make_result(rows)).endswith("Worse: shaky (equivalent without errors).")
    assert conclude(make_result(rows, baseline="shaky")) == "whole is better than shaky (equivalent without errors)."


def test_a_dataset_on_which_a_system_is_worse_is_named_whatever_it_is_over_all() -> None:
    # x: 0 to 200 of 200, y: 200 to 140; the mean of +1.0 and -0.3 is better. With x from 100 to 160 it is undecided.
    rows = [make_row(0.0, system="whole", example_id=number, dataset="x") for number in range(200)]
    rows += [make_row(1.0, system="whole", example_id=number, dataset="y") for number in range(200)]
    lossy = [make_row(float(number >= 60), system="lossy", example_id=number, dataset="y") for number in range(200)]
    good = [make_row(1.0, system="lossy", example_id=number, dataset="x") for number in range(200)]
    told = "lossy is better than whole over all datasets, but worse on y."
    assert conclude(make_result([*rows, *good, *lossy])) == told
    same = [make_row(float(number < 60), system="lossy", example_id=number, dataset="x") for number in range(200)]
    assert "Undecided: lossy (worse on y)" in conclude(make_result([*rows, *same, *lossy]))


def test_the_table_ends_with_it_and_no_line_is_too_long() -> None:
    result = _result(200, {"whole": 0, "half": 0, "third": 0, "lossy": 80})
    text = TableReporter(width=60, wide=True).render(result)
    last = text.rstrip("\n").split("\n\n")[-1].splitlines()
    assert " ".join(line.strip() for line in last) == conclude(result)
    assert all(len(line) <= 60 for line in last)


def _tapped(**kept: list[float]) -> EvalResult:
    """Systems behind a tap: of each example whether the evidence got through; half of the prompt did."""
    rows = [
        make_row(
            share,
            system=name,
            example_id=number,
            upstream_tokens=500,
            metadata={"sent_tokens": 1000, "output": "response"},
        )
        for name, shares in kept.items()
        for number, share in enumerate(shares)
    ]
    result = make_result(rows)
    for name, shares in kept.items():
        result.summary[name] |= {"evidence_survival": sum(shares) / len(shares), "prompt_savings": 0.5}
    return result


SCRIPT = {"reports": {"a": {"answered_by": "scripted/extract"}}}


def test_it_says_who_lost_the_evidence() -> None:
    full, half, most = [1.0] * 8, [1.0, 0.0] * 4, [0.0] * 6 + [1.0] * 2
    result = _tapped(direct=full, a=half, b=most, c=full)
    result.config |= SCRIPT
    assert conclude(result).endswith(
        " a: evidence was lost in 50.0% of the examples; b: evidence was lost in 75.0% of the examples. "
        "No evidence lost: c."
    )
    assert "No evidence lost: c." in conclude(_tapped(direct=full, c=full))
    assert "vidence" not in conclude(_result(50, {"whole": 0, "third": 1}))


def _tell_six(states: str, right: int) -> EvalResult:
    """One system that a model read behind: of six examples what became of the evidence, and how many are right."""
    scores = {"v": (1.0, 1.0), "r": (1.0, 0.0), "l": (0.0, 0.0)}
    rows = [
        make_row(
            system=name,
            example_id=number,
            upstream_tokens=500,
            metadata={"sent_tokens": 1000, "output": "response"},
            scores={**dict(zip(STATE_SCORES, scores[state])), "score": float(name == "direct" or number < right)},
        )
        for name in ("direct", "pruner")
        for number, state in enumerate("vvvvvv" if name == "direct" else states)
    ]
    result = make_result(rows)
    for name in ("direct", "pruner"):
        own = [row for row in rows if row.system == name]
        result.summary[name] |= {"prompt_savings": 0.5, **EvidenceShares().compute(own)}
    return result


@pytest.mark.parametrize(
    ("states", "right", "said"),
    [
        (
            "rrrrrr",
            6,
            "pruner is right in 6 of 6, although words of the evidence were dropped in 100.0% of the examples. ",
        ),
        ("rrrvvv", 5, "pruner is right in 5 of 6; words of the evidence were dropped in 50.0% of the examples. "),
        ("lllrrr", 6, "pruner is right in 6 of 6, although evidence was lost in 50.0% of the examples. "),
        ("lllvvv", 3, "pruner is right in 3 of 6; evidence was lost in 50.0% of the examples. "),
    ],
)
def test_the_answers_of_a_reader_come_before_what_became_of_the_evidence(states: str, right: int, said: str) -> None:
    assert conclude(_tell_six(states, right)).startswith(said)


def test_evidence_that_is_all_there_is_told_last() -> None:
    assert conclude(_tell_six("vvvvvv", 2)).endswith(" No evidence lost: pruner.")


def test_a_system_that_rewrites_is_told_what_counts_as_lost() -> None:
    result = _tell_six("lllvvv", 6)
    assert "reworded" not in conclude(result)
    result.summary["pruner"]["evidence_rewritten"] = 0.5
    assert conclude(result).startswith(
        "pruner is right in 6 of 6, although evidence was lost in 50.0% of the examples "
        "(reworded evidence counts as lost). "
    )


def test_evidence_that_was_not_looked_at_everywhere_is_not_said_to_be_kept() -> None:
    # a proxy that answers 6 of 8 from its own cache: what the model would have got is known of 2
    result = _tapped(direct=[1.0] * 8, cached=[1.0] * 8, lossy=[1.0] * 8)
    result.config |= SCRIPT
    result.summary["cached"]["evidence_rows"] = 2.0
    assert conclude(result).endswith("No evidence lost: cached (in the 2 of 8 examples where this is known) and lossy.")
    result.summary["lossy"] |= {"evidence_survival": 0.75, "evidence_rows": 4.0}
    assert "lossy: evidence was lost in 25.0% of the 4 of 8 examples where this is known" in conclude(result)


def test_what_a_script_read_is_said_to_be_that() -> None:
    said = conclude(_result(200, {"whole": 0, "lossy": 80}, memory={"read_by_script": True}))
    assert said.endswith(" Worse: lossy. No model answered in this run: judge by recall and probes.")


def test_one_system_alone_is_told_to_have_no_verdict() -> None:
    result = _tapped(mine=[1.0, 1.0, 1.0, 0.0])
    said = (
        "mine: evidence was lost in 25.0% of the examples. mine: 50.0% of the prompt saved. "
        "No verdict without a baseline: --controls adds one."
    )
    assert (conclude(result), describe_alone(result)) == ("", said)
    assert TableReporter(wide=True).render(result).endswith(f"\n\n{said}\n")
    assert describe_alone(_result(5, {"whole": 0})) == ""
    assert describe_alone(_tapped(direct=[1.0], c=[1.0])) == ""
