"""Data that could not have shown a loss is named; data that could raises no alarm."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import EvalResult, evaluate, evaluate_memory
from context_bench.compare.blind_spots import BlindSpots
from context_bench.datasets.open import Choices, open_datasets
from context_bench.evaluators.evidence_map import EvidenceMap, locate_evidence
from context_bench.memory.questions import Questions, open_conversations
from context_bench.output.conclusion import conclude
from context_bench.output.page import HtmlReporter
from context_bench.output.tables import TableReporter
from context_bench.systems import ClosedBook, Passthrough, Truncate, WithReader
from context_bench.testing.gold_check import check_golds
from context_bench.utils.tokens import get_tokenizer
from function_lists import load_functions
from rows import make_row
from servers import free_port
from toy_proxies import toy_proxy

N = 160
"""Examples that can show "equivalent" within 0.02: at least 149."""


KEPT = (0.95, 0.9, 0.7, 0.5, 0.3)
"""Shares of a context that are kept."""


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
    several = conclude(_run(data, "bm25:ratio=0.3", "bm25:ratio=0.5"))
    assert several.count("beats truncation") == 1
    assert "Each of bm25:ratio=0.3|0.5 beats truncation and random deletion at its size." in several


def _tag(data: list[dict[str, Any]], tag: str) -> list[dict[str, Any]]:
    return [{**each, "id": f"{tag} {place}", "dataset": tag} for place, each in enumerate(data)]


def test_each_dataset_is_judged_by_itself_too() -> None:
    """One of two datasets is blind: the mean over both can show a loss, the table by dataset says which cannot."""
    spread = [each for place in (0.05, 0.35, 0.65, 0.95) for each in _make(place)[: N // 4]]
    result = _run([*_tag(_make(0.05), "early"), *_tag(spread, "spread")], "bm25:ratio=0.5")
    name = "bm25:ratio=0.5"
    comparison = result.comparison
    assert comparison is not None
    found = {tag: known[name].word for tag, known in comparison.sensitivity_by_dataset.items()}
    assert found == {"early": "none", "spread": "shown"}
    assert comparison.sensitivity[name].word == "shown"
    stored = json.loads(result.to_json())["comparison"]["sensitivity_by_dataset"]
    assert stored["early"][name]["reason"].startswith("no better than truncation (head) at its size; this data cannot")
    table = TableReporter(wide=True).render(result)
    assert "+0.000 equivalent, and so is truncation" in table
    assert table.count("and so is truncation") == 1
    by_dataset = next(line for line in table.partition("context saved by dataset")[2].splitlines() if name in line)
    assert by_dataset.count("★") == 1  # none on the blind dataset


def test_the_page_shows_where_the_evidence_stands() -> None:
    """Of 40 lines, answers stand in the third (5%) and in the last; two systems count each example once."""
    result = _run([*_tag(_make(0.05), "early"), *_tag(_make(1.0), "last")], "bm25:ratio=0.5")
    page = HtmlReporter().render(result)
    (section,) = re.findall(r'<section id="depth".*?</section>', page, re.DOTALL)
    cells = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>.*?</t[hd]>", section, re.DOTALL)]
    lines = {cells[at]: cells[at + 1 : at + 5] for at in range(5, len(cells), 5)}
    assert [line[0] for line in lines.values()] == [str(N), str(N)]
    first = [float(share.rstrip("%")) for share in lines["early"][1:]]
    last = [float(share.rstrip("%")) for share in lines["last"][1:]]
    assert all(4 < share < 9 for share in first)
    assert all(97 < share < 99.5 for share in last)


def _place_evidence(dataset: str, folder: str) -> Iterator[tuple[EvidenceMap, str]]:
    """Place the evidence of up to 200 examples, or of the questions about 10 conversations; with what they share."""
    count = get_tokenizer()
    if dataset == "locomo":
        opened, tag = open_conversations(dataset, data_dir=folder, types=["multi_hop"])
        questions = Questions(opened, tag, count, types=["multi_hop"])
        for example in questions:
            name = example["memory"]["conversation"]
            if placed := questions.find(name).place_evidence(example, count):
                yield placed, name
        return
    for example in open_datasets([dataset], Choices(limit=200, data_dir=folder)):
        if placed := locate_evidence(example, count):
            yield placed, str((example.get("meta") or {}).get("group", example["id"]))


@pytest.mark.parametrize("dataset", ["needle", "kv", "json-logs"])
def test_generated_data_raises_no_alarm_where_naive_cuts_lose_evidence(dataset: str) -> None:
    _check_alarms(f"{dataset}:length=600,n=200", 200, "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("dataset", "n"), [("hotpotqa", 100), ("qmsum", 176), ("natural-questions:oracle", 200), ("locomo", 282)]
)
def test_public_data_raises_no_alarm_where_naive_cuts_lose_evidence(dataset: str, n: int) -> None:
    folder = os.environ.get("CONTEXT_BENCH_DATA")
    if not folder or not (Path(folder) / dataset.partition(":")[0]).is_dir():
        pytest.skip(f"CONTEXT_BENCH_DATA has no {dataset}")
    _check_alarms(dataset, n, folder)


def _check_alarms(dataset: str, n: int, folder: str) -> None:
    """A control that loses 5 points is never "not worse"; a cut to 95% has no consequence, whatever it loses."""
    spots = BlindSpots()
    for place, (placed, group) in enumerate(_place_evidence(dataset, folder)):
        for share in KEPT:
            facts = {**placed.describe_cut(int(share * placed.whole)), "cluster": group, "output": "context"}
            spots.add(make_row(1.0, system=f"{share}", example_id=place, metadata=facts), 1.0)
    for share, found in zip(KEPT, spots.judge(map(str, KEPT)).values(), strict=True):
        assert found.n == n
        assert found.saving == pytest.approx(1 - share, abs=0.005)
        losing = [each for each in found.controls if each.kept <= 0.95]
        assert [each.name for each in losing if each.loss.not_worse] == [], share
        if share == 0.95:
            assert found.word == "small saving"
        else:
            assert losing
            assert found.word in (("shown",) if share <= 0.7 else ("shown", "undecided"))
        print(dataset, share, found.word, {each.name: round(each.kept, 3) for each in found.controls})


@pytest.mark.long
def test_memories_are_compared_with_cuts_of_the_history() -> None:
    """One that finds facts anywhere keeps more than cuts of its size; one that keeps the last turns is such a cut."""
    result = evaluate_memory(
        ["naive", "bm25", "last"],
        "synthetic-memory",
        budgets=[1000],
        answers=["reader"],
        max_conversations=2,
        progress=False,
    )
    assert result.comparison is not None
    found = result.comparison.sensitivity
    assert set(found) == {"bm25[budget=1000]", "last[budget=1000]"}
    gains = {name: {each.name: each.gain for each in known.controls} for name, known in found.items()}
    assert all(gain is not None and gain.difference > 0.5 for gain in gains["bm25[budget=1000]"].values())
    tail = gains["last[budget=1000]"]["tail"]
    assert tail is not None
    assert abs(tail.difference) < 0.02
    row = next(row for row in result.rows if row.system.startswith("last") and "matched_controls" in row.metadata)
    whole, kept = row.metadata["context_tokens"]
    assert 0 < kept <= 1000 < whole


def test_what_this_data_cannot_tell_is_claimed_nowhere() -> None:
    """No place on the front, no best setting of a sweep, no dollars saved; the page says so beside the word."""
    result = _run(_make(0.05), "truncate:ratio=0.3", "truncate:ratio=0.5")
    assert [each.best for each in result.curves()] == [None]
    assert all("pareto_front" not in result.summary[f"truncate:ratio={ratio}"] for ratio in (0.3, 0.5))
    assert result.summary["passthrough"].get("pareto_front") != 0
    shown = TableReporter().render(result)
    assert "largest share saved" not in shown
    assert conclude(result).count("this data cannot show a loss") == 1  # of both settings at once
    page = HtmlReporter().render(result)
    assert page.count("equivalent</span>, and so is truncation<small>") == 4  # in two tables
    assert "no setting is shown to save tokens without being worse" in page


def test_contexts_without_the_answer_are_not_spoken_of() -> None:
    """They have no score, so that the verdict leaves them out, and "every context" would be false."""
    data = [*_make(0.05), *({**each, "id": f"other {each['id']}", "answer": "nowhere"} for each in _make(0.5))]
    said = conclude(_run(data, "truncate:ratio=0.5"))
    assert f"of every context that contains it ({N} of {2 * N})" in said


def test_what_few_contexts_hold_takes_no_claim_away() -> None:
    """Where most of the examples that were scored have no place for their answer, cuts were judged on few."""
    spots = BlindSpots()
    kept = {name: [1.0] for name in ("head", "tail", "middle", "random-drop")}
    facts = {"matched_controls": kept, "evidence_depth": [0.1, 0.1], "context_tokens": [100, 50], "output": "context"}
    for place in range(3 * N):
        spots.add(make_row(1.0, system="s", example_id=place, metadata=facts if place < N else {}), 1.0)
    found = spots.judge(["s"])["s"]
    assert (found.word, found.n) == ("undecided", N)
    assert found.reason.endswith(f"only {N} of {3 * N} contexts contain the answer")


def test_a_system_that_is_ahead_of_a_cut_within_the_margin_is_not_called_no_better() -> None:
    """The head loses 18 of 3,000: shown not worse within 0.02, and yet shown behind a system that loses none."""
    spots = BlindSpots()
    for place in range(3000):
        kept = {name: [0.0] for name in ("tail", "middle", "random-drop")} | {"head": [float(place >= 18)]}
        facts = {"matched_controls": kept, "evidence_depth": [0.1, 0.1], "context_tokens": [9, 4], "output": "context"}
        spots.add(make_row(1.0, system="s", example_id=place, metadata=facts), 1.0)
    found = spots.judge(["s"])["s"]
    assert found.word == "none"
    assert found.reason == "shown to lose no more than the margin, but so is truncation (head) at its size"


class _Right:
    """A model that is right whatever it reads."""

    name = "reader"
    fingerprint = "right"

    async def aprocess(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": str(example["answer"])}


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ([f"Item {n}: {n % 8} pens and {(n + 3) % 8} books." for n in range(60)], "7"),  # by chance, again and again
        (["Nothing that is asked for."] * 60, "a summary"),
    ],
    ids=["many places", "no place"],
)
def test_where_a_model_answers_an_answer_without_a_place_of_its_own_tells_nothing(lines: Any, answer: str) -> None:
    """No cut is said to keep it, and it is not shown that this data could reveal a loss."""
    data = [{"id": n, "context": "\n".join(lines), "question": f"{n}?", "answer": answer} for n in range(N)]
    result = evaluate([WithReader(each, _Right()) for each in (Passthrough(), Truncate(0.5))], data, progress=False)
    assert result.comparison is not None
    found = result.comparison.sensitivity["truncate"]
    assert (found.word, found.n, found.controls) == ("undecided", 0, ())
    assert "--controls=matched" in found.reason
    assert conclude(result).endswith("It is not shown that this data could reveal a loss: truncate.")


def test_where_a_model_answers_a_cut_is_judged_by_its_place_and_says_so() -> None:
    systems = [WithReader(each, _Right()) for each in (Passthrough(), Truncate(0.5))]
    said = conclude(evaluate(systems, _make(0.05), progress=False))
    assert "truncate is no better than truncation (head) at its size; this data cannot show a loss" in said
    assert "(judged by its place: --controls=matched has the model answer from such cuts)" in said


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


@pytest.mark.parametrize(("failing", "word"), [(0, "undecided"), (2, "undecided"), (N // 2, "worse")])
def test_a_void_system_is_found_among_repeats_and_failures_too(failing: int, word: str) -> None:
    """What fails on half of the examples is worse by that; on two of them, nothing else was tested."""

    def same(example: dict[str, Any]) -> str:
        if example["id"] < failing:
            raise ValueError("no")
        return str(example["context"])

    result = evaluate(["passthrough", same], _make(0.5), progress=False, repeats=2)
    comparison = result.comparison
    assert comparison is not None
    assert comparison.verdicts[0].word == word
    assert ("same" in comparison.sensitivity and comparison.sensitivity["same"].word == "void") == (word != "worse")
    assert any(f"changed nothing on {N - failing} of {N} examples" in note for note in comparison.notes)


@pytest.mark.parametrize(("kind", "word"), [("tells_lies", "void"), ("passes", None)])
def test_a_proxy_that_changed_nothing_is_void_if_it_claims_savings_and_else_a_gateway(
    kind: str, word: str | None, tmp_path: Path
) -> None:
    port = free_port()
    with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
        data = ("--dataset", "needle:length=500,n=160", "--no-store", "--quiet", "--output", "json")
        tap = ("--proxy", url, "--name", "gateway", "--tap", f":{port}", "--tap-reply", "extract", "--controls")
        done = called(*tap, *data, "--fail-if", "verdict is not equivalent", cwd=tmp_path)
    comparison = json.loads(done.stdout)["comparison"]
    assert any(note.startswith("gateway changed nothing on 160 of 160 examples") for note in comparison["notes"])
    verdict = next(each for each in comparison["verdicts"] if each["name"] == "gateway")
    if word is None:
        assert (done.returncode, verdict["word"]) == (0, "equivalent"), done.stderr
        assert comparison["sensitivity"].get("gateway", {}).get("word") != "void"
    else:
        assert (done.returncode, verdict["word"]) == (4, "undecided"), done.stderr
        assert comparison["sensitivity"]["gateway"]["word"] == word
        assert 'Undecided ("verdict is not equivalent"): it changed nothing on any example' in done.stderr


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
    told = r"halve_some acted on 40 of 160 rows \(4\d\.\d% saved, score 0\.000 on those\)"
    assert re.search(told, TableReporter().render(result))


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
    assert (drop.returncode, "Note: truncate:ratio=0.5 is no better" in drop.stderr) == (0, True)
    assert "equivalent (blind)" in drop.stdout


def test_compared_runs_know_what_their_data_cannot_tell(tmp_path: Path) -> None:
    """Of a run in the store and of a saved file, as a gate and in the table; and of a system that changed nothing."""
    result = evaluate(["passthrough", "truncate:ratio=0.5", _same], _make(0.05), progress=False)
    (tmp_path / "early.json").write_text(result.to_json(), encoding="utf-8")
    gate = ("--fail-if", "verdict is not equivalent")
    found = called("compare", "early.json", *gate, cwd=tmp_path)
    assert found.returncode == 4
    assert "truncate:ratio=0.5 is no better than truncation (head) at its size" in found.stderr
    assert "equivalent, and so is truncation" in found.stdout
    assert "no verdict on _same: it changed nothing on any example" in found.stdout
    accepted = called(
        "compare", "early.json@passthrough", "early.json@truncate:ratio=0.5", *gate, "--accept-blind", cwd=tmp_path
    )
    assert accepted.returncode == 0
    shown = json.loads(called("compare", "early.json", "--output", "json", cwd=tmp_path).stdout)
    assert [each["sensitivity"]["word"] for each in shown["comparisons"]] == ["none", "void"]


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


def test_ten_of_ten_planted_sets_are_named() -> None:
    """Each set has one skew; the run, or the check of the dataset, names it."""
    plain = _make(0.5)
    spread = [{**each, "id": at} for at, each in enumerate(each for at in range(10) for each in _make(at / 22)[:16])]
    read_as_run: dict[str, tuple[list[dict[str, Any]], str]] = {
        "evidence early": (_make(0.05), "the answer begins in the first"),
        "evidence late": (_make(0.93), "the answer is in the last"),
        "always in the last line": (_make(1.0), "the answer is in the last 1% of every context"),
        "saturated": (_make(0.0, copies=40), "this data cannot show a loss"),
        "control as good": (spread, "no better than truncation (head)"),
    }
    for kind, (data, said) in read_as_run.items():
        assert said in conclude(_run(data, "bm25:ratio=0.5")), kind
    read_as_data: dict[str, tuple[list[dict[str, Any]], str]] = {
        "in the question": ([{**each, "question": f"Is it {each['answer']}?"} for each in plain], "answer in question"),
        "nowhere": ([{**each, "context": "Nothing here."} for each in plain], "not in context"),
        "one document": ([{**each, "context": plain[0]["context"]} for each in plain], "shared context"),
        "duplicated answer": (_make(0.2, copies=2), "several places"),
    }
    for kind, (data, name) in read_as_data.items():
        assert name in check_golds(data).found, kind
    reader = _KnowsByHeart({each["question"]: each["answer"] for each in plain})
    systems = [WithReader(each, reader) for each in (Passthrough(), ClosedBook(), Truncate(0.5))]
    floor = evaluate(systems, plain, progress=False).comparison
    assert floor is not None
    assert "do not need their context" in floor.context_unneeded  # the floor is enough


class _KnowsByHeart:
    """A reader that knows the answers without the context."""

    name = "reader"
    fingerprint = "knows by heart"

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    async def aprocess(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": self.answers[example["question"]]}


def test_a_gold_that_its_own_evaluator_refuses_is_a_fault() -> None:
    wrong = [{"id": 1, "context": "x", "question": "q", "choices": ["a", "b"], "correct_letter": "Q"}]
    check = check_golds(wrong)
    assert not check.is_sound
    assert "gold refused" in check.found


def test_free_answers_of_a_few_examples_are_not_taken_for_labels() -> None:
    """The gold of another example shares words with this one's, and so gets marks by overlap without being wrong."""
    texts = [f"The office in town {n} is open on the first day of the week" for n in range(5)]
    plain = [{"id": n, "context": text, "question": f"{n}?", "answer": text} for n, text in enumerate(texts)]
    assert check_golds(plain).found == {}


