"""Systems that differ by their seed alone are one system: means over seeds, their spread, and one point of a curve."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest

from command import called
from context_bench import EvalResult, EvalRow, evaluate
from context_bench.compare.seeds import find_seeds
from context_bench.output.conclusion import conclude
from context_bench.stats import Verdict
from context_bench.summary import summarize
from report_pages import read_index


def test_which_systems_belong_together() -> None:
    names = ["a:ratio=0.3,seed=1", "a:seed=2,ratio=0.3", "a:ratio=0.6,seed=1", "p[seed=1]", "p[seed=2]", "b:seed=3"]
    assert find_seeds(names) == {
        "a:ratio=0.3": {"a:ratio=0.3,seed=1": "1", "a:seed=2,ratio=0.3": "2"},
        "p": {"p[seed=1]": "1", "p[seed=2]": "2"},
    }
    assert find_seeds(["p", "p[seed=1]", "p[seed=2]"]) == {}, "a system has that name already"


def verdict_of(result: EvalResult, name: str) -> Verdict:
    compared = result.compare(result.systems[0])
    verdict = None if compared is None else compared.of(name)
    assert isinstance(verdict, Verdict)
    return verdict


def by_hand() -> EvalResult:
    """Ten examples: the baseline is always right, seed 1 on the first four, seed 2 on the first eight."""
    right = {"base": 10, "s:seed=1": 4, "s:seed=2": 8}
    rows = [
        EvalRow(name, example, {"score": float(example < passes)}, 100, 50, dataset="d", latency=0.1)
        for name, passes in right.items()
        for example in range(10)
    ]
    config = {"baseline": "base", "datasets": {"d": 10}, "workers": dict.fromkeys(right, 2), "controls": []}
    return EvalResult.from_summary(
        rows, summarize(rows, list(right), [], config), config, None, dict.fromkeys(right, 2.0)
    )


def test_the_mean_and_the_spread_over_seeds() -> None:
    result = evaluate(["passthrough", "random-drop:ratio=0.5,seed=1|2|3"], "needle:n=30,length=300", progress=False)
    merged = result.merge_seeds()
    seeds = [f"random-drop:ratio=0.5,seed={seed}" for seed in (1, 2, 3)]
    means = [result.summary[name]["mean_score"] for name in seeds]
    own = merged.summary["random-drop:ratio=0.5"]
    assert merged.systems == ["passthrough", "random-drop:ratio=0.5"]
    assert own["mean_score"] == pytest.approx(statistics.mean(means))
    assert own["seed_spread"] == pytest.approx(statistics.stdev(means))
    assert own["num_examples"] == 90
    assert "seed_spread" not in result.summary[seeds[0]]
    verdict = verdict_of(merged, "random-drop:ratio=0.5")
    assert verdict.difference == pytest.approx(statistics.mean(verdict_of(result, name).difference for name in seeds))
    assert verdict.interval.n == 30, "three answers to one example are not three examples"
    assert {(row.metadata["seed"], row.repeat) for row in merged.rows if row.system != "passthrough"} == {
        ("1", 0),
        ("2", 1),
        ("3", 2),
    }
    again = EvalResult.from_json(merged.to_json())
    assert again.summary["random-drop:ratio=0.5"]["seed_spread"] == pytest.approx(own["seed_spread"])
    assert merged.merge_seeds().systems == merged.systems
    assert result.systems[1:] == seeds, "the result itself stays as it is"


def test_by_hand() -> None:
    merged = by_hand().merge_seeds()
    assert merged.systems == ["base", "s"]
    assert merged.timing == {"base": 2.0, "s": 4.0}
    assert merged.config["workers"] == {"base": 2, "s": 2}
    assert merged.summary["s"]["seed_spread"] == pytest.approx(0.2 * 2**0.5)  # of 0.4 and 0.8
    assert verdict_of(merged, "s").difference == pytest.approx(-0.4)


def test_a_floor_that_fails_is_not_said_to_need_no_context() -> None:
    systems = ["passthrough", "random-drop:ratio=0.5,seed=1|2", "closed-book"]
    result = evaluate(systems, "needle:n=30,length=300", progress=False)
    merged = result.merge_seeds()
    assert merged.summary["closed-book"]["mean_score"] == 0.0
    assert merged.comparison is not None
    assert not merged.comparison.context_unneeded
    assert "do not need" not in conclude(merged)


def test_on_the_command_line(tmp_path: Path) -> None:
    systems = ("--system", "passthrough", "--system", "random-drop:ratio=0.3|0.6,seed=1|2")
    run = (*systems, "--dataset", "needle:n=20,length=300", "--output", "csv-summary", "--report", "page.html")
    done = called(*run, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = [line.split(",")[0] for line in done.stdout.splitlines()[1:]]
    assert names == ["passthrough", "random-drop:ratio=0.3", "random-drop:ratio=0.6"]
    export = ("runs", "export", "last", "--output", "csv-summary")
    assert called(*export, cwd=tmp_path).stdout == done.stdout
    apart = called(*export, "--no-merge-seeds", cwd=tmp_path).stdout.splitlines()[1:]
    assert len(apart) == 5
    table = called("runs", "show", "last", cwd=tmp_path).stdout
    assert table.count("mean over seeds") == 1
    assert "random-drop:ratio=0.3|0.6: mean over seeds 1, 2; --no-merge-seeds shows each." in table
    assert "| 20 × 2 |" in table  # 20 examples, answered once with each seed
    assert re.search(r"^repeats +1$", table, re.MULTILINE)
    assert "--system 'random-drop:ratio=0.3|0.6,seed=1|2'" in table, "the command can be pasted into a shell"
    assert "| seed sd |" in table
    again = called("report", "last", "--out", "again.html", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    for name in ("page.html", "again.html"):
        page = (tmp_path / name).read_text()
        assert {*re.findall(r'class="system" title="([^"]+)"', page)} == {*names}
        assert "mean over seeds 1, 2;" in page
        assert " of 40 answers</a>" in page
        assert ">20 untouched</a>" not in page, "the baseline changes nothing"
        index = read_index(page)["names"]
        assert {*index["system"].values()} == {*names}, "the examples are listed under the same names"
    wide = called("runs", "show", "last", "--wide", cwd=tmp_path).stdout
    assert "random-drop: ratio" in wide, "one point of the curve for each ratio"
