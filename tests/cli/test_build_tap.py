"""Flags of a run that speak of a tap: what they start, measure and refuse."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command import called, environment
from context_bench.store.store import Store
from servers import Server, completion, free_port
from toy_proxies import toy_proxy

TOYS = Path(__file__).parents[1] / "toy_proxies.py"
DATA = ("--dataset", "needle:length=600,n=4")
KEY = "sk-test-0123456789abcdef"


def start(kind: str, cwd: Path) -> str:
    """The command for a toy proxy that can be told from those of other tests."""
    program = cwd / "toy.py"
    shutil.copy(TOYS, program)
    return f"{sys.executable} {program} {kind} --port {{port}} --upstream {{tap}}"


def run(*arguments: str, cwd: Path) -> dict[str, Any]:
    done = called(*arguments, *DATA, "--output", "json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def toys_left(cwd: Path) -> list[str]:
    """Command lines of this test's toy proxies that still run."""
    found = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if f"{cwd}/toy.py " in line and "--upstream http" in line]


def test_a_proxy_that_runs_already(tmp_path: Path) -> None:
    port = free_port()
    with toy_proxy("truncates", f"http://127.0.0.1:{port}") as url:
        result = run("--proxy", url, "--tap", f":{port}", "--tap-reply", "extract", cwd=tmp_path)
    (values,) = result["summary"].values()
    assert values["prompt_savings"] == pytest.approx(0.5, abs=0.05)
    assert values["untouched_share"] == 0.0
    assert values["evidence_rows"] == 4
    assert {"upstream_tokens", "proxy_overhead_median", "counted_tokens_saved"} <= values.keys()


def install_kompact(cwd: Path) -> None:
    """A program of that name, version and command line, which passes everything on."""
    home = cwd / ".vendors" / "kompact"
    (home / "lib" / "python3.11" / "site-packages" / "kompact-9.8.7.dist-info").mkdir(parents=True)
    (home / "bin").mkdir()
    program = home / "bin" / "kompact"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {TOYS} passes --port "$5" --upstream "$7"\n')
    program.chmod(0o755)


def test_a_vendor_gets_its_headers_and_is_recorded_with_its_version(tmp_path: Path) -> None:
    install_kompact(tmp_path)
    result = run("--vendor", "kompact", "--tap-reply", "extract", "--model", "gpt-4o", cwd=tmp_path)
    proxy = result["config"]["reports"]["kompact"]["proxy"]
    assert (proxy["name"], proxy["package"], proxy["version"]) == ("kompact", "kompact", "9.8.7")
    assert proxy["command"].startswith("kompact proxy --host {host} --port {port} ")
    assert proxy["headers"] == {"X-Kompact-Disable": "none"}
    assert result["config"]["model"] == "gpt-4o"
    with Store(tmp_path / ".context-bench", readonly=True) as store:
        records = list(store.run_records(store.runs()[-1]))
    calls = [call for record in records if record.answer for call in record.answer.processed["tapped"][0]["calls"]]
    assert len(calls) == 4
    assert all("x-kompact-disable" in {name.lower() for name in call["headers"]} for call in calls)


def test_a_started_proxy_is_recorded_by_its_command_without_secrets(tmp_path: Path) -> None:
    command = f"env PROXY_TOKEN={KEY} {start('passes', tmp_path)}"
    result = run("--start", command, "--name", "whole", "--tap-reply", "extract", "--controls", cwd=tmp_path)
    reports = result["config"]["reports"]
    assert reports["whole"]["proxy"]["name"] == "whole"
    assert reports["whole"]["proxy"]["command"] == command.replace(KEY, "***")
    assert "proxy" not in reports["direct"]
    assert KEY not in json.dumps(result)
    assert result["config"]["model"] == "gpt-3.5-turbo"


INDEXES = """
import pathlib, sys
sys.path.insert(0, {tests!r})
import toy_proxies

class Indexes(toy_proxies.Toy):
    def changed(self, document, path):
        found = [each.read_text() for each in sorted(pathlib.Path().glob("*.txt"))]
        return {{**document, "messages": [{{"role": "system", "content": "".join(found)}}, *document["messages"]]}}

toy_proxies.KINDS["indexes"] = Indexes
toy_proxies._program()
"""
"""A proxy that reads the files around it and sends them on, as entroly does."""


@pytest.mark.parametrize(
    ("where", "sent_on"), [((), True), (("--start-dir", "scratch"), False), (("--start-dir", "empty"), False)]
)
def test_a_started_proxy_reads_your_files_only_if_it_runs_beside_them(
    tmp_path: Path, where: tuple[str, ...], sent_on: bool
) -> None:
    (tmp_path / "diary.txt").write_text("nobody must know of this")
    (tmp_path / "empty").mkdir()
    program = tmp_path / "toy.py"
    program.write_text(INDEXES.format(tests=str(TOYS.parent)))
    command = f"{sys.executable} {program} indexes --port {{port}} --upstream {{tap}}"
    with Server(completion("ok")) as server:
        result = run("--start", command, *where, "--tap-forward", server.url, cwd=tmp_path)
        assert [b"nobody must know" in request.body for request in server.chats] == [not where] * 4
    assert result["config"]["reports"]["toy.py"]["proxy"].get("directory") == (where[1] if where else None)


