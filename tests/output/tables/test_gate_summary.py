"""The Markdown summary of a gate: tables stay tables, and text from data stays text."""

from __future__ import annotations

from context_bench.compare.gates import GateOutcome
from context_bench.output.files import escape_markdown, render_summary
from context_bench.output.layout import markdown

TABLE = markdown([["system", "score"], ["a", "0.5"]])


def test_the_table_the_notes_and_the_gate() -> None:
    text = render_summary(
        f"{TABLE}\n\nfirst note.\nsecond note.\n", [GateOutcome("a", "c", "fails", "a: Failed: why.")]
    )
    assert text == (
        "## context-bench\n\n| system | score |\n| ------ | ----: |\n| a      |   0.5 |\n\n"
        "first note.\n\nsecond note.\n\n### Gate failed\n\n- a: Failed: why.\n"
    )


def test_titles_by_the_worst_outcome() -> None:
    def title(*outcomes: str) -> str:
        return (
            render_summary(TABLE, [GateOutcome("a", "c", each, "s") for each in outcomes])
            .split("### ")[1]
            .split("\n")[0]
        )

    assert title("holds") == "Gate passed"
    assert title("holds", "too few") == "Gate undecided"
    assert title("too few", "fails") == "Gate failed"
    assert "###" not in render_summary(TABLE, [])


def test_text_from_data_is_shown_and_does_nothing() -> None:
    name = "<img src=x onerror=alert(1)> [click](javascript:alert(1)) **bold** `code` @team #1 http://evil.example"
    escaped = escape_markdown(name)
    for active in ("<", " *", " `", "@", "://"):
        assert active not in escaped
    for plain in ("mean_score is 0.44 [0.430, 0.470]", "$0.12 or $0.30", "R&D", "a > b!"):
        assert escape_markdown(plain) == plain
    linked = ["[a](b)", "[a][b]", "[a]: b", "_a_", "snake_ _case", "~~a~~", "$a$", "&lt;", "> a", "\\[a]"]
    assert [escape_markdown(each) for each in linked] == [
        "[a\\](b)",
        "[a\\][b]",
        "[a\\]: b",
        "\\_a\\_",
        "snake\\_ \\_case",
        "\\~\\~a\\~\\~",
        "&#36;a&#36;",
        "&#38;lt;",
        "&#62; a",
        "&#92;[a]",
    ]
    table = markdown([["system", "score"], [f"a|b {name}", "0.5"]])
    text = render_summary(table, [GateOutcome(name, "c", "holds", f"{name}\n# heading")])
    assert "<img" not in text
    assert "[click\\](javascript:" in text
    assert "\n# heading" not in text
    assert "a\\|b" in text
    assert text.count("\n| ") == 3
