"""`context-bench claims check`: verdicts, validity, exit codes, and the page of published claims."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from command import called
from context_bench.claims.claim import Claim, read_claims
from context_bench.claims.judging import Measured, decide, decide_all, measure
from context_bench.claims.measuring import Measurer
from context_bench.claims.report import render_badge, render_markdown
from context_bench.claims.self_test import MOST_WRONG, SIMULATED, run_self_test
from context_bench.errors import DataError
from context_bench.results import EvalResult, EvalRow
from context_bench.stats import share_interval
from context_bench.summary import summarize
from pages import ROOT

CLAIM = """
[[claim]]
id = "{id}"
sentence = "A sentence."
by = "somebody"
source = "https://example.com"
published = "2026-11-01"
decided = "2026-11-02"
kind = "{kind}"
{more}
"""


def write_claims(folder: Path, *claims: tuple[str, str, str]) -> str:
    texts = [CLAIM.format(id=name, kind=kind, more=more) for name, kind, more in claims]
    (folder / "claims.toml").write_text("".join(texts))
    return "claims.toml"


def check(folder: Path, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = called("claims", "check", *words, "--output", "json", cwd=folder)
    return done.returncode, {each["id"]: each for each in json.loads(done.stdout)}


def make_claim(kind: str, **fields: Any) -> Claim:
    given: dict[str, Any] = {"number": 50.0, "tolerance": 5.0, "unit": "%", **fields}
    return Claim("c", "A sentence.", kind, "here", "then", "then", **given)


def share(passed: int, n: int, **fields: Any) -> Measured:
    return Measured(100 * passed / n, n, lambda level: share_interval(passed, n, level).multiply(100), **fields)


# --- decisions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a run: half of each context is cut, and the evidence of half of the examples with it."""
    systems = ("--system", "passthrough", "--system", "truncate:ratio=0.5", "--system", "minify")
    done = called(*systems, "--dataset", "needle:length=800,n=60", "--quiet", cwd=tmp_path)
    assert done.returncode == 0
    return tmp_path


CUT = 'system = "truncate:ratio=0.5"\nunit = "%"\n'


def test_claims_on_a_recorded_run_and_on_its_bundle(folder: Path) -> None:
    run = json.loads(called("runs", "export", "last", "--output", "json", cwd=folder).stdout)
    saved = run["summary"]["truncate:ratio=0.5"]["compression_ratio"]
    file = write_claims(
        folder,
        ("right", "number", CUT + f'metric = "compression_ratio"\nnumber = "{100 * saved:.1f}"'),
        ("wrong", "number", CUT + f'metric = "compression_ratio"\nnumber = "{100 * saved + 1:.1f}"'),
        ("harmless", "effect", CUT + 'metric = "difference"\nnumber = 0\ntolerance = 2\nsays = "loss"'),
        ("loses", "effect", CUT + 'metric = "mean_score"\nnumber = 80\ndirection = "at most"\nsays = "loss"'),
        ("lossless", "always", CUT + 'metric = "evidence_recall"\nsays = "loss"'),
        ("unknown", "number", 'system = "nobody"\nnumber = 1'),
        ("closed", "number", 'number = 1\nmissing = "the data"'),
    )
    called("runs", "bundle", "last", "--out", "run.ctxb", cwd=folder)
    code, found = check(folder, file, "--from", "run.ctxb")
    words = {name: each["verdict"] for name, each in found.items()}
    assert words == {
        "right": "reproduced",
        "wrong": "differs",
        "harmless": "refuted",
        "loses": "supported",
        "lossless": "refuted",
        "unknown": "not recomputed",
        "closed": "not reproducible",
    }
    assert code == 1
    assert found["lossless"]["reason"].startswith(
        f"{round(60 * (1 - run['summary']['truncate:ratio=0.5']['mean_score']))} counter"
    )
    assert found["loses"]["validity"] == "shown"
    assert "published without n" in found["loses"]["reason"]
    again, same = check(folder, file, "--from", "last")
    assert (again, {name: each["verdict"] for name, each in same.items()}) == (code, words)
    assert {each["decided"] for each in found.values()} == {"2026-11-02"}
    assert len({each["terms"] for each in found.values()}) == len(found)