def test_a_vendor_runs_in_a_directory_of_its_own(tmp_path: Path) -> None:
    install_kompact(tmp_path)
    program = tmp_path / ".vendors" / "kompact" / "bin" / "kompact"
    program.write_text(program.read_text().replace("exec ", f'pwd > "{tmp_path}/where"\nexec '))
    run("--vendor", "kompact", "--tap-reply", "extract", cwd=tmp_path)
    where = Path((tmp_path / "where").read_text().strip())
    assert where != tmp_path
    assert not where.exists()


def test_the_model_is_recorded_however_it_is_asked(tmp_path: Path) -> None:
    port = free_port()
    with toy_proxy("passes", f"http://127.0.0.1:{port}") as url:
        tapped = run("--proxy", url, "--tap", f":{port}", "--tap-reply", "extract", "--model", "m-1", cwd=tmp_path)
    read = run("--system", "passthrough", "--tap-reply", "extract", "--model", "m-2", cwd=tmp_path)
    with Server(lambda _: completion("42")) as server:
        plain = run("--proxy", server.url, "--model", "m-3", cwd=tmp_path)
        reader = run("--system", "passthrough", "--reader", server.url, "--model", "m-4", cwd=tmp_path)
    nobody = run("--system", "passthrough", cwd=tmp_path)
    models = [each["config"]["model"] for each in (tapped, read, plain, reader, nobody)]
    assert models == ["m-1", "m-2", "m-3", "m-4", None]


def test_two_started_proxies_each_with_a_tap_of_its_own(tmp_path: Path) -> None:
    commands = ("--start", start("passes", tmp_path), "--start", start("truncates", tmp_path))
    result = run(*commands, "--name", "whole", "--name", "half", "--tap-reply", "extract", "--controls", cwd=tmp_path)
    summary = result["summary"]
    assert list(summary) == ["whole", "half", "floor", "ceiling", "direct"]
    assert summary["whole"]["prompt_savings"] == 0.0
    assert summary["half"]["prompt_savings"] == pytest.approx(0.5, abs=0.05)
    assert summary["whole"]["retention"] == 1.0
    assert "retention" not in summary["direct"]
    assert "pareto_rank" not in summary["ceiling"]
    assert toys_left(tmp_path) == []


def test_a_started_proxy_with_a_knob_is_one_curve(tmp_path: Path) -> None:
    command = ("--start", start("{kind}", tmp_path), "--name", "toy", "--sweep", "kind=truncates|passes")
    result = run(*command, "--tap-reply", "extract", "--controls", cwd=tmp_path)
    assert list(result["summary"])[:2] == ["toy[kind=truncates]", "toy[kind=passes]"]
    (curve,) = result["curves"]
    assert (curve["name"], curve["knob"], curve["meter"]) == ("toy", "kind", "upstream_tokens")
    assert curve["baseline"] == "direct"
    half, whole = curve["points"]
    assert (half["setting"], whole["setting"]) == ("truncates", "passes")
    assert half["saving"] == pytest.approx(0.5, abs=0.05)
    assert whole["saving"] == 0.0
    assert toys_left(tmp_path) == []


