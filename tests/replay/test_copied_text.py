"""Spans of a call, the states of their copies, and the estimate that takes chance matches out."""

from __future__ import annotations

import random

import pytest

from context_bench.replay.copied_text import count_turns, estimate_loss, find_spans, is_left


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("cat src/app/main.py", {"src/app/main.py"}),
        ("see ./a.py and /usr/lib/x", {"/usr/lib/x"}),  # the first one has six signs
        ("call read_all_files or readAllFiles", {"read_all_files", "readAllFiles"}),
        ("the surroundings of everything", set()),  # words of prose
        ("on 2026-11-19, 12345678 units, 1234567 more", {"2026-11-19", "12345678"}),
        ("say \"hello there you\" and 'short'", {"hello there you"}),
        ("https://example.org/a, then", {"https://example.org/a"}),
        ("don't stop: 'all', label: 'the whole text'", {"the whole text"}),  # not what is between two quoted strings
    ],
)
def test_spans_are_paths_identifiers_numbers_and_quoted_strings(text: str, spans: set[str]) -> None:
    assert find_spans(text) == spans


def test_a_copy_is_left_however_its_white_space_is_spelled() -> None:
    assert is_left("hello there you", "say hello\n  there you")
    assert is_left("src/app.py", "in src/app.py:")
    assert not is_left("src/app.py", "in src/ap")
    assert is_left(r"print(\"done\")", 'print("done")')  # texts are searched without escapes
    assert is_left("the parser of the config files fails", "The parser of config files fails.")
    assert not is_left("the parser of the config files fails", "The config.")
    assert is_left("/srv/app/src/parts/Form.tsx", "/srv/app/src/parts/\nList.tsx\nForm.tsx")  # listed by directory
    assert not is_left("/srv/app/src/parts/Form.tsx", "/srv/app/src/parts/List.tsx")


def test_without_a_loss_the_interval_is_the_binomial_limit_over_sessions() -> None:
    loss = estimate_loss([[10, 5, 0, 0, 0]] * 12)
    assert (loss.of_uses, loss.low, loss.high) == (0, 0, pytest.approx(1 - 0.025 ** (1 / 12)))


def test_an_estimate_by_hand() -> None:
    # 100 turns: 50 copied, 12 of these lost; with other replies 20 and 8. So (50 - 20) / (100 - 20) = .375 are true
    # uses, 37.5 in all, and (12 - .625 * 8) / 37.5 = .1867 of them lost text.
    loss = estimate_loss([[100, 50, 12, 20, 8]])
    assert loss.uses == pytest.approx(37.5)
    assert loss.of_uses == pytest.approx(7 / 37.5)
    assert loss.by_turn == pytest.approx(0.07)
    assert (loss.low, loss.high) == (None, None)  # one session
    few = estimate_loss([[100, 30, 12, 20, 8]])
    assert few.uses == pytest.approx(12.5)
    assert few.of_uses is None  # below twenty true uses
    assert estimate_loss([count_turns([])]).of_uses is None


@pytest.mark.parametrize(("lost", "chance", "chance_lost"), [(0.05, 0.2, 0.6), (0.05, 0.05, 0.3), (0.3, 0.2, 0.3)])
def test_planted_losses_are_found_and_covered(lost: float, chance: float, chance_lost: float) -> None:
    source = random.Random(7)
    estimates, subtracted, covered, runs = [], [], 0, 400
    for _ in range(runs):
        counts = []
        for _ in range(15):
            session = [20, 0, 0, 0, 0]
            for _ in range(20):
                if source.random() < 0.4:
                    session[1] += 1
                    session[2] += source.random() < lost
                elif source.random() < chance:
                    session[1] += 1
                    session[2] += source.random() < chance_lost
                if source.random() < chance:
                    session[3] += 1
                    session[4] += source.random() < chance_lost
            counts.append(session)
        loss = estimate_loss(counts)
        assert loss.of_uses is not None
        assert loss.low is not None
        assert loss.high is not None
        estimates.append(loss.of_uses)
        subtracted.append(loss.matched_lost / loss.matched - loss.chance_lost / max(1, loss.chance_matched))
        covered += loss.low <= lost <= loss.high
    mean = sum(estimates) / runs
    print(f"truth {lost:.0%}: mean {mean:.2%}, covered {covered / runs:.1%}, subtracted {sum(subtracted) / runs:.1%}")
    assert mean == pytest.approx(lost, abs=0.01)
    assert 0.91 <= covered / runs <= 0.98
    assert abs(sum(subtracted) / runs - lost) > 0.15  # rates that are subtracted are far off