def test_checking_a_file_without_ids_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "no-id.jsonl").write_text('{"context": "a b", "answer": "b"}\n')
    done = called("datasets", "check", "no-id.jsonl", cwd=tmp_path)
    assert (done.returncode, "no 'id'" in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr


def test_a_run_warns_of_golds_that_are_refused_and_is_silent_else(tmp_path: Path) -> None:
    data = tmp_path / "bad.jsonl"
    run = ("--system", "passthrough", "--dataset", str(data), "--no-store")
    example = {"id": 1, "context": "a b c", "question": "q", "answer": "b", "evidence": ["zzz"]}
    data.write_text(json.dumps(example), encoding="utf-8")
    bad = called(*run, cwd=tmp_path)
    assert f"warning: {data}: the evidence is not in the context: 1 of 1 examples (id 1)" in bad.stderr
    data.write_text(json.dumps({**example, "evidence": ["a b"]}), encoding="utf-8")
    good = called(*run, cwd=tmp_path)
    assert "warning" not in good.stderr


def test_a_run_warns_of_questions_about_one_context_unless_they_name_it(tmp_path: Path) -> None:
    """160 questions about one document are one document, whatever a verdict by question says."""
    plain = _make(0.5)
    data = [{**each, "context": "\n".join(other["context"] for other in plain[:5])} for each in plain[:5]]
    (tmp_path / "one.jsonl").write_text("".join(json.dumps(each) + "\n" for each in data), encoding="utf-8")
    named = [{**each, "meta": {"group": "one"}} for each in data]
    (tmp_path / "named.jsonl").write_text("".join(json.dumps(each) + "\n" for each in named), encoding="utf-8")
    said = "share one context, but none names it in meta.group"
    for file, warned in (("one.jsonl", True), ("named.jsonl", False)):
        run = called("--system", "passthrough", "--dataset", file, "--no-store", cwd=tmp_path)
        assert (said in run.stderr) is warned, run.stderr
        assert (said in called("datasets", "check", file, cwd=tmp_path).stdout) is warned


def test_showing_a_dataset_says_where_its_evidence_stands(tmp_path: Path) -> None:
    shown = called("datasets", "show", "needle:length=500,n=20", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert re.search(
        r"evidence stands  after \d+% of the tokens \(median\), from 0% to \d+% \(20 examples\)", shown.stdout
    )


def test_the_check_is_a_command(tmp_path: Path) -> None:
    good = called("datasets", "check", "needle:n=20,length=500", cwd=tmp_path)
    assert (good.returncode, "sound, 20 examples" in good.stdout) == (0, True)
    data = tmp_path / "bad.jsonl"
    data.write_text(json.dumps({"id": 1, "context": "a b c", "answer": "b", "evidence": ["zzz"]}), encoding="utf-8")
    bad = called("datasets", "check", str(data), "--output", "json", cwd=tmp_path)
    assert (bad.returncode, json.loads(bad.stdout)["sound"]) == (1, False)


# --- on the records of a published benchmark


@pytest.mark.long
@pytest.mark.parametrize("kept", [0.7, 0.5, 0.3])
def test_the_first_function_as_needle_tells_nothing(kept: float) -> None:
    result = _run([example for example, _ in load_functions()], f"truncate:ratio={kept}")
    assert result.comparison is not None
    assert result.comparison.verdicts[0].n == 1431
    assert result.comparison.sensitivity[f"truncate:ratio={kept}"].word == "none"
    assert "equivalent" not in conclude(result)
    # the deepest name begins after 8 of the 65 tokens of its context
    assert "this data cannot show a loss: the answer begins in the first 13% of every context" in conclude(result)


@pytest.mark.long
def test_the_function_to_call_as_needle_shows_what_truncation_loses() -> None:
    data = [{**example, "answers": [names]} for example, names in load_functions() if names]
    result = _run(data, "truncate:ratio=0.5")
    assert len(data) == 1311
    assert result.comparison is not None
    assert result.comparison.verdicts[0].word == "worse"
    assert result.summary["truncate:ratio=0.5"]["mean_score"] == pytest.approx(0.725, abs=0.005)
