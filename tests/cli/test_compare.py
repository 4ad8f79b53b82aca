"""`compare`: two runs, JSON files and the systems of one run, as a table and as JSON, with a gate."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench.stats import PairedSums, paired_difference
from terminal import on_terminal

ROWS = [{"id": f"q{n}", "context": f"The value of {n} is v{n}.", "question": "?", "answer": f"v{n}"} for n in range(10)]
LONG = [{**row, "context": f"{row['context']} {'Nothing more is known. ' * 20}"} for row in ROWS]
"""Examples whose answer stands at the beginning: what keeps the end loses it."""

NEWER = "newer.py:newer"
HEAD, TAIL = "truncate:ratio=0.5", "truncate:ratio=0.5,keep=tail"


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs: all pass in the first, the last three examples fail in the second."""
    folder = tmp_path_factory.mktemp("compare")
    _write(folder / "d.jsonl", LONG)
    (folder / "newer.py").write_text(
        "def newer(example):\n"
        "    broken = example['id'] in ('q7', 'q8', 'q9')\n"
        "    return {'context': 'nothing' if broken else example['context']}\n"
    )
    flags = ["--dataset", "d.jsonl", "--score-field", "contains", "--quiet"]
    for system, name in (("passthrough", "old"), ("newer.py:newer", "new")):
        done = called("--system", system, *flags, "--out", f"{name}.json", cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_two_runs(folder: Path) -> None:
    done = called("compare", "last~1", "last", cwd=folder)
    assert done.returncode == 0, done.stderr
    line = [cell.strip() for cell in done.stdout.splitlines()[2].split("|")[1:-1]]
    # ten pairs, three of them lost: sum -3, squares 3
    interval = paired_difference(PairedSums(10, -3.0, 3.0, 0, 3, cubes=-3.0)).interval(0.95)
    assert line[:6] == [NEWER, "10", "1.000", "0.700", "-0.300", f"[{interval.low:+.3f}, {interval.high:+.3f}]"]
    assert line[7:9] == ["0", "3"]
    assert "10 examples are paired by id and content." in done.stdout
    assert (
        "score (mean_score) = the mean of contains over examples; a score of 0.7 passes; margin ±0.02." in done.stdout
    )
    assert done.stderr == ""


def test_what_is_broken_has_a_command_that_shows_it(folder: Path) -> None:
    text = called("compare", "last~1", "last", cwd=folder).stdout
    assert f"broken by {NEWER} (3):" in text
    assert "fixed by" not in text
    commands = [line for line in text.splitlines() if line.startswith("  context-bench diff ")]
    assert len(commands) == 3
    shown = called(*shlex.split(commands[0])[1:], cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"── {NEWER} on q7 of d ──")
    fewer = called("compare", "last~1", "last", "--list", "1", cwd=folder).stdout
    assert f"broken by {NEWER} (3, the first 1):" in fewer
    assert fewer.count("context-bench diff") == 1


def test_the_first_is_the_baseline_unless_another_is_named(folder: Path) -> None:
    other = json.loads(called("compare", "last", "last~1", "--output", "json", cwd=folder).stdout)
    named = json.loads(called("compare", "last~1", "last", "--baseline", "last", "--output", "json", cwd=folder).stdout)
    assert other == named
    assert other["comparisons"][0]["verdict"]["difference"] == pytest.approx(0.3)
    assert [each["id"] for each in other["comparisons"][0]["fixed_examples"]] == ["q7", "q8", "q9"]


def test_json_files_are_paired_by_id_and_it_says_so(folder: Path) -> None:
    done = called("compare", "old.json", "new.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "10 examples are paired by id only" in done.stdout
    assert "context-bench diff" not in done.stdout
    assert "  q7 of " in done.stdout
    document = json.loads(called("compare", "old.json", "new.json", "--out", "c.json", cwd=folder).stdout or "null")
    assert document is None
    document = json.loads((folder / "c.json").read_text())
    (found,) = document["comparisons"]
    assert (found["pairs"], found["pairs_with_same_content"], found["broken"]) == (10, 0, 3)
    assert (found["score"], found["baseline_score"]) == (pytest.approx(0.7), 1.0)
    assert (document["metric"], document["margin"], document["baseline"]) == (
        "mean_score",
        0.02,
        "passthrough of old.json",
    )
    mixed = json.loads(called("compare", "old.json", "last", "--output", "json", cwd=folder).stdout)
    assert mixed["comparisons"][0]["verdict"] == found["verdict"]


def test_the_systems_of_one_run(tmp_path: Path) -> None:
    _write(tmp_path / "d.jsonl", LONG)
    flags = ["--dataset", "d.jsonl", "--score-field", "contains", "--quiet"]
    called("--system", HEAD, "--system", TAIL, "--system", "passthrough", *flags, cwd=tmp_path)
    document = json.loads(called("compare", "last", "--output", "json", cwd=tmp_path).stdout)
    assert (document["baseline"], document["warnings"]) == ("passthrough", [])
    assert {each["name"]: each["verdict"]["difference"] for each in document["comparisons"]} == {HEAD: 0.0, TAIL: -1.0}
    one = json.loads(called("compare", f"last@{HEAD}", f"last@{TAIL}", "--output", "json", cwd=tmp_path).stdout)
    assert (one["baseline"], [each["name"] for each in one["comparisons"]]) == (HEAD, [TAIL])


def test_runs_that_differ_in_what_makes_them_incomparable_are_warned_of(tmp_path: Path) -> None:
    _write(tmp_path / "d.jsonl", ROWS)
    flags = ["--system", "passthrough", "--dataset", "d.jsonl", "--quiet"]
    called(*flags, "--score-field", "contains", cwd=tmp_path)
    _write(tmp_path / "d.jsonl", [{**ROWS[0], "answer": "other"}, *ROWS[1:]])
    called(*flags, "--score-field", "recall", "--threshold", "0.5", "--tokenizer", "o200k_base", cwd=tmp_path)
    done = called("compare", "last~1", "last", cwd=tmp_path)
    assert done.returncode == 0
    said = done.stderr.replace("\n", " ")
    for what in ("tokenizers (o200k_base; cl100k_base)", "score fields", "thresholds (0.5; 0.7)", "data behind d"):
        assert f"have different {what}" in said
    assert "9 examples are paired by id and content; 1 have the same id but different content." in done.stdout
    assert called("compare", "last~1", "last", "--quiet", cwd=tmp_path).stderr == ""
    document = json.loads(called("compare", "last~1", "last", "--output", "json", cwd=tmp_path).stdout)
    assert len(document["warnings"]) == 4


def test_a_table_fits_the_terminal(folder: Path) -> None:
    text = on_terminal("compare", "last~1", "last", cwd=folder, columns=80)
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables
    assert all(len(line) <= 80 for line in tables)
    assert "left out:" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "there is no run 'nothing'"),
        (["last"], "has one system, newer.py:newer: name another run to compare it with"),
        (["gone.json", "last"], "gone.json: cannot be read"),
        (["last", "last~1", "--margin", "2"], "the margin must be between 0 and 1"),
        (["last", "last~1", "--fail-if", "score falls"], "'score falls' is not a condition"),
        (["last", "last~1", "--fail-if", "mean_scor < 1"], "did you mean mean_score"),
        (["last", "last~1", "--junit", "x.xml"], "--junit has nothing to write without a condition"),
    ],
)
def test_a_mistake_is_one_sentence(folder: Path, arguments: list[str], said: str) -> None:
    done = called("compare", *arguments, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("condition", "code", "outcome"),
    [
        ("score drops 0.02", 4, "too few"),
        ("score drops 0.9", 0, "holds"),
        ("score rises 0.1", 0, "holds"),
        ("verdict is undecided", 1, "fails"),
        ("error_rate > 0.9", 0, "holds"),
        ("mean_score < 0.99", 1, "fails"),
    ],
)
def test_a_gate(folder: Path, condition: str, code: int, outcome: str) -> None:
    done = called("compare", "last~1", "last", "--fail-if", condition, "--output", "json", cwd=folder)
    assert done.returncode == code, done.stderr
    (found,) = json.loads(done.stdout)["gate"]
    assert (found["system"], found["condition"], found["outcome"]) == (NEWER, condition, outcome)
    said = {0: "Passed: ", 1: "Failed: ", 4: "Too few examples: "}[code]
    assert f"gate: {NEWER}: {said}" in done.stderr


