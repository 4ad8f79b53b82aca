"""On a real terminal of 80 columns: no line wraps, long work shows progress, Ctrl-C says how to continue."""

from __future__ import annotations

import json
import shlex
import sys
import unicodedata
from pathlib import Path

import pytest

from command import called, environment, shell
from servers import Server, completion
from terminal import bench_on_terminal, on_terminal

SLOW = "import time\ndef slow(example):\n    time.sleep({})\n    return {{'context': example['context'][:50]}}\n"


def columns(text: str) -> int:
    return max(
        sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line if not unicodedata.combining(char))
        for line in text.splitlines()
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of a run over three systems and three datasets."""
    folder = tmp_path_factory.mktemp("recorded")
    flags = ["--system", "passthrough", "--system", "truncate:ratio=0.5", "--system", "bm25:ratio=0.3"]
    for name in ("needle", "kv", "json-logs"):
        flags += ["--dataset", f"{name}:length=400,n=2"]
    done = called(*flags, "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


LISTINGS = [
    ("datasets",),
    ("systems",),
    ("evaluators",),
    ("metrics",),
    ("runs", "list"),
    ("runs", "show", "last"),
    ("runs", "export", "last"),
    ("diff", "last"),
    ("conformance", "--list"),
    ("runs",),
    ("datasets", "show", "needle:length=400,n=1"),
    ("--system", "bm25:ratio=0.3", "--dataset", "needle:length=400,n=2", "--dry-run"),
    ("--system", "bm25:ratio=0.3", "--dataset", "needle:length=400,n=2", "--no-store"),
]


@pytest.mark.parametrize("command", LISTINGS)
def test_no_line_wraps(recorded: Path, command: tuple[str, ...]) -> None:
    assert columns(on_terminal(*command, cwd=recorded)) <= 80


def test_runs_alone_names_its_actions_to_whoever_reads_them(recorded: Path) -> None:
    assert "`runs show RUN` shows a run" in on_terminal("runs", cwd=recorded)
    assert "shows a run" not in on_terminal("runs", "list", cwd=recorded)
    assert shell("runs", cwd=recorded).stderr == ""


@pytest.mark.parametrize("command", [("datasets",), ("systems",), ("diff", "last")])
def test_what_does_not_go_to_a_terminal_is_whole_and_so_is_wide(recorded: Path, command: tuple[str, ...]) -> None:
    piped = shell(*command, cwd=recorded).stdout
    assert "left out" not in piped
    assert on_terminal(*command, "--wide", cwd=recorded).strip() == piped.strip()
    if command != ("diff", "last"):
        assert columns(piped) > 80


def test_a_pipe_and_a_file_get_the_columns_of_a_broad_terminal_and_wide_gets_all(recorded: Path) -> None:
    on_terminal("runs", "export", "last", "--out", "table.md", cwd=recorded)
    piped, wide = (shell("runs", "export", "last", *flag, cwd=recorded).stdout for flag in ((), ("--wide",)))
    assert (recorded / "table.md").read_text() == piped
    titles, every = ([cell.strip() for cell in text.splitlines()[0].split("|")[1:-1]] for text in (piped, wide))
    assert titles[:2] == every[:2] == ["system", "n"]
    assert titles[2:] == ["macro score", "pass rate", "saved", "cost of pass", "latency p50", "Pareto", "verdict"]
    assert {"score", "p95"} <= set(every)
    assert "| p |" in " ".join(wide.split())
    assert "| p |" not in " ".join(piped.split())
    assert on_terminal("runs", "export", "last", "--wide", cwd=recorded).strip() == wide.strip()


def test_json_on_a_terminal_has_everything(recorded: Path) -> None:
    text = on_terminal("runs", "export", "last", "--output", "json", cwd=recorded)
    assert len(json.loads(text)["rows"]) == 18


@pytest.mark.parametrize("command", [("datasets",), ("runs", "export", "last")])
def test_what_is_left_out_is_named(recorded: Path, command: tuple[str, ...]) -> None:
    assert "left out: " in on_terminal(*command, cwd=recorded)
    assert "(--wide shows all)" in on_terminal(*command, cwd=recorded).replace("\n  ", " ")


# Ctrl-C


def interrupt(folder: Path, *flags: str) -> str:
    """What a terminal shows of a run that is stopped when some of its rows are done."""
    (folder / "own file.py").write_text(SLOW.format(0.1))
    run = bench_on_terminal("--system", "own file.py:slow", "--dataset", "kv:length=200,n=40", *flags, cwd=folder)
    run.wait_for(" left")
    run.send("\x03")
    assert run.finish() == 130
    return run.shown.replace("\r\n", "\n")


def test_the_line_that_resumes_does(tmp_path: Path) -> None:
    shown = interrupt(tmp_path, "--header", "Authorization: Bearer sk-secret")
    before, _, line = shown.strip().rpartition("\n")
    said = " ".join(before.split())
    assert said.endswith("interrupted; finished work is stored; to continue (write the values that *** hides):")
    words = shlex.split(line)
    assert words[0] == "context-bench"
    assert words[1:5] == ["--system", "own file.py:slow", "--dataset", "kv:length=200,n=40"]
    assert words[-3:] == ["--header", "Authorization:***", "--resume"]
    assert "sk-secret" not in shown
    done = shell(*words[1:], "--output", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert len(result["rows"]) == 40
    assert result["config"]["reused"] > 0


def test_a_fresh_run_is_resumed_without_asking_for_everything_again(tmp_path: Path) -> None:
    line = interrupt(tmp_path, "--fresh").rpartition("to continue:\n")[2].splitlines()[0]
    assert "--fresh" not in line
    assert line.endswith(" --resume")


def test_without_a_store_nothing_was_kept(tmp_path: Path) -> None:
    shown = interrupt(tmp_path, "--no-store")
    assert "interrupted; nothing was stored (--no-store)" in shown
    assert "--resume" not in shown


@pytest.mark.parametrize("fresh", [False, True])
def test_a_run_file_is_resumed_as_it_was_started(tmp_path: Path, fresh: bool) -> None:
    (tmp_path / "own.py").write_text(SLOW.format(0.1))
    text = 'system = ["own.py:slow"]\ndataset = ["kv:length=200,n=100"]\n'
    (tmp_path / "bench.toml").write_text(text + ("fresh = true\n" if fresh else ""))
    run = bench_on_terminal("run", "bench.toml", "--repeats", "2", cwd=tmp_path)
    run.wait_for(" left")
    run.send("\x03")
    assert run.finish() == 130
    line = run.shown.rpartition("to continue:\r\n")[2].splitlines()[0]
    flags = "--system=own.py:slow --dataset=kv:length=200,n=100" if fresh else "run bench.toml"
    assert line == f"  context-bench {flags} --repeats 2 --resume"


# Progress


def test_a_slow_row_is_waited_for_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SLOW.format(2.5))
    flags = ["--system", "own.py:slow", "--dataset", "kv:length=200,n=1", "--no-store"]
    run = bench_on_terminal(*flags, cwd=tmp_path)
    run.wait_for("0/1")
    assert run.finish() == 0
    quiet = bench_on_terminal(*flags, "--quiet", cwd=tmp_path, env=environment(NO_COLOR="1"))
    assert quiet.finish() == 0
    assert quiet.shown.startswith("| system")


def test_a_note_does_not_stand_on_the_progress_line(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import time, warnings\ndef slow(example):\n    time.sleep(0.2)\n"
        "    warnings.warn(f'noted {example[\"id\"]}')\n    return ''\n"
    )
    run = bench_on_terminal("--system", "own.py:slow", "--dataset", "kv:length=200,n=12", "--no-store", cwd=tmp_path)
    run.finish()
    noted = [line for line in run.shown.split("\r\n") if "noted" in line]
    assert len(noted) == 12
    assert all(line.rpartition("\x1b[2K")[2].startswith("context-bench: ") for line in noted)


def test_scoring_again_shows_progress(recorded: Path) -> None:
    (recorded / "own.py").write_text(
        "import time\nclass Slow:\n    name = 'slow'\n    score_fields = ('s',)\n"
        "    def score(self, original, processed):\n        time.sleep(0.15)\n        return {'s': 1.0}\n"
    )
    run = bench_on_terminal("score", "last", "--evaluator", "own.py:Slow", cwd=recorded)
    run.wait_for("/18")
    assert run.finish() == 0
    quiet = bench_on_terminal("score", "last", "--evaluator", "own.py:Slow", "--quiet", cwd=recorded)
    assert quiet.finish() == 0
    assert "/18" not in quiet.shown


def test_a_judge_is_checked_with_progress(tmp_path: Path) -> None:
    with Server(completion("Rating: [[5]]", delay=0.05)) as server:
        run = bench_on_terminal(
            "judge-check", "--judge-url", server.url, "--judge-model", "x", "--max-workers", "1", cwd=tmp_path
        )
        run.wait_for(" left")
        run.send("\x03")
        assert run.finish() == 130


@pytest.mark.long
def test_large_files_are_checked_with_progress(tmp_path: Path) -> None:
    with (tmp_path / "big.jsonl").open("w") as out:  # more than any machine checks in two seconds
        out.writelines(f'{{"id": {number}, "context": "word", "answer": "a"}}\n' for number in range(1_000_000))
    run = bench_on_terminal("--system", "passthrough", "--dataset", "big.jsonl", "-n", "1", "--no-store", cwd=tmp_path)
    run.wait_for("checking the data: ")
    assert run.finish() == 0


def test_conformance_says_which_check_it_is_at(tmp_path: Path) -> None:
    toy = f"{sys.executable} {Path(__file__).parents[1] / 'toy_proxies.py'} waits --port {{port}} --upstream {{tap}}"
    run = bench_on_terminal("conformance", "--start", toy, cwd=tmp_path)
    run.wait_for("/35 ")
    assert run.finish() == 0


@pytest.mark.long
def test_a_log_has_lines_of_a_long_run_and_none_of_a_short_one(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SLOW.format(0.5))
    flags = ["--system", "own.py:slow", "--no-store", "--dataset"]
    long = shell(*flags, "kv:length=200,n=24", cwd=tmp_path)
    said = [line for line in long.stderr.splitlines() if "left" in line]
    assert 1 <= len(said) <= 3
    assert all(line.startswith("context-bench: ") for line in said)
    assert "\x1b" not in long.stderr
    assert shell(*flags, "kv:length=200,n=3", cwd=tmp_path).stderr == ""
