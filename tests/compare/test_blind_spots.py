"""Data that could not have shown a loss is named; data that could raises no alarm."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import EvalResult, evaluate
from context_bench.output.conclusion import conclude
from context_bench.testing.gold_check import check_golds

N = 160
"""Examples that can show "equivalent" within 0.02: at least 149."""


def _make(place: float, *, lines: int = 40, copies: int = 1) -> list[dict[str, Any]]:
    """Make examples whose answer stands in one line of so many, at this share of them."""
    examples = []
    for number in range(N):
        answer = f"K{number * 37 + 1000}"
        filler = [f"Line {line} of record {number} holds nothing of note." for line in range(lines)]
        first = min(int(place * lines), lines - 1)
        for copy in range(copies):
            filler[(first + copy * max(1, lines // copies)) % lines] = f"The code of door {number} is {answer} today."
        context = "\n".join(filler) + "\n"
        examples.append({"id": number, "context": context, "question": f"Code of door {number}?", "answer": answer})
    return examples


def _run(data: Any, *systems: str) -> EvalResult:
    return evaluate(["passthrough", *systems], data, progress=False)


@pytest.mark.parametrize(
    ("data", "control", "where"),
    [
        (_make(0.05), "head", "in the first "),
        (_make(0.93), "tail", "in the last "),
        (_make(1.0), "tail", "in the last "),
        (_make(0.0, copies=40), "head", ""),
    ],
    ids=["early", "late", "last line", "everywhere"],
)
def test_a_naive_cut_that_is_as_good_takes_the_claim_away(data: Any, control: str, where: str) -> None:
    result = _run(data, "bm25:ratio=0.5")
    comparison = result.comparison
    assert comparison is not None
    assert comparison.verdicts[0].word == "equivalent"
    found = comparison.sensitivity["bm25:ratio=0.5"]
    assert found.word == "none"
    assert control in {each.name for each in found.controls if each.loss.not_worse}
    assert where in found.reason
    said = conclude(result)
    assert "equivalent" not in said
    assert "saved" not in said
    assert "no better than" in said
    assert json.loads(result.to_json())["comparison"]["sensitivity"]["bm25:ratio=0.5"]["word"] == "none"


def test_a_compressor_that_keeps_more_than_any_naive_cut_beats_them() -> None:
    data = [each for place in (0.05, 0.35, 0.65, 0.95) for each in _make(place)[: N // 4]]
    data = [{**each, "id": number} for number, each in enumerate(data)]
    result = _run(data, "bm25:ratio=0.3")
    assert result.comparison is not None
    found = result.comparison.sensitivity["bm25:ratio=0.3"]
    assert (found.word, found.beats_controls) == ("shown", True)
    # of lines 2, 14, 26 and 38 of 40, 30% in the middle begin with line 14 and end before line 26
    assert {each.name: round(each.kept, 2) for each in found.controls if each.name != "random-drop"} == {
        "head": 0.25,
        "tail": 0.25,
        "middle": 0.25,
    }
    assert "beats truncation and random deletion at its size" in conclude(result)


@pytest.mark.parametrize("dataset", ["needle", "kv", "json-logs"])
@pytest.mark.parametrize("kept", [0.9, 0.5, 0.3])
def test_generated_data_can_show_a_loss(dataset: str, kept: float) -> None:
    result = _run(f"{dataset}:length=600,n={N}", f"bm25:ratio={kept}")
    assert result.comparison is not None
    found = result.comparison.sensitivity[f"bm25:ratio={kept}"]
    worst = min(each.kept for each in found.controls)
    assert found.word in ("shown", "undecided") if worst <= 0.95 else True
    assert found.saving == pytest.approx(
        result.summary[f"bm25:ratio={kept}"]["compression_ratio"], abs=0.06
    )  # which counts the question too


def test_small_savings_have_no_consequence() -> None:
    result = _run(_make(0.05), "truncate:ratio=0.95")
    assert result.comparison is not None
    assert result.comparison.sensitivity["truncate:ratio=0.95"].word == "small saving"
    assert "is equivalent to passthrough" in conclude(result)


def test_controls_are_judged_by_the_verdict_and_not_by_their_mean() -> None:
    data = _make(0.05)[:60]  # all kept by the head, but 60 examples show nothing within 0.02
    result = _run(data, "truncate:ratio=0.5")
    assert result.comparison is not None
    found = result.comparison.sensitivity["truncate:ratio=0.5"]
    assert (found.word, found.controls[0].kept) == ("undecided", 1.0)


def test_a_compressor_that_changed_nothing_is_void() -> None:
    result = evaluate(["passthrough", _same], _make(0.5), progress=False)
    assert result.comparison is not None
    assert result.comparison.sensitivity["_same"].word == "void"
    assert result.comparison.verdicts[0].word == "undecided"
    assert result.summary["_same"]["acted_rows"] == 0


def _same(example: dict[str, Any]) -> str:
    return str(example["context"])


def test_what_a_system_did_where_it_acted_stands_beside_what_it_did_overall() -> None:
    def halve_some(example: dict[str, Any]) -> str:
        context = str(example["context"])
        return context[: len(context) // 2] if example["id"] % 4 == 0 else context

    data = _make(0.9)
    result = evaluate(["passthrough", halve_some], data, progress=False)
    values = result.summary["halve_some"]
    assert (values["acted_rows"], values["acted_share"]) == (N / 4, 0.25)
    assert (values["acted_score"], values["mean_score"]) == (0.0, 0.75)
    assert values["acted_savings"] == pytest.approx(0.5, abs=0.03)


# --- the gate


def test_a_gate_on_the_verdict_cannot_be_told_on_blind_data(tmp_path: Path) -> None:
    data = tmp_path / "early.jsonl"
    data.write_text("".join(json.dumps(each) + "\n" for each in _make(0.05)), encoding="utf-8")
    run = ("--system", "passthrough", "--system", "truncate:ratio=0.5", "--dataset", str(data), "--no-store", "--quiet")
    verdict = called(*run, "--fail-if", "verdict is not equivalent", cwd=tmp_path)
    assert (verdict.returncode, "no better than truncation" in verdict.stderr) == (4, True)
    accepted = called(*run, "--fail-if", "verdict is not equivalent", "--accept-blind", cwd=tmp_path)
    assert accepted.returncode == 0
    drop = called(*run, "--fail-if", "score drops 0.02", cwd=tmp_path)
    assert (drop.returncode, "note: truncate:ratio=0.5 is no better" in drop.stderr) == (0, True)
    assert "equivalent, and so is truncation" in drop.stdout


# --- the gold self-test


def test_planted_skew_is_named_by_the_check_of_the_dataset() -> None:
    plain = _make(0.5)
    cases: dict[str, list[dict[str, Any]]] = {
        "answer in question": [{**each, "question": f"Is it {each['answer']}?"} for each in plain],
        "not in context": [{**each, "context": "Nothing here."} for each in plain],
        "shared context": [{**each, "context": plain[0]["context"], "answer": plain[0]["answer"]} for each in plain],
        "several places": _make(0.2, copies=2),
        "repeated": [*plain[:5], *({**each, "id": f"again {each['id']}"} for each in plain[:5])],
        "evidence missing": [{**each, "evidence": ["a sentence of another text"]} for each in plain],
    }
    for kind, data in cases.items():
        check = check_golds(data)
        assert kind in check.found, kind
        assert check.is_sound == (kind != "evidence missing")
    assert check_golds(plain).found == {}


def test_a_gold_that_its_own_evaluator_refuses_is_a_fault() -> None:
    wrong = [{"id": 1, "context": "x", "question": "q", "choices": ["a", "b"], "correct_letter": "Q"}]
    check = check_golds(wrong)
    assert not check.is_sound
    assert "gold refused" in check.found


def test_the_check_is_a_command(tmp_path: Path) -> None:
    good = called("datasets", "check", "needle:n=20,length=500", cwd=tmp_path)
    assert (good.returncode, "sound, 20 examples" in good.stdout) == (0, True)
    data = tmp_path / "bad.jsonl"
    data.write_text(json.dumps({"id": 1, "context": "a b c", "answer": "b", "evidence": ["zzz"]}), encoding="utf-8")
    bad = called("datasets", "check", str(data), "--output", "json", cwd=tmp_path)
    assert (bad.returncode, json.loads(bad.stdout)["sound"]) == (1, False)


# --- on the records of a published benchmark


def _load_functions() -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Load the records whose context is a list of functions, each with the names of the functions to call, if given."""
    folder = Path(os.environ.get("CONTEXT_BENCH_DATA", "")) / "bfcl-live"
    if not os.environ.get("CONTEXT_BENCH_DATA") or not folder.is_dir():
        pytest.skip("CONTEXT_BENCH_DATA has no bfcl-live")
    lines = [line for path in folder.glob("possible_answer/*.json") for line in path.read_text().splitlines()]
    golds = {record["id"]: record["ground_truth"] for record in map(json.loads, lines)}
    for path in sorted(folder.glob("*.json")):
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            gold = golds.get(record["id"])
            named = {name for each in gold for name in each} if gold and isinstance(gold[0], dict) else set()
            context = json.dumps(record["function"], indent=2)
            example = {"id": f"{path.name} {record['id']}", "context": context, "question": str(record["question"])}
            yield {**example, "answer": record["function"][0]["name"]}, sorted(named)


@pytest.mark.parametrize("kept", [0.7, 0.5, 0.3])
def test_the_first_function_as_needle_tells_nothing(kept: float) -> None:
    result = _run([example for example, _ in _load_functions()], f"truncate:ratio={kept}")
    assert result.comparison is not None
    assert result.comparison.verdicts[0].n == 1431
    assert result.comparison.sensitivity[f"truncate:ratio={kept}"].word == "none"
    assert "equivalent" not in conclude(result)


def test_the_function_to_call_as_needle_shows_what_truncation_loses() -> None:
    data = [{**example, "answers": [names]} for example, names in _load_functions() if names]
    result = _run(data, "truncate:ratio=0.5")
    assert len(data) == 1311
    assert result.comparison is not None
    assert result.comparison.verdicts[0].word == "worse"
    assert result.summary["truncate:ratio=0.5"]["mean_score"] == pytest.approx(0.725, abs=0.005)
