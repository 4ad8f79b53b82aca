"""The demo: the first minute, with no key and no network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import environment, shell
from context_bench import EvalResult
from context_bench.cli import main
from report_pages import read_blocks


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    folder = tmp_path_factory.mktemp("demo")
    # Whoever tries to reach the network by a proxy finds nobody there.
    env = environment(http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
    done = shell("demo", cwd=folder, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, done.stderr


def test_the_table_alone_is_on_stdout(demo: tuple[Path, str, str]) -> None:
    _, out, err = demo
    assert out.startswith("| system")
    assert "passthrough" in out
    assert "context-bench --proxy" in err
    assert "context-bench --proxy" not in out


def test_it_ends_with_the_path_of_a_report_that_it_wrote(demo: tuple[Path, str, str]) -> None:
    folder, _, err = demo
    last = err.rstrip("\n").splitlines()[-1].strip()
    assert last == ".context-bench/demo.html"
    page = (folder / last).read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert read_blocks(page)[0]["context"], "the contexts are on the page"
    assert sorted(path.name for path in (folder / ".context-bench").iterdir()) == ["demo.html", "demo.json"]


def test_its_numbers_make_sense(demo: tuple[Path, str, str]) -> None:
    folder, _, _ = demo
    result = EvalResult.from_json((folder / ".context-bench" / "demo.json").read_bytes())
    summary = result.summary
    assert len(summary) == 7
    assert all(values["num_examples"] == 240 and values["num_errors"] == 0 for values in summary.values())
    assert summary["passthrough"]["compression_ratio"] == 0.0
    assert summary["passthrough"]["mean_score"] == summary["oracle"]["mean_score"] == 1.0
    assert summary["closed-book"]["mean_score"] == 0.0
    assert summary["minify"]["mean_score"] == 1.0
    assert summary["minify"]["compression_ratio"] > 0
    assert 0.2 < summary["truncate:ratio=0.5"]["mean_score"] < 0.8
    assert 0.2 < summary["random-drop:ratio=0.5"]["mean_score"] < 0.8
    assert summary["bm25:ratio=0.3"]["mean_score"] > summary["truncate:ratio=0.5"]["mean_score"]


def test_it_concludes_which_system_keeps_the_facts_for_less(demo: tuple[Path, str, str]) -> None:
    _, out, _ = demo
    assert out.rstrip().splitlines()[-1] == (
        "bm25:ratio=0.3 is equivalent to passthrough, with 70.0% of the tokens saved, and beats truncation and random "
        "deletion at its size; minify is equivalent, with 3.6% of the tokens saved. Worse: truncate:ratio=0.5 and "
        "random-drop:ratio=0.5."
    )


def test_its_result_is_strict_json(demo: tuple[Path, str, str]) -> None:
    folder, _, _ = demo
    text = (folder / ".context-bench" / "demo.json").read_text(encoding="utf-8")
    assert "Infinity" not in text
    assert "NaN" not in text
    json.loads(text)


def test_an_out_that_cannot_be_written_is_found_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file" / "x.json")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip().splitlines()[-1].startswith("context-bench: cannot write to --out")
    assert len(err.strip().splitlines()) == 1
