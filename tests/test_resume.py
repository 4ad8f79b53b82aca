"""What was paid for is not paid for again, and nothing stale is ever served: the server's log is the witness."""

from __future__ import annotations

import functools
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from command import called, environment, shell
from context_bench import OpenAIProxy, Scores, evaluate
from context_bench.evaluators import AnswerQuality
from context_bench.store import Store
from context_bench.systems import Oracle, Passthrough, WithReader
from numbered import asked, expected, facts, number_of, numbered, right, write
from servers import Reply, Request, Server, completion, reply
from timing import depends_on_time

SLOW = bool(os.environ.get("CONTEXT_BENCH_SLOW"))


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start `context-bench` and do not wait for it."""
    command = [sys.executable, "-m", "context_bench", *arguments]
    return subprocess.Popen(
        command, cwd=cwd, env=environment(), encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def untimed(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a result, without what a clock said."""
    rows: list[dict[str, Any]] = document["rows"]
    for row in rows:
        row.pop("latency")
        for key in ("waited", "request_seconds"):
            row["metadata"].pop(key)
    return rows


def after(delay: float) -> Callable[[Request], Reply]:
    """The right answer, after a while."""

    def answer(request: Request) -> Reply:
        given = right(request)
        given.delay = delay
        return given

    return answer


# Death


@pytest.mark.long
@depends_on_time("an answer is on disk within 50 ms of the clock on the wall")
def test_killed_again_and_again_it_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    kills, count = (20, 2_000) if SLOW else (6, 480)
    chance = random.Random(count)
    write(tmp_path / "data.jsonl", *range(count))
    deaths: list[float] = []
    with Server(after(0.02)) as server:
        run = ["--proxy", server.url, "--name", "proxy", "--dataset", "data.jsonl", "--max-workers", "8"]
        run += ["--output", "json", "--cache-dir"]
        for kill in range(kills):
            process = start(*run, "killed", cwd=tmp_path)
            enough = (kill + 1) * count // (kills + 2)
            while len(server.chats) < enough:
                time.sleep(0.001)
                assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(chance.uniform(0.0, 0.03))
            deaths.append(time.monotonic())
            process.kill()
            process.communicate()
        resumed = shell(*run, "killed", cwd=tmp_path)
        log = list(server.chats)
        whole = shell(*run, "whole", cwd=tmp_path)
    assert resumed.returncode == whole.returncode == 0, resumed.stderr
    assert untimed(json.loads(resumed.stdout)) == untimed(json.loads(whole.stdout))
    assert len(json.loads(resumed.stdout)["rows"]) == count
    # 50 ms for the store, and what a busy machine takes to bring an answer across.
    late = 0.05 + 0.1
    for number in range(count):
        first, *again = [request for request in log if number_of(request) == number]
        for request in again:
            death = next(moment for moment in reversed(deaths) if moment < request.moment)
            assert first.answered is None or first.answered > death - late, "an answer that was there was asked again"
            first = request


def test_a_killed_run_can_be_looked_at_and_judged(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(200))
    with Server(after(0.02)) as server:
        process = start("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", cwd=tmp_path)
        while len(server.chats) < 40:
            time.sleep(0.005)
        time.sleep(0.1)
        process.kill()
        process.communicate()
        requests = len(server.requests)
        listed = called("runs", "list", cwd=tmp_path)
        shown = called("runs", "show", "last", cwd=tmp_path)
        exported = json.loads(called("runs", "export", "last", "--output", "json", cwd=tmp_path).stdout)
        scored = called("score", "last", cwd=tmp_path)
        assert len(server.requests) == requests
    assert re.search(rf" interrupted +\S+ \S+ +{len(exported['rows'])} ", listed.stdout), listed.stdout
    assert re.search(r"^status +interrupted$", shown.stdout, re.MULTILINE)
    assert "stopped early: the run did not finish; the numbers cover the finished rows" in shown.stdout
    assert 20 <= len(exported["rows"]) < 200
    assert exported["summary"]["p"]["num_examples"] == len(exported["rows"])
    assert scored.returncode == 0, scored.stderr
    for table in (shown.stdout, scored.stdout):
        assert re.search(rf"^\| p +\| +{len(exported['rows'])} \|", table, re.MULTILINE)


