"""`context-bench plot`, `--plots` and colour: on real runs, in a pipe and on a real terminal."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from command import called, environment
from fonts import require_font
from terminal import bench_on_terminal

RUN = (
    *("--system", "passthrough", "--system", "bm25:ratio=0.2|0.6", "--system", "truncate:ratio=0.5"),
    *("--dataset", "needle:length=300,n=4", "--quiet"),
)
ESCAPE = "\x1b["


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plots")
    assert called(*RUN, "--out", "result.json", cwd=folder).returncode == 0
    return folder


def test_the_last_run_is_drawn_with_its_curve(recorded: Path) -> None:
    done = called("plot", cwd=recorded)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("└") == 2
    assert "● on the Pareto front" in done.stdout
    assert "■ bm25 (ratio)" in done.stdout
    assert ESCAPE not in done.stdout
    assert called("plot", "result.json", cwd=recorded).stdout == done.stdout


@pytest.mark.parametrize(("kind", "says"), [("pareto", "tokens kept"), ("curve", "of the returned context")])
def test_one_kind(recorded: Path, kind: str, says: str) -> None:
    done = called("plot", "last", "--kind", kind, cwd=recorded)
    assert done.stdout.count("└") == 1
    assert says in done.stdout


def test_a_run_without_a_sweep_has_no_curve(tmp_path: Path) -> None:
    assert called("--system", "minify", "--dataset", "needle:length=300,n=2", "--quiet", cwd=tmp_path).returncode == 0
    assert called("plot", cwd=tmp_path).stdout.count("└") == 1
    done = called("plot", "--kind", "curve", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("context-bench: there is no curve of this run")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"term": "dumb"}, False), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False)],
)
@pytest.mark.parametrize("command", [("plot", "last"), ("runs", "show", "last")])
def test_colour_on_a_terminal(
    recorded: Path, command: tuple[str, ...], settings: dict[str, str], coloured: bool
) -> None:
    env = environment(**{"FORCE_COLOR": "", "NO_COLOR": "", **settings})
    terminal = bench_on_terminal(*command, cwd=recorded, env=env, term=settings.get("term", "xterm"))
    assert terminal.finish(300) == 0
    assert (ESCAPE in terminal.shown) == coloured
    plain = re.sub("\x1b\\[[0-9]*m", "", terminal.shown).replace("\r\n", "\n")
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 80


def test_colour_in_a_pipe_is_for_those_who_ask(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert ESCAPE in called("plot", cwd=recorded).stdout
    assert ESCAPE in called("runs", "show", "last", cwd=recorded).stdout
    assert called("runs", "export", "last", "--out", "table.md", cwd=recorded).returncode == 0
    assert ESCAPE not in (recorded / "table.md").read_text()
    monkeypatch.setenv("FORCE_COLOR", "0")
    assert ESCAPE not in called("plot", cwd=recorded).stdout


def test_a_report_as_pictures(recorded: Path) -> None:
    require_font()
    done = called("report", "last", "--plots", "pictures", cwd=recorded)
    assert done.returncode == 0
    names = ["pareto", "curve", "heatmap", "datasets", "latency"]
    files = [f"pictures/{name}{ending}" for name in names for ending in (".svg", ".png")]
    assert done.stderr.splitlines() == [
        f"context-bench: wrote {', '.join(files)}",
        "context-bench: this run has no data for evidence",
    ]
    assert sorted(path.name for path in (recorded / "pictures").iterdir()) == sorted(Path(each).name for each in files)
    assert not (recorded / "report.html").exists()


def test_a_run_writes_pictures_and_the_page_with_a_curve(tmp_path: Path) -> None:
    require_font()
    words = [word for word in RUN if word != "--quiet"]
    done = called(*words, "--no-rows", "--plots", "a/b", "--report", "page.html", cwd=tmp_path)
    assert done.returncode == 0
    assert "context-bench: wrote a/b/pareto.svg, a/b/pareto.png, a/b/curve.svg" in done.stderr
    assert "context-bench: this run has no data for evidence" in done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Plot: quality against tokens" in page
    assert 'class="curve s1"' in page


def test_without_the_extra_a_run_writes_svg_and_says_how_to_get_png(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    done = called("report", "last", "--plots", "drawn", cwd=recorded)
    assert done.returncode == 0
    assert {path.suffix for path in (recorded / "drawn").iterdir()} == {".svg"}
    assert "context-bench: a plot as PNG needs an optional dependency: pip install 'ctxbench[plots]'" in done.stderr


def test_several_runs_have_folders_of_their_own(recorded: Path) -> None:
    assert called("report", "last", "result.json", "--plots", "many", cwd=recorded).returncode == 0
    folders = sorted(path.name for path in (recorded / "many").iterdir())
    assert len(folders) == 2
    assert all((recorded / "many" / name / "pareto.svg").exists() for name in folders)


def test_what_cannot_be_written_is_found_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = called(*RUN, "--plots", "file/x", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("context-bench: cannot write to --plots file/x")
    assert not (tmp_path / ".context-bench").exists()


@pytest.mark.parametrize("form", ["json", "csv"])
def test_data_say_nothing_to_a_terminal(tmp_path: Path, form: str) -> None:
    row = {"id": "a\x9b31m\u202e", "context": "\x1b]0;title\x07 text \x9b2J", "question": "?", "answer": "text"}
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n")
    words = ("--system", "passthrough", "--dataset", "own.jsonl", "--quiet", "--output", form)
    terminal = bench_on_terminal(*words, cwd=tmp_path)
    assert terminal.finish(300) == 0
    shown = terminal.shown.replace("\r\n", "\n")
    assert not set(shown) & {"\x1b", "\x9b", "\u202e", "\x07"}
    assert "\\u009b" in shown
    piped = called(*words, cwd=tmp_path).stdout
    assert "\x9b" in piped  # elsewhere data stay as they are