def test_the_table_shows_what_reached_the_model(tmp_path: Path) -> None:
    arguments = ("--start", start("tells_lies", tmp_path), "--name", "liar", "--tap-reply", "extract", *DATA, "--wide")
    done = called(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for title in ("saved", "untouched", "reached the model", "tokens saved, its own claim", "lost by the system"):
        assert title in done.stdout
    assert "20,000" in done.stdout  # four rows of a claimed 5,000
    assert "not measured" not in done.stdout


def test_forwarding_passes_the_key_on_and_keeps_it_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(completion("The code is 42.")) as model:
        run("--start", start("passes", tmp_path), "--tap-forward", model.url, cwd=tmp_path)
    assert len(model.chats) == 4
    for chat in model.chats:
        assert chat.headers["authorization"] == f"Bearer {KEY}"
        assert "x-context-bench-mark" not in chat.headers
        assert "user" not in chat.json
    stored = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert stored
    assert not any(KEY.encode() in path.read_bytes() for path in stored)


def test_a_run_that_is_interrupted_leaves_no_proxy_behind(tmp_path: Path) -> None:
    rules = tmp_path / "slow.jsonl"
    rules.write_text('{"reply": "42", "delay": 0.3}\n')
    data = ["--dataset", "needle:length=300,n=400"]
    arguments = ["--start", start("passes", tmp_path), "--tap-reply", str(rules), *data]
    command = [sys.executable, "-m", "context_bench", *arguments]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not toys_left(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    assert toys_left(tmp_path)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert toys_left(tmp_path) == []


def test_a_killed_run_takes_its_proxy_along(tmp_path: Path) -> None:
    rules = tmp_path / "slow.jsonl"
    rules.write_text('{"reply": "42", "delay": 0.3}\n')
    data = ["--dataset", "needle:length=300,n=400"]
    arguments = ["--start", start("passes", tmp_path), "--tap-reply", str(rules), *data]
    process = subprocess.Popen(
        [sys.executable, "-m", "context_bench", *arguments],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not toys_left(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert toys_left(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 15
    while toys_left(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert toys_left(tmp_path) == []


MISTAKES = [
    (("--proxy", "http://127.0.0.1:1", "--tap", ":9100"), "say where its answers come from"),
    (("--vendor", "kompact"), "say where its answers come from"),
    (("--proxy", "http://127.0.0.1:1", "--tap-reply", "echo"), "pass a port, as in --tap :9100"),
    (("--start", "x", "--tap-reply", "echo", "--tap-forward", "http://127.0.0.1:1"), "choose one source"),
    (("--proxy", "http://127.0.0.1:1", "--controls"), "--controls asks the model behind a tap"),
    (("--vendor", "acme", "--tap-reply", "echo"), "acme"),
    (("--start", "foo 'bar", "--tap-reply", "echo"), "cannot be read as a command"),
    (("--start", " ", "--tap-reply", "echo"), "a --start is empty"),
    (("--start", "sleep 100", "--tap-reply", "echo"), "has no {port}"),
    (("--start", "a {port}", "--start", "b {port}", "--tap", ":65535", "--tap-reply", "echo"), "65535 is the last"),
    (("--start", "no-such-program-anywhere", "--tap-reply", "echo"), "no-such-program-anywhere"),
    (("--start", f"{sys.executable} -c 'import sys; sys.exit(\"broken\")'", "--tap-reply", "echo"), "broken"),
    (("--start", "x", "--tap-reply", "no-such-script"), "no-such-script"),
    (("--start", "x", "--tap-forward", "ftp://host"), "ftp://host"),
    (("--start", "x {port}", "--tap", "nonsense", "--tap-reply", "echo"), "nonsense"),
    (("--start", "x", "--name", "a", "--name", "b", "--tap-reply", "echo"), "2 --name for 1"),
    (("--start", "x {port}", "--sweep", "level=a|b", "--tap-reply", "echo"), "no --start contains {level}"),
    (("--start", "x {port}", "--sweep", "port=1|2", "--tap-reply", "echo"), "{port} is reserved for the run"),
    (("--start", "x {l} {port}", "--sweep", "l", "--tap-reply", "echo"), "must be KEY=VALUE|VALUE"),
    (("--start", "x {l} {port}", "--sweep", "l=a|a", "--tap-reply", "echo"), "gives a value twice"),
    (("--start", "x {l} {port}", "--sweep", "l=a", "--sweep", "l=b", "--tap-reply", "echo"), "gives 'l' twice"),
    (
        ("--start", "x {l}", "--proxy", "http://127.0.0.1:1", "--sweep", "l=a|b", "--tap-reply", "echo"),
        "a single address",
    ),
    (("--system", "passthrough", "--sweep", "l=a|b"), "--sweep fills in a --start"),
    (("--start", f"{sys.executable} x {{port}}", "--start-dir", "no/where", "--tap-reply", "echo"), "not a directory"),
    (("--vendor", "kompact", "--start-dir", "scratch", "--tap-reply", "echo"), "a --vendor runs in a temporary folder"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_a_mistake_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = called(*arguments, *DATA, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_score_of_a_tapped_run_again_still_knows_what_the_tap_saw(tmp_path: Path) -> None:
    before = run("--start", start("truncates", tmp_path), "--name", "half", "--tap-reply", "extract", cwd=tmp_path)
    done = called("score", "last", "--output", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = json.loads(done.stdout)["summary"]["half"]
    for key in ("prompt_savings", "untouched_share", "evidence_survival", "lost_by_system", "upstream_tokens"):
        assert after[key] == before["summary"]["half"][key]


def test_a_system_of_this_process_is_read_by_the_same_model(tmp_path: Path) -> None:
    arguments = (
        "--start",
        start("truncates", tmp_path),
        "--name",
        "half",
        "--system",
        "truncate:ratio=0.5",
        "--controls",
    )
    result = run(*arguments, "--tap-reply", "extract", cwd=tmp_path)
    summary = result["summary"]
    assert list(summary) == ["half", "truncate:ratio=0.5", "floor", "ceiling", "direct"]
    assert summary["truncate:ratio=0.5"]["prompt_savings"] == pytest.approx(0.5, abs=0.05)
    assert {"retention", "pareto_rank", "upstream_cost_of_pass"} <= summary["truncate:ratio=0.5"].keys()
    rows = [row for row in result["rows"] if row["system"] == "truncate:ratio=0.5"]
    assert all(len(row["response"]) < 100 for row in rows)  # an answer, not the context
    assert all("evidence_survived" in row["scores"] for row in rows)


def test_systems_alone_can_be_read_behind_a_tap(tmp_path: Path) -> None:
    result = run("--system", "bm25:ratio=0.3", "--system", "truncate:ratio=0.3", "--tap-reply", "extract", cwd=tmp_path)
    assert list(result["summary"]) == ["bm25:ratio=0.3", "truncate:ratio=0.3"]
    assert all("upstream_cost_of_pass" in values for values in result["summary"].values())
