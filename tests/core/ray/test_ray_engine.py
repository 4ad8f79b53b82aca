"""What `--engine ray` refuses, each in one sentence and before anything is sent. None of these needs Ray."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import ray_parts
from command import called
from context_bench import MissingExtra, RayEngine, UsageError, evaluate

DATA = [{"id": 1, "context": "some text", "question": "?", "answer": "text"}]


class _Remembers:
    name = "remembers"

    def ingest(self, conversation: Any) -> None: ...

    def query(self, question: str) -> str:
        return question

    def reset(self) -> None: ...


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    with pytest.raises(MissingExtra, match=r"^--engine ray needs an optional dependency: .*ray"):
        evaluate(ray_parts.Halve(), DATA, progress=False, engine="ray")
    run = called("--system", "passthrough", "--dataset", "needle:n=2,length=200", "--engine", "ray", cwd=tmp_path)
    assert run.returncode == 2
    (line,) = run.stderr.strip().splitlines()
    assert "ctxbench[ray]" in line


def test_a_memory_system_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^_Remembers is a memory system, whose state lives in one place: remove"):
        evaluate(_Remembers(), DATA, progress=False, engine="ray")


def test_the_debugger_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^the debugger opens in this process: remove --engine ray or --pdb$"):
        evaluate(ray_parts.Halve(), DATA, progress=False, engine=RayEngine(), debug=True)


@pytest.mark.parametrize("given", ["spark", 3, None])
def test_an_engine_that_is_not_one_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"^engine must be 'local', 'ray' or an Engine"):
        evaluate(ray_parts.Halve(), DATA, progress=False, engine=given)


@pytest.mark.parametrize("flags", [["--ray-address", "127.0.0.1:6379"], ["--system-resources", "num_cpus=1"]])
def test_flags_of_a_cluster_need_the_engine(flags: list[str], tmp_path: Path) -> None:
    run = called("--system", "passthrough", "--dataset", "needle:n=2,length=200", *flags, cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr.strip().endswith(f"{flags[0]} works only on a cluster: add --engine ray")


@pytest.mark.parametrize("text", ["num_gpus", "=1", "num_cpus=many", "num_cpus=-1"])
def test_resources_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    flags = ("--engine", "ray", f"--system-resources={text}")
    run = called("--system", "passthrough", "--dataset", "needle:n=2,length=200", *flags, cwd=tmp_path)
    assert run.returncode == 2
    assert "--system-resources must be NAME=N,..." in run.stderr


def test_the_config_names_the_engine() -> None:
    assert evaluate(ray_parts.Halve(), DATA, progress=False).config["engine"] == "local"
