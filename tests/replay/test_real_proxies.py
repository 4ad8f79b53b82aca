"""Real proxies on real sessions: what the replay counts is what reaches a recorder that shares no code with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.pricing import load_shipped_prices
from context_bench.processes.started_proxy import SCRATCH, StartedProxy
from context_bench.replay.arms import ProxyArm
from context_bench.replay.outcome import gather
from context_bench.replay.replayer import Recording, Replayer
from context_bench.replay.report import conclude
from context_bench.tap.address import free_port
from context_bench.tap.vendors import recipe
from context_bench.utils.tokens import get_tokenizer
from pages import load_tool
from recorder import Relay, count

pytestmark = pytest.mark.vendors

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".vendors"
LITELLM: str = load_tool("agents_report").LITELLM.replace(".vendors/", f"{HOME}/").replace("tools/", f"{ROOT}/tools/")
DATA = os.environ.get("CONTEXT_BENCH_DATA")


class Counting(ProxyArm):
    """Counts what a relay between the proxy and the tap saw of each request."""

    def __init__(self, relay: Relay, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.counted: list[int] = []
        self._relay = relay

    async def send(self, api: str, body: dict[str, Any], thread: str, reply: Mapping[str, Any] | None, /) -> Any:
        before = len(self._relay.bodies)
        sent = await super().send(api, body, thread, reply)
        # litellm asks the model something of its own now and then, to see whether it is there.
        seen = [each for each in self._relay.bodies[before:] if each.get("max_tokens") != 16]
        self.counted.append(sum(map(count, seen)))
        return sent


@pytest.mark.skipif(DATA is None, reason="CONTEXT_BENCH_DATA does not name the folder with recorded sessions")
@pytest.mark.parametrize("name", ["kompact", "headroom", "litellm"])
def test_tokens_of_a_replay_are_those_of_a_recorder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (HOME / name / "installed.stamp").exists():
        if os.environ.get("CONTEXT_BENCH_REQUIRE_VENDORS"):
            pytest.fail(f"{name} is not installed, and was to be measured")
        pytest.skip(f"MISSING CAPABILITY: {name} is not installed (make vendors installs it)")
    monkeypatch.setenv("CONTEXT_BENCH_VENDORS", str(HOME))
    vendor = None if name == "litellm" else recipe(name)
    command, env, headers = (vendor.command, vendor.env, vendor.headers) if vendor else (LITELLM, {}, {})
    recording = Recording.read([Path(str(DATA)) / "traffic" / "claude-code"])
    with Relay() as relay:

        def start(tap: str) -> StartedProxy:
            relay.upstream = tap
            return StartedProxy(command, port=free_port(), tap_url=relay.url, env=env, directory=SCRATCH)

        arm = Counting(relay, name, "http://127.0.0.1:1", start=start, headers=headers)
        replayer = Replayer(arm, recording, load_shipped_prices(), get_tokenizer())
        result = evaluate([replayer], recording.examples, evaluators=[], metrics=[], preflight=False, progress=False)
    (outcome,) = gather(result.rows)
    print(conclude(outcome))
    assert not outcome.failed
    turns = outcome.turns
    assert len(turns) == 197
    assert outcome.errors == 0
    assert [turn["sent_tokens"] for turn in turns] == arm.counted
    assert (sum(arm.counted) < sum(turn["tokens"] for turn in turns)) == (name != "litellm")
