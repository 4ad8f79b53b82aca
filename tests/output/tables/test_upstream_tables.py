"""The tables of what reached the model: each column only where it says something true."""

from __future__ import annotations

from context_bench import EvalResult
from context_bench.output.notes import list_tap_notes
from context_bench.output.tables import meters

READER = {"sent_tokens": 1000.0, "upstream_tokens": 600.0, "counted_tokens_saved": 400.0}
TAPPED = {**READER, "downstream_tokens": 1000.0, "extra_upstream_calls": 0.0}


def _cells(**systems: dict[str, float]) -> dict[str, dict[str, str]]:
    """Each system's cells by the title of their column."""
    lines = meters(EvalResult([], systems)).splitlines()
    (titles, _, *rows) = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(titles[1:], row[1:])) for row in rows}


def test_saved_by_the_tap_is_said_where_there_is_a_tap() -> None:
    cells = _cells(proxy=TAPPED, compressor=READER)
    assert cells["proxy"]["tokens saved, by the tap"] == "400"
    assert cells["proxy"]["tokens saved, as sent"] == "–"
    assert cells["compressor"]["tokens saved, by the tap"] == "–"
    assert cells["compressor"]["tokens saved, as sent"] == "400"
    assert cells["proxy"]["sent"] == cells["compressor"]["sent"] == "1,000"


def test_without_a_tap_no_column_speaks_of_one() -> None:
    assert list(_cells(compressor=READER)["compressor"]) == ["sent", "reached the model", "tokens saved, as sent"]


def test_losses_and_cached_answers_are_shown_when_there_are_any() -> None:
    none = {"lost_upstream_calls": 0.0, "lost_upstream_tokens": 0.0, "cached_answers": 0.0}
    some = {"lost_upstream_calls": 2.0, "lost_upstream_tokens": 2100.0, "cached_answers": 5.0}
    titles = ["sent", "reached the model", "tokens saved, by the tap", "extra calls"]
    assert list(_cells(proxy={**TAPPED, **none})["proxy"]) == titles
    cells = _cells(proxy={**TAPPED, **some}, other={**TAPPED, **none})
    assert list(cells["proxy"].values())[4:] == ["2", "2,100", "5"]
    assert list(cells["proxy"])[4:] == ["lost calls", "tokens in lost calls", "cached answers"]
    assert list(cells["other"].values())[4:] == ["–"] * 3


def test_bounds_stand_beside_the_savings() -> None:
    bounds = {"prompt_savings_best": 0.4, "prompt_savings_worst": -0.1}
    cells = _cells(proxy={**TAPPED, **bounds})["proxy"]
    assert (cells["saved at best"], cells["at worst"]) == ("40.0%", "-10.0%")


def test_a_note_says_how_many_requests_fit_nobody_and_how_many_of_them_are_kept() -> None:
    def note(**report: int) -> list[str]:
        return list_tap_notes(EvalResult([], {}, {}, {"reports": {"toy": report}}))

    assert note(unmatched=0) == []
    assert note(unmatched=2) == ["toy: 2 requests fit no single example (not counted in any row)."]
    assert note(unmatched=1500, unmatched_kept=1000) == [
        "toy: 1,500 requests fit no single example (not counted in any row); 1,000 of them are kept."
    ]
