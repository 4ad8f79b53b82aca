"""One name, one meaning: table, JSON, CSV and Python agree, and what was not measured is not a number."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import EvalResult, EvalRow, OpenAIProxy, evaluate
from context_bench.caveats import find_unscored
from context_bench.errors import UsageError
from context_bench.evaluators import AnswerQuality, ContextRecall
from context_bench.metrics import (
    CostOfPass,
    EvidenceShares,
    Latency,
    MeanScore,
    PassRate,
    PerDatasetBreakdown,
    UpstreamCost,
)
from context_bench.output.layout import undo_escapes
from context_bench.reporters import CsvReporter, TableReporter
from context_bench.store import Store
from context_bench.summary import summarize
from context_bench.systems import ClaudeCLI, Passthrough, WithReader
from context_bench.systems.adapt import rename_system
from rows import failed_row, make_row
from servers import Server, completion

QUESTIONS = [
    {
        "id": number,
        "context": f"The code of box {number} is {number * 7}.",
        "question": "code?",
        "answer": str(number * 7),
    }
    for number in range(4)
]


def half(example: dict[str, Any]) -> dict[str, Any]:
    return {"context": example["context"][: len(example["context"]) // 2]}


def answer(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": "seven"}


def table(result: EvalResult) -> dict[str, dict[str, str]]:
    """The first table by system and title."""
    lines = TableReporter(wide=True).render(result).split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("| -")]
    return {undo_escapes(row[0]): dict(zip(rows[0], row)) for row in rows[1:]}


def in_json(result: EvalResult) -> dict[str, dict[str, float | None]]:
    return dict(json.loads(result.to_json())["summary"])


# --- compression


def test_the_compression_of_a_proxy_is_not_measured_in_all_four() -> None:
    with Server(completion("7")) as server:
        result = evaluate(OpenAIProxy(server.url, name="proxy"), QUESTIONS, progress=False)
    assert math.isnan(result.summary["proxy"]["compression_ratio"])
    assert in_json(result)["proxy"]["compression_ratio"] is None
    assert table(result)["proxy"]["saved"] == "not measured"
    assert result.notes["proxy"]["compression_ratio"].startswith(
        "not measured: a proxy's compression can only be measured with --tap"
    )
    assert json.loads(result.to_json())["notes"] == result.notes
    assert "compression_ratio" not in next(csv.reader(io.StringIO(CsvReporter().render(result))))
    assert result.summary["proxy"]["mean_output_tokens"] == 1.0  # the tokens of its answer, which were counted


def test_the_cost_of_pass_of_a_plain_proxy_counts_replies_only_and_says_so() -> None:
    with Server(completion("7")) as server:
        result = evaluate(OpenAIProxy(server.url, name="proxy"), QUESTIONS, progress=False)
    cells, text = table(result)["proxy"], TableReporter().render(result)
    assert cells["cost of pass"].startswith("4*")
    assert "* cost of pass: counts only the tokens of replies; with --tap, also those that the model read" in text


def test_a_proxy_under_another_name_is_a_proxy_still() -> None:
    with Server(completion("7")) as server:
        result = evaluate(rename_system(OpenAIProxy(server.url), "mine"), QUESTIONS, progress=False)
    assert math.isnan(result.summary["mine"]["compression_ratio"])


def test_the_claude_command_sends_its_request_elsewhere() -> None:
    assert ClaudeCLI(command=sys.executable).sends_elsewhere


def test_any_other_system_that_answers_keeps_the_formula_with_a_note() -> None:
    result = evaluate(answer, QUESTIONS, progress=False)
    given = sum(row.input_tokens for row in result.rows)
    ratio = 1 - 4 / given  # "seven" is one token
    assert result.summary["answer"]["compression_ratio"] == pytest.approx(ratio)
    assert in_json(result)["answer"]["compression_ratio"] == pytest.approx(ratio)
    assert table(result)["answer"]["saved"].startswith(f"{ratio:.1%}* ")
    assert result.notes["answer"]["compression_ratio"].startswith("response against prompt")
    assert "compression_ratio" not in evaluate(half, QUESTIONS, progress=False).notes.get("half", {})


def test_a_compressor_with_a_reader_is_measured() -> None:
    with Server(completion("7")) as server:
        result = evaluate(WithReader(half, OpenAIProxy(server.url)), QUESTIONS, progress=False)
    assert result.summary["half"]["compression_ratio"] == pytest.approx(0.4, abs=0.15)


def test_notes_survive_json_the_store_and_a_filter(tmp_path: Path) -> None:
    with Server(completion("7")) as server:
        systems = [OpenAIProxy(server.url, name="proxy"), answer]
        result = evaluate(systems, QUESTIONS, progress=False, cache_dir=tmp_path)
    back = EvalResult.from_json(result.to_json())
    assert back.notes == result.notes
    assert math.isnan(back.summary["proxy"]["compression_ratio"])
    part = result.filter(system="proxy")
    assert math.isnan(part.summary["proxy"]["compression_ratio"])
    assert part.notes["proxy"]["compression_ratio"] == result.notes["proxy"]["compression_ratio"]
    shown = called("runs", "export", "last", "--output", "json", "--cache-dir", str(tmp_path), cwd=tmp_path)
    document = json.loads(shown.stdout)
    assert document["summary"]["proxy"]["compression_ratio"] is None
    assert document["notes"]["proxy"] == result.notes["proxy"]
    assert "not measured" in called("runs", "show", "last", "--cache-dir", str(tmp_path), cwd=tmp_path).stdout


def test_a_result_without_rows_reads_back_what_was_not_measured() -> None:
    values = {"cost_of_pass": math.nan, "num_passing": math.nan, "mean_score": math.nan}
    notes = {"s": dict.fromkeys(values, "not measured: no row has the score 'score'")}
    back = EvalResult.from_json(EvalResult([], {"s": values}, notes=notes).to_json())
    assert all(math.isnan(value) for value in back.summary["s"].values())
    nothing_passed = EvalResult([], {"s": {"cost_of_pass": math.inf, "num_passing": 0.0}})
    assert EvalResult.from_json(nothing_passed.to_json()).summary["s"]["cost_of_pass"] == math.inf


# --- nothing scored


class Broken:
    name = "broken"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        raise RuntimeError("no judge")


SCORE_NUMBERS = ("mean_score", "pass_rate", "cost_of_pass", "num_passing")


def test_a_judge_that_rates_nothing_says_why_also_where_another_score_counts() -> None:
    why = {"llm-judge": "the judge did not answer: it is down"}
    rows = [make_row(1.0, field="f1", example_id=number, unscored=why) for number in range(3)]
    metrics = [MeanScore("f1"), MeanScore("judge_score")]
    none = summarize(rows, ["s"], metrics, {"score_field": "f1"})
    said = "the judge did not rate 3 of 3 answers: the judge did not answer: it is down (3 rows)"
    assert none.notes["s"]["mean_score:judge_score"] == f"not measured: {said}"
    assert find_unscored(none.numbers, none.notes, {}) == [f"no judge score for s: {said}"]
    rated = make_row(1.0, field="f1", example_id=9)
    rated.scores["judge_score"] = 1.0
    some = summarize([*rows, rated], ["s"], metrics, {"score_field": "f1"})
    assert some.notes["s"]["mean_score:judge_score"].startswith("the judge did not rate 3 of 4 answers")
    assert find_unscored(some.numbers, some.notes, {}) == []


def test_an_evaluator_that_always_raises_gives_no_zero() -> None:
    with pytest.warns(
        UserWarning, match=r"nothing could be scored for passthrough, half: .*RuntimeError: no judge"
    ) as told:
        result = evaluate([Passthrough(), half], QUESTIONS, evaluators=[Broken()], progress=False)
    assert len(told) == 1  # one cause, told once
    for name in ("passthrough", "half"):
        for key in SCORE_NUMBERS:
            assert math.isnan(result.summary[name][key])
            assert "no row has the score 'score'" in result.notes[name][key]
        assert "pareto_rank" not in result.summary[name]
        assert result.notes[name]["pareto_rank"] == "not ranked: nothing was scored"
        assert table(result)[name]["score"] == "not measured"


def test_a_score_that_no_metric_reads_is_named() -> None:
    class Two:
        name = "two"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"depth": 0.5, "width": 1.0}

    with pytest.warns(UserWarning, match=r"choose another score with score_field \(--score-field\): depth, width"):
        result = evaluate(half, QUESTIONS, evaluators=[Two()], progress=False)
    assert math.isnan(result.summary["half"]["mean_score"])
    chosen = evaluate(half, QUESTIONS, evaluators=[Two()], score_field="depth", threshold=0.5, progress=False)
    assert chosen.summary["half"]["mean_score"] == 0.5
    assert chosen.summary["half"]["pass_rate"] == 1.0
    assert [row.scores["score"] for row in chosen.rows] == [0.5] * 4


@pytest.mark.parametrize("tag", ["", "needle"])
def test_the_one_score_of_a_user_s_evaluator_counts(tag: str) -> None:
    class One:
        name = "one"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"depth": 0.75}

    data = [{**each, "dataset": tag} for each in QUESTIONS]
    result = evaluate(half, data, evaluators=[One()], progress=False)
    assert result.summary["half"]["mean_score"] == 0.75
    assert "score = depth." in TableReporter(wide=True).render(result)


def test_one_dataset_of_two_without_a_score_is_told() -> None:
    class OnlyA:
        name = "only-a"
        score_fields = ("score",)

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"score": 1.0} if original["dataset"] == "a" else {}

    data = [{**each, "dataset": tag} for tag in "ab" for each in QUESTIONS]
    metrics = [MeanScore(), CostOfPass(), PerDatasetBreakdown("score")]
    with pytest.warns(UserWarning, match="nothing in b could be scored for half"):
        result = evaluate(half, data, evaluators=[OnlyA()], metrics=metrics, progress=False)
    values = result.summary["half"]
    assert (values["mean_score"], values["dataset:a"]) == (1.0, 1.0)
    assert math.isnan(values["dataset:b"])
    assert math.isnan(values["cost_of_pass@b"])
    assert values["num_unscored@b"] == 4.0
    assert "not measured" in TableReporter(wide=True).render(result)


def test_a_run_without_gold_is_about_tokens_and_time() -> None:
    data = [{"id": 1, "context": "some words and a few more of them"}]
    result = evaluate(half, data, progress=False)  # no warning
    assert math.isnan(result.summary["half"]["mean_score"])
    assert result.summary["half"]["compression_ratio"] > 0
    assert "no gold answers: tokens and time only." in TableReporter(wide=True).render(result)


def test_a_system_that_failed_on_every_row_keeps_its_zero_and_is_not_ranked() -> None:
    def fails(example: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("never")

    result = evaluate([fails, Passthrough()], QUESTIONS, progress=False)
    values = result.summary["fails"]
    assert (values["mean_score"], values["pass_rate"], values["cost_of_pass"]) == (0.0, 0.0, math.inf)
    for key in ("compression_ratio", "latency_median", "latency_p99"):
        assert math.isnan(values[key])
    assert result.notes["fails"]["mean_score"].startswith("all failed")
    assert "pareto_rank" not in values
    assert result.notes["fails"]["pareto_rank"] == "not ranked: all failed"
    assert result.summary["passthrough"]["pareto_rank"] == 1.0
    assert table(result)["fails"]["errors"] == "all failed"


def test_errors_and_unscored_rows_alone_are_no_score() -> None:
    rows = [failed_row(), make_row(None)]
    assert math.isnan(summarize(rows, ["s"], [MeanScore()]).numbers["s"]["mean_score"])
    assert MeanScore().compute(rows) == {"mean_score": 0.0}  # the formula itself stays
    assert CostOfPass().compute([]) == {"cost_of_pass": math.inf, "num_passing": 0.0}


def test_a_latency_of_no_row_is_not_zero() -> None:
    summary = summarize([failed_row()], ["s"], [Latency()])
    assert math.isnan(summary.numbers["s"]["latency_p95"])
    assert summary.notes["s"]["latency_p95"] == "not measured: no row succeeded"


def test_the_cause_is_told_also_where_another_evaluator_gave_a_score() -> None:
    def length(original: dict[str, Any], processed: dict[str, Any]) -> float:
        return 1.0

    with pytest.warns(UserWarning, match=r"RuntimeError: no judge .*; choose another score .*: length"):
        evaluate(half, QUESTIONS, evaluators=[Broken(), length], score_field="zed", progress=False)


def test_empty_answers_are_told() -> None:
    result = evaluate(lambda _: {"response": ""}, QUESTIONS, progress=False)
    assert result.summary["<lambda>"]["mean_score"] == 0.0
    assert result.notes["<lambda>"]["mean_score"] == "4 of 4 answers were empty"
    assert table(result)["<lambda>"]["score"].startswith("0.000*")


def test_a_cost_without_the_rows_that_could_not_be_told_says_so() -> None:
    known = make_row(1.0, upstream_tokens=100, metadata={"response_tokens": 5})
    unknown = make_row(1.0, metadata={"least_upstream_tokens": 100, "most_upstream_tokens": 1100})
    summary = summarize([known, unknown], ["s"], [UpstreamCost()])
    assert summary.numbers["s"]["upstream_cost_of_pass"] == 105.0
    assert (
        "1 rows whose calls could not be matched to them with certainty are left out"
        in summary.notes["s"]["upstream_cost_of_pass"]
    )
    alone = summarize([unknown], ["s"], [UpstreamCost()])
    assert math.isnan(alone.numbers["s"]["upstream_cost_of_pass"])
    assert "could not be matched to it with certainty" in alone.notes["s"]["upstream_cost_of_pass"]
    late = summarize([known], ["s"], [UpstreamCost()], {"reports": {"s": {"late_calls": 2, "late_tokens": 50}}})
    assert "2 late calls are not included" in late.notes["s"]["upstream_cost_of_pass"]


def test_bounds_stand_beside_the_numbers_of_each_dataset_too() -> None:
    facts = {"answer_unknown": "why"}
    unknown = [make_row(1.0, dataset=tag, metadata=facts, unscored={"evidence-survival": "why"}) for tag in "abab"]
    rows = [*unknown, *(make_row(1.0, dataset=tag) for tag in "abab")]
    for row in rows[4:]:
        row.scores["evidence_survived"] = 1.0
    summary = summarize(rows, ["s"], [EvidenceShares()])
    for key in ("evidence_survival", "evidence_survival@a", "evidence_survival@b"):
        assert summary.numbers["s"][key] == 1.0
        assert summary.notes["s"][key].endswith("the value lies from 50.0% to 100.0%")
    nothing = summarize(unknown, ["s"], [EvidenceShares()])
    assert math.isnan(nothing.numbers["s"]["evidence_survival"])
    assert nothing.notes["s"]["evidence_survival"].endswith("the value lies from 0.0% to 100.0%")


# --- one name for one score


def test_two_means_have_two_names() -> None:
    data = [{"id": 1, "context": "The code is 7 or so", "question": "code?", "answer": "7"}]
    metrics = [MeanScore("f1"), MeanScore("recall"), PassRate(0.9, "f1"), PassRate(0.1, "f1"), MeanScore("f1")]
    result = evaluate(Passthrough(), data, evaluators=[AnswerQuality()], metrics=metrics, progress=False)
    values = result.summary["passthrough"]
    # Five words after normalisation (code, is, 7, or, so), one of them the answer: precision 1/5, recall 1.
    assert values["mean_score"] == pytest.approx(2 * 0.2 / 1.2)
    assert values["mean_score:recall"] == 1.0
    assert (values["pass_rate"], values["pass_rate:threshold=0.1"]) == (0.0, 1.0)
    shown = table(result)["passthrough"]
    assert (shown["score"], shown["mean_score:recall"]) == ("0.333 (too few)", "1.000")
    assert "score = f1." in TableReporter(wide=True).render(result)


def test_a_user_s_metric_with_a_key_of_ours_has_a_name_of_its_own() -> None:
    class Best:
        name = "best"

        def compute(self, rows: list[EvalRow]) -> dict[str, float]:
            return {"mean_score": 2.0}

    result = evaluate(Passthrough(), QUESTIONS, metrics=[MeanScore("recall"), Best()], progress=False)
    assert result.summary["passthrough"]["mean_score"] == 1.0
    assert result.summary["passthrough"]["mean_score:best"] == 2.0


def test_the_score_that_was_asked_for_is_the_score_of_every_row(tmp_path: Path) -> None:
    data = tmp_path / "own.jsonl"
    data.write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS))
    run = ("--system", "passthrough", "--dataset", "own.jsonl", "--score-field", "recall")
    document = json.loads(called(*run, "--output", "json", cwd=tmp_path).stdout)
    assert document["summary"]["passthrough"]["mean_score"] == 1.0
    assert [row["scores"]["score"] for row in document["rows"]] == [1.0] * 4
    lines = list(csv.DictReader(io.StringIO(called("runs", "export", "last", "--output", "csv", cwd=tmp_path).stdout)))
    assert [line["score"] for line in lines] == [line["recall"] for line in lines] == ["1.0"] * 4
    listed = called("diff", "last", cwd=tmp_path).stdout
    assert listed.count("1.000") == 4
    # Another field over the same answers is another score, and no request.
    again = json.loads(called(*run[:-1], "f1", "--resume", "--output", "json", cwd=tmp_path).stdout)
    assert [row["scores"]["score"] for row in again["rows"]] == [row["scores"]["f1"] for row in again["rows"]]
    assert again["summary"]["passthrough"]["mean_score"] < 0.5


def test_a_resumed_run_knows_the_name_of_its_score(tmp_path: Path) -> None:
    data = tmp_path / "own.jsonl"
    letter = {"id": "x", "context": "c", "question": "which?", "choices": ["a", "b"], "correct_letter": "B"}
    data.write_text("".join(json.dumps(each) + "\n" for each in [*QUESTIONS, letter]))
    (tmp_path / "says.py").write_text("def says_b(example):\n    return {'response': 'The answer is B.'}\n")
    run = ("--system", "says.py:says_b", "--dataset", "own.jsonl", "--resume")
    first, second = (called(*run, cwd=tmp_path) for _ in range(2))
    for each in (first, second):  # most examples have an answer: the one with a letter alone is unscored
        assert "score = f1;" in each.stdout
        assert "unscored" in each.stdout
    assert "rows come from the cache" in second.stderr


def test_a_run_that_was_killed_knows_the_name_of_its_score(tmp_path: Path) -> None:
    evaluate(Passthrough(), QUESTIONS, cache_dir=tmp_path, progress=False)
    with Store(tmp_path) as store:
        store.end_run(store.run("last"), "running", EvalResult([], {}, {}, store.run("last").config))
    shown = called("runs", "show", "last", "--cache-dir", str(tmp_path), cwd=tmp_path).stdout
    assert "score = answer_in_context;" in shown
    assert "by its fields" not in shown


# --- thresholds


@pytest.mark.parametrize("threshold", [70, 1.01, -0.1])
def test_a_threshold_that_nothing_or_everything_passes_is_an_error(threshold: float) -> None:
    with pytest.raises(UsageError, match="threshold must be from 0 to 1"):
        evaluate(half, QUESTIONS, threshold=threshold)


def test_a_score_of_one_s_own_may_have_any_threshold() -> None:
    class Stars:
        name = "stars"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"stars": 80.0}

    result = evaluate(half, QUESTIONS, evaluators=[Stars()], score_field="stars", threshold=70, progress=False)
    assert result.summary["half"]["pass_rate"] == 1.0

    def percent(original: dict[str, Any], processed: dict[str, Any]) -> float:
        return 80.0

    function = evaluate(half, QUESTIONS, percent, score_field="percent", threshold=70, progress=False)
    assert function.summary["half"]["pass_rate"] == 1.0


SUMMARIES = [
    {"id": 1, "context": "c", "question": "q", "answer": "the cat sat on the mat today", "dataset": "dialogsum"},
    {"id": 2, "context": "c", "question": "q", "answer": "dogs bark", "dataset": "dialogsum"},
]


def cat(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": "the cat lay on the mat"}


def test_where_a_threshold_means_little_the_numbers_say_so() -> None:
    result = evaluate([cat, answer], SUMMARIES, progress=False)
    values = result.summary["cat"]
    # Seven and six words with a common subsequence of five (the cat on the mat): 2*5/13 = 0.769, and 0 for the dogs.
    assert values["pass_rate"] == 0.5
    assert values["card_pass_rate"] == 0.5
    assert values["card_threshold"] == 0.5
    assert "0.5, as the dataset's card recommends" in result.notes["cat"]["card_pass_rate"]
    for key in ("pass_rate", "num_passing", "cost_of_pass"):
        assert "13.6%" in result.notes["cat"][key]
    assert table(result)["cat"]["pass rate"].startswith("★50.0%*")
    assert "pareto_rank" not in values
    assert "set --threshold" in result.notes["cat"]["pareto_rank"]
    chosen = evaluate([cat, answer], SUMMARIES, threshold=0.7, progress=False)
    assert chosen.summary["cat"]["pareto_rank"] == 1.0
    assert chosen.summary["cat"]["pass_rate"] == 0.5


def test_a_card_s_threshold_is_for_the_card_s_score_alone() -> None:
    result = evaluate(cat, SUMMARIES, score_field="recall", progress=False)
    assert "card_pass_rate" not in result.summary["cat"]


# --- several datasets


def test_numbers_by_dataset_stand_beside_the_pooled_ones() -> None:
    long = [{**each, "dataset": "long", "context": each["context"] * 20} for each in QUESTIONS]
    short = [{**each, "dataset": "short", "context": "It is " + each["answer"]} for each in QUESTIONS]

    def cuts_long(example: dict[str, Any]) -> dict[str, Any]:
        return {"context": "gone"} if example["dataset"] == "long" else example

    result = evaluate(
        cuts_long, long + short, evaluators=[ContextRecall()], score_field="answer_in_context", progress=False
    )
    values = result.summary["cuts_long"]
    own = {tag: [row for row in result.rows if row.dataset == tag] for tag in ("long", "short")}
    for tag, rows in own.items():
        given, kept = (sum(getattr(row, key) for row in rows) for key in ("input_tokens", "output_tokens"))
        assert values[f"compression_ratio@{tag}"] == pytest.approx(1 - kept / given)
    assert values["compression_ratio@short"] == 0.0
    assert values["pass_rate@short"] == 1.0
    assert values["pass_rate@long"] == 0.0
    assert values["cost_of_pass@long"] == math.inf
    assert not any(key.startswith("dataset:") for key in values)  # those are mean scores, and nothing else
    assert "context saved by dataset" in TableReporter(wide=True).render(result)
    only = evaluate(cuts_long, long, evaluators=[ContextRecall()], score_field="answer_in_context", progress=False)
    assert not any("@" in key for key in only.summary["cuts_long"])


def test_the_numbers_of_a_dataset_do_not_depend_on_the_order_of_rows() -> None:
    rows = [
        make_row(float(number % 2), dataset="ab"[number % 3 == 0], example_id=number, output_tokens=number)
        for number in range(30)
    ]
    metrics = [MeanScore(), PassRate(), CostOfPass()]
    one_by_one = summarize(rows, ["s"], metrics).numbers["s"]
    sorted_rows = sorted(rows, key=lambda row: row.dataset)
    assert summarize(sorted_rows, ["s"], metrics).numbers["s"] == one_by_one
    alone = summarize([row for row in rows if row.dataset == "a"], ["s"], metrics).numbers["s"]
    assert one_by_one["cost_of_pass@a"] == alone["cost_of_pass"]
    assert one_by_one["num_examples@a"] == alone["num_examples"]


def test_a_headline_over_unlike_scores_says_that_it_is_one() -> None:
    data = [{**QUESTIONS[0], "dataset": "needle"}, {**SUMMARIES[0]}]
    result = evaluate(cat, data, progress=False)
    note = result.notes["cat"]["mean_score"]
    assert note == "a mean of different scores: contains for needle, rouge_l_f1 for dialogsum"
    assert table(result)["cat"]["score"].split()[0].endswith("*")


# --- exit codes


def test_exit_codes_of_runs_in_which_nothing_could_be_scored(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS))
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps({"id": 1, "context": "words"}) + "\n")
    letters = tmp_path / "letters.jsonl"
    letters.write_text(json.dumps({"id": 1, "context": "c", "choices": ["a", "b"], "correct_letter": "B"}) + "\n")
    system = ("--system", "passthrough", "--no-store")
    scored = called(*system, "--dataset", "own.jsonl", cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr
    without_gold = called(*system, "--dataset", "bare.jsonl", cwd=tmp_path)
    assert without_gold.returncode == 0
    assert "tokens and time only" in without_gold.stdout
    asked_for = called(*system, "--dataset", "bare.jsonl", "--score-field", "f1", cwd=tmp_path)
    assert asked_for.returncode == 3
    assert asked_for.stderr.count("answer-quality: no gold answer") == 1
    unjudged = called(*system, "--dataset", "letters.jsonl", cwd=tmp_path)
    assert unjudged.returncode == 3
    assert "the system returned a context, not an answer" in unjudged.stderr
    quiet = called(*system, "--dataset", "letters.jsonl", "--quiet", cwd=tmp_path)
    assert quiet.returncode == 3


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.json", "empty.csv"])
def test_an_empty_data_file_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("[]" if name.endswith("json") else "id,context\n" if name.endswith("csv") else "\n")
    done = called("--system", "passthrough", "--dataset", name, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{name}: no examples in this file" in done.stderr
