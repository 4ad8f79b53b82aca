"""A gate on a run: exit codes, sentences, JUnit XML and the Markdown summary; in a real shell script too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from command import called, environment
from servers import Reply, Request, Server, completion

SCRIPT = """\
check() {
    "$PYTHON" -m context_bench --quiet --system passthrough --system "$1" --dataset d.jsonl -n "$2" \\
        --score-field contains --fail-if "score drops 0.02" --junit "$3.xml" > "$3.txt" 2> "$3.err"
    case $? in
        0) echo "$3: holds" ;;
        1) echo "$3: fails" ;;
        4) echo "$3: too few examples" ;;
        *) echo "$3: broken" ; cat "$3.err" ;;
    esac
}
check minify 200 same
check truncate:ratio=0.1,keep=tail 200 worse
check minify 20 short
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    rows = [
        {"id": n, "context": f"The value of {n} is v{n}. {'More. ' * 9}", "question": "?", "answer": f"v{n}"}
        for n in range(200)
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_shell_script_tells_the_three_outcomes_apart(folder: Path) -> None:
    # Where nothing changes, the 90% interval of n pairs is ± 1.65 · sqrt(2) / (n + 2): 0.0116 for 200, 0.109 for 20.
    (folder / "gate.sh").write_text(SCRIPT)
    done = subprocess.run(
        ["sh", "gate.sh"],
        cwd=folder,
        env=environment(PYTHON=sys.executable),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.splitlines() == ["same: holds", "worse: fails", "short: too few examples"]
    shown = "the score (mean_score) dropped by 0.000 (limit 0.02; 90% interval [-0.015, 0.015]; 200 examples)."
    assert f"Passed: {shown}" in (folder / "same.err").read_text()
    found = {name: ElementTree.parse(folder / f"{name}.xml").getroot() for name in ("same", "worse", "short")}
    assert [(root.get("failures"), root.get("errors")) for root in found.values()] == [
        ("0", "0"),
        ("1", "0"),
        ("0", "1"),
    ]


FLAGS = ["--quiet", "--system", "passthrough", "--dataset", "d.jsonl", "--score-field", "contains"]


def test_a_failure_comes_before_too_few_and_both_before_errors(folder: Path) -> None:
    (folder / "broken.py").write_text(
        "def broken(example):\n"
        "    if example['id'] % 2:\n"
        "        raise ValueError('broken')\n"
        "    return {'context': 'nothing'}\n"
    )
    flags = [*FLAGS, "--system", "broken.py:broken", "-n", "40"]
    plain = called(*flags, cwd=folder)
    assert plain.returncode == 3
    holds = called(*flags, "--fail-if", "error_rate > 0.9", cwd=folder)
    assert (holds.returncode, ": Passed: error_rate is 0." in holds.stderr) == (3, True)
    few = called(*flags, "--fail-if", "error_rate > 0.9", "--fail-if", "error_rate > 0.5", cwd=folder)
    assert few.returncode == 4
    failing = called(*flags, "--fail-if", "error_rate > 0.5", "--fail-if", "error_rate > 0.1", cwd=folder)
    assert failing.returncode == 1
    assert failing.stderr.count("gate: broken.py:broken: ") == 2
    assert "gate: passthrough" not in failing.stderr  # the baseline is not under test


def test_a_run_of_one_system_is_judged_itself(folder: Path) -> None:
    done = called(*FLAGS, "-n", "20", "--fail-if", "compression_ratio < 0.3", cwd=folder)
    assert done.returncode == 1
    assert "gate: passthrough: Failed: compression_ratio is 0.000 (required: at least 0.3; " in done.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--fail-if", "score falls"], "'score falls' is not a condition"),
        (["--fail-if", "score drops 0.02"], "'score drops 0.02' needs a baseline in addition to the judged system"),
        (["--junit", "x.xml"], "--junit has nothing to write without a condition"),
        (["--fail-if", "error_rate > 0.1", "--junit", "no/x.xml"], "cannot write to --junit no/x.xml"),
        (["--summary", "no/x.md"], "cannot write to --summary no/x.md"),
        (
            ["--out", "x.html", "--report", "./x.html"],
            "--out and --report both name ./x.html: use a different file",
        ),
        (["--fail-if", "error_rate > 0.1", "--out", "x", "--junit", "x"], "--out and --junit both name x"),
        (["--resume"], "--resume needs the store, which --no-store disables"),
        (["--margin", "5"], "the margin must be between 0 and 1 (got 5)"),
        (["--plots", "/proc/self"], "cannot write to --plots /proc/self"),
        (["--system", "minify", "--baseline", "minfy"], "(got 'minfy'); did you mean minify?"),
    ],
)
def test_a_mistake_is_found_before_anything_is_run(folder: Path, flags: list[str], said: str) -> None:
    done = called(*FLAGS, "--no-store", "-n", "20", *flags, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("mean_score < 0..8", "'0..8' must be a number; write one like \"score drops 0.02\""),
        ("mean_score = 0.8", 'is not a condition: write one like "score drops 0.02"'),
        ("score dorps 0.02", 'is not a condition: write one like "score drops 0.02"'),
        ("pass_rate < 70%", "'70%' must be a number, and 70% is 0.7; write one like"),
        ("compression_ration < 0.3", "not a number of this run: did you mean compression_ratio?"),
        ("pass_rat@kv:n=9 < 0.3", "not a number of this run: did you mean pass_rate@kv:n=9"),
        ("pass_rate@needle < 0.3", "not a number of this run: did you mean pass_rate@needle:n=9"),
        ("dataset:kv < 0.3", "not a number of this run: did you mean dataset:kv:n=9"),
        ("prompt_savings < 0.3", "a tap (--tap, --start or --vendor) or --reader measures it"),
        ("pass_at_k < 0.3", "--repeats K measures it"),
        ("retention < 0.3", "--controls measures it"),
        ("error_rate > 1", "tests nothing: error_rate lies between 0 and 1; 1% is 0.01"),
        ("pass_rate@needle:n=9 < 70", "tests nothing: pass_rate lies between 0 and 1; 70% is 0.7"),
        ("score drops 2", "tests nothing: score lies between 0 and 1; 2% is 0.02"),
        ("compression_ratio < 30", "tests nothing: compression_ratio is at most 1; 30% is 0.3"),
    ],
)
def test_a_condition_that_cannot_be_judged_is_found_before_the_first_call(
    tmp_path: Path, condition: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text("def mine(example):\n    open('called', 'w').close()\n    return 'x'\n")
    data = ["--dataset", "needle:n=9", "--dataset", "kv:n=9"]
    systems = ["--system", "passthrough", "--system", "mine.py:mine"]
    done = called(*data, *systems, "--quiet", "--fail-if", condition, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "called").exists()


def test_numbers_that_a_run_may_have_are_let_through(tmp_path: Path) -> None:
    conditions = [
        *("num_unscored > 90", "error_rate > 0.5", "dataset:kv:n=9 < -1", "compression_ratio < -9"),
        *("num_errors@kv:n=9 > 90", "latency_median rises 900"),
    ]
    data = ["--dataset", "needle:n=9", "--dataset", "kv:n=9", "--system", "passthrough", "--system", "minify"]
    flags = [word for each in conditions for word in ("--fail-if", each)]
    done = called(*data, "--quiet", "--no-store", *flags, cwd=tmp_path)
    assert "not a number" not in done.stderr
    assert done.stderr.count(": Passed: ") == len(conditions)


def test_a_number_that_could_have_been_measured_and_was_not_leaves_the_gate_open(folder: Path) -> None:
    done = called(*FLAGS, "--system", "minify", "--no-store", "-n", "20", "--fail-if", "cost_usd > 1", cwd=folder)
    assert done.returncode == 4
    assert 'Undecided ("cost_usd > 1"): cost_usd was not measured.' in done.stderr


def test_a_gate_says_before_the_run_how_many_examples_it_needs(folder: Path) -> None:
    run = ("--system", "passthrough", "--system", "minify", "--dataset", "d.jsonl", "-n", "20", "--no-store")
    done = called(*run, "--fail-if", "score drops 0.02", "--fail-if", "error_rate > 0.01", cwd=folder)
    needed = "if no answer changes or fails: 'score drops 0.02' 149, 'error_rate > 0.01' 383"
    short = "this run has 20 examples: too few for 'score drops 0.02', 'error_rate > 0.01', so exit code 4"
    assert done.returncode == 4
    assert (
        done.stderr.index(needed) < done.stderr.index(short) < done.stderr.index("minify: Too few examples: the score")
    )
    told = called(*run, "--fail-if", "score drops 0.02", "--dry-run", cwd=folder)
    assert "'score drops 0.02' 149" in told.stderr, "nothing has to be sent for it"


def test_a_metric_of_ones_own_may_have_any_number(folder: Path) -> None:
    (folder / "own.py").write_text(
        "class Own:\n    name = 'own'\n    def compute(self, rows):\n        return {'strange': 0.5}\n"
    )
    flags = [*FLAGS, "-n", "20", "--metric", "own.py:Own"]
    assert called(*flags, "--fail-if", "strange > 0.9", cwd=folder).returncode == 0
    done = called(*flags, "--fail-if", "stranger > 0.9", cwd=folder)
    assert (done.returncode, done.stdout[:8]) == (2, "| system")
    assert "'stranger' is not a number of this run: did you mean strange" in done.stderr
    assert done.stderr.endswith("the run is recorded; --resume repeats no request\n")
    unkept = called(*flags, "--no-store", "--fail-if", "stranger > 0.9", cwd=folder)
    assert (unkept.returncode, "--resume" in unkept.stderr) == (2, False)


def test_a_metric_of_ones_own_that_tells_its_numbers_has_no_other(folder: Path) -> None:
    (folder / "telling.py").write_text(
        "class Own:\n    name, keys = 'own', ('strange',)\n"
        "    def compute(self, rows):\n        return {'strange': 0.5}\n"
    )
    flags = [*FLAGS, "-n", "20", "--metric", "telling.py:Own"]
    assert called(*flags, "--fail-if", "strange > 0.9", cwd=folder).returncode == 0
    done = called(*flags, "--fail-if", "stranger > 0.9", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'stranger' is not a number of this run: did you mean strange" in done.stderr


def test_the_summary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = folder / "page.md"
    page.write_text("what was there\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    flags = [*FLAGS, "--system", "minify", "-n", "200", "--fail-if", "score drops 0.02"]
    assert called(*flags, "--summary", "s.md", cwd=folder).returncode == 0
    text = (folder / "s.md").read_text()
    assert text.startswith("## context-bench\n\n| system ")
    assert "### Gate passed\n\n- minify: Passed: the score (mean_score) dropped by 0.000 (limit 0.02; " in text
    assert page.read_text() == f"what was there\n{text}"
    assert called(*flags, "--summary", str(page), cwd=folder).returncode == 0
    assert page.read_text().count("## context-bench") == 2  # appended once, not replaced
    before = page.read_text()
    assert called(*FLAGS, "-n", "20", cwd=folder).returncode == 0  # without a gate the page of a job is left alone
    assert page.read_text() == before
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "gone" / "page.md"))
    done = called(*flags, cwd=folder)
    assert (done.returncode, "cannot append to $GITHUB_STEP_SUMMARY" in done.stderr) == (0, True)


def test_a_summary_needs_no_gate(folder: Path) -> None:
    assert called(*FLAGS, "-n", "20", "--summary", "plain.md", cwd=folder).returncode == 0
    text = (folder / "plain.md").read_text()
    assert "| passthrough" in text
    assert "###" not in text


def test_a_run_file_can_hold_the_gate(folder: Path) -> None:
    (folder / "bench.toml").write_text(
        'system = ["passthrough", "minify"]\ndataset = ["d.jsonl"]\nscore-field = "contains"\nquiet = true\n'
        'fail-if = ["score drops 0.02", "verdict is worse"]\njunit = "file.xml"\n'
    )
    done = called("run", "bench.toml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ElementTree.parse(folder / "file.xml").getroot().get("tests") == "2"


def test_rows_need_not_be_kept(folder: Path) -> None:
    flags = [*FLAGS, "--system", "minify", "--no-rows", "--fail-if", "score drops 0.02"]
    done = called(*flags, cwd=folder)
    assert (done.returncode, "minify: Passed: the score (mean_score) " in done.stderr) == (0, True)


def test_several_datasets_make_score_the_macro_score(folder: Path) -> None:
    flags = ["--system", "minify", "--dataset", "needle:length=300,n=5", "--fail-if", "score drops 0.9"]
    done = called(*FLAGS, "-n", "20", *flags, cwd=folder)
    assert "the score (macro_score) " in done.stderr


def test_a_model_that_knows_the_answers_proves_no_compressor(tmp_path: Path) -> None:
    """The reader repeats the last word of the question, whatever the context is: a floor is right as often."""
    rows = [
        {"id": n, "context": f"{'More words. ' * 60}It is v{n}.", "question": f"Which is v{n}", "answer": f"v{n}"}
        for n in range(160)
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def repeat(request: Request) -> Reply:
        return completion(request.json["messages"][-1]["content"].split()[-1])

    run = ["--system", "passthrough", "--system", "truncate:ratio=0.01", "--model", "m", "--dataset", "d.jsonl"]
    run += ["--max-workers", "8", "--quiet"]
    gates = ("score drops 0.02", "pass_rate < 0.5", "verdict is worse", "error_rate > 0.05", "prompt_savings < 0.5")
    run += [word for each in gates for word in ("--fail-if", each)]
    with Server(repeat) as server:
        run += ["--reader", server.url]
        without = called(*run, cwd=tmp_path)
        done = called(*run, "--system", "closed-book", "--junit", "gate.xml", "--report", "page.html", cwd=tmp_path)
        exported = called("runs", "export", "last", "--output", "json", cwd=tmp_path)
        again = called("compare", "last", "--fail-if", "score drops 0.02", cwd=tmp_path)
        twice = called("compare", "last~1", "last", "--fail-if", "score drops 0.02", cwd=tmp_path)
    sentence = "hese examples do not need their context: closed-book, which reads none, is not worse than passthrough"
    assert "truncate:ratio=0.01 is equivalent to passthrough" in without.stdout  # no floor was run: nobody can tell
    assert without.returncode == 0
    assert done.stdout.count(sentence) == 1
    assert done.stdout.rstrip().endswith(f"T{sentence}.")
    assert "★" not in done.stdout
    assert done.returncode == again.returncode == twice.returncode == 4
    assert sentence in again.stdout
    assert sentence in twice.stdout
    cases = ElementTree.parse(tmp_path / "gate.xml").getroot().iter("testcase")
    assert [case.find("error") is not None for case in cases] == [True, True, True, False, False]
    compared = json.loads(exported.stdout)["comparison"]
    assert compared["context_unneeded"].endswith(sentence)
    assert {each["name"]: each["word"] for each in compared["verdicts"]}["truncate:ratio=0.01"] == "undecided"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert sentence in page
    assert "is equivalent to" not in page
    assert "★" not in page.partition("<script")[0]
