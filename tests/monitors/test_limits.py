"""Runs that stop by themselves: at so many errors, tokens or dollars, cleanly, with a report and exit code 3."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import OpenAIProxy, evaluate
from context_bench.core.call import Outcome
from context_bench.core.examples import Item
from context_bench.core.row import Job
from context_bench.errors import UsageError
from context_bench.monitors.limits import ErrorLimit, Limits
from context_bench.pricing import Price, Prices
from context_bench.results import EvalRow
from context_bench.systems.adapt import adapt
from numbered import expected, facts, number_of, numbered, right, write
from rows import failed_row, make_row
from servers import Server, completion, reply

# One row at a time


JOB = Job(0, adapt(right), Item({"id": 1, "context": ""}))


def count_rows(max_errors: str | None, expected: int | None, *rows: EvalRow) -> list[str | None]:
    """Show rows to a new limit, and return what it says of each."""
    limit = ErrorLimit(Limits(max_errors=max_errors), expected)
    return [limit.on_row(JOB, row, Outcome()) for row in rows]


def test_without_limits_nothing_stops() -> None:
    assert count_rows(None, 10, make_row(1.0), failed_row()) == [None] * 2


@pytest.mark.parametrize(
    ("limits", "given"),
    [
        (Limits(), False),
        (Limits(max_cost=1.0), True),
        (Limits(max_total_tokens=1), True),
        (Limits(max_errors="1"), True),
        (Limits(max_cost=0.0), True),
        (Limits(max_total_tokens=0), True),
    ],
)
def test_whether_there_is_a_limit(limits: Limits, given: bool) -> None:
    assert limits.given is given


def test_errors_count_for_each_system_apart() -> None:
    *before, reason = count_rows("2", None, *(failed_row(system=name) for name in "ababb"))
    assert before == [None] * 4
    assert reason is not None
    assert reason.startswith("b failed on 3 examples")


def test_a_share_of_errors_needs_to_know_of_how_many() -> None:
    assert [count_rows("10%", expected, failed_row()) for expected in (None, 10)] == [[None], [None]]
    first, second = count_rows("10%", 10, failed_row(), failed_row())
    assert first is None
    assert second is not None
    assert count_rows("0", None, failed_row()) != [None]
    assert count_rows("0%", 10, failed_row()) != [None]


@pytest.mark.parametrize("text", ["", "%", "ten", "-1", "nan", "10%%", "-5%"])
def test_limits_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match="max_errors must be a number of errors"):
        Limits(max_errors=text)


def test_whether_a_finished_run_had_too_many() -> None:
    def summary(errors: int) -> dict[str, dict[str, float]]:
        return {
            "good": {"num_examples": 20.0, "num_errors": 0.0},
            "bad": {"num_examples": 20.0, "num_errors": float(errors)},
        }

    assert [Limits(max_errors="10%").is_exceeded(summary(errors)) for errors in (2, 3)] == [False, True]
    assert [Limits(max_errors="2").is_exceeded(summary(errors)) for errors in (2, 3)] == [False, True]
    assert not Limits().is_exceeded(summary(20))


# Whole runs


@pytest.fixture
def server() -> Iterator[Server]:
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
    details = {"prompt_tokens_details": {"cached_tokens": 800}}

    def answer(request: Any) -> Any:
        return completion(f"c{number_of(request)}", usage={**usage, **details})  # type: ignore[dict-item]

    with Server(answer) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "data.jsonl", *range(50))
    (tmp_path / "prices.toml").write_text('["gpt-3.5-turbo"]\ninput = 10\noutput = 20\ncached_input = 1\n')
    return tmp_path


# 200 tokens at 10, 800 at 1 and 100 at 20 dollars a million
COST = 0.0048

WITHOUT_CACHE = 2
"""A request reserves 1,000 tokens at 10 and 100 at 20 dollars, 2.5 times COST: what a cache will give is not known."""


def test_a_spent_budget_stops_the_run_with_a_report(folder: Path, server: Server) -> None:
    run = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--output", "json", "--max-workers", "2")
    budget = ("--prices", "prices.toml", "--max-cost", str(10.5 * COST), "--cache-dir", "store")
    done = called(*run, *budget, cwd=folder)
    assert done.returncode == 3, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["metadata"]["cost_usd"] for row in rows] == [pytest.approx(COST)] * len(rows)
    assert len(rows) == 10 - WITHOUT_CACHE, "the next one might have passed the limit"
    assert [row["example_id"] for row in rows] == list(range(len(rows)))
    assert (
        "stopped early: the limit of $0.0504 is reached ($0.0384 spent; the next request may cost $0.0120"
        in done.stderr
    )
    assert len(server.chats) == len(rows)
    assert "stopped" in called("runs", "list", "--cache-dir", "store", cwd=folder).stdout

    again = called(*run, *budget, cwd=folder)
    rows_again = json.loads(again.stdout)["rows"]
    assert again.returncode == 3
    assert len(rows_again) == 2 * len(rows), "what was stored is no new spend"
    assert len(server.chats) == len(rows_again)


def test_the_table_of_a_stopped_run(folder: Path, server: Server) -> None:
    done = called(
        *("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--max-workers", "1"),
        *("--max-total-tokens", "5000"),
        cwd=folder,
    )
    assert done.returncode == 3
    assert (
        "stopped early: the limit of 5,000 tokens is reached (4,400 used; the next request may take 1,100)"
        in done.stderr
    )
    assert re.search(r"^\| p +\| +4 \|", done.stdout, re.MULTILINE)
    assert len(server.chats) == 4


def test_a_budget_for_a_model_that_the_table_does_not_list_is_a_mistake(folder: Path, server: Server) -> None:
    run = ("--proxy", server.url, "--dataset", "data.jsonl", "--model", "my-own", "--max-cost", "1")
    done = called(*run, cwd=folder)
    assert done.returncode == 2
    assert (
        "'my-own' has no price, so --max-cost cannot be enforced: add a price for it, or `default`, with --prices"
        in done.stderr
    )
    assert server.chats == []


def test_a_model_without_a_price_cannot_be_watched(folder: Path, server: Server) -> None:
    """A budget that nothing counts against would never stop: that is said before anything is spent."""
    (folder / "other.toml").write_text("[another-model]\ninput = 10\noutput = 20\n")
    budget = ("--prices", "other.toml", "--max-cost", "0.001")
    done = called("--proxy", server.url, "--model", "mine", "--dataset", "data.jsonl", *budget, cwd=folder)
    assert done.returncode == 2
    assert "'mine' has no price, so --max-cost cannot be enforced" in done.stderr
    assert server.chats == []


@pytest.mark.parametrize(
    ("limit", "most"), [("3", 4), ("10%", 6), ("0", 1), (None, 50)], ids=["number", "share", "none", "no limit"]
)
def test_too_many_errors(folder: Path, limit: str | None, most: int) -> None:
    broken = reply(400, {"error": {"message": "no"}})
    with Server(lambda request: broken if number_of(request) % 2 else right(request)) as server:
        run = (
            "--proxy",
            server.url,
            "--name",
            "p",
            "--dataset",
            "data.jsonl",
            "--max-workers",
            "1",
            "--output",
            "json",
        )
        done = called(*run, *(("--max-errors", limit) if limit else ()), cwd=folder)
    assert done.returncode == 3
    summary = json.loads(done.stdout)["summary"]["p"]
    assert summary["num_errors"] == (25 if limit is None else most)
    assert summary["num_examples"] == (50 if limit is None else 2 * most)
    assert ("stopped early" in done.stderr) == (limit is not None)
    assert f"p: {int(summary['num_errors'])} of {int(summary['num_examples'])} failed, first: " in done.stderr


def test_limits_belong_to_one_run(server: Server) -> None:
    limits = Limits(max_total_tokens=5 * 1_100)
    for _ in range(2):
        result = evaluate(OpenAIProxy(server.url), numbered(*range(20)), limits=limits)
        assert facts(result.rows) == expected(*range(5))
        assert result.config["stopped"]


# Rows that stay in the store


def test_a_run_without_rows_has_the_same_summary(tmp_path: Path) -> None:
    broken = reply(400, {"error": {"message": "no"}})
    with Server(lambda request: broken if number_of(request) == 7 else right(request)) as server:

        def run(**options: Any) -> Any:
            return evaluate(OpenAIProxy(server.url, name="p"), numbered(*range(40)), max_workers=8, **options)

        whole = run(cache_dir=tmp_path)
        bare = run(cache_dir=tmp_path, keep_rows=False)
    assert bare.rows == []
    assert bare.summary == whole.summary
    from context_bench.store import Store

    with Store(tmp_path, readonly=True) as store:
        rows = list(store.run_rows(store.run(bare.config["run"])))
    assert facts(rows) == facts(whole.rows)


def test_a_metric_that_needs_all_rows_says_so_before_anything_is_sent() -> None:
    class Longest:
        name = "longest"

        def compute(self, rows: list[EvalRow]) -> dict[str, float]:
            return {"longest": float(max(len(row.response) for row in rows))}

    with Server(right) as server, pytest.raises(UsageError, match=r"'longest' needs all rows at once"):
        evaluate(OpenAIProxy(server.url), numbered(1), metrics=[Longest()], keep_rows=False)
    assert server.requests == []


def test_no_rows_on_the_command_line(folder: Path, server: Server) -> None:
    run = (
        "--proxy",
        server.url,
        "--name",
        "p",
        "--dataset",
        "data.jsonl",
        "--output",
        "json",
        "--prices",
        "prices.toml",
    )
    document = json.loads(called(*run, "--no-rows", cwd=folder).stdout)
    assert document["rows"] == []
    exported = json.loads(called("runs", "export", "last", "--output", "json", cwd=folder).stdout)
    assert len(exported["rows"]) == 50
    assert exported["summary"] == document["summary"]
    assert Prices.from_file(folder / "prices.toml").of("gpt-3.5-turbo") == Price(10, 20, 1)
