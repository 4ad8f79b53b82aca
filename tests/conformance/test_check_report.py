from __future__ import annotations

import json

from context_bench.conformance import ExamOutcome, Findings, render_json, render_table

FINDINGS = Findings(
    "http://127.0.0.1:1",
    "openai",
    [
        ExamOutcome("short", "Is it short?", "pass"),
        ExamOutcome("much longer", "Is it long?", "fail", "it is not", {"a": "x\n\ud83d"}, None),
        ExamOutcome("other", "Is it other?", "skip", "not here"),
    ],
    ["worth\nknowing"],
)


def test_the_list_is_aligned_and_shows_failures() -> None:
    assert render_table(FINDINGS) == (
        "✓ short\n"
        "✗ much longer  it is not\n"
        '    sent:    {"a": "x\\n\\ud83d"}\n'
        "    arrived: nothing\n"
        "– other        not here\n"
        "\n"
        "note: worth knowing\n"
        "http://127.0.0.1:1 (openai): 1 passed, 1 failed, 1 skipped\n"
    )


def test_long_values_are_shown_where_they_differ() -> None:
    same = "abcdefghij" * 50
    outcome = ExamOutcome("x", "?", "fail", "no", f"{same}LEFT{same}", f"{same}RIGHT{same}")
    _, sent, arrived, *_ = render_table(Findings("p", "openai", [outcome], [])).splitlines()
    assert sent == f"    sent:    … {'abcdefghij' * 4}LEFT{('abcdefghij' * 16)[:156]} …"
    assert arrived == f"    arrived: … {'abcdefghij' * 4}RIGHT{('abcdefghij' * 16)[:155]} …"


def test_json_has_everything() -> None:
    document = json.loads(render_json(FINDINGS))
    assert (document["passed"], document["failed"], document["skipped"]) == (1, 1, 1)
    assert document["checks"][0] == {"name": "short", "asks": "Is it short?", "status": "pass"}
    assert document["checks"][1]["sent"] == {"a": "x\n\ud83d"}
    assert document["notes"] == ["worth\nknowing"]
