"""Real proxies on `agent-trace`, in the forms that each speaks: the tap counts what a plain recorder sees.

`make vendors` installs them. With CONTEXT_BENCH_REQUIRE_VENDORS set, as CI does, one that is missing is a failure.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from command import environment, shell
from context_bench.processes.started_proxy import StartedProxy
from context_bench.store.store import Store
from context_bench.tap.vendors import recipe
from pages import load_tool
from recorder import Recorder, count, post
from servers import free_port

pytestmark = pytest.mark.vendors

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".vendors"
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "responses": "/v1/responses"}
SPOKEN = [(name, api) for api in ("openai", "anthropic") for name in ("kompact", "headroom", "litellm")]
SPOKEN.append(("headroom", "responses"))  # kompact does not know that path
LITELLM: str = load_tool("agents_report").LITELLM.replace(".vendors/", f"{HOME}/").replace("tools/", f"{ROOT}/tools/")
ROWS = 4
DATASET = f"agent-trace:length=6000,turns=12,n={ROWS}"


@pytest.mark.parametrize(("name", "api"), SPOKEN)
def test_the_tap_counts_what_a_plain_recorder_sees(
    name: str, api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (HOME / name / "installed.stamp").exists():
        if os.environ.get("CONTEXT_BENCH_REQUIRE_VENDORS"):
            pytest.fail(f"{name} is not installed, and was to be measured")
        pytest.skip(f"MISSING CAPABILITY: {name} is not installed (make vendors installs it)")
    monkeypatch.setenv("CONTEXT_BENCH_VENDORS", str(HOME))
    chosen = ["--start", LITELLM, "--name", name] if name == "litellm" else ["--vendor", name]
    arguments = [*chosen, "--tap-reply", "extract", "--max-workers", "1", "--api", api, "--dataset", DATASET]
    done = shell(
        *arguments, "--output", "json", cwd=tmp_path, env=environment(CONTEXT_BENCH_VENDORS=str(HOME)), timeout=300.0
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    with Store(tmp_path / ".context-bench", readonly=True) as store:
        answers = [record.answer for record in store.run_records(store.runs()[-1])]
        sent = [exchange["sent"] for answer in answers if answer for exchange in answer.processed["tapped"]]
    assert [row["error"] for row in rows] == [None] * ROWS == [None] * len(sent)
    bodies = asyncio.run(_replay(name, PATHS[api], sent))
    upstream = [row["upstream_tokens"] for row in rows]
    print(f"\n{name}, {api}: sent {[count(json.loads(body)) for body in sent]}, upstream {upstream}")
    assert upstream == [count(body) for body in bodies]
    assert [row["metadata"]["downstream_tokens"] for row in rows] == [count(json.loads(body)) for body in sent]
    assert (sum(upstream) < sum(map(count, map(json.loads, sent)))) == (name != "litellm")


async def _replay(name: str, path: str, sent: Sequence[str]) -> list[dict[str, Any]]:
    """Send the same requests through the proxy to a plain recorder; return what reached it, one body for each."""
    command, env, headers = LITELLM, dict[str, str](), dict[str, str]()
    if name != "litellm":
        vendor = recipe(name)
        command, env, headers = vendor.command, dict(vendor.env), dict(vendor.headers)
    arrived = []
    with Recorder() as recorder:
        async with StartedProxy(command, port=free_port(), tap_url=recorder.url, env=env) as proxy:
            for body in sent:
                before = len(recorder.bodies)
                await asyncio.to_thread(post, proxy.url + path, body.encode(), headers)
                # litellm asks the model something of its own now and then, to see whether it is there.
                arrived += [each for each in recorder.bodies[before:] if len(each.get("messages") or each["input"]) > 1]
    return arrived
