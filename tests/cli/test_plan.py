"""`context-bench plan`, and a run with --plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import called
from context_bench import EvalResult
from rows import make_row

SYSTEMS = ("--system", "passthrough", "--system", "truncate:ratio=0.5")
DATA = ("--dataset", "needle:length=300,n=40", "--score-field", "answer_in_context")


def test_assumptions(tmp_path: Path) -> None:
    done = called("plan", "--discordant", "0.1", "--difference", "0.05", "-n", "1000", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.rsplit(None, 3)[-3] for line in done.stdout.splitlines()[1:]]
    # 2.8016² · 0.0975 / 0.0025 = 307, and 12 for the two pairs that are added and for t; 1.02 times the least n with
    # (1.645 + 1.282) · sqrt(0.1 / n), (1.645 + 0.842) · sqrt(0.1 / n) and a little for the same within 0.02
    assert lines == ["319", "2,195", "1,590", "1,000"]
    assert "smallest difference: 0.028" in done.stdout  # 2.8016 · sqrt(0.1 / 1000)


def test_few_discordant_examples_are_enumerated(tmp_path: Path) -> None:
    done = called("plan", "--discordant", "0.01", "--difference", "0.01", cwd=tmp_path)
    lines = [line.rsplit(None, 3)[-3] for line in done.stdout.splitlines()[1:]]
    assert lines[1] == "344"  # tests/stats/test_planning.py enumerates it with scipy


def test_it_says_what_a_difference_is_corrected_for(tmp_path: Path) -> None:
    systems = [flag for name in "abc" for flag in ("--system", name)]
    done = called("plan", "--spread", "0.2", *systems, cwd=tmp_path)
    assert "differences are corrected for 2 comparisons" in done.stderr
    rows = [
        make_row(float(place % 3 > 0 or name == "direct"), system=name, example_id=place)
        for name in ("direct", "floor", "mine", "other")
        for place in range(12)
    ]
    config = {"controls": ["direct", "floor"], "baseline": "direct"}
    pilot = EvalResult(rows, {name: {} for name in ("direct", "floor", "mine", "other")}, config=config)
    (tmp_path / "pilot.json").write_text(pilot.to_json())
    done = called("plan", "pilot.json", cwd=tmp_path)
    assert "differences are corrected for 2 comparisons" in done.stderr  # as in the verdicts: a floor does not compete


def test_a_pilot_a_lock_and_runs_that_keep_to_it_or_not(tmp_path: Path) -> None:
    assert called(*SYSTEMS, *DATA, "--quiet", cwd=tmp_path).returncode == 0
    done = called("plan", "last", "-n", "40", "--lock", "plan.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "truncate:ratio=0.5" in done.stdout
    assert "tokens" in done.stdout
    lock = json.loads((tmp_path / "plan.json").read_text())
    assert (lock["n"], lock["baseline"], lock["metric"]) == (40, "passthrough", "mean_score")
    kept = called(*SYSTEMS, *DATA, "--plan", "plan.json", "--quiet", cwd=tmp_path)
    assert kept.returncode == 0, kept.stderr
    assert "as planned (plan.json, locked " in kept.stdout
    assert "The store has 1 earlier run of the same comparison." in " ".join(kept.stdout.split())
    other = called(*SYSTEMS, *DATA, "--plan", "plan.json", "--quiet", "-n", "30", "--margin", "0.1", cwd=tmp_path)
    text = " ".join(other.stdout.split())
    assert "not as planned" in text
    assert "the margin is 0.1, planned 0.02; the number of examples is 30, planned 40" in text
    assert "2 earlier runs" in text
    shown = called("runs", "show", "last", cwd=tmp_path)
    assert "not as planned" in shown.stdout


def test_the_second_run_of_the_baseline_is_not_planned(tmp_path: Path) -> None:
    assert called(*SYSTEMS, *DATA, "--aa", "--quiet", cwd=tmp_path).returncode == 0
    done = called("plan", "last", "-n", "40", "--lock", "plan.json", "--output", "json", cwd=tmp_path)
    assert [each["system"] for each in json.loads(done.stdout)["systems"]] == ["passthrough", "truncate:ratio=0.5"]
    assert json.loads((tmp_path / "plan.json").read_text())["systems"] == ["passthrough", "truncate:ratio=0.5"]
    for more in ((), ("--aa",)):
        kept = called(*SYSTEMS, *DATA, "--plan", "plan.json", "--quiet", *more, cwd=tmp_path)
        assert "as planned (plan.json, locked " in kept.stdout
        assert "not as planned" not in kept.stdout
    assert "2 earlier runs of the same comparison" in " ".join(kept.stdout.split())


def test_a_plan_gives_baseline_and_margin(tmp_path: Path) -> None:
    flags = ("--system", "passthrough", "--system", "truncate:ratio=0.5", "--dataset", "needle:length=300,n=40")
    plan = ("plan", "--spread", "0.2", *flags, "--baseline", "truncate:ratio=0.5", "--margin", "0.05", "-n", "40")
    assert called(*plan, "--lock", "p.json", cwd=tmp_path).returncode == 0
    done = called(*flags, "--plan", "p.json", "--no-store", "--output", "json", "--quiet", cwd=tmp_path)
    config = json.loads(done.stdout)["config"]
    assert (config["baseline"], config["margin"]) == ("truncate:ratio=0.5", 0.05)
    assert config["plan"]["earlier_runs"] is None


def test_a_result_in_a_file_is_a_pilot_too(tmp_path: Path) -> None:
    assert called(*SYSTEMS, *DATA, "--quiet", "--no-store", "--out", "r.json", cwd=tmp_path).returncode == 0
    done = called("plan", "r.json", "--output", "json", cwd=tmp_path)
    baseline, other = json.loads(done.stdout)["systems"]
    assert (baseline["system"], baseline["to_clear"], baseline["spread"]) == ("passthrough", None, None)
    assert other["n"] == 40
    assert other["to_clear"] < other["to_equate"]
    assert other["tokens"] < baseline["tokens"]


def test_few_discordant_examples_need_no_difference_of_one_s_own(tmp_path: Path) -> None:
    done = called("plan", "--discordant", "0.01", "--output", "json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert (document["difference"], document["systems"][0]["to_equate"]) == (0.01, 344)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "plan from a pilot"),
        (("last", "--spread", "0.1"), "no store"),
        (("missing.json",), "cannot be read"),
        (("--spread", "0.1", "--discordant", "0.1"), "either a spread or a share"),
        (("--spread", "0.1", "--lock", "p.json"), "add -n N"),
        (("--spread", "0.1", "--lock", "p.json", "-n", "5"), "add --system NAME"),
        (("--discordant", "0.01", "--difference", "0.05"), "is impossible if only 0.01"),
        (("--spread", "0.1", "--power", "2"), "--power must be between 0 and 1"),
        (("--spread", "0.1", "--margin", "3"), "margin must be between 0 and 1"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, flags: tuple[str, ...], said: str) -> None:
    done = called("plan", *flags, cwd=tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "p.json").exists()


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    done = called(*SYSTEMS, *DATA, "--plan", "none.json", "--quiet", cwd=tmp_path)
    assert done.returncode == 2
    assert "none.json: cannot be read" in done.stderr


def test_no_difference_is_promised_that_the_discordant_examples_cannot_make(tmp_path: Path) -> None:
    done = called("plan", "--discordant", "0.01", "--difference", "0.01", "-n", "100", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "smallest difference" not in done.stdout