def test_a_store_elsewhere_is_part_of_the_command(folder: Path, tmp_path: Path) -> None:
    store = str(folder / ".context-bench")
    text = called("compare", "last~1", "last", "--cache-dir", store, cwd=tmp_path).stdout
    assert f"--cache-dir {shlex.quote(store)}" in text


def test_a_run_that_has_other_examples_is_compared_unpaired_and_says_so(folder: Path) -> None:
    _write(folder / "d2.jsonl", [{**row, "id": f"other-{row['id']}"} for row in LONG])
    (folder / "d2.jsonl").replace(folder / "d.jsonl")
    try:
        called("--system", "passthrough", "--dataset", "d.jsonl", "--score-field", "contains", "--quiet", cwd=folder)
        done = called("compare", "old.json", "last", cwd=folder)
    finally:
        called("runs", "rm", "last", cwd=folder)
        _write(folder / "d.jsonl", LONG)
    assert "no examples are paired" in done.stdout
    assert "means of different examples are compared (unpaired)" in done.stdout
    assert "(unpaired)" in done.stdout


# A system that is missing


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same two systems, one of which has another name in the second."""
    folder = tmp_path_factory.mktemp("renamed")
    _write(folder / "d.jsonl", LONG)
    for name, system in (("old", HEAD), ("new", "truncate:ratio=0.6")):
        flags = ["--dataset", "d.jsonl", "--score-field", "contains", "--quiet", "--out", f"{name}.json"]
        done = called("--system", "passthrough", "--system", system, *flags, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


GATE = ("--fail-if", "score drops 0.9")


def test_a_system_that_is_missing_fails_the_gate(renamed: Path) -> None:
    done = called("compare", "old.json", "new.json", *GATE, "--junit", "gate.xml", cwd=renamed)
    assert done.returncode == 1
    assert f"{HEAD}: Failed: it is missing in new.json." in done.stderr
    assert f"{HEAD} is missing in new.json." in done.stdout
    assert 'failures="1"' in (renamed / "gate.xml").read_text()


def test_a_missing_system_can_be_allowed(renamed: Path) -> None:
    done = called("compare", "old.json", "new.json", *GATE, "--allow-missing", cwd=renamed)
    assert done.returncode == 0, done.stderr


def test_a_system_that_was_renamed_is_compared_under_its_new_name(renamed: Path) -> None:
    mapped = ("--map-system", f"{HEAD}=truncate:ratio=0.6")
    done = called("compare", "old.json", "new.json", *GATE, *mapped, "--output", "json", cwd=renamed)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    pairs = {(each["baseline_system"], each["system"]) for each in found["comparisons"]}
    assert pairs == {("passthrough", "passthrough"), (HEAD, "truncate:ratio=0.6")}
    assert f"truncate:ratio=0.6 (was {HEAD})" in {each["name"] for each in found["comparisons"]}
    assert (found["missing"], found["left_out"]) == ([], [])


@pytest.mark.parametrize(
    ("mapped", "said"),
    [("odd=passthrough", "odd"), ("passthrough=odd", "odd"), ("passthrough", "--map-system must be OLD=NEW")],
)
def test_a_name_that_no_run_has_is_refused(renamed: Path, mapped: str, said: str) -> None:
    done = called("compare", "old.json", "new.json", "--map-system", mapped, cwd=renamed)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_comparison_of_one_named_system_misses_no_other(renamed: Path) -> None:
    done = called("compare", "old.json@passthrough", "new.json@passthrough", *GATE, cwd=renamed)
    assert done.returncode == 0, done.stderr


def test_runs_that_count_different_scores_have_no_verdict_and_pass_no_gate(tmp_path: Path) -> None:
    _write(tmp_path / "d.jsonl", LONG)
    for name, field in (("one", "contains"), ("other", "recall")):
        flags = ["--dataset", "d.jsonl", "--score-field", field, "--quiet", "--out", f"{name}.json"]
        assert called("--system", HEAD, *flags, cwd=tmp_path).returncode == 0
    done = called("compare", "one.json", "other.json", "--fail-if", "verdict is worse", cwd=tmp_path)
    assert done.returncode == 4
    assert "no verdict: the runs have different primary scores." in done.stdout
