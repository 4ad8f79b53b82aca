"""Bad input and a machine that changes under a run: one clear sentence, nothing lost, no key shown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command import called, shell
from numbered import number_of, right, write
from servers import Reply, Request, Server

ONE = ("--system", "passthrough", "--dataset", "needle:n=1,length=300")


# --- files that never end, and values that are nested too deeply


@pytest.mark.parametrize("kind", ["device", "pipe"])
@pytest.mark.parametrize("flag", ["--prices", "run"])
def test_a_file_that_may_never_end_is_refused(kind: str, flag: str, tmp_path: Path) -> None:
    path = Path("/dev/zero")
    if kind == "pipe":
        path = tmp_path / "pipe"
        os.mkfifo(path)
    flags = ("run", str(path)) if flag == "run" else (*ONE, "--prices", str(path))
    done = shell(*flags, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is not a regular file" in done.stderr


@pytest.mark.parametrize("command", ["compare", "plan", "report", "plot"])
def test_a_result_that_may_never_end_is_refused(command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    files = ("pipe.json",) * (2 if command == "compare" else 1)
    done = shell(command, *files, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert "is not a regular file" in done.stderr


def test_data_in_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    done = shell("--system", "passthrough", "--dataset", "pipe.jsonl", cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is not a regular file" in done.stderr


@pytest.mark.parametrize("flag", ["--prices", "run"])
def test_toml_that_is_nested_too_deeply_is_one_sentence(flag: str, tmp_path: Path) -> None:
    (tmp_path / "deep.toml").write_text("a = " + "[" * 3_000 + "]" * 3_000)
    flags = ("run", "deep.toml") if flag == "run" else (*ONE, "--prices", "deep.toml")
    done = called(*flags, cwd=tmp_path)
    assert done.returncode == 2
    assert "nested too deeply" in done.stderr
    assert done.stderr.count("\n") == 1


# --- names


@pytest.mark.parametrize("flag", ["--system", "--evaluator", "--metric"])
def test_a_name_that_raises_is_one_sentence(flag: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "class Odd:\n"
        "    @property\n"
        "    def name(self):\n"
        "        raise RuntimeError('no name today')\n"
        "    def process(self, example): return example\n"
        "    def score(self, original, processed): return {}\n"
        "    def compute(self, rows): return {}\n"
    )
    flags = ONE if flag != "--system" else ("--dataset", "needle:n=1,length=300")
    done = called(*flags, flag, "own.py:Odd", cwd=tmp_path)
    assert done.returncode == 2
    assert "`name` of a Odd must be readable (it raised RuntimeError: no name today)" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("key", ["sk-proj-0123456789abcdef", "AIzaSyA0123456789abcdefghijklmnop", "0123456789abcdef"])
@pytest.mark.parametrize("flag", ["--api-key-env", "--judge-key-env"])
def test_a_key_in_place_of_a_name_is_not_shown(key: str, flag: str, tmp_path: Path) -> None:
    asked = ("--proxy", "http://127.0.0.1:9", "--judge-url", "http://127.0.0.1:9", "--dataset", "needle:n=1,length=300")
    done = called(*asked, flag, key, cwd=tmp_path)
    assert done.returncode == 2
    assert "not the key itself" in done.stderr
    assert key not in done.stdout + done.stderr


def test_a_name_of_a_variable_that_is_not_set_is_shown(tmp_path: Path) -> None:
    asked = ("--proxy", "http://127.0.0.1:9", "--dataset", "needle:n=1,length=300")
    done = called(*asked, "--api-key-env", "MY_PROXY_KEY_2", cwd=tmp_path)
    assert "the environment variable MY_PROXY_KEY_2, named for the key, is not set" in done.stderr


# --- more workers than examples


@pytest.mark.long
def test_a_million_workers_for_six_examples_take_no_memory(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(6))
    code = (
        "import resource, sys; from context_bench.cli import main; code = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
    )

    def measure(workers: str) -> int:
        with Server(right) as server:
            flags = ("--proxy", server.url, "--dataset", "data.jsonl", "--max-workers", workers, "--no-store")
            command = [sys.executable, "-c", code, *flags, "--output", "json"]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return int(done.stderr.split()[-1])

    assert measure("1000000") < measure("8") + 30_000  # kilobytes


# --- the store


def test_a_store_that_is_deleted_during_a_run_is_told(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(40))

    def answer(request: Request) -> Reply:
        if number_of(request) == 10:
            shutil.rmtree(tmp_path / ".context-bench")
        return right(request)

    with Server(answer) as server:
        flags = ("--proxy", server.url, "--dataset", "data.jsonl", "--max-workers", "2", "--output", "json")
        done = called(*flags, cwd=tmp_path)
    assert done.returncode != 0
    assert "was deleted during the run" in done.stderr
    assert json.loads(done.stdout)["rows"], "what was answered is in the report"
