"""Real proxies on real sessions: what the replay counts is what reaches a recorder that shares no code with it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.pricing import load_shipped_prices
from context_bench.processes.started_proxy import SCRATCH, StartedProxy
from context_bench.replay.arms import ProxyArm
from context_bench.replay.replayer import Recording, Replayer
from context_bench.replay.report import conclude, gather
from context_bench.tap.address import free_port
from context_bench.tap.vendors import Recipe, recipe
from context_bench.utils.tokens import get_tokenizer
from context_bench.wire.prompts import dump_body
from recorder import Recorder, count, post

pytestmark = pytest.mark.vendors

HOME = Path(__file__).parents[2] / ".vendors"
DATA = os.environ.get("CONTEXT_BENCH_DATA")


class Keeping(ProxyArm):
    """Keeps what it sent, so that the same can be sent again."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.bodies: list[bytes] = []

    async def send(self, api: str, body: dict[str, Any], thread: str, reply: Mapping[str, Any] | None, /) -> Any:
        self.bodies.append(dump_body({**body, "metadata": {"user_id": thread}}))
        return await super().send(api, body, thread, reply)


def start(vendor: Recipe, upstream: str) -> StartedProxy:
    return StartedProxy(vendor.command, port=free_port(), tap_url=upstream, env=vendor.env, directory=SCRATCH)


async def send_again(vendor: Recipe, bodies: list[bytes]) -> list[int]:
    """Send all bodies through the proxy once more, with a plain recorder behind it, and count what arrives for each."""
    counted = []
    with Recorder() as recorder:
        async with start(vendor, recorder.url) as proxy:
            for body in bodies:
                before = len(recorder.bodies)
                await asyncio.to_thread(post, f"{proxy.url}/v1/messages", body, vendor.headers)
                counted.append(sum(map(count, recorder.bodies[before:])))
    return counted


@pytest.mark.skipif(DATA is None, reason="CONTEXT_BENCH_DATA does not name the folder with recorded sessions")
@pytest.mark.parametrize("name", ["kompact"])  # headroom learns from replies, so a second pass is another one
def test_tokens_of_a_replay_are_those_of_a_recorder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (HOME / name / "installed.stamp").exists():
        if os.environ.get("CONTEXT_BENCH_REQUIRE_VENDORS"):
            pytest.fail(f"{name} is not installed, and was to be measured")
        pytest.skip(f"MISSING CAPABILITY: {name} is not installed (make vendors installs it)")
    monkeypatch.setenv("CONTEXT_BENCH_VENDORS", str(HOME))
    vendor = recipe(name)
    arm = Keeping(name, "http://127.0.0.1:1", start=lambda tap: start(vendor, tap), headers=vendor.headers)
    recording = Recording.read([Path(str(DATA)) / "traffic" / "claude-code"])
    replayer = Replayer(arm, recording, load_shipped_prices(), get_tokenizer())
    result = evaluate([replayer], recording.examples, evaluators=[], metrics=[], preflight=False, progress=False)
    (outcome,) = gather(result.rows)
    print(conclude(outcome))
    assert not outcome.failed
    turns = outcome.turns
    assert len(turns) == 197
    assert [turn["sent_tokens"] for turn in turns] == asyncio.run(send_again(vendor, arm.bodies))
