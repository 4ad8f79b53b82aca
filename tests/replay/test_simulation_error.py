"""Recorded sessions through the simulated cache: gaps, many blocks and misses by hand, and real counters."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_logs import MODEL, PRICES
from context_bench.pricing import load_shipped_prices
from context_bench.replay.cache_bill import Billed, BlockReader, Simulator, fit_scales, price_recorded
from context_bench.replay.simulation_error import judge_simulation
from context_bench.traffic.readers import read_sessions
from context_bench.traffic.sessions import Session
from context_bench.utils.tokens import get_tokenizer
from context_bench.wire.forms import read_prompt

START = 1_767_323_045.0
DATA = os.environ.get("CONTEXT_BENCH_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="CONTEXT_BENCH_DATA does not name the folder with recordings")


def write_turns(path: Path, turns: Sequence[tuple[float, int]], *, timed: bool = True) -> Session:
    """Write a session whose turns start at these seconds and add so many blocks; each reads all before within 300 s."""
    messages: list[dict[str, Any]] = []
    lines, last = [], None
    for number, (at, added) in enumerate(turns):
        blocks = [{"type": "text", "text": f"block {number} {place} " + "of words " * 200} for place in range(added)]
        marked = [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]
        request = {"model": MODEL, "system": "Be brief.", "messages": [*messages, {"role": "user", "content": marked}]}
        prompt = read_prompt(request)
        assert prompt is not None
        size = prompt.tokens(get_tokenizer())
        read = last[1] if last is not None and at - last[0] < 300 else 0
        usage = {"input_tokens": 0, "cache_read_input_tokens": read, "cache_creation_input_tokens": size - read}
        said = [{"type": "text", "text": f"answer {number}"}]
        reply = {"id": f"m{number}", "type": "message", "role": "assistant", "content": said}
        line = {"request": request, "response": {**reply, "usage": {**usage, "output_tokens": 3}}, "session_id": "s"}
        lines.append(line | {"timestamp": at} if timed else line)
        messages = [*messages, {"role": "user", "content": blocks}, {"role": "assistant", "content": said}]
        last = at, size
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (session,) = read_sessions([path])
    return session


def simulate(session: Session, *, half: bool = False) -> list[Billed]:
    count = get_tokenizer()
    scales = fit_scales(session.threads, count, half=half)
    return Simulator(session.threads, scales, BlockReader(count), load_shipped_prices()).run()


def test_a_gap_of_301_seconds_is_a_miss_and_one_of_299_is_none(tmp_path: Path) -> None:
    first, second, third = simulate(write_turns(tmp_path / "s.jsonl", [(START, 8), (START + 299, 1), (START + 600, 1)]))
    assert (first.read, second.read, third.read) == (0, first.prompt, 0)
    assert second.uses[0].write_5m == second.prompt - first.prompt
    assert third.uses[0].write_5m == third.prompt


def test_without_recorded_times_each_request_reads_the_one_before(tmp_path: Path) -> None:
    first, second, third = simulate(write_turns(tmp_path / "s.jsonl", [(0, 8), (1, 1), (2, 1)], timed=False))
    assert (second.read, third.read) == (first.prompt, second.prompt)


@pytest.mark.parametrize(("added", "found"), [(18, True), (19, False), (20, False)])
def test_a_turn_that_adds_too_many_blocks_reads_nothing(tmp_path: Path, added: int, found: bool) -> None:
    # The model's answer is one block more, so 18 blocks of a user stand 19 blocks behind the last breakpoint.
    first, second = simulate(write_turns(tmp_path / "s.jsonl", [(START, 8), (START + 10, added)]))
    assert second.read == (first.prompt if found else 0)


def test_a_miss_is_where_the_simulation_is_better_than_reading_all_of_the_request_before(tmp_path: Path) -> None:
    starts = [START + 10 * number + (400 if number >= 6 else 0) for number in range(8)]
    session = write_turns(tmp_path / "s.jsonl", [(at, 4) for at in starts])
    count = get_tokenizer()
    error = judge_simulation(Simulator(session.threads, {}, BlockReader(count), PRICES), count)
    assert error is not None
    assert (error.requests, error.nearer, error.farther) == (4, 1, 0)
    assert error.reads.worst <= 10  # tokens, by rounding
    before = session.requests[5].usage
    assert before is not None
    assert error.trivial_reads.worst == pytest.approx(before.prompt, abs=10)
    assert error.dollars == pytest.approx(0, abs=0.002)


@needs_data
def test_dollars_of_unseen_requests_of_real_sessions_are_within_two_percent() -> None:
    for session in read_sessions([Path(str(DATA)) / "traffic" / "claude-code"]):
        count = get_tokenizer()
        simulator = Simulator(session.threads, {}, BlockReader(count), load_shipped_prices())
        error = judge_simulation(simulator, count)
        assert error is not None
        print(session.id, error)
        assert error.dollars == pytest.approx(0, abs=0.02)
        assert error.reads.median < 200
        assert (error.nearer, error.farther) == (0, 0)  # these sessions only append


@needs_data
def test_sessions_without_system_tools_and_breakpoints_are_simulated_with_a_known_error() -> None:
    prices = load_shipped_prices()
    spent = recorded = 0.0
    for session in read_sessions([Path(str(DATA)) / "traffic" / "tokbench" / "a0c-T-fix-r1"]):
        for billed in simulate(session, half=True):
            price = prices.of(billed.request.model)
            assert price is not None
            spent += billed.dollars(price)
            recorded += price_recorded(billed.request, price) or 0
    print(f"a0c: ${spent:.4f} simulated, ${recorded:.4f} recorded, {spent / recorded - 1:+.2%}")
    assert recorded == pytest.approx(1.82, abs=0.005)
    assert spent == pytest.approx(recorded, rel=0.02)