@pytest.mark.long
@depends_on_time("what is lost are the answers of the last milliseconds of the clock on the wall")
def test_few_more_requests_are_repeated_than_were_in_flight(tmp_path: Path) -> None:
    """Eight workers have eight requests in flight; whatever is repeated beyond those had been answered."""
    kills, count = (10, 600) if SLOW else (5, 200)
    write(tmp_path / "data.jsonl", *range(count))
    with Server(after(0.1)) as server:
        run = [
            "--proxy",
            server.url,
            "--name",
            "p",
            "--dataset",
            "data.jsonl",
            "--max-workers",
            "8",
            "--cache-dir",
            "s",
        ]
        for kill in range(kills):
            process = start(*run, cwd=tmp_path)
            while len(server.chats) < (kill + 1) * count // (kills + 2):
                time.sleep(0.001)
            time.sleep(random.Random(kill).uniform(0.0, 0.1))
            process.kill()
            process.communicate()
        done = shell(*run, cwd=tmp_path)
        repeated = len(server.chats) - count
    assert done.returncode == 0, done.stderr
    most = 10 if SLOW else 24  # a busy machine brings answers across late
    assert repeated <= most * kills, f"{repeated / kills} requests repeated for each kill"


# What depends on what


@dataclass
class Bench:
    """A server and a store; `run` runs the same thing but for what is named, and tells what it cost."""

    server: Server
    store: Path
    judged: list[Any] = field(default_factory=list)

    def run(self, examples: list[dict[str, Any]] | None = None, systems: Any = None, **options: Any) -> Any:
        before, judged = len(self.server.chats), len(self.judged)
        proxy = {key: options.pop(key) for key in list(options) if key in PROXY}
        judge = Judge(self.judged, options.pop("strictness", 1), options.pop("version", 1))
        self.result = evaluate(
            systems or OpenAIProxy(self.server.url, **{"name": "proxy", "max_retries": 0, **proxy}),
            numbered(1, 2, 3) if examples is None else examples,
            evaluators=options.pop("evaluators", [AnswerQuality(), judge]),
            cache_dir=self.store,
            **options,
        )
        return len(self.server.chats) - before, len(self.judged) - judged


PROXY = ("name", "model", "system_prompt", "temperature", "max_tokens", "extra_body", "api_key", "timeout", "max_rpm")


class Judge:
    """A slow evaluator that tells what it was asked."""

    name = "judge"
    version = 1
    slow = True

    def __init__(self, calls: list[Any], strictness: int = 1, version: int = 1) -> None:
        self._calls, self.strictness, self.version = calls, strictness, version

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        self._calls.append((original["id"], processed["response"]))
        return {"judged": float(original["answer"] == processed["response"]) / self.strictness}


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    with Server(right) as server:
        made = Bench(server, tmp_path / "store")
        assert made.run() == (3, 3)
        yield made


def test_the_same_again_costs_nothing(bench: Bench) -> None:
    first = bench.result
    assert bench.run() == (0, 0)
    assert bench.result.rows == first.rows
    assert bench.result.summary == first.summary
    assert bench.result.config["run"] != first.config["run"]


