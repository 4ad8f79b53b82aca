"""The table: lines up on a terminal, is valid Markdown, and marks every number that is not what it seems."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

import pytest

from context_bench import EvalResult, EvalRow, evaluate
from context_bench.metrics import default_metrics
from context_bench.output.layout import markdown, plain_table
from context_bench.reporters import TableReporter


def render(summary: dict[str, dict[str, float]], notes: dict[str, dict[str, str]] | None = None, **config: Any) -> str:
    return TableReporter().render(EvalResult([], summary, {}, config, notes=notes or {}))


def cells(line: str) -> list[str]:
    """The cells of a Markdown line: a pipe after a backslash is text."""
    return [cell.strip() for cell in line.replace("\\|", "\0").strip("|").split("|")]


def columns(text: str, row: int = 0) -> dict[str, str]:
    lines = text.splitlines()
    return dict(zip(cells(lines[0]), cells(lines[2 + row])))


def width(text: str) -> int:
    return sum(
        2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text if not unicodedata.combining(char)
    )


FULL = {
    "num_examples": 40.0,
    "num_errors": 0.0,
    "num_unscored": 0.0,
    "error_rate": 0.0,
    "mean_score": 0.8125,
    "pass_rate": 0.75,
    "compression_ratio": 0.5,
    "cost_of_pass": 1234.4,
    "num_passing": 30.0,
    "latency_median": 0.0015,
    "latency_p95": 2.5,
}


def test_a_run_that_was_stopped_says_that_its_numbers_are_of_a_part() -> None:
    text = render({"mine": FULL}, stopped="interrupted")
    assert "\nstopped early: interrupted; the numbers cover the finished rows.\n" in text
    assert "stopped early" not in render({"mine": FULL})


def test_the_numbers_in_words_that_people_read() -> None:
    shown = columns(render({"mine": FULL}))
    assert shown["system"] == "mine"
    assert shown["n"] == "40"
    assert "0.81" in shown["score"]
    assert "75.0%" in shown["pass rate"]
    assert "50.0%" in shown["saved"]
    assert "1,234" in shown["cost of pass"]


def test_nothing_passed_is_said_in_words() -> None:
    assert columns(render({"mine": {**FULL, "cost_of_pass": math.inf}}))["cost of pass"] == "none passed"


def test_errors_and_unscored_rows_stand_beside_the_score() -> None:
    shown = columns(render({"mine": {**FULL, "num_errors": 3.0, "num_unscored": 2.0}}))
    assert (shown["errors"], shown["unscored"]) == ("3", "2")


def test_what_is_not_a_number_was_not_measured_and_a_note_says_why() -> None:
    notes = {"proxy": {"compression_ratio": "not measured: no tap"}}
    text = render({"proxy": {**FULL, "compression_ratio": math.nan}, "mine": FULL}, notes)
    assert columns(text)["saved"] == "not measured"
    assert columns(text, 1)["saved"] == "50.0%"
    assert "* saved of proxy: not measured: no tap." in text


def test_a_number_that_needs_explaining_is_marked() -> None:
    notes = {name: {"pass_rate": "few reach it", "cost_of_pass": "few reach it"} for name in ("a", "b")}
    text = render({"a": FULL, "b": FULL}, notes)
    assert columns(text)["pass rate"] == "75.0%*"
    assert columns(text)["cost of pass"] == "1,234*"
    assert columns(text)["score"] == "0.812"
    assert text.count("few reach it") == 1
    assert "* pass rate, cost of pass: few reach it." in text


def test_a_system_that_failed_on_every_row_is_marked() -> None:
    values = {**FULL, "num_errors": 40.0, "latency_median": math.nan, "compression_ratio": math.nan}
    shown = columns(render({"dead": values, "mine": FULL}))
    assert shown["errors"] == "all failed"
    assert shown["saved"] == shown["latency p50"] == "not measured"


def test_a_metric_that_is_missing_for_one_system() -> None:
    text = render({"a": {**FULL, "pareto_rank": 1.0}, "b": FULL})
    assert (columns(text)["Pareto rank"], columns(text, 1)["Pareto rank"]) == ("1", "–")
    on, off = {**FULL, "pareto_rank": 1.0, "pareto_front": 1.0}, {**FULL, "pareto_rank": 1.0, "pareto_front": 0.0}
    text = render({"a": on, "b": off, "c": FULL})
    assert [columns(text, row)["Pareto"] for row in range(3)] == ["front", "off", "–"]
    assert "Pareto rank" not in columns(text)  # points that cannot be told apart have no order


@pytest.mark.parametrize("summary", [{}, {"mine": {}}, {"mine": {"mean_score": 0.5}}, {"mine": {"own_metric": 1.0}}])
def test_a_result_made_by_hand(summary: dict[str, dict[str, float]]) -> None:
    assert "system" in TableReporter(wide=True).render(EvalResult([], summary))


def test_not_a_number_does_not_break_it() -> None:
    assert render({"mine": dict.fromkeys(FULL, math.nan)})


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "日本語システム",
        "e\u0301clair",
        "\x1b[31mred\x1b[0m",
        "two\nlines",
        "\u202eright",
        "\x00",
        "a\\|b",
        "🎉",
        "`x`",
    ],
)
def test_no_name_breaks_the_table(name: str) -> None:
    text = render({name: FULL, "plain": FULL})
    lines = text.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 4
    assert len({len(cells(line)) for line in table}) == 1
    assert len({width(line) for line in table}) == 1
    assert all(char.isprintable() for line in lines for char in line)


def test_several_datasets_get_a_table_of_their_own() -> None:
    text = render({"mine": {**FULL, "dataset:a|b": 0.25, "dataset:c": 0.75}})
    assert "0.250" in text
    assert "0.750" in text
    assert "a\\|b" in text


def test_the_note_says_which_score_it_is() -> None:
    assert "contains" in render({"mine": FULL}, score_field="contains")
    assert "contains" in render({"mine": FULL}, score_field="score", datasets={"needle": 40})
    both = render({"mine": FULL}, score_field="score", datasets={"needle": 40, "multi-needle": 2})
    assert "contains for needle" in both
    assert "recall for multi-needle" in both


def test_a_tag_in_the_notes_says_nothing_to_a_terminal() -> None:
    text = render({"mine": FULL}, score_field="score", datasets={"needle:\x1b[31m": 1, "kv:\n": 1, "own\x1b": 1})
    assert all(char.isprintable() for line in text.splitlines() for char in line)


def test_markdown_lines_up() -> None:
    text = markdown([["a", "b"], ["日本", "10"], ["x|y", "2"]])
    lines = text.splitlines()
    assert len({width(line) for line in lines}) == 1
    assert set(lines[1]) <= set("|-: ")
    assert lines[1].count(":") == 1  # numbers stand to the right


def test_plain_columns() -> None:
    lines = plain_table([["name", "what"], ["日本", "x"], ["longer", "y"]]).splitlines()
    assert {
        width(line[: line.rindex(line[-1])]) if i else width(line.partition("what")[0]) for i, line in enumerate(lines)
    } == {8}


def test_a_real_result() -> None:
    given = [{"id": 1, "context": "red and blue", "answer": "red"}]

    def half(example: dict[str, Any]) -> str:
        return "red"

    text = TableReporter(wide=True).render(evaluate([half, lambda example: example], given))
    assert columns(text)["system"] == "half"
    assert columns(text, 1)["saved"] == "0.0% (too few)"  # one example has no interval


def test_rows_are_not_needed() -> None:
    row = EvalRow("mine", 1, {}, 1, 1)
    assert TableReporter(wide=True).render(EvalResult([row], {"mine": FULL})) == TableReporter(wide=True).render(
        EvalResult([], {"mine": FULL})
    )


def test_where_nothing_is_priced_a_line_says_so() -> None:
    note = "not priced: no price for 'x'; add one to a file for --prices"
    keys = ("cost_usd", "cost_per_1k_usd", "cost_of_pass_usd")
    summary = {"mine": {"mean_score": 0.5, **dict.fromkeys(keys, math.nan)}}
    text = TableReporter(wide=True).render(EvalResult([], summary, notes={"mine": dict.fromkeys(keys, note)}))
    assert "$" not in text.splitlines()[0]
    assert f"* dollars: {note}." in text


def test_a_model_called_local_is_a_smoke_test() -> None:
    result = EvalResult([], {"a": {"num_examples": 1.0}}, {}, {"model": "local"})
    assert "smoke test" in TableReporter(wide=True).render(result)
    result.config["model"] = "gpt-4o-mini"
    assert "smoke test" not in TableReporter(wide=True).render(result)


def _measured(*tags: str) -> EvalResult:
    """Three systems on 200 examples of each dataset: the second halves the tokens and loses nothing."""

    def write(n: int) -> str:
        return " ".join(["filler"] * (n % 5 * 10) + [f"code={n}"] + ["filler"] * (40 - n % 5 * 10))

    data = [
        {"id": f"{tag}{n}", "dataset": tag, "context": write(n), "answer": f"={n}"} for tag in tags for n in range(200)
    ]

    def halve(example: dict[str, Any]) -> str:
        words = example["context"].split()
        return " ".join(word for place, word in enumerate(words) if "=" in word or place % 2)

    def drop(example: dict[str, Any]) -> str:
        return "" if example["id"].endswith(("5", "6")) else example["context"]

    metrics = default_metrics(datasets=len(tags), systems=3)
    return evaluate(["passthrough", halve, drop], data, metrics=metrics, progress=False)


def test_by_default_a_run_prints_one_table_and_ends_with_its_conclusion() -> None:
    text = TableReporter().render(_measured("a"))
    assert len(text.splitlines()) <= 15
    first, *rest = text.split("\n\n")
    titles = ["system", "n", "score", "pass rate", "saved", "cost of pass", "latency p50", "Pareto", "verdict"]
    assert cells(first.splitlines()[0]) == titles
    verdicts = [cells(line)[-1] for line in first.splitlines()[2:]]
    assert verdicts == ["baseline", "equivalent", "worse"]
    assert [cells(line)[2].split()[0] for line in first.splitlines()[2:]] == ["★1.000", "★1.000", "0.800"]
    assert sum(line.startswith("|") for line in text.splitlines()) == 5
    assert not any(line.startswith("|") for part in rest for line in part.splitlines())
    notes, conclusion = rest
    assert len(notes.splitlines()) <= 3
    assert "verdict: against passthrough, margin ±0.02" in notes
    assert conclusion.startswith("halve is equivalent to passthrough, with 4")
    assert conclusion.endswith("Worse: drop.\n")


def test_on_80_columns_the_verdict_and_the_share_saved_stay() -> None:
    text = TableReporter(80).render(_measured("a"))
    assert max(map(width, text.splitlines())) <= 80
    assert {"score", "saved", "verdict"} <= set(cells(text.splitlines()[0]))
    assert len(text.splitlines()) <= 20


def test_scores_by_dataset_name_the_verdicts_that_differ_from_the_overall_one() -> None:
    text = TableReporter().render(_measured("a", "b", "c"))
    table = [line for line in text.split("\n\n")[1].splitlines() if not line.startswith("| ---")]
    # 200 examples are enough for "equivalent" on one dataset alone
    assert [cells(line) for line in table] == [
        ["score by dataset", "a", "b", "c"],
        ["passthrough", "1.000", "1.000", "1.000"],
        ["halve", "1.000", "1.000", "1.000"],
        ["drop", "0.800", "0.800", "0.800"],
    ]
    some = _measured("a", "b", "c").filter(lambda row: int(str(row.example_id)[1:]) < 70)
    few = TableReporter().render(some)
    assert "| halve            | 1.000 undecided | 1.000 undecided | 1.000 undecided |" in few
    assert "undecided: too few examples in one dataset" in few


def test_caveats_beyond_one_line_are_counted() -> None:
    notes = {name: {"mean_score": f"reason {name} " + "x" * 300} for name in ("a", "b", "c")}
    text = render(dict.fromkeys(notes, FULL), notes, baseline="a", score_field="f1")
    (_, caveats) = text.split("\n\n")[1].splitlines()
    assert "reason a" in caveats
    assert caveats.endswith("2 more notes: --wide.")
    every = TableReporter(wide=True).render(EvalResult([], dict.fromkeys(notes, FULL), notes=notes))
    assert all(f"reason {name}" in every for name in notes)


def test_shares_of_prompts_and_of_contexts_stand_apart_where_both_are_shown() -> None:
    both = {"tapped": {**FULL, "prompt_savings": 0.25}, "plain": FULL}
    titles = cells(render(both).splitlines()[0])
    assert titles.index("context saved") < titles.index("saved")
    assert columns(render(both))["saved"] == "25.0%"
    assert columns(render({"tapped": both["tapped"]}))["saved"] == "25.0%"
    assert columns(render({"plain": FULL}))["saved"] == "50.0%"