def test_a_claim_about_one_dataset_is_measured_on_it(tmp_path: Path) -> None:
    data = ("needle:length=300,n=3", "json-logs:length=800,n=3")
    systems = ("--system", "passthrough", "--system", "truncate:ratio=0.5")
    called(*systems, "--dataset", data[0], "--dataset", data[1], "--quiet", cwd=tmp_path)
    run = json.loads(called("runs", "export", "last", "--output", "json", cwd=tmp_path).stdout)
    saved = run["summary"]["truncate:ratio=0.5"]
    more = f'metric = "compression_ratio"\nnumber = 1\ndataset = "{data[1]}"'
    file = write_claims(
        tmp_path,
        ("one", "number", CUT + more),
        ("none", "number", CUT + more.replace("json-logs", "kv")),
        ("small", "number", 'system = "truncate:ratio=0.5"\nmetric = "compression_ratio"\nnumber = 0.00005'),
        ("score", "number", 'system = "passthrough"\nmetric = "mean_score"\nnumber = 1'),
    )
    _, found = check(tmp_path, file, "--from", "last")
    assert math.isclose(found["one"]["measured"], 100 * saved[f"compression_ratio@{data[1]}"])
    assert (found["none"]["verdict"], found["small"]["verdict"]) == ("not recomputed", "differs")
    assert found["score"]["validity"] == "not judged"  # a score is never only counted


def test_exit_codes(folder: Path) -> None:
    right = ("right", "always", 'system = "minify"\nmetric = "evidence_recall"')
    closed = ("closed", "number", 'number = 1\nmissing = "the data"')
    assert check(folder, write_claims(folder, right), "--from", "last")[0] == 0
    assert check(folder, write_claims(folder, right, closed), "--from", "last")[0] == 4
    assert called("claims", "check", write_claims(folder, closed), cwd=folder).returncode == 4
    assert called("claims", "check", "missing.toml", cwd=folder).returncode == 2


def test_what_a_claim_runs_needs_a_word_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text('def measure(data):\n    return {"value": 12.34, "n": 5, "data": "abc"}\n')
    file = write_claims(tmp_path, ("own", "number", 'number = 12.3\nrun = "own.py:measure"'))
    assert check(tmp_path, file)[1]["own"]["verdict"] == "not recomputed"
    assert check(tmp_path, file, "--run")[1]["own"]["verdict"] == "reproduced"
    other = write_claims(tmp_path, ("own", "number", 'number = 12.3\nrun = "own.py:measure"\ndata = "def"'))
    assert check(tmp_path, other, "--run")[1]["own"]["verdict"] == "not reproducible"


def test_effects_of_a_page_are_corrected_together() -> None:
    claim = make_claim("effect", published_n=200)
    found = share(124, 200)  # outside alone, at p of 2 to 5%
    assert decide_all([claim], [found])[0].word == "refuted"
    many = [make_claim("effect", published_n=200)] * 10
    assert {each.word for each in decide_all(many, [found] * 10)} == {"undecided"}


def test_an_undecided_effect_tells_how_many_examples_would_decide() -> None:
    decision = decide(make_claim("effect"), share(52, 100), 1.0)
    assert decision.word == "undecided"
    least, most = (int(word.replace(",", "")) for word in decision.reason.split() if word.replace(",", "").isdigit())
    assert 100 < least < most


def test_a_right_number_on_blind_data_measures_no_loss() -> None:
    claim = make_claim("number", says="loss")
    blind, seen = (decide(claim, Measured(50.0, 100, validity=word)) for word in ("none", "shown"))
    assert (blind.verdict, blind.green) == ("reproduced; does not measure loss", False)
    assert (seen.verdict, seen.green) == ("reproduced", True)
    for decision in (blind, seen):
        badge = ET.fromstring(render_badge(decision, "2026-11-03"))
        text = " ".join(badge.itertext())
        assert all(word in text for word in ("number", decision.verdict, decision.validity, "2026-11-03"))
    assert render_badge(seen, "").count("#1a7f37") == 1
    assert "#1a7f37" not in render_badge(blind, "")


def test_only_data_that_could_have_shown_a_loss_makes_a_badge_green() -> None:
    for validity, green in (("shown", True), ("none", False), ("undecided", False), ("", False)):
        decision = decide(make_claim("number", says="loss"), Measured(50.0, 100, validity=validity))
        assert ("#1a7f37" in render_badge(decision, "")) == green, validity
    assert decide(make_claim("number"), Measured(50.0, 100)).green  # of sizes, which are counted
    assert not decide(make_claim("number"), Measured(50.0, 100, scored=True)).green


def test_a_failure_of_the_baseline_too_is_no_counterexample() -> None:
    """Of four examples the system fails on two, and the baseline on one of these."""
    claim = make_claim("always", system="s", metric="ok", says="loss")
    scores = {"base": (1.0, 1.0, 0.0, 1.0), "s": (1.0, 0.0, 0.0, 1.0)}
    for repeats, word in ((1, "undecided"), (2, "refuted")):  # a model may answer otherwise the next time
        rows = [
            EvalRow(name, place, {"ok": score}, 10, 10, {"output": "response"}, dataset="d", repeat=repeat)
            for name, own in scores.items()
            for place, score in enumerate(own)
            for repeat in range(repeats)
        ]
        config = {"score_field": "ok", "repeats": repeats, "baseline": "base"}
        result = EvalResult.from_summary(rows, summarize(rows, scores, [], config), config, [], {})
        found = measure(claim, result, rows, "here")
        assert (found.n, found.failed) == (3, ["d 1"])
        own = measure(replace(claim, system="base"), result, rows, "here")
        assert (own.n, own.failed) == (4, ["d 2"])  # of the baseline itself, every failure counts
        assert decide(claim, found).word == word


