"""The numbers of a replay: by tool, by turn, by a plain search, and where a price or the usage is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_logs import replay, write_session
from context_bench.pricing import Prices
from context_bench.replay.arms import SystemArm
from context_bench.replay.outcome import ArmOutcome
from context_bench.replay.page import render_page
from context_bench.replay.report import conclude, describe, list_notes, render, table_of_arms, table_of_turns
from context_bench.systems import MessagesSystem
from context_bench.systems.messages import CLEARED
from context_bench.utils.tokens import get_tokenizer


def clear_first(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Clear the first result of a tool as soon as another one follows."""
    results = [place for place, each in enumerate(messages) if each["role"] == "tool"]
    if len(results) > 1:
        messages[results[0]] = {**messages[results[0]], "content": CLEARED}
    return messages


def replay_clearing(folder: Path, **options: Any) -> ArmOutcome:
    (outcome,) = replay(folder, SystemArm(MessagesSystem(clear_first, name="clears")), **options)
    return outcome


def write_two(folder: Path) -> list[Path]:
    """Write two sessions of twelve turns: the last call names the file of the first result, the second call none."""
    return [write_session(folder, session, 12, {1: -1, 11: 0}) for session in (1, 2)]


def test_a_plain_search_stands_beside_the_rule(tmp_path: Path) -> None:
    write_two(tmp_path)
    outcome = replay_clearing(tmp_path)
    # From the third turn on each call names a file that stands in the request; the last one is gone.
    assert outcome.naive == {
        "matched_turns": 20 / 24,
        "lost_of_matched_turns": 2 / 20,
        "foreign_spans_matched": 0.0,  # the two sessions have no file in common
    }
    assert describe([outcome])["systems"][0]["naive"] == outcome.naive
    assert (outcome.loss.matched, outcome.loss.matched_lost, outcome.loss.uses) == (20, 2, pytest.approx(20))
    assert "in 10.0% of the 20 turns that reuse earlier text (83% of all turns) in these 2 sessions" in conclude(
        outcome
    )
    page = render_page([outcome])
    assert "a plain search finds a span of the next call in 83% of turns, and 10% of these lost one" in page


def test_tokens_and_losses_by_tool_and_by_turn(tmp_path: Path) -> None:
    paths = write_two(tmp_path)
    outcome = replay_clearing(tmp_path)
    count = get_tokenizer()
    last = [json.loads(path.read_text().splitlines()[-1])["request"]["messages"] for path in paths]
    first = [messages[2]["content"][0]["content"] for messages in last]
    for session, text in zip(outcome.sessions, first):
        read = session.facts["tools"]["read"]
        assert read["tokens"] - read["sent_tokens"] == 10 * (count(text) - count(CLEARED))  # in turns 3 to 12
        assert read["lost"] == 1
    head, *lines = table_of_turns([outcome])
    assert head[0] == "turns of a thread"
    assert [(line[0], line[1], line[4]) for line in lines] == [
        ("clears, 1–10", "20", "0 of 16"),
        ("clears, 11–20", "4", "2 of 4"),
    ]


def test_what_one_more_turn_could_mend_is_priced_apart(tmp_path: Path) -> None:
    write_two(tmp_path)
    outcome = replay_clearing(tmp_path)
    spent = sum(session.turns[-1]["dollars"] for session in outcome.sessions)
    turns, paid = outcome.mendable
    assert turns == 2
    assert paid == pytest.approx(spent)
    (note,) = [note for note in list_notes([outcome]) if "one more turn" in note]
    assert note.startswith("clears: in 2 of 2 turns with a loss, one more turn could get the text back")


def test_without_a_price_no_dollars_are_said(tmp_path: Path) -> None:
    write_two(tmp_path)
    outcome = replay_clearing(tmp_path, prices=Prices({}))
    unknown = [outcome.compute_saved_dollars(), outcome.damage_dollars, outcome.month, outcome.compute_break_even()]
    assert all(each is None for each in unknown)
    assert outcome.mendable == (2, None)
    head, line = table_of_arms([outcome])
    told = dict(zip(head, line))
    assert [told[name] for name in ("$ saved", "$ saved, cold", "break-even", "$ damage")] == ["–"] * 4
    assert "(cost unknown: no price for claude-sonnet-4-5; add one with --prices)" in conclude(outcome)
    assert "$0" not in render([outcome], None)
    render_page([outcome])
    mixed = replay_clearing(tmp_path)
    del mixed.sessions[0].facts["turns"][0]["dollars"]  # the price of one model is not known
    assert mixed.saved_by_turns is None
    render_page([mixed])


def test_without_usage_sizes_are_our_own_and_said_to_be(tmp_path: Path) -> None:
    for path in write_two(tmp_path):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            del line["response"]["usage"]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    outcome = replay_clearing(tmp_path)
    assert outcome.saved_tokens is not None
    assert outcome.saved_tokens > 0
    assert any(note.startswith("No usage was recorded: sizes are our own counts") for note in list_notes([outcome]))
    first = outcome.turns[0]
    assert first["dollars"] > 3.75 * first["prompt"] / 1e6  # the reply is counted, and paid
    assert "No cache counters were recorded" in render_page([outcome])


class KeepsBeginnings:
    """A compressor: it makes each result short once, when it first comes."""

    name = "keeps-beginnings"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "context": example["context"][:100]}


def test_a_compressor_that_only_appends_damages_no_cache(tmp_path: Path) -> None:
    write_two(tmp_path)
    (outcome,) = replay(tmp_path, SystemArm(KeepsBeginnings()))
    assert outcome.saved_tokens is not None
    assert outcome.saved_tokens > 0.2
    assert (outcome.compute_saved_dollars() or 0) > 0
    assert (outcome.broken_turns, outcome.damage_dollars, outcome.compute_break_even()) == (0, 0, 1)
    assert outcome.loss.matched_lost == 0  # the name of the file stands at the beginning


def test_the_timeline_compares_the_same_sessions(tmp_path: Path) -> None:
    write_two(tmp_path)
    outcome = replay_clearing(tmp_path)
    (_, second) = outcome.sessions
    half = ArmOutcome("failed once", [second])
    page = render_page([outcome, half])
    dollars = sum(turn["recorded_dollars"] for turn in second.turns)
    assert f"as recorded</th><td>${dollars:.2f}" in page.replace(' scope="row"', "")
    assert "No session was replayed by all systems." in render_page([ArmOutcome("no", [outcome.sessions[0]]), half])
