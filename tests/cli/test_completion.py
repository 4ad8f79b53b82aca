"""Completion: scripts that real shells use, with a press of TAB on a real terminal."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import called
from context_bench.cli.commands import COMMANDS, run_parser
from context_bench.cli.completion import WRITERS, collect
from context_bench.registry import registry
from terminal import Terminal

_START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
_ECHO = {
    "bash": 'context-bench() { echo; for word in "$@"; do echo "<$word>"; done; echo \'the end\'; }',
    "zsh": 'context-bench() { echo; for word in "$@"; do echo "<$word>"; done; echo \'the end\'; }',
    "fish": "function context-bench; echo; for word in $argv; echo \"<$word>\"; end; echo 'the end'; end",
}
"""A command of that name which prints its arguments, so that what TAB made of a line is seen."""

CASES = [
    ("conf\t", ["conformance"]),
    ("run be\t", ["run", "bench.toml"]),
    ("--datas\t nee\t", ["--dataset", "needle"]),
    ("--dataset my_\t", ["--dataset", "my_data.jsonl"]),
    ("--system bm\t --output j\t", ["--system", "bm25", "--output", "json"]),
    ("--output=c\t", ["--output=csv"]),
    ("--cache-dir fol\t", ["--cache-dir", "folder"]),
    ("runs ex\t la\t --outp\t cs\t", ["runs", "export", "last", "--output", "csv"]),
    ("datasets sh\t gsm\t", ["datasets", "show", "gsm8k"]),
    ("score last --evaluator answer-q\t", ["score", "last", "--evaluator", "answer-quality"]),
    ("completion zs\t", ["completion", "zsh"]),
]


@pytest.fixture(scope="module", params=WRITERS)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    folder = tmp_path_factory.mktemp(name)
    (folder / "folder").mkdir()
    (folder / "bench.toml").touch()
    (folder / "my_data.jsonl").touch()
    done = called("completion", name, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "folder" / "script").write_text(done.stdout)
    terminal = Terminal(_START[name], cwd=folder, columns=200)
    if name == "zsh":
        terminal.send("autoload -U compinit && compinit -u -D\n")
    terminal.send(f"{_ECHO[name]}\nsource folder/script\necho rea''dy\n")
    terminal.wait_for("ready\r\n")
    yield terminal
    terminal.process.kill()
    terminal.process.wait()


@pytest.mark.parametrize(("typed", "arguments"), CASES)
def test_a_press_of_tab(shell: Terminal, typed: str, arguments: list[str]) -> None:
    shell.shown = ""
    first, *others = typed.split("\t")
    shell.send(f"context-bench {first}")
    for rest in others:
        while shell.read(0.3) and not shell.shown:
            pass
        shell.send("\t")
        shell.read(0.5)
        shell.send(rest.lstrip(" "))
    shell.send("\n")
    shell.wait_for("the end\r\n")
    assert re.findall(r"^<(.*?)/?>\r$", shell.shown, re.MULTILINE) == arguments


@pytest.mark.parametrize("name", WRITERS)
def test_the_shell_accepts_the_script(tmp_path: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    script = tmp_path / "script"
    script.write_text(called("completion", name, cwd=tmp_path).stdout)
    checked = subprocess.run([name, "-n", script], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_everything_that_can_be_typed_is_known() -> None:
    found = collect()
    assert {name.partition(" ")[0] for name in found} == {"", *COMMANDS}
    assert {f"--{name}" for name in run_parser().flags} <= set(found[""].flags)
    assert {"runs list", "runs export", "datasets show", "datasets fetch"} <= set(found)
    dataset = found[""].flags["--dataset"]
    assert dataset is not None
    assert set(dataset.words) == set(registry.list("dataset"))
    assert dataset.files == "file"
    for name in found:
        assert {"-h", "--help"} <= set(found[name].flags), name


def test_names_of_plugins_are_offered_but_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {kind: dict(own) for kind, own in registry._registered.items()})
    (tmp_path / "plugin.py").write_text(
        "from context_bench.registry import registry\n"
        "registry.register('dataset', 'zz-mine', list)\n"
        "registry.register('dataset', 'zz-$(touch hacked)', list)\n"
    )
    script = called("completion", "bash", "--import", "plugin.py", cwd=tmp_path).stdout
    assert "zz-mine" in script
    assert "hacked" not in script


def test_an_unknown_shell(tmp_path: Path) -> None:
    done = called("completion", "tcsh", cwd=tmp_path)
    assert done.returncode == 2
    assert "'tcsh'" in done.stderr
    assert done.stderr.count("\n") == 1