@each_case("found, claimed, word, reason", [
    (Measured(50.0, 9, version="1.1"), {"version": "1.0"}, "not reproducible", "the version here is 1.1, not 1.0"),
    (Measured(50.0, 9, version="1.0"), {"version": "1.0"}, "reproduced", "50%"),
    (Measured(50.0, 9), {"data": "abc"}, "reproduced", "50%; the data was not verified"),
    (Measured(50.0, 9, data="def"), {"data": "abc"}, "not reproducible", "the data here differs (SHA-256 def…)"),
    (Measured(50.0, 9, made="2026-11-01"), {"decided": "2026-11-02"}, "reproduced",
     "50%; its terms were set after this run of 2026-11-01"),
    (Measured(50.0, 9, made="2026-11-02"), {"decided": "2026-11-02"}, "reproduced", "50%"),
])  # fmt: skip
def test_what_was_measured_must_be_what_is_claimed(
    found: Measured, claimed: dict[str, str], word: str, reason: str
) -> None:
    decision = decide(replace(make_claim("number"), **claimed), found)
    assert (decision.word, decision.reason) == (word, reason)


def test_no_counterexample_supports_nothing() -> None:
    decision = decide(make_claim("always"), Measured(n=100))
    assert decision.word == "not refuted"
    assert f"{1 - 0.05 ** (1 / 100):.2%}" in decision.reason


def test_the_terms_change_with_what_was_decided() -> None:
    claim = make_claim("number")
    assert replace(claim, note="another").terms == claim.terms
    assert replace(claim, tolerance=4.0).terms != claim.terms


# --- files


@each_case("text, message", [
    ("claim = 1", "one or more \\[\\[claim\\]\\] tables"),
    ("[[claim]]\nid = 'a'", "sentence is missing"),
    (CLAIM.format(id="a", kind="opinion", more=""), "kind must be number, effect or always"),
    (CLAIM.format(id="a", kind="number", more=""), "write the number exactly as it is printed"),
    (CLAIM.format(id="a", kind="number", more="number = 1\ntolerance = -1"), "tolerance must be"),
    (CLAIM.format(id="a", kind="number", more="number = 1\ndirection = 'up'"), "direction must be"),
    (CLAIM.format(id="a", kind="number", more="number = 1\nmetrik = 'x'"), "unknown key 'metrik'"),
    (2 * CLAIM.format(id="a", kind="number", more="number = 1"), "two claims have the id 'a'"),
    ("[[claim", "not TOML"),
])  # fmt: skip
def test_a_wrong_file_is_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_claims(path)


def test_the_printed_digits_set_the_tolerance(tmp_path: Path) -> None:
    numbers = ("32.9", "'50.0'", "8685243", "'1,234'")
    write_claims(tmp_path, *((f"c{place}", "number", f"number = {text}") for place, text in enumerate(numbers)))
    found = [(each.number, each.tolerance) for each in read_claims(tmp_path / "claims.toml")]
    assert [number for number, _ in found] == [32.9, 50.0, 8685243, 1234]
    assert all(math.isclose(tolerance, wanted) for (_, tolerance), wanted in zip(found, (0.05, 0.05, 0.5, 0.5)))


# --- the checks themselves, and the page


def test_the_self_test_holds() -> None:
    faults, words = run_self_test()
    assert faults == []
    assert max(words["supported"], words["refuted"]) <= MOST_WRONG * SIMULATED
    assert words["undecided"] > SIMULATED / 2


def load_page_tool() -> Any:
    spec = importlib.util.spec_from_file_location("claims_page", ROOT / "tools" / "claims_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_bundles_say() -> None:
    """Without the data and without kompact, its claims are computed again from the bundles."""
    claims = [claim for claim in read_claims(ROOT / "claims" / "kompact.toml") if claim.bundle]
    measurer = Measurer()
    decisions = decide_all(claims, [measurer.measure(claim) for claim in claims])
    lines = render_markdown(decisions, "../claims/REPLY.md").splitlines()[2:]
    assert len(lines) == 5
    assert set(lines) <= {*(ROOT / "docs" / "claims.md").read_text("utf-8").splitlines()}


@pytest.mark.vendors
@pytest.mark.skipif("CONTEXT_BENCH_DATA" not in os.environ, reason="CONTEXT_BENCH_DATA is not set")
def test_the_page_is_what_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert load_page_tool().main([]) == 0, capsys.readouterr().out
    assert "not recomputed" not in capsys.readouterr().out
