"""Recorded sessions of an agent, made for tests: what each turn reads, and what the next call copies of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from context_bench import evaluate
from context_bench.pricing import Price, Prices
from context_bench.replay.arms import Arm
from context_bench.replay.outcome import ArmOutcome, gather
from context_bench.replay.replayer import Recording, Replayer
from context_bench.utils.tokens import get_tokenizer
from context_bench.wire.forms import read_prompt

MODEL = "claude-sonnet-4-5"
PRICES = Prices({MODEL: Price(3.0, 15.0, 0.30, 3.75, 6.0)})
SYSTEM = [{"type": "text", "text": "You repair programs. " * 400, "cache_control": {"type": "ephemeral"}}]
TOOLS = [{"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}}]


def name_file(session: int, turn: int) -> str:
    """A path that stands nowhere but in the result of its turn, and in the call after it."""
    return f"src/module_{session:03d}_{turn:03d}.py"


def write_session(folder: Path, session: int, turns: int, copies: Mapping[int, int] | None = None) -> Path:
    """Write a log of one session: the call of turn t names what the result of turn `copies[t]` told, or t - 1."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": f"Repair case {session}."}]}
    ]
    lines = []
    for turn in range(turns):
        source = (copies or {}).get(turn, turn - 1)
        copied = name_file(session, source) if source >= 0 else "start"
        call = {"type": "tool_use", "id": f"toolu_{session}_{turn}", "name": "read", "input": {"path": copied}}
        request = {
            "model": MODEL,
            "max_tokens": 1000,
            "system": SYSTEM,
            "tools": TOOLS,
            "messages": _mark_last(messages),
        }
        prompt = read_prompt(request)
        assert prompt is not None
        usage = {"input_tokens": prompt.tokens(get_tokenizer()), "output_tokens": 20, "cache_read_input_tokens": 0}
        reply = {
            "id": f"msg_{session}_{turn}",
            "type": "message",
            "role": "assistant",
            "content": [call],
            "stop_reason": "tool_use",
            "usage": usage,
        }
        at = 1_767_323_045 + session * 100_000 + turn * 10
        lines.append({"request": request, "response": reply, "session_id": f"session-{session}", "timestamp": at})
        told = (
            f"The file is {name_file(session, turn)}, see there.\n" + f"line {session} of {turn}: nothing here. " * 40
        )
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": told}
        messages = [*messages, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    path = folder / f"session-{session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _mark_last(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    last = messages[-1]["content"]
    marked = [*last[:-1], {**last[-1], "cache_control": {"type": "ephemeral"}}]
    return [*messages[:-1], {**messages[-1], "content": marked}]


def replay(folder: Path, *arms: Arm, store: Path | None = None, prices: Prices = PRICES) -> list[ArmOutcome]:
    """Replay what is recorded in a folder."""
    recording = Recording.read([folder])
    replayers = [Replayer(arm, recording, prices, get_tokenizer()) for arm in arms]
    result = evaluate(
        replayers, recording.examples, evaluators=[], metrics=[], preflight=False, cache_dir=store, progress=False
    )
    return gather(result.rows)