@pytest.mark.parametrize(
    "change",
    [
        {"model": "another"},
        {"system_prompt": "Be brief."},
        {"temperature": 0.5},
        {"max_tokens": 7},
        {"extra_body": {"top_p": 0.5}},
        {"name": "renamed"},
        {"cache_tag": "v2"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_changes_answers_is_asked_again(bench: Bench, change: dict[str, Any]) -> None:
    requests, _ = bench.run(**change)
    assert requests == 3
    assert bench.run() == (0, 0), "the old answers are still there"
    assert bench.run(**change) == (0, 0)


@pytest.mark.parametrize(
    "change", [{"api_key": "sk-0123456789abcdef"}, {"timeout": 3.0}, {"max_rpm": 60_000}, {"max_workers": 2}]
)
def test_what_changes_no_answer_is_not_asked_again(bench: Bench, change: dict[str, Any]) -> None:
    assert bench.run(**change) == (0, 0)


def test_another_url_is_another_server(bench: Bench) -> None:
    with Server(completion("other")) as other:
        bench.server = other
        assert bench.run() == (3, 3)
    assert [row.response for row in bench.result.rows] == ["other"] * 3


def test_a_corrected_gold_is_judged_and_not_asked(bench: Bench) -> None:
    examples = numbered(1, 2, 3)
    examples[1]["answer"] = "something else"
    assert bench.run(examples) == (0, 1)
    assert [row.scores["exact_match"] for row in bench.result.rows] == [1.0, 0.0, 1.0]
    assert [row.scores["judged"] for row in bench.result.rows] == [1.0, 0.0, 1.0]
    assert bench.run() == (0, 0)
    assert [row.scores["exact_match"] for row in bench.result.rows] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("gold", ["answers", "evidence", "correct_letter", "relevant_ids", "reference"])
def test_a_gold_that_is_added_is_no_new_question(bench: Bench, gold: str) -> None:
    value: Any = "B" if gold in ("correct_letter", "reference") else ["has the code"]
    requests, _ = bench.run(numbered(1, 2, 3, **{gold: value}))
    assert requests == 0


def test_a_changed_text_is_asked_again_and_nothing_else(bench: Bench) -> None:
    examples = numbered(1, 2, 3)
    examples[2]["context"] += " And a word more."
    assert bench.run(examples) == (1, 1)
    examples[0]["question"] += " In short?"
    assert bench.run(examples) == (1, 1)
    examples[1]["id"] = "2"
    assert bench.run(examples) == (1, 1), "1 and '1' are two examples"


def test_another_tokenizer_counts_again_and_asks_nothing(bench: Bench) -> None:
    before = [row.input_tokens for row in bench.result.rows]
    assert bench.run(tokenizer=lambda text: len(text)) == (0, 0)
    counted = [len(each["context"]) + len(each["question"]) for each in numbered(1, 2, 3)]
    assert [row.input_tokens for row in bench.result.rows] == counted != before
    assert bench.run(text_fields=["question"]) == (0, 0)
    assert bench.run(tokenizer="o200k_base") == (0, 0)


@pytest.mark.parametrize("change", [{"version": 2}, {"strictness": 2}])
def test_another_version_of_an_evaluator_judges_again(bench: Bench, change: dict[str, Any]) -> None:
    assert bench.run(**change) == (0, 3)
    assert bench.run() == (0, 0)
    if "strictness" in change:
        bench.run(**change)
        assert [row.scores["judged"] for row in bench.result.rows] == [0.5] * 3


def test_one_more_evaluator_does_not_bring_the_others_out(bench: Bench) -> None:
    class Shout:
        name = "shout"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"shout": float(processed["response"].isupper())}

    assert bench.run(evaluators=[AnswerQuality(), Judge(bench.judged), Shout()]) == (0, 0)
    assert bench.result.rows[0].scores["shout"] == 0.0
    assert bench.run(evaluators=[AnswerQuality()]) == (0, 0)
    assert "judged" not in bench.result.rows[0].scores


def test_more_examples_pay_for_themselves_alone(bench: Bench) -> None:
    assert bench.run(numbered(0, 1, 2, 3, 4)) == (2, 2)
    assert facts(bench.result.rows) == expected(0, 1, 2, 3, 4)
    assert bench.run(numbered(4, 2)) == (0, 0)
    assert facts(bench.result.rows) == expected(4, 2)


def test_one_more_system_pays_for_itself_alone(bench: Bench) -> None:
    one = OpenAIProxy(bench.server.url, name="proxy")
    two = OpenAIProxy(bench.server.url, name="second", model="other")
    assert bench.run(systems=[two, one]) == (3, 0), "what a judge said of an answer holds for all who gave it"
    assert {request.json["model"] for request in bench.server.chats[3:]} == {"other"}
    assert [row.system for row in bench.result.rows] == ["second", "proxy"] * 3


def test_repeats_are_answers_of_their_own(bench: Bench) -> None:
    assert bench.run(repeats=3)[0] == 6
    assert bench.run(repeats=2) == (0, 0)


def test_fresh_asks_again_and_what_it_got_counts_from_then_on(bench: Bench) -> None:
    old = bench.result
    bench.server.script = [completion("new")]
    assert bench.run(reuse=False) == (3, 3)
    assert bench.run() == (0, 0)
    assert [row.response for row in bench.result.rows] == ["new"] * 3
    from context_bench.store import Store

    with Store(bench.store, readonly=True) as store:
        rows = list(store.run_rows(store.run(old.config["run"])))
    assert rows == old.rows, "an earlier run is as it was"


def test_a_system_that_reads_the_gold_depends_on_it(tmp_path: Path) -> None:
    examples = numbered(1, 2, 3, evidence=["has the code"])
    with Server(right) as server:

        def run() -> int:
            before = len(server.chats)
            systems = [
                WithReader(Oracle(), OpenAIProxy(server.url, name="reader")),
                WithReader(Passthrough(), OpenAIProxy(server.url, name="reader")),
            ]
            evaluate(systems, examples, cache_dir=tmp_path)
            return len(server.chats) - before

        assert run() == 6
        assert run() == 0
        examples[0]["evidence"] = ["Item"]
        assert run() == 1


def test_failed_rows_are_tried_again(tmp_path: Path) -> None:
    broken = reply(500, {"error": {"message": "later"}})
    with Server(lambda request: broken if number_of(request) == 2 else right(request)) as server:

        def run() -> Any:
            return evaluate(OpenAIProxy(server.url, max_retries=0), numbered(1, 2, 3), cache_dir=tmp_path)

        assert [row.error is None for row in run().rows] == [True, False, True]
        assert [row.error is None for row in run().rows] == [True, False, True]
        server.script = [right]
        assert facts(run().rows) == expected(1, 2, 3)
        assert facts(run().rows) == expected(1, 2, 3)
    assert asked(server) == {1: 1, 2: 3, 3: 1}


def test_a_judge_that_was_away_is_asked_again_and_the_system_is_not(tmp_path: Path) -> None:
    class Moody:
        name = "moody"
        version = 1
        slow = True

        def __init__(self) -> None:
            self._asked: list[int] = []

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            self._asked.append(original["id"])
            if original["id"] == 1 and away == "raises":
                raise ConnectionError("no judge today")
            if original["id"] == 2 and away:
                return Scores(reason="unreachable", transient=True)
            return {"score": 1.0} if original["id"] != 3 else Scores(reason="nothing to judge")

    away = "raises"
    with Server(right) as server:

        def run() -> tuple[Any, list[int]]:
            judge = Moody()
            proxy = OpenAIProxy(server.url, name="p")
            return evaluate(proxy, numbered(1, 2, 3), evaluators=[judge], cache_dir=tmp_path), sorted(judge._asked)

        with pytest.warns(UserWarning, match="nothing could be scored for p: .* no judge today"):
            first, judged = run()
        assert judged == [1, 2, 3]
        assert [row.unscored for row in first.rows] == [
            {"moody": "ConnectionError: no judge today"},
            {"moody": "unreachable"},
            {"moody": "nothing to judge"},
        ]
        away = "silent"
        second, judged = run()
        assert judged == [1, 2]
        assert second.summary["p"]["num_unscored"] == 2
        away = ""
        third, judged = run()
        assert judged == [2]
        assert third.summary["p"]["num_unscored"] == 1
        assert run()[1] == []
    assert asked(server) == {1: 1, 2: 1, 3: 1}


def test_new_prices_are_used_for_old_answers(bench: Bench) -> None:
    from context_bench.pricing import Price, Prices

    def cost(price: float) -> float:
        assert bench.run(prices=Prices({"default": Price(price, 0.0)})) == (0, 0)
        value: float = bench.result.rows[0].metadata["cost_usd"]
        return value

    assert cost(1.0) == pytest.approx(10 / 1e6)
    assert cost(3.0) == pytest.approx(30 / 1e6)


@pytest.mark.parametrize("more", [0, 1], ids=["all known", "one new"])
def test_an_example_is_kept_once_however_often_it_is_judged_priced_or_asked(tmp_path: Path, more: int) -> None:
    from context_bench.pricing import Price, Prices

    given = numbered(*range(30))
    evaluate(Passthrough(), given, cache_dir=tmp_path)
    prices = Prices({"default": Price(1.0, 1.0)})
    evaluate(Passthrough(), numbered(*range(30 + more)), cache_dir=tmp_path, prices=prices)
    evaluate(Passthrough(), given, cache_dir=tmp_path, reuse=False)
    evaluate(Passthrough(), given, cache_dir=tmp_path, evaluators=[AnswerQuality()])
    with Store(tmp_path, readonly=True) as store:
        assert store._one("SELECT count(*) FROM examples") == (30 + more,)


# Systems without a fingerprint


SYSTEM = """
WIDTH = {width}

def shorten(text):
    return text[:WIDTH{plus}]

class Mine:
    name = "mine"

    def __init__(self):
        self._depth = {depth}

    def process(self, example):
        with open("calls.txt", "a") as calls:
            print(example["id"], file=calls)
        return {{"response": shorten(example["context"]) * self._depth}}
"""


@pytest.mark.long
def test_ones_own_system_is_known_by_its_code_and_state(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", 1, 2, 3)
    calls = tmp_path / "calls.txt"
    calls.touch()

    def run(**parts: Any) -> int:
        before = len(calls.read_text().splitlines())
        (tmp_path / "mine.py").write_text(SYSTEM.format(**{"width": 6, "plus": "", "depth": 1, **parts}))
        done = shell("--system", "mine.py:Mine", "--dataset", "data.jsonl", "--cache-dir", "store", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "not reused" not in done.stderr
        return len(calls.read_text().splitlines()) - before

    assert run() == 3
    assert run() == 0
    assert run(depth=2) == 3, "a parameter that is kept under a private name"
    assert run(width=5) == 3, "a global value"
    assert run(plus=" + 1") == 3, "a function that it calls"
    assert run() == 0


FILES = {
    "mine.py": """
import functools, os
import own_tools

def loudly(function):
    @functools.wraps(function)
    def wrapper(example):
        with open("calls.txt", "a") as calls:
            print(example["id"], file=calls)
        return function(example)
    return wrapper

@functools.lru_cache
def cut(text):
    return text[:6]

@loudly
def mine(example):
    from own_package import shorten
    return own_tools.trim(shorten(cut(example["context"])))
""",
    "own_tools.py": "import own_far\n\ndef trim(text):\n    return own_far.strip(text)\n",
    "own_far.py": "def strip(text):\n    return text.strip()\n",
    "own_package/__init__.py": "from own_package.inner import shorten\n",
    "own_package/inner.py": "def shorten(text):\n    return text[:5]\n",
}


@pytest.mark.long
def test_all_code_that_a_function_reaches_counts(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", 1, 2, 3)
    (tmp_path / "own_package").mkdir()
    calls = tmp_path / "calls.txt"
    calls.touch()

    def run(path: str = "mine.py", old: str = "", new: str = "") -> int:
        before = len(calls.read_text().splitlines())
        for name, text in FILES.items():
            (tmp_path / name).write_text(text.replace(old, new) if name == path else text)
        command = ["--system", "mine.py:mine", "--dataset", "data.jsonl", "--cache-dir", "store"]
        quiet = environment(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
        done = shell(*command, cwd=tmp_path, env=quiet)
        assert done.returncode == 0, done.stderr
        assert "not reused" not in done.stderr
        return len(calls.read_text().splitlines()) - before

    assert run() == 3, "a helper with lru_cache is no reason to end"
    assert run() == 0
    assert run("own_package/inner.py", ":5", ":4") == 3, "an import inside the function, re-exported by a package"
    assert run("own_far.py", "strip()", "rstrip()") == 3, "a module that a helper imports"
    assert run("mine.py", "return function(example)", "return function(example) * 2") == 3, "a decorator"
    assert run("mine.py", ":6", ":7") == 3, "what a cache stands before"
    assert run() == 0


def test_all_code_that_an_evaluator_reaches_counts(tmp_path: Path) -> None:
    def scale(factor: float) -> Any:
        def decorate(function: Any) -> Any:
            @functools.wraps(function)
            def wrapper(*given: Any) -> Any:
                return {key: value * factor for key, value in function(*given).items()}

            return wrapper

        return decorate

    def run(factor: float) -> list[float]:
        class Shout:
            name = "shout"

            @scale(factor)  # type: ignore[untyped-decorator]
            def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
                return {"shout": 1.0}

        result = evaluate(Passthrough(), numbered(1, 2), evaluators=[Shout()], cache_dir=tmp_path)
        return [row.scores["shout"] for row in result.rows]

    assert run(0.5) == [0.5, 0.5]
    assert run(0.25) == [0.25, 0.25]


# The gold


def count_calls(tmp_path: Path, system: Any, *answers: str) -> list[int]:
    """How often a system is asked when it gets the same examples with other gold answers."""
    asked: list[int] = []
    for answer in answers:
        before = len(system.calls)
        evaluate(system, numbered(1, 2, answer=answer), cache_dir=tmp_path)
        asked.append(len(system.calls) - before)
    return asked


class Asked:
    """A system that tells how often it was asked; it may look at what it is given."""

    name, fingerprint = "asked", "asked/1"

    def __init__(self, **declared: bool) -> None:
        self.calls: list[Any] = []
        for name, value in declared.items():
            setattr(self, name, value)

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(example["id"])
        return {"response": example["answer"]}


@pytest.mark.parametrize(
    ("declared", "again"), [({}, 2), ({"reads_gold": True}, 2), ({"reads_gold": False}, 0)], ids=str
)
def test_the_gold_is_part_of_what_a_system_is_asked_unless_it_says_otherwise(
    tmp_path: Path, declared: dict[str, bool], again: int
) -> None:
    assert count_calls(tmp_path, Asked(**declared), "a", "b", "a") == [2, again, 0]


def test_a_function_may_read_the_gold_unless_it_says_otherwise(tmp_path: Path) -> None:
    def tells(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": str(example["answer"])}

    def run(answer: str) -> list[str]:
        result = evaluate(tells, numbered(1, answer=answer), cache_dir=tmp_path)
        return [row.response for row in result.rows]

    assert [run("a"), run("b")] == [["a"], ["b"]]
    tells.reads_gold = False  # type: ignore[attr-defined]
    assert [run("c"), run("d")] == [["c"], ["c"]]


def test_who_changes_one_of_our_systems_says_anew_whether_it_reads_the_gold(tmp_path: Path) -> None:
    class Cheat(OpenAIProxy):
        fingerprint = "cheat/1"

        def request_body(self, example: dict[str, Any]) -> dict[str, Any]:
            return {**super().request_body(example), "hint": example["answer"]}

    class Honest(OpenAIProxy):
        fingerprint = "honest/1"
        reads_gold = False

    def hint(example: dict[str, Any]) -> list[Any]:
        return [{"role": "user", "content": f"{example['answer']} {example['context']}"}]

    with Server(completion("x")) as server:

        def run(make: Callable[[], Any]) -> list[int]:
            asked: list[int] = []
            for answer in ("a", "b"):
                before = len(server.chats)
                evaluate(make(), numbered(1, answer=answer), cache_dir=tmp_path)
                asked.append(len(server.chats) - before)
            return asked

        assert run(lambda: OpenAIProxy(server.url)) == [1, 0]
        assert run(lambda: Cheat(server.url, name="cheat")) == [1, 1]
        assert run(lambda: Honest(server.url, name="honest")) == [1, 0]
        assert run(lambda: OpenAIProxy(server.url, name="hinted", build_messages=hint)) == [1, 1]
        assert run(lambda: WithReader(lambda example: example["answer"], OpenAIProxy(server.url), "told")) == [1, 1]
        assert run(lambda: WithReader(Passthrough(), OpenAIProxy(server.url), "not told")) == [1, 0]


def test_a_system_that_cannot_be_told_is_asked_again_with_a_notice(tmp_path: Path) -> None:
    calls = []
    handle = object()  # nobody can say what is in it

    def mysterious(example: dict[str, Any]) -> str:
        calls.append(handle)
        return str(example["context"])

    for round_ in (1, 2):
        with pytest.warns(UserWarning, match=r"'mysterious' are not reused.*fingerprint"):
            evaluate(mysterious, numbered(1, 2), cache_dir=tmp_path)
        assert len(calls) == 2 * round_


def test_an_evaluator_that_cannot_be_told_judges_again_with_a_notice(tmp_path: Path) -> None:
    class Mysterious:
        name = "mysterious"

        def __init__(self) -> None:
            self.handle, self.asked = object(), 0

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            self.asked += 1
            return {"score": 1.0}

    with Server(right) as server:
        for _ in range(2):
            judge = Mysterious()
            with pytest.warns(UserWarning, match="scores of 'mysterious' are not reused"):
                evaluate(OpenAIProxy(server.url), numbered(1, 2), evaluators=[judge], cache_dir=tmp_path)
            assert judge.asked == 2
        assert len(server.chats) == 2


# Two at once


@pytest.mark.long
def test_two_processes_share_a_new_store(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl", *range(150), dataset="d")
    write(tmp_path / "two.jsonl", *range(100, 250), dataset="d")
    with Server(after(0.002)) as server:
        common = ["--proxy", server.url, "--name", "p", "--cache-dir", "store", "--output", "json", "--dataset"]
        processes = [start(*common, name, cwd=tmp_path) for name in ("one.jsonl", "two.jsonl", "one.jsonl")]
        outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], [err for _, err in outputs]
    ranges = [range(150), range(100, 250), range(150)]
    for (out, err), numbers in zip(outputs, ranges):
        assert "locked" not in err
        rows = json.loads(out)["rows"]
        assert [(row["example_id"], row["response"]) for row in rows] == [(n, f"c{n}") for n in numbers]
    listed = called("runs", "list", "--cache-dir", "store", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[1] for line in listed[1:]] == ["done"] * 3
    for line, *_ in zip(listed[1:]):
        rows = json.loads(
            called("runs", "export", line.split()[0], "--output", "json", "--cache-dir", "store", cwd=tmp_path).stdout
        )["rows"]
        assert len({row["example_id"] for row in rows}) == len(rows) == 150
    with Server(right, port=server.port) as server:
        again = shell(*common, "one.jsonl", cwd=tmp_path)
        assert again.returncode == 0
        assert server.chats == []


def test_rows_that_were_found_are_written_down_before_the_rest_is_asked(tmp_path: Path) -> None:
    """Who removes the run that they came from meanwhile does not take them along."""
    given = numbered(*range(40))

    class Remover:
        name, fingerprint = "remover", "1"

        def process(self, item: dict[str, Any]) -> dict[str, Any]:
            if item["id"] == 39:
                time.sleep(0.2)
                with Store(tmp_path) as store:
                    store.remove_run(store.runs()[-1])
            return {"response": "x"}

    evaluate(Remover(), given[:39], cache_dir=tmp_path)
    result = evaluate(Remover(), given, cache_dir=tmp_path)
    assert result.config["reused"] == 39
    with Store(tmp_path, readonly=True) as store:
        (run,) = store.runs()
        assert [row.example_id for row in store.run_rows(run)] == list(range(40))
        assert [record.example["id"] for record in store.run_records(run)] == list(range(40))


@pytest.mark.long
@pytest.mark.parametrize("moment", range(8))
def test_a_run_that_is_removed_during_a_resume_takes_no_row_along(tmp_path: Path, moment: int) -> None:
    """Another process removes it as soon as the resumed run has begun, and a little later each time."""
    count = 400
    write(tmp_path / "data.jsonl", *range(count), dataset="d")
    write(tmp_path / "more.jsonl", *range(count + 20), dataset="d")
    with Server(after(0.001)) as server:
        common = [
            "--proxy",
            server.url,
            "--name",
            "p",
            "--cache-dir",
            "store",
            "--output",
            "json",
            "--max-workers",
            "4",
        ]
        first = called(*common, "--dataset", "data.jsonl", cwd=tmp_path)
        assert first.returncode == 0, first.stderr
        old = json.loads(first.stdout)["config"]["run"]
        resumed = start(*common, "--dataset", "more.jsonl", cwd=tmp_path)
        with Store(tmp_path / "store") as store:
            while len(store.runs()) == 1 and resumed.poll() is None:
                time.sleep(0.001)
            time.sleep(0.002 * moment)
            store.remove_run(store.run(old))
        out, err = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert len(rows) == count + 20
    with Store(tmp_path / "store", readonly=True) as store:
        (run,) = store.runs()
        records = list(store.run_records(run))
    assert [record.row.response for record in records] == [row["response"] for row in rows]
    assert [record.row.example_id for record in records] == [row["example_id"] for row in rows]
    assert all(record.example["id"] == record.row.example_id for record in records)


def test_an_answer_outlives_its_run_while_it_is_judged(tmp_path: Path) -> None:
    given = numbered(*range(6))

    class Slow:
        name, slow = "slow", True

        def __init__(self, version: int) -> None:
            self.version = version

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            if self.version == 2 and original["id"] == 0:
                with Store(tmp_path) as store:
                    store.remove_run(store.runs()[-1])
            return {"slow": 1.0}

    evaluate(Passthrough(), given, evaluators=[Slow(1)], cache_dir=tmp_path)
    result = evaluate(Passthrough(), given, evaluators=[Slow(2)], cache_dir=tmp_path)
    with Store(tmp_path, readonly=True) as store:
        (run,) = store.runs()
        records = list(store.run_records(run))
    assert [record.row for record in records] == result.rows
    assert [record.example for record in records] == given


def test_a_run_that_is_under_way_is_not_removed(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(30))
    with Server(after(0.05)) as server:
        process = start(
            "--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--max-workers", "2", cwd=tmp_path
        )
        while len(server.chats) < 5:
            time.sleep(0.005)
        refused = called("runs", "rm", "last", cwd=tmp_path)
        assert refused.returncode == 2
        assert "is still running: stop it first" in refused.stderr.splitlines()[-1]
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert len(called("runs", "export", "last", "--output", "csv", cwd=tmp_path).stdout.splitlines()) == 31
        process = start(
            "--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--max-workers", "2", cwd=tmp_path
        )
        while len(server.chats) < 35:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        assert called("runs", "rm", "last", cwd=tmp_path).returncode == 0, "one that was killed can be removed"
    assert not list((tmp_path / ".context-bench").glob("*.lock"))
