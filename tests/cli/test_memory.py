"""`context-bench memory` from the command line."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench.output.layout import display_width
from servers import Server, completion
from terminal import bench_on_terminal
from toy_memories import make_conversations

SLOW = """
import time

class Slow:
    name = "slow"

    def reset(self):
        pass

    def ingest(self, turns):
        pass

    def query(self, question):
        time.sleep(0.2)
        return question
"""
TOYS = Path(__file__).parents[1] / "toy_memories.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps(each) for each in make_conversations()]
    (tmp_path / "talks.jsonl").write_text("\n".join(lines))
    (tmp_path / "own.jsonl").write_text('{"id": "a", "context": "c", "question": "q"}\n')
    (tmp_path / "toys.py").write_text(TOYS.read_text())
    return tmp_path


def memory(folder: Path, *words: str, code: int = 0) -> Any:
    done = called("memory", *words, "--no-bm25", cwd=folder)
    assert done.returncode == code, done.stderr
    return done


def as_json(folder: Path, *words: str) -> Any:
    return json.loads(memory(folder, *words, "--output", "json", "--quiet", "--no-store").stdout)


def test_the_systems_that_ship_run_with_no_key_and_no_network(folder: Path) -> None:
    words = [word for name in ("naive", "bm25", "last:n=20", "oracle", "closed-book") for word in ("--system", name)]
    done = memory(
        folder, *words, "--dataset", "synthetic-memory:length=4000", "-n", "2", "--budget", "500,2000", "--wide"
    )
    tables = [part.splitlines()[0] for part in done.stdout.split("\n\n") if part.startswith("|")]
    first = [re.sub(r"\s+", " ", line).split("|")[1].strip() for line in tables]
    found = ["retrieved", "evidence among the first turns", "evidence among the first sessions", "probes passed"]
    assert first[:7] == [*found, "system", "own query", "score by type"]
    assert first[7:9] == ["not left in the store", "costs of memory"]
    assert "against naive" in first
    # Nobody under test is told to be better or worse as a control.
    assert "oracle" in done.stdout
    assert re.search(r"^\| oracle .*\(control\)", done.stdout, re.MULTILINE)
    assert "a script read the retrieved text, not a model" in done.stdout
    outcome = done.stdout.partition("\n\n")[0]  # before all tables
    assert "ranked by recall at 500 tokens: bm25 1.000, last:n=20 0." in outcome
    assert "naive" not in outcome
    assert "bm25 does not forget" in outcome
    assert "recorded as run" in done.stderr


@pytest.mark.long
def test_by_default_four_tables_fit_a_screen_and_the_conclusion_is_last(folder: Path) -> None:
    words = [word for name in ("hybrid", "bm25", "last:n=20") for word in ("--system", name)]
    shown = memory(folder, *words, "--dataset", "synthetic-memory").stdout.splitlines()
    assert len(shown) <= 45
    assert max(map(display_width, shown)) <= 120
    tables = [line.split("|")[1].strip() for line, below in itertools.pairwise(shown) if below.startswith("| --")]
    assert tables == ["ranked at each budget", "writing 1,000 turns", "score by type"]
    ranked = [line.split("|")[1].strip() for line in shown if re.match(r"\| \S+\[budget=", line)]
    names = ("bm25", "hybrid", "last:n=20")
    assert sorted(ranked) == sorted(f"{name}[budget={size}]" for size in (500, 2000, 8000) for name in names)
    assert [line for line in ranked if "last" in line] == [f"last:n=20[budget={size}]" for size in (500, 2000, 8000)]
    assert any(line.startswith("last:n=20 lost turns: ") for line in shown)
    assert any(line.endswith("100% of the probes (also bm25).") for line in shown)
    assert shown[-1].strip().endswith("judge by recall and probes.")


def test_faults_are_named(folder: Path) -> None:
    words = [
        word for name in ("Leaking", "Separate", "Stale", "Remembering") for word in ("--system", f"toys.py:{name}")
    ]
    data = [
        "--dataset",
        "synthetic-memory:length=4000",
        "-n",
        "2",
        "--budget",
        "500",
        "--answers",
        "reader",
        "--no-store",
    ]
    done = memory(folder, *words, *data)
    assert "toys.py:Leaking leaks between users" in done.stdout
    assert "toys.py:Separate leaks" not in done.stdout
    assert "toys.py:Remembering leaks" not in done.stdout  # it does not know users: not applicable
    assert "toys.py:Stale does not update" in done.stdout
    assert "toys.py:Separate does not update" not in done.stdout


def test_who_forgets_ranks_below_who_remembers(folder: Path) -> None:
    result = as_json(
        folder, "--system", "toys.py:Remembering", "--system", "toys.py:Forgetful", "--dataset", "talks.jsonl"
    )
    scores = {name: values["mean_score"] for name, values in result["summary"].items()}
    for budget in (500, 2000, 8000):
        assert scores[f"toys.py:Remembering[budget={budget}]"] > scores[f"toys.py:Forgetful[budget={budget}]"]


def test_flags_choose_what_is_asked(folder: Path) -> None:
    result = as_json(
        *(folder, "--system", "toys.py:Remembering", "--dataset", "talks.jsonl", "-n", "2", "--types", "late"),
        *("--granularity", "pair,turn", "--budget", "300", "--answers", "own", "--top-k", "1"),
    )
    assert list(result["summary"]) == ["toys.py:Remembering/pair[own query]", "toys.py:Remembering/turn[own query]"]
    assert len(result["rows"]) == 2 * 2 * 3
    assert {row["metadata"]["question_type"] for row in result["rows"]} == {"late"}


def test_a_question_up_close(folder: Path) -> None:
    memory(
        folder, "--system", "toys.py:Remembering", "--dataset", "talks.jsonl", "--budget", "500", "--answers", "reader"
    )
    shown = called("diff", "last", "c1/q2", cwd=folder).stdout
    assert "What is the code of room2?" in shown
    assert "gold: 122" in shown
    assert "turn t2: retrieved" in shown
    assert "1. t2 ⟦evidence⟧ [1 May 2023, 10:00] The code of room2 is 122." in shown
    assert "── response ──\n122" in shown
    run = called("runs", "show", "last", "--wide", cwd=folder).stdout
    assert "score by type" in run


def test_a_resumed_run_asks_nothing_again(folder: Path) -> None:
    words = ["--system", "toys.py:Remembering", "--dataset", "talks.jsonl", "--budget", "500"]
    memory(folder, *words)
    done = memory(folder, *words, "--resume")
    assert "36 rows come from the cache" in done.stderr


def test_a_reader_answers_for_all(folder: Path) -> None:
    with Server(completion("the code is 000")) as server:
        words = ["--system", "toys.py:Remembering", "--dataset", "talks.jsonl", "-n", "1", "--budget", "500"]
        result = as_json(folder, *words, "--answers", "reader", "--reader", server.url, "--model", "m")
        (first, *_) = server.chats
    assert {row["response"] for row in result["rows"]} == {"the code is 000"}
    sent = json.dumps(first.json["messages"])
    assert "The code of room0 is 000." in sent
    assert "memory" not in first.json
    assert result["config"]["memory"]["reader"] == "m"


def test_a_script_answers_behind_the_taps(folder: Path) -> None:
    words = ["--system", "toys.py:Writing", "--dataset", "talks.jsonl", "-n", "1", "--budget", "500"]
    result = as_json(folder, *words, "--tap-reply", "extract", "--flush-quiet", "0.05")
    values = result["summary"]["toys.py:Writing[budget=500]"]
    assert values["ingest_calls"] == pytest.approx(1000)
    assert values["ingest_embed_calls"] == pytest.approx(1000)
    assert {row["error"] for row in result["rows"]} == {None}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no memory system to measure: add --system NAME (bm25, closed-book, "),
        (["--system", "bm25"], "no dataset: add --dataset NAME (beam, convomem, "),
        (["--system", "bm25", "--dataset", "own.jsonl"], "conversation 1 of own: no 'turns'"),
        (["--system", "bm25", "--dataset", "talk.jsonl"], "talk.jsonl: no such file; did you mean talks.jsonl?"),
        (["--system", "bm52", "--dataset", "talks.jsonl"], "unknown memory system 'bm52'"),
        (["--system", "bm25", "--dataset", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["--system", "bm25", "--dataset", "lokomo"], "unknown memory dataset 'lokomo'"),
        (["--system", "bm25", "--dataset", "talks.jsonl", "--granularity", "word"], "granularity must be one of"),
        (["--system", "toys.py:Writing", "--dataset", "talks.jsonl"], "calls a model: pass"),
        (["--system", "bm25", "--dataset", "talks.jsonl", "--judge-model", "j"], "a judge needs --judge-url"),
        (
            [
                *("--system", "bm25", "--dataset", "talks.jsonl"),
                *("--judge-url", "http://localhost:1", "--model", "x", "--judge-model", "x"),
            ],
            "x would judge its own answers",
        ),
        (
            ["--system", "bm25", "--dataset", "talks.jsonl", "--tap-reply", "echo", "--relay", "http://localhost:1"],
            "choose one source",
        ),
    ],
)
def test_a_mistake_is_one_sentence(folder: Path, words: list[str], said: str) -> None:
    done = memory(folder, *words, code=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupted_run_says_what_to_type_and_goes_on(folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    run = bench_on_terminal(
        *("memory", "--system", "slow.py:Slow", "--dataset", "talks.jsonl", "--no-bm25"), cwd=folder, columns=200
    )
    run.wait_for("3 rows")
    run.send("\x03")
    assert run.finish() == 130
    line = run.shown.replace("\r\n", "\n").strip().rpartition("\n")[2]
    assert line == "  context-bench memory --system slow.py:Slow --dataset talks.jsonl --no-bm25 --resume"
    resumed = called(*shlex.split(line)[1:], "--output", "json", cwd=folder)
    document = json.loads(resumed.stdout)
    assert 3 <= document["config"]["reused"] < len(document["rows"]) == 18


@pytest.mark.parametrize(
    "words",
    [
        ["--system", "toys.py:Remembering"],  # no baseline
        ["--system", "toys.py:Remembering", "--answers", "own"],  # nothing counts tokens
        ["--system", "toys.py:Remembering", "--system", "bm25", "--budget", "500", "-n", "1"],  # the first of several
        ["--system", "toys.py:Writing", "--tap-reply", "extract", "--model", "unpriced"],
        ["--system", "naive", "--system", "toys.py:Broken:where=retrieve"],
    ],
)
def test_no_table_and_no_page_names_a_flag_that_the_command_refuses(folder: Path, words: list[str]) -> None:
    done = called(
        *("memory", *words, "--dataset", "talks.jsonl", "--flush-quiet", "0.05", "--report", "page.html"), cwd=folder
    )
    page = re.sub(r"(?s)<(style|script).*?</\1>|<[^>]*>", " ", (folder / "page.html").read_text())
    known = called("memory", "--help", cwd=folder).stdout
    for text in (done.stdout, done.stderr, page):
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
        assert not {flag for flag in named if not re.search(rf"{flag}\b(?!-)", known)}


def test_too_many_errors_end_with_3(folder: Path) -> None:
    words = ["--system", "toys.py:Broken:where=retrieve,how=raise", "--dataset", "talks.jsonl", "--budget", "500"]
    done = memory(folder, *words, "--answers", "reader", code=3)
    assert "18 of 18 failed, first: SystemFailure" in done.stderr


def test_a_limit_on_dollars_stops_writing_and_resume_goes_on(folder: Path) -> None:
    words = ["--system", "toys.py:Writing", "--dataset", "talks.jsonl", "--budget", "500", "--answers", "reader"]
    (folder / "prices.json").write_text(json.dumps({"default": {"input": 1000, "output": 1000}}))

    def answer(request: Any) -> Any:
        return completion("noted", usage={"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100})

    with Server(answer) as server:
        words += ["--tap-forward", server.url, "--model", "m", "--prices", "prices.json", "--flush-quiet", "0.05"]
        stopped = memory(folder, *words, "--granularity", "turn", "--max-cost", "0.45", "--max-workers", "1", code=3)
        # A model call costs $0.1, an embedding nearly nothing: five of the 18 turns were written.
        assert 9 <= len(server.requests) <= 12
        assert "stopped early: the limit of $0.45 is reached ($0.5" in stopped.stderr
        done = memory(folder, *words, "--resume", "--output", "json", "--fail-if", "error_rate > 0.5")
        assert ": Passed: error_rate is " in done.stderr
        assert len(json.loads(done.stdout)["rows"]) == 18


def test_a_dry_run_sends_nothing_and_a_gate_fails_the_command(folder: Path) -> None:
    words = ["--system", "toys.py:Writing", "--system", "naive", "--dataset", "talks.jsonl", "--budget", "500"]
    shown = memory(folder, *words, "--relay", "http://127.0.0.1:9", "--dry-run", "--max-cost", "0.0001").stdout
    assert re.search(r"^data +3 conversations, 18 questions$", shown, re.MULTILINE)
    assert re.search(r"^limit +--max-cost \$0.00 ends the run early$", shown, re.MULTILINE)
    # 18 turns of about 14 tokens in 6 writes, and 200 tokens that the model writes for each of them.
    (written,) = re.findall(r"^\| toys.py:Writing \| +([\d,]+) \|", shown, re.MULTILINE)
    assert 6 * 200 + 18 * 10 < int(written.replace(",", "")) < 6 * 200 + 18 * 30
    words = ["--system", "toys.py:Forgetful", "--dataset", "talks.jsonl", "--budget", "500", "--answers", "reader"]
    memory(folder, *words, "--fail-if", "retrieval_recall < 0.9", code=1)
    # Neither the added bm25 is judged, nor what a memory answers itself while a script reads.
    gate = ["--system", "last:n=1", *words[2:6], "--fail-if", "verdict is worse", "--fail-if", "retrieval_recall < 0.9"]
    judged = called("memory", *gate, cwd=folder)
    assert judged.returncode == 1
    assert len(re.findall(r"gate: last:n=1\[budget=500\]: ", judged.stderr)) == judged.stderr.count("gate: ") == 2
    assert "'recal' is not a number of this run" in memory(folder, *words, "--fail-if", "recal < 1", code=2).stderr


def test_bm25_is_added_as_the_bar_to_beat(folder: Path) -> None:
    words = ["memory", "--system", "toys.py:Forgetful", "--dataset", "talks.jsonl", "--budget", "500", "--no-store"]
    found = json.loads(called(*words, "--output", "json", "--quiet", cwd=folder).stdout)
    assert [name for name in found["summary"] if "budget" in name] == [
        "toys.py:Forgetful[budget=500]",
        "bm25[budget=500]",
    ]
    assert found["comparison"]["baseline"] == "bm25[budget=500]"
    tuned = json.loads(called(*words, "--system", "bm25:k1=0.9", "--output", "json", "--quiet", cwd=folder).stdout)
    assert "bm25[budget=500]" not in tuned["summary"], "a bm25 of the user's own is enough"


def test_what_was_retrieved_is_saved_and_read_again_by_another_reader(folder: Path) -> None:
    words = ["--dataset", "talks.jsonl", "--budget", "500,2000", "--output", "json", "--quiet"]
    saved = ["--system", "bm25", "--system", "naive", "--system", "toys.py:Stale", "--save-contexts", "found.jsonl"]
    live = json.loads(memory(folder, *words, *saved).stdout)
    lines = [json.loads(line) for line in (folder / "found.jsonl").read_text().splitlines()]
    # 3 conversations of 6 questions, at two budgets, for the two systems that are no controls
    assert len(lines) == 3 * 6 * 2 * 2
    assert {line["system"] for line in lines} == {"bm25", "toys.py:Stale"}
    with Server(lambda _: completion("I cannot know.")) as server:
        reader = ["--contexts", "found.jsonl", "--reader", server.url, "--max-workers", "2"]
        frozen = json.loads(memory(folder, *words, *reader).stdout)
        assert len(server.requests) == 3 * 6 * 2 * 2
    for name in ("bm25", "toys.py:Stale"):
        for budget in (500, 2000):
            was, now = live["summary"][f"{name}[budget={budget}]"], frozen["summary"][f"{name} (file)[budget={budget}]"]
            assert now["retrieval_recall"] == was["retrieval_recall"]
            assert now.get("ingest_calls") is None, "what a file retrieved cost is not known"
    kept = {(row["system"], row["example_id"]): row for row in frozen["rows"]}
    assert {row["response"] for row in kept.values()} == {"I cannot know."}
    planned = memory(folder, *words[:4], "--contexts", "found.jsonl", "--reader", server.url, "--dry-run").stdout
    (line,) = [line for line in planned.splitlines() if line.startswith("| bm25 (file)")]
    assert [cell.strip() for cell in line.split("|")][2:5] == ["–", "–", "–"], "nothing is written or asked again"


def test_a_file_of_a_vendor_s_own_is_scored_and_what_it_lacks_is_an_error(folder: Path) -> None:
    first = make_conversations()[0]
    question = first["questions"][0]
    turn = next(each for each in first["turns"] if each["id"] in question["evidence_ids"])
    line = {"question_id": f"{first['id']}/{question['id']}", "text": turn["content"], "ids": [turn["id"]]}
    (folder / "theirs.jsonl").write_text(json.dumps(line) + "\n")
    words = ["--contexts", "theirs.jsonl", "--dataset", "talks.jsonl", "-n", "1", "--budget", "500", "--output", "json"]
    found = json.loads(memory(folder, *words, code=3).stdout)
    costs = {"ingest_seconds", "ingest_calls", "query_seconds_median"}
    assert not costs & {key for values in found["summary"].values() for key in values}, (
        "a file does not say what writing cost"
    )
    rows = {row["example_id"]: row for row in found["rows"]}
    assert rows[line["question_id"]]["scores"]["retrieval_recall"] == 1.0
    others = [row["error"] for name, row in rows.items() if name != line["question_id"]]
    assert len(others) == len(first["questions"]) - 1
    assert all("the file has no retrieved items for" in error for error in others)
    twice = json.dumps(line) + "\n"
    (folder / "theirs.jsonl").write_text(twice + twice)
    assert "two lines for question" in memory(folder, *words, code=2).stderr
