"""A run from the command line: what it measures, what it writes where, and its exit code."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from command import environment, shell
from context_bench import set_tokenizer
from context_bench.cli import main
from context_bench.registry import registry
from servers import Server, completion, free_port, reply

KEY = "sk-test-0123456789abcdef"


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is no JSON")

        document: dict[str, Any] = json.loads(self.out, parse_constant=refuse)
        return document


Call = Callable[..., Done]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Call the command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(registry, "_registered", {kind: dict(own) for kind, own in registry._registered.items()})

    def run(*arguments: str) -> Done:
        code = main(list(arguments))
        out, err = capsys.readouterr()
        return Done(code, out, err)

    yield run
    set_tokenizer(None)


@pytest.fixture
def data(tmp_path: Path) -> str:
    rows = [{"id": n, "context": f"The value of {n} is v{n}. Nothing else.", "answer": f"v{n}"} for n in range(5)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "data.jsonl"


# What a user types first


LONG = [
    "--system",
    "passthrough",
    "--system",
    "closed-book",
    "--system",
    "oracle",
    "--system",
    "truncate:ratio=0.5",
    "--system",
    "bm25:ratio=0.3",
    "--dataset",
    "needle:length=4000,n=40",
    "--score-field",
    "contains",
]


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    """What two runs of one command have in common."""
    del document["timing"]
    document["config"] = {key: value for key, value in document["config"].items() if key != "run"}
    for values in (*document["summary"].values(), *document["intervals"].values()):
        for key in [key for key in values if key.startswith("latency")]:
            del values[key]
    for row in document["rows"]:
        del row["latency"]
    return document


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = shell(*LONG, "--output", "json", cwd=tmp_path_factory.mktemp("reference"))
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_bounds_and_what_lies_between(reference: dict[str, Any]) -> None:
    summary = reference["summary"]
    assert list(summary) == ["passthrough", "closed-book", "oracle", "truncate:ratio=0.5", "bm25:ratio=0.3"]
    scores = {name: values["mean_score"] for name, values in summary.items()}
    saved = {name: values["compression_ratio"] for name, values in summary.items()}
    assert all(values["num_examples"] == 40 for values in summary.values())
    assert scores["passthrough"] == scores["oracle"] == 1.0
    assert scores["closed-book"] == 0.0
    assert saved["passthrough"] == 0.0
    assert saved["closed-book"] > 0.95
    assert saved["oracle"] > 0.9
    assert saved["truncate:ratio=0.5"] == pytest.approx(0.5, abs=0.03)
    assert 0.2 <= scores["truncate:ratio=0.5"] <= 0.8
    assert saved["bm25:ratio=0.3"] == pytest.approx(0.7, abs=0.05)
    assert scores["bm25:ratio=0.3"] >= 0.75


def test_truncation_loses_exactly_what_it_cuts(reference: dict[str, Any]) -> None:
    kept = {row["example_id"]: row["response"] for row in reference["rows"] if row["system"] == "truncate:ratio=0.5"}
    whole = {row["example_id"]: row["response"] for row in reference["rows"] if row["system"] == "passthrough"}
    scores = {row["example_id"]: row["scores"] for row in reference["rows"] if row["system"] == "truncate:ratio=0.5"}
    assert all(whole[identity].startswith(text) for identity, text in kept.items())
    assert {score["contains"] for score in scores.values()} == {0.0, 1.0}
    assert all(score["contains"] == score["answer_in_context"] for score in scores.values())


def test_two_runs_give_the_same_bytes_but_for_times(reference: dict[str, Any], tmp_path: Path) -> None:
    env = environment(PYTHONHASHSEED="12345")
    again = json.loads(shell(*LONG, "--output", "json", cwd=tmp_path, env=env).stdout)
    assert json.dumps(without_times(again)) == json.dumps(without_times(json.loads(json.dumps(reference))))


def test_the_table(tmp_path: Path) -> None:
    done = shell(*LONG, cwd=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:7]] == [
        "passthrough",
        "closed-book",
        "oracle",
        "truncate:ratio=0.5",
        "bm25:ratio=0.3",
    ]
    assert "1.000" in lines[2]
    assert "0.0%" in lines[2]
    assert "score = contains" in done.stdout
    assert "█" not in done.stdout  # on stderr a run of more than ten seconds, on a busy machine, says how far it is


# Mistakes: one sentence, exit code 2, nothing on stdout


MISTAKES = [
    (["--dataset", "needle"], "no system"),
    (["--system", "passthrough"], "no dataset"),
    (["--system", "passthrough", "--dataset", "nedle"], "did you mean needle"),
    (["--system", "pastrough", "--dataset", "needle"], "did you mean passthrough"),
    (["--system", "passthrough", "--dataset", "missing.jsonl"], "missing.jsonl: no such file"),
    (["--system", "passthrough", "--dataset", "broken.jsonl"], "broken.jsonl, line 2: broken JSON"),
    (["--system", "passthrough", "--dataset", "no-id.jsonl"], "no-id.jsonl, line 1: no 'id'"),
    (["--system", "passthrough", "--dataset", "no-context.jsonl"], "no-context.jsonl, line 1: no 'context'"),
    (["--system", "passthrough", "--dataset", "twice.jsonl"], "twice.jsonl, line 2: duplicate id 1"),
    (["--system", "passthrough", "--dataset", "data.jsonl", "--dataset", "data.jsonl"], "twice"),
    (["--system", "passthrough", "--dataset", "folder.jsonl"], "directory"),
    (["--system", "passthrough", "--dataset", "empty.jsonl"], "no examples"),
    (["--system", "passthrough", "--dataset", "data.txt"], "data.txt"),
    (["--system", "passthrough", "--system", "passthrough", "--dataset", "needle"], "'passthrough'"),
    (
        ["--model", "m", "--proxy", "http://localhost:1", "--proxy", "http://localhost:1", "--dataset", "needle"],
        "'localhost:1'",
    ),
    (["--system", "truncate:ration=0.5", "--dataset", "needle"], "unknown parameter 'ration'"),
    (["--system", "passthrough", "--dataset", "needle:lenght=9"], "unknown parameter 'lenght'"),
    (["--system", "truncate:ratio=2", "--dataset", "needle"], "ratio"),
    (["--system", "truncate:ratio=half", "--dataset", "needle"], "ratio"),
    (["--system", "truncate:keep=best", "--dataset", "needle"], "keep"),
    (["--system", "truncate:ratio=0.5,budget=9", "--dataset", "needle"], "not both"),
    (["--system", "bm25:k1=fast", "--dataset", "needle"], "k1"),
    (["--system", "passthrough", "--dataset", "needle:length=long"], "length"),
    (["--system", "passthrough", "--dataset", "needle:length=-1"], "length"),
    (["--system", "passthrough", "--dataset", "needle:n=-1"], "n"),
    (["--proxy", "localhost:8000", "--dataset", "needle"], "write http://localhost:8000"),
    (["--proxy", "ftp://localhost", "--dataset", "needle"], "write http://HOST:PORT"),
    (["--proxy", "http://user:hunter2@localhost", "--dataset", "needle"], "--api-key-env"),
    (["--proxy", "http://localhost:1", "--api-key-env", "NOT_SET", "--dataset", "needle"], "NOT_SET"),
    (["--system", "passthrough", "--dataset", "needle", "-n", "-1"], "-1"),
    (["--system", "passthrough", "--dataset", "needle", "-n", "few"], "few"),
    (["--system", "passthrough", "--dataset", "needle", "--max-workers", "0"], "--max-workers"),
    (["--system", "passthrough", "--dataset", "needle", "--threshold", "high"], "--threshold"),
    (["--system", "passthrough", "--dataset", "needle", "--threshold", "nan"], "--threshold"),
    (["--system", "passthrough", "--dataset", "needle", "--max-errors", "some"], "--max-errors"),
    (["--system", "passthrough", "--dataset", "needle", "--max-errors", "nan"], "--max-errors"),
    (["--system", "passthrough", "--dataset", "needle", "--output", "xml"], "xml"),
    (["--system", "passthrough", "--dataset", "needle", "--out", "missing/file.json"], "missing/file.json"),
    (["--system", "passthrough", "--dataset", "needle", "--out", "folder.json"], "directory"),
    (["--system", "passthrough", "--dataset", "needle", "--score-field", "bleu"], "contains, evidence_recall"),
    (["--system", "passthrough", "--dataset", "needle", "--tokenizer", "gpt-9"], "gpt-9"),
    (["--system", "passthrough", "--dataset", "needle", "--name", "mine"], "--name"),
    (["--system", "passthrough", "--dataset", "needle", "--unknown-flag"], "--unknown-flag"),
    (["--system", "passthrough", "--dataset", "needle", "--import", "no_such_module_x"], "no_such_module_x"),
    (["--system", "passthrough", "--dataset", "needle", "--import", "missing.py"], "missing.py"),
    (["--system", "passthrough", "--dataset", "needle", "--import", "raises.py"], "ZeroDivisionError"),
    (["--system", "passthrough", "--dataset", "needle", "--import", "syntax.py"], "syntax.py"),
    (["--system", "passthrough", "--dataset", "needle", "--import", "exits.py"], "exits.py"),
    (["--system", "raises.py:x", "--dataset", "needle"], "raises.py"),
    (["--system", "own.py:nothing", "--dataset", "needle"], "nothing"),
    (["--system", "own.py", "--dataset", "needle"], "own.py:OBJECT"),
    (["--system", "own.py:NUMBER", "--dataset", "needle"], "is not a system"),
    (["--system", "own.py:Fails", "--dataset", "needle"], "the model file is missing"),
    (["--system", "own.py:Needs", "--dataset", "needle"], "path"),
    (["--system", "passthrough", "--dataset", "own.py:fails"], "no network"),
    (["--system", "passthrough", "--dataset", "needle", "--evaluator", "bleurt"], "bleurt"),
    (["--system", "passthrough", "--dataset", "needle", "--metric", "mean"], "mean-score"),
    (["--system", "passthrough", "--dataset", "needle", "--metric", "own.py:NUMBER"], "metric"),
    (["--system", "passthrough", "--dataset", "needle", "--evaluator", "own.py:NUMBER"], "evaluator"),
    (["--system", "passthrough", "--dataset", "needle", "stray"], "stray"),
    (["--system"], "--system"),
]


@pytest.fixture
def mistaken(tmp_path: Path, data: str) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "folder.json").mkdir()
    for name, text in {
        "broken.jsonl": '{"id": 1, "context": ""}\n{"id": 2, "cont\n',
        "no-id.jsonl": '{"context": ""}\n',
        "no-context.jsonl": '{"id": 1}\n',
        "twice.jsonl": '{"id": 1, "context": ""}\n{"id": 1, "context": ""}\n',
        "empty.jsonl": "\n\n",
        "data.txt": "text",
        "raises.py": "1 / 0\n",
        "syntax.py": "def (\n",
        "exits.py": "import sys\nsys.exit(0)\n",
        "own.py": (
            "NUMBER = 5\n"
            "class Fails:\n"
            "    name = 'fails'\n"
            "    def __init__(self):\n        raise RuntimeError('the model file\\nis missing')\n"
            "    def process(self, example):\n        return example\n"
            "class Needs:\n"
            "    name = 'needs'\n"
            "    def __init__(self, path):\n        pass\n"
            "    def process(self, example):\n        return example\n"
            "def fails():\n    raise OSError('no network')\n"
        ),
    }.items():
        (tmp_path / name).write_text(text)


@pytest.mark.usefixtures("mistaken")
@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=[" ".join(each) or "nothing" for each, _ in MISTAKES])
def test_a_mistake_is_one_sentence(call: Call, arguments: list[str], said: str) -> None:
    done = call(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("context-bench: ")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert "hunter2" not in done.err


def test_a_mistake_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = shell("--system", "passthrough", "--dataset", "nedle", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "context-bench: unknown dataset 'nedle': did you mean needle or multi-needle?\n"


def test_control_characters_in_a_mistake_stay_out_of_the_terminal(call: Call) -> None:
    evil = "\x1b[31mevil\n\u202e"
    for arguments in (
        ["--system", evil, "--dataset", "needle"],
        ["--system", "passthrough", "--dataset", f"{evil}.jsonl"],
        ["--system", "passthrough", "--dataset", "needle", "--out", f"{evil}/x"],
        ["--system", "passthrough", "--dataset", "needle", f"--{evil}"],
        ["--system", "passthrough", "--dataset", "needle", "--import", f"{evil}.py"],
    ):
        done = call(*arguments)
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert done.err.strip().isprintable()
        assert "evil" in done.err


def test_a_mistake_in_a_file_is_found_before_anything_is_sent(call: Call, tmp_path: Path) -> None:
    (tmp_path / "late.jsonl").write_text('{"id": 1, "context": ""}\n' * 1 + '{"id": 2}\n')
    with Server() as server:
        assert call("--proxy", server.url, "--dataset", "late.jsonl").code == 2
    assert server.requests == []


def test_evaluators_that_clash_are_found_before_anything_is_sent(call: Call, data: str) -> None:
    with Server() as server:
        done = call("--proxy", server.url, "--dataset", data, "--evaluator", "answer-quality")
    assert (done.code, done.out) == (2, "")
    assert "answer-quality" in done.err
    assert server.chats == []


def test_a_loader_that_fails_half_way_keeps_what_was_done(call: Call, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def rows():\n    yield {'id': 1, 'context': 'x'}\n    yield {'id': 1, 'context': 'again'}\n"
    )
    done = call("--system", "passthrough", "--dataset", "own.py:rows", "--output", "json")
    assert done.code == 2
    assert [row["example_id"] for row in done.document["rows"]] == [1]
    assert "duplicate id 1" in done.err


# What is measured


def test_a_proxy(call: Call, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    with Server(completion("v1", usage)) as server:
        done = call("--proxy", server.url, "--model", "m-1", "--dataset", data, "--output", "json")
    assert done.code == 0
    name = f"127.0.0.1:{server.port}"
    assert done.document["summary"][name]["num_examples"] == 5
    assert [row["scores"]["f1"] for row in done.document["rows"]] == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert done.document["rows"][0]["metadata"]["prompt_tokens"] == 7
    assert {chat.json["model"] for chat in server.chats} == {"m-1"}
    assert {chat.headers["authorization"] for chat in server.chats} == {f"Bearer {KEY}"}
    assert KEY not in done.out + done.err


def test_the_kth_name_is_for_the_kth_proxy(call: Call, data: str) -> None:
    with Server() as one, Server() as two:
        done = call("--proxy", one.url, "--name", "first", "--proxy", two.url, "--dataset", data, "--output", "json")
    assert list(done.document["summary"]) == ["first", f"127.0.0.1:{two.port}"]


def test_a_key_by_name(call: Call, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-other-one-000")
    monkeypatch.setenv("MY_KEY", KEY)
    with Server() as server:
        done = call("--proxy", server.url, "--api-key-env", "MY_KEY", "--dataset", data, "--verbose")
    assert {chat.headers["authorization"] for chat in server.chats} == {f"Bearer {KEY}"}
    assert KEY not in done.out + done.err


def test_a_proxy_that_is_down(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    before = time.monotonic()
    done = shell("--proxy", url, "--dataset", "needle:length=500,n=30", "--output", "json", cwd=tmp_path)
    assert time.monotonic() - before < 50
    assert done.returncode == 3
    document = json.loads(done.stdout)
    (row,) = document["rows"]  # the other 29 need not be tried
    assert "is down" in row["error"]
    assert "was stopped after its first request: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("limit", "code"), [(None, 3), ("10%", 3), ("20%", 0), ("0", 3), ("1", 0), ("100%", 0)])
def test_how_many_errors_are_too_many(call: Call, data: str, limit: str | None, code: int) -> None:
    with Server(reply(400, {"error": "no"}), completion()) as server:
        flags = ["--max-errors", limit] if limit else []
        done = call("--proxy", server.url, "--dataset", data, "--max-workers", "1", *flags)
    assert done.code == code
    assert "1 of 5 failed" in done.err or "stopped" in done.err


def test_max_workers(call: Call, data: str) -> None:
    for flags, most in ((["--max-workers", "2"], 2), (["--max-workers", "1"], 1), ([], 4)):  # the first goes alone
        with Server(completion(delay=0.05)) as server:
            call("--proxy", server.url, "--dataset", data, "--no-store", *flags)
        assert server.most_in_flight == most


def test_max_examples_of_each_dataset(call: Call, data: str) -> None:
    done = call(
        "--system", "passthrough", "--dataset", data, "--dataset", "kv:length=300,n=9", "-n", "2", "--output", "json"
    )
    assert [row["dataset"] for row in done.document["rows"]] == [
        "data",
        "data",
        "kv:length=300,n=9",
        "kv:length=300,n=9",
    ]
    assert {"dataset:data", "dataset:kv:length=300,n=9"} <= done.document["summary"]["passthrough"].keys()


def test_n_of_a_generated_set_makes_that_many(call: Call) -> None:
    for number in (3, 30):
        done = call("--system", "passthrough", "--dataset", "needle:length=200", "-n", str(number), "--output", "json")
        rows = done.document["rows"]
        assert (done.code, len(rows)) == (0, number)
    done = call("--system", "passthrough", "--dataset", "kv:length=200|300", "-n", "30", "--output", "json")
    ids = [row["example_id"] for row in done.document["rows"]]
    assert [sum(f"kv-{length}-" in each for each in ids) for length in (200, 300)] == [15, 15]


def test_a_model_left_to_its_default_is_said_once(call: Call, data: str) -> None:
    said = "context-bench: no --model was given: servers are asked for gpt-3.5-turbo\n"
    with Server(completion("v1")) as server:
        flags = ("--proxy", server.url, "--proxy", f"{server.url}/v1", "--name", "a", "--name", "b")
        done = call(*flags, "--dataset", data)
        named = call(*flags, "--dataset", data, "--model", "gpt-3.5-turbo")
        quiet = call(*flags, "--dataset", data, "--quiet")
    assert done.err.count(said) == 1
    assert "--model" not in named.err + quiet.err
    assert "--model" not in call("--system", "passthrough", "--dataset", data).err


def test_a_number_of_examples_is_drawn_and_recorded(call: Call, tmp_path: Path) -> None:
    lines = "".join(json.dumps({"id": n, "context": "c", "answer": "c"}) + "\n" for n in range(40))
    (tmp_path / "forty.jsonl").write_text(lines)
    common = ("--system", "passthrough", "--dataset", "forty.jsonl", "-n", "5", "--output", "json", "--quiet")

    def ids(*flags: str) -> tuple[list[int], dict[str, str]]:
        document = call(*common, *flags).document
        return [row["example_id"] for row in document["rows"]], document["config"]["samples"]

    drawn, told = ids()
    assert told == {"forty": "random"}
    assert drawn != [0, 1, 2, 3, 4]
    assert ids()[0] == drawn != ids("--seed", "1")[0]
    assert ids("--sample", "first") == ([0, 1, 2, 3, 4], {"forty": "first"})


def test_systems_of_ones_own(call: Call, data: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def shorten(example, keep=1):\n    return example['context'][:keep]\n"
        "class Shout:\n"
        "    def __init__(self, mark='!'):\n        self.name, self.mark = 'shout', mark\n"
        "    def process(self, example):\n        return {'response': example['context'] + self.mark}\n"
        "ready = Shout()\n"
    )
    texts = ["own.py:shorten:keep=9", "own.py:Shout:mark=?", "own.py:ready", "own.py:shorten"]
    flags = [flag for text in texts for flag in ("--system", text)]
    done = call(*flags, "--dataset", data, "-n", "1", "--sample", "first", "--output", "json", "--quiet")
    assert [(row["system"], row["response"]) for row in done.document["rows"]] == [
        ("own.py:shorten:keep=9", "The value"),
        ("own.py:Shout:mark=?", "The value of 0 is v0. Nothing else.?"),
        ("own.py:ready", "The value of 0 is v0. Nothing else.!"),
        ("own.py:shorten", "T"),
    ]


def test_a_sweep(call: Call, data: str) -> None:
    done = call("--system", "truncate:ratio=0.25|0.5,keep=tail", "--dataset", data, "--output", "json")
    assert list(done.document["summary"]) == ["truncate:ratio=0.25,keep=tail", "truncate:ratio=0.5,keep=tail"]


def test_components_that_an_import_registers(call: Call, tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(
        "from context_bench.registry import register_dataset, register_metric, registry\n"
        "register_dataset('mine_data', lambda n=2: [{'id': i, 'context': 'x y'} for i in range(n)])\n"
        "class Always:\n"
        "    name = 'always'\n    score_fields = ('always',)\n"
        "    def score(self, original, processed):\n        return {'always': 1.0}\n"
        "registry.register('evaluator', 'always', Always)\n"
        "class Count:\n"
        "    name = 'count'\n"
        "    def compute(self, rows):\n        return {'count': float(len(rows))}\n"
        "register_metric('count', Count)\n"
    )
    done = call(
        *("--import", "plugin.py", "--system", "passthrough", "--dataset", "mine-data:n=3"),
        *("--evaluator", "always", "--metric", "count", "--score-field", "always", "--output", "json"),
    )
    values = done.document["summary"]["passthrough"]
    assert (values["mean_score"], values["count"]) == (1.0, 3.0)


def test_threshold(call: Call, data: str) -> None:
    common = ["--system", "passthrough", "--dataset", data, "--score-field", "recall", "--output", "json"]
    assert call(*common, "--threshold", "1").document["summary"]["passthrough"]["pass_rate"] == 1.0
    done = call(*common, "--threshold", "70")
    assert done.code == 2
    assert "must be from 0 to 1" in done.err
    assert "70% is 0.7" in done.err


def test_tokenizer(call: Call, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(json.dumps({"id": 1, "context": "Привет, мир! " * 20}) + "\n")
    common = ["--system", "passthrough", "--dataset", "t.jsonl", "--output", "json", "--no-store"]
    usual = call(*common).document
    other = call(*common, "--tokenizer", "o200k_base").document
    assert usual["config"]["tokenizer"] == "cl100k_base"
    assert other["config"]["tokenizer"] == "o200k_base"
    assert usual["rows"][0]["input_tokens"] > other["rows"][0]["input_tokens"]


def test_seed(call: Call) -> None:
    def contexts(*flags: str) -> list[str]:
        common = ["--system", "passthrough", "--dataset", "needle:length=300,n=2", "--output", "json", "--no-store"]
        return [row["response"] for row in call(*common, *flags).document["rows"]]

    assert contexts("--seed", "1") == contexts("--seed", "1")
    assert contexts("--seed", "1") != contexts("--seed", "2")
    assert contexts() == contexts("--seed", "0")


# What comes out


def test_json_is_strict_and_alone_on_stdout(call: Call, data: str) -> None:
    done = call("--system", "closed-book", "--dataset", data, "--output", "json")
    assert done.document["summary"]["closed-book"]["cost_of_pass"] is None


def test_csv_has_a_record_for_each_row(call: Call, data: str) -> None:
    done = call("--system", "passthrough", "--system", "closed-book", "--dataset", data, "--output", "csv")
    records = list(csv.DictReader(io.StringIO(done.out, newline="")))
    assert len(records) == 10
    assert done.out.count("\n") == 11
    assert {record["system"] for record in records} == {"passthrough", "closed-book"}


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_out_gets_what_stdout_would_have_got(call: Call, data: str, tmp_path: Path, form: str) -> None:
    done = call("--system", "passthrough", "--dataset", data, "--output", form, "--out", "report")
    assert (done.code, done.out) == (0, "")
    text = (tmp_path / "report").read_text(encoding="utf-8")
    assert "passthrough" in text
    assert sorted(path.name for path in tmp_path.iterdir() if "report" in path.name) == ["report"]


@pytest.mark.parametrize(("ending", "start"), [("json", "{"), ("JSON", "{"), ("csv", "system,"), ("md", "| system")])
def test_the_ending_of_the_file_names_the_form(call: Call, data: str, tmp_path: Path, ending: str, start: str) -> None:
    run = ("--system", "passthrough", "--dataset", data)
    written = {
        "run": call(*run, "--out", f"run.{ending}"),
        "export": call("runs", "export", "last", "--out", f"export.{ending}"),
        "score": call("score", "last", "--out", f"score.{ending}"),
    }
    for name, done in written.items():
        assert (done.code, done.out) == (0, "")
        assert (tmp_path / f"{name}.{ending}").read_text().lstrip().startswith(start), name


@pytest.mark.parametrize(("form", "ending"), [("csv", "json"), ("table", "json"), ("json", "csv"), ("csv", "md")])
def test_a_form_that_the_ending_contradicts(call: Call, data: str, tmp_path: Path, form: str, ending: str) -> None:
    call("--system", "passthrough", "--dataset", data)
    for command in (["--system", "passthrough", "--dataset", data], ["runs", "export", "last"], ["score", "last"]):
        done = call(*command, "--out", f"x.{ending}", "--output", form)
        assert (done.code, done.out) == (2, "")
        assert f"--out x.{ending} means" in done.err
        assert done.err.count("\n") == 1
        assert not (tmp_path / f"x.{ending}").exists()


def test_an_ending_that_names_no_form(call: Call, data: str, tmp_path: Path) -> None:
    run = ("--system", "passthrough", "--dataset", data, "--out", "x.txt")
    assert call(*run).code == 0
    assert (tmp_path / "x.txt").read_text().startswith("| system")
    assert call(*run, "--output", "json").code == 0
    assert (tmp_path / "x.txt").read_text().startswith("{")


def test_out_is_whole_or_not_at_all(call: Call, data: str, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("the old one")
    (tmp_path / "bad.jsonl").write_text("{}\n")
    assert call("--system", "passthrough", "--dataset", "bad.jsonl", "--out", "report").code == 2
    assert (tmp_path / "report").read_text() == "the old one"
    assert call("--system", "passthrough", "--dataset", data, "--out", "report").code == 0
    assert "passthrough" in (tmp_path / "report").read_text()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_out_through_a_link_writes_where_it_points(call: Call, data: str, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert call("--system", "passthrough", "--dataset", data, "--out", "link").code == 0
    assert (tmp_path / "link").is_symlink()
    assert "passthrough" in (tmp_path / "real").read_text()


def test_out_to_what_is_no_ordinary_file(tmp_path: Path, data: str) -> None:
    # /dev/stdout, /dev/null, a pipe: written to, never replaced.
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-m", "context_bench", "--system", "passthrough", "--dataset", data, "--out", "pipe"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE) as process:
        reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        try:
            _, stderr = process.communicate(timeout=30)
            assert process.returncode == 0, stderr
            assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
            assert b"passthrough" in os.read(reader, 65536)
        finally:
            os.close(reader)


def test_names_of_all_kinds_in_the_table(call: Call, data: str) -> None:
    names = ["a|b", "日本語", "\x1b[31mred", "two\nlines"]
    servers = [Server(reply(400, {"error": "no"})) for _ in names]
    for server in servers:
        server.__enter__()
    try:
        flags = [flag for name, s in zip(names, servers) for flag in ("--proxy", s.url, "--name", name)]
        done = call(*flags, "--dataset", data)
    finally:
        for server in servers:
            server.stop()
    table = [line for line in done.out.partition("\n\n")[0].splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(names)
    assert all(line.isprintable() for line in (done.out + done.err).splitlines())
    assert len([line for line in done.err.splitlines() if "failed" in line]) == 4


def test_quiet(call: Call, data: str) -> None:
    with Server(reply(400)) as server:
        done = call("--proxy", server.url, "--dataset", data, "--quiet")
    assert done.err == ""
    assert done.code == 3


def test_verbose_shows_the_wire_without_the_key(tmp_path: Path, data: str) -> None:
    env = environment(OPENAI_API_KEY=KEY)
    with Server(completion(f"to be seen, {KEY} not")) as server:
        done = shell("--proxy", server.url, "--dataset", data, "-n", "1", "--verbose", cwd=tmp_path, env=env)
        assert server.chats[0].headers["authorization"] == f"Bearer {KEY}"
    assert "to be seen" in done.stderr
    assert "The value of" in done.stderr
    assert KEY not in done.stderr
    assert "to be seen" not in done.stdout


@pytest.mark.parametrize("form", ["json", "csv", "table"])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, form: str) -> None:
    command = [sys.executable, "-m", "context_bench", "--system", "passthrough", "--output", form]
    command += ["--dataset", "needle:length=4000,n=10" if form == "json" else "kv:length=200,n=2", "--quiet"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if form == "json":
            process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(30) == 0
    assert errors == b""


def test_a_full_disk_is_said_in_one_sentence(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        done = shell("--system", "passthrough", "--dataset", "kv:length=300,n=2", "--quiet", cwd=tmp_path, stdout=full)
    assert done.returncode not in (0, 120)
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


def test_a_terminal_without_utf8(tmp_path: Path) -> None:
    env = environment(PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    (tmp_path / "own.py").write_text("def f(example):\n    raise ValueError('日本')\n")
    done = shell("--system", "own.py:f", "--dataset", "kv:length=300,n=2", cwd=tmp_path, env=env)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


# The terminal


def test_progress_is_for_terminals_and_never_on_stdout(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    (tmp_path / "own.py").write_text("import time\ndef slow(example):\n    time.sleep(0.25)\n    return ''\n")
    command = [sys.executable, "-m", "context_bench", "--system", "own.py:slow", "--output", "json"]
    command += ["--dataset", "kv:length=200,n=6"]
    master, slave = pty.openpty()
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        assert process.stdout is not None
        out = process.stdout.read()
        process.wait(30)
    shown = _drained(master)
    assert "/6" in shown
    assert "\r" in shown
    assert "/s" in shown
    json.loads(out)
    assert b"\r" not in out
    assert b"\x1b" not in out


def _drained(master: int) -> str:
    parts = []
    try:
        while part := os.read(master, 65536):
            parts.append(part)
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(master)
    return b"".join(parts).decode()


def test_an_interrupt_keeps_what_was_done(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import time\ndef slow(example):\n    time.sleep(0.1)\n    open('asked', 'a').write('.')\n    return ''\n"
    )
    asked = tmp_path / "asked"
    command = [sys.executable, "-m", "context_bench", "--system", "own.py:slow", "--output", "json"]
    command += ["--dataset", "kv:length=200,n=400"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None and (not asked.exists() or asked.stat().st_size < 5):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert 0 < len(json.loads(out)["rows"]) < 400


@pytest.mark.parametrize(
    ("typed", "meant"), [("--sytem", "--system"), ("--datset=needle", "--dataset"), ("--tap-foward", "--tap-forward")]
)
def test_a_mistyped_flag_is_told_what_it_may_have_been(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([typed, "x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"did you mean {meant}?" in line


def test_nonsense_is_not_likened_to_anything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--qqqqqqqq"]) == 2
    assert "did you mean" not in capsys.readouterr().err
