"""`context-bench score`: a recorded run judged again, with no request to any system, as a run of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import called
from numbered import number_of, right, write
from servers import Server, completion, reply

SHOUT = """
class Shout:
    name = "shout"
    version = 1
    score_fields = ("shout",)

    def score(self, original, processed):
        return {"shout": float(processed["response"].isupper())}

class Broken:
    name = "broken"

    def score(self, original, processed):
        raise RuntimeError("no idea")

class Clash:
    name = "clash"

    def score(self, original, processed):
        return {"f1": 1.0}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a run of three examples: one right in part, one right, one failed."""
    write(tmp_path / "data.jsonl", 1, 2, 3)
    (tmp_path / "own.py").write_text(SHOUT)
    broken = reply(400, {"error": {"message": "no"}})

    def answer(request: Any) -> Any:
        number = number_of(request)
        return broken if number == 3 else completion("C1 OR SO") if number == 1 else right(request)

    with Server(answer) as server:
        done = called("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", cwd=tmp_path)
    assert done.returncode == 3
    return tmp_path  # the server is gone: whoever asked it again would fail


def score(folder: Path, *arguments: str, run: str = "last") -> dict[str, Any]:
    done = called("score", run, "--output", "json", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert done.stderr == f"context-bench: recorded as run {document['config']['run']}\n"
    return document


def test_with_what_was_there_it_says_the_same(folder: Path) -> None:
    before = json.loads(called("runs", "export", "last", "--output", "json", cwd=folder).stdout)
    after = score(folder)
    assert after["rows"] == before["rows"]
    assert after["summary"] == before["summary"]
    assert after["config"]["rescored"] == before["config"]["run"]
    assert after["config"]["run"] != before["config"]["run"]


def test_another_threshold(folder: Path) -> None:
    # f1 of "C1 OR SO" against "c1" is 0.5, of the right answer 1, of the failed one 0
    assert score(folder)["summary"]["p"]["pass_rate"] == pytest.approx(1 / 3)
    assert score(folder, "--threshold", "0.4")["summary"]["p"]["pass_rate"] == pytest.approx(2 / 3)


def test_one_more_evaluator(folder: Path) -> None:
    document = score(folder, "--evaluator", "own.py:Shout")
    assert [row["scores"].get("shout") for row in document["rows"]] == [1.0, 0.0, None]
    assert "shout" in document["config"]["evaluators"]
    exported = json.loads(called("runs", "export", "last", "--output", "json", cwd=folder).stdout)
    assert exported["rows"] == document["rows"]
    assert exported["summary"] == document["summary"]


def test_another_score_counts(folder: Path) -> None:
    document = score(folder, "--score-field", "contains")
    assert document["summary"]["p"]["mean_score"] == pytest.approx(2 / 3)
    assert document["config"]["score_field"] == "contains"
    done = called("score", "last", "--score-field", "nonsense", cwd=folder)
    assert done.returncode == 2
    assert "no evaluator emits 'nonsense'" in done.stderr


def test_one_more_metric(folder: Path) -> None:
    document = score(folder, "--metric", "per-dataset-breakdown:score_field=f1")
    assert document["summary"]["p"]["dataset:data"] == pytest.approx((0.5 + 1) / 3)


def test_the_old_run_stays_as_it_was(folder: Path) -> None:
    before = called("runs", "export", "last", "--output", "json", cwd=folder).stdout
    run = json.loads(before)["config"]["run"]
    score(folder, "--evaluator", "own.py:Shout", "--threshold", "0.1")
    assert called("runs", "export", run, "--output", "json", cwd=folder).stdout == before
    listed = called("runs", "list", cwd=folder).stdout.splitlines()
    assert len(listed) == 3
    called("runs", "rm", run, cwd=folder)
    assert [row["response"] for row in score(folder)["rows"]] == ["C1 OR SO", "c2", ""], "its answers are still there"


def test_an_evaluator_that_fails_is_a_missing_score(folder: Path) -> None:
    document = score(folder, "--evaluator", "own.py:Broken")
    assert [row["unscored"].get("broken") for row in document["rows"]] == ["RuntimeError: no idea"] * 2 + [None]


def test_evaluators_that_clash_end_it_with_one_sentence(folder: Path) -> None:
    done = called("score", "last", "--evaluator", "own.py:Clash", cwd=folder)
    assert done.returncode == 2
    assert "'f1'" in done.stderr.splitlines()[-1]
    assert "failed" in called("runs", "list", cwd=folder).stdout


def test_the_form_of_the_report(folder: Path) -> None:
    assert called("score", "last", cwd=folder).stdout.startswith("| system")
    assert called("score", "last", "--output", "csv", "--out", "x.csv", cwd=folder).stdout == ""
    assert len((folder / "x.csv").read_text().splitlines()) == 4


@pytest.mark.parametrize("name", ["nonsense", "19990101-000000-1"])
def test_a_run_that_is_not_there(folder: Path, name: str) -> None:
    done = called("score", name, cwd=folder)
    assert done.returncode == 2
    assert f"there is no run {name!r}" in done.stderr
    assert len(called("runs", "list", cwd=folder).stdout.splitlines()) == 2, "nothing was recorded"


def test_reasoning_in_the_replies_is_scored_on_request(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", 1)
    with Server(completion("<think>c1</think>None.")) as server:
        called("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", cwd=tmp_path)
    assert score(tmp_path)["rows"][0]["scores"]["contains"] == 0.0
    kept = score(tmp_path, "--keep-reasoning")
    assert kept["rows"][0]["scores"]["contains"] == 1.0
    assert kept["config"]["keep_reasoning"] is True


def _judge(_: Any) -> Any:
    usage = {"prompt_tokens": 100, "completion_tokens": 50}
    return completion('{"rationale": "it agrees", "rating": 5}', usage=usage)


def test_the_judge_is_asked_within_the_limit(tmp_path: Path) -> None:
    """A verdict costs 100 tokens at 10 and 50 at 20 dollars a million, 0.002: four fit into 0.009."""
    write(tmp_path / "data.jsonl", *range(8))
    (tmp_path / "prices.toml").write_text("[default]\ninput = 10\noutput = 20\n")
    with Server(right) as server:
        done = called("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with Server(_judge) as server:
        judged = ("--judge-url", server.url, "--judge-model", "m", "--prices", "prices.toml", "--output", "json")
        done = called("score", "last", *judged, "--max-cost", "0.009", cwd=tmp_path)
        assert len(server.chats) == 4
        assert done.returncode == 3
        assert "judging stopped: the limit of $0.009 is reached ($0.0080 spent, $0.0080 of it on judging" in done.stderr
        rows = json.loads(done.stdout)["rows"]
        assert sum(row["metadata"].get("judge_cost_usd", 0) for row in rows) == pytest.approx(0.008)
        whole = called("score", "last", *judged, "--max-cost", "1", cwd=tmp_path)
        assert len(server.chats) == 8, "what was judged is not paid for again"
    assert whole.returncode == 0, whole.stderr
    assert all("judge_score" in row["scores"] for row in json.loads(whole.stdout)["rows"])


def test_a_judge_without_a_price_is_refused_under_a_limit_on_cost(folder: Path) -> None:
    done = called(
        "score", "last", "--judge-url", "http://127.0.0.1:9", "--judge-model", "odd", "--max-cost", "1", cwd=folder
    )
    assert done.returncode == 2
    assert "'odd' has no price, so --max-cost cannot be enforced" in done.stderr
