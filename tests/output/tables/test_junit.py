"""JUnit XML of a gate: counts, elements, and nothing that breaks out of them."""

from __future__ import annotations

from xml.etree import ElementTree

from context_bench.compare.gates import GateOutcome
from context_bench.output.files import render_junit

OUTCOMES = [
    GateOutcome("a", "score drops 0.02", "fails", "a: score drops 0.02: fails; -0.1"),
    GateOutcome("a", "error_rate > 0.01", "too few", "a: error_rate > 0.01: too few; 0"),
    GateOutcome("b", "score drops 0.02", "holds", "b: score drops 0.02: holds; +0.1"),
]


def test_one_test_for_each_system_and_condition() -> None:
    root = ElementTree.fromstring(render_junit(OUTCOMES).encode())
    assert root.tag == "testsuites"
    (suite,) = root
    for element in (root, suite):
        assert {key: element.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
            "tests": "3",
            "failures": "1",
            "errors": "1",
            "skipped": "0",
        }
    cases = [(case.get("classname"), case.get("name"), [each.tag for each in case]) for case in suite]
    assert cases == [
        ("a", "score drops 0.02", ["failure"]),
        ("a", "error_rate > 0.01", ["error"]),
        ("b", "score drops 0.02", ["system-out"]),
    ]
    assert suite[0][0].get("message") == "a: score drops 0.02: fails; -0.1"


def test_text_cannot_break_out() -> None:
    name = 'x"/><testcase name="forged"/>\x1b[31m\x00\ud800]]>&\n</testsuite>'
    for outcome in ("fails", "too few", "holds"):
        text = render_junit([GateOutcome(name, name, outcome, name)])
        (suite,) = ElementTree.fromstring(text.encode())
        (case,) = suite
        shown = str(case.get("classname"))
        assert shown.startswith('x"/><testcase name="forged"/>')
        assert "\x1b" not in text
        assert "\x00" not in text


def test_an_empty_gate_is_an_empty_suite() -> None:
    (suite,) = ElementTree.fromstring(render_junit([]).encode())
    assert (suite.get("tests"), len(suite)) == ("0", 0)
