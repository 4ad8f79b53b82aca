"""The real proxies, measured by one command each, against a witness that shares no code with the tap.

`make vendors` installs them. With CONTEXT_BENCH_REQUIRE_VENDORS set, as CI does, one that is missing is a failure.
Run with `-s` to see the figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from command import environment, shell
from context_bench.processes.started_proxy import StartedProxy
from context_bench.store.store import Store
from context_bench.tap.vendors import VENDORS, recipe
from context_bench.traffic.calls import read_claimed_tokens
from recorder import Recorder, count, post
from servers import free_port

pytestmark = pytest.mark.vendors

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".vendors"
DATASETS = ("json-logs:length=8000", "needle:length=4000")
ROWS = 3
OFF = {"kompact": {"DO_NOT_TRACK": "1"}, "headroom": {"HEADROOM_BEACON": "off", "ORT_DISABLE_TELEMETRY": "1"}}


@dataclass
class Measured:
    """One run of the command, and what was seen of it from outside."""

    name: str
    result: dict[str, Any]
    sent: list[str]
    """The exact bodies that went to the proxy, in the order of the rows."""
    seen: dict[int, tuple[list[str], dict[str, str]]]
    """Each process of the run with its command line and environment."""
    left: set[int]
    """Those that were still there when the command had ended."""


@pytest.fixture(scope="module", params=VENDORS)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A vendor's proxy after one command that starts, measures and stops it."""
    name = request.param
    if not (HOME / name / "installed.stamp").exists():
        if os.environ.get("CONTEXT_BENCH_REQUIRE_VENDORS"):
            pytest.fail(f"{name} is not installed, and was to be measured")
        pytest.skip(f"MISSING CAPABILITY: {name} is not installed (make vendors installs it)")
    directory = tmp_path_factory.mktemp(name)
    watch = Watch()
    arguments = ["--vendor", name, "--tap-reply", "extract", "-n", str(ROWS), "--max-workers", "1"]
    arguments += [word for dataset in DATASETS for word in ("--dataset", dataset)]
    with watch:
        env = environment(CONTEXT_BENCH_VENDORS=str(HOME), **watch.mark)
        done = shell(*arguments, "--output", "json", cwd=directory, env=env, timeout=300.0)
    assert done.returncode == 0, done.stderr
    with Store(directory / ".context-bench", readonly=True) as store:
        answers = [record.answer for record in store.run_records(store.runs()[-1])]
        sent = [exchange["sent"] for answer in answers if answer for exchange in answer.processed["tapped"]]
    return Measured(name, json.loads(done.stdout), sent, watch.seen, watch.alive())


class Watch:
    """Looks again and again at who carries a mark of ours in its environment."""

    def __init__(self) -> None:
        self.mark = {"TEST_OF_REAL_PROXIES": uuid.uuid4().hex}
        self.seen: dict[int, tuple[list[str], dict[str, str]]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.2):
            self.alive()

    def alive(self) -> set[int]:
        found = set()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                pairs = (entry / "environ").read_text(errors="replace").split("\0")
                words = (entry / "cmdline").read_text(errors="replace").split("\0")
            except OSError:
                continue
            env = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
            if self.mark.items() <= env.items():
                found.add(int(entry.name))
                self.seen[int(entry.name)] = (words, env)
        return found


@dataclass
class Witness:
    """What reached a plain recorder when the proxy got the same requests once more."""

    tokens: list[int] = field(default_factory=list)
    claims: list[float | None] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    """What came of a request in Anthropic's form."""
    token: str = ""
    seconds: float = 0.0


@pytest.fixture(scope="module")
def witness(measured: Measured) -> Witness:
    found = Witness()
    with pytest.MonkeyPatch.context() as patch, Recorder() as recorder:
        patch.setenv("CONTEXT_BENCH_VENDORS", str(HOME))
        vendor = recipe(measured.name)
        proxy = StartedProxy(vendor.command, port=free_port(), tap_url=recorder.url, env=vendor.env)
        found.token = proxy.token

        async def main() -> None:
            began = time.monotonic()
            async with proxy:
                found.seconds = time.monotonic() - began
                await asyncio.to_thread(_replay, proxy.url, measured.sent, recorder, found, vendor.headers)

        asyncio.run(main())
    return found


def _replay(url: str, bodies: list[str], recorder: Recorder, found: Witness, more: Mapping[str, str]) -> None:
    for body in bodies:
        before = len(recorder.bodies)
        headers = post(f"{url}/v1/chat/completions", body.encode(), more)
        found.tokens.append(sum(map(count, recorder.bodies[before:])))
        found.claims.append(read_claimed_tokens(headers))
    before = len(recorder.bodies)
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Is anybody there?"}]}
    post(f"{url}/v1/messages", json.dumps(asked).encode(), more)
    found.messages = recorder.bodies[before:]


def test_the_tap_counts_what_a_plain_recorder_sees(measured: Measured, witness: Witness) -> None:
    rows = measured.result["rows"]
    assert len(rows) == len(measured.sent) == len(DATASETS) * ROWS
    assert [row["error"] for row in rows] == [None] * len(rows)
    show(measured, witness)
    assert [row["upstream_tokens"] for row in rows] == witness.tokens
    assert [row["metadata"]["downstream_tokens"] for row in rows] == [count(json.loads(body)) for body in measured.sent]
    assert [row["metadata"]["claimed_tokens_saved"] for row in rows] == witness.claims


def test_the_proxy_was_at_work(measured: Measured) -> None:
    """Had its compression failed (no tokenizer, say), every number above would agree and mean nothing."""
    rows = [row for row in measured.result["rows"] if row["dataset"] == DATASETS[0]]
    sent = sum(row["metadata"]["downstream_tokens"] for row in rows)
    assert sum(row["upstream_tokens"] for row in rows) < 0.8 * sent
    assert all(row["metadata"]["proxy_overhead"] > 0 for row in rows)


def test_the_run_tells_which_proxy_it_was(measured: Measured) -> None:
    proxy = measured.result["config"]["reports"][measured.name]["proxy"]
    assert (proxy["name"], proxy["version"]) == (measured.name, _version(measured.name))
    assert measured.result["config"]["model"] == "gpt-3.5-turbo"


def test_a_short_request_before_does_not_change_what_becomes_of_the_next(measured: Measured, tmp_path: Path) -> None:
    """kompact 0.4.0 leaves the prose of all later requests alone after one short one, unless its header is sent."""
    arguments = ["--vendor", measured.name, "--tap-reply", "extract", "-n", str(ROWS), "--max-workers", "1"]
    arguments += ["--dataset", "needle:length=300", "--dataset", DATASETS[1]]
    done = shell(
        *arguments, "--output", "json", cwd=tmp_path, env=environment(CONTEXT_BENCH_VENDORS=str(HOME)), timeout=300.0
    )
    assert done.returncode == 0, done.stderr
    after, before = (
        [row["upstream_tokens"] for row in result["rows"] if row["dataset"] == DATASETS[1]]
        for result in (json.loads(done.stdout), measured.result)
    )
    assert after == before


def test_no_process_is_left_behind(measured: Measured, witness: Witness) -> None:
    assert measured.left == set()
    proxies = [words for words, _ in measured.seen.values() if words[1:2] and measured.name in words[1]]
    ports = {words[words.index("--port") + 1] for words in proxies if "--port" in words}
    assert len(ports) == 1
    listening = Path("/proc/net/tcp").read_text()
    assert f":{int(ports.pop()):04X} 00000000:0000 0A" not in listening
    marked = [entry for entry in Path("/proc").glob("[0-9]*") if witness.token in _environ(entry)]
    assert marked == []


def test_telemetry_is_off_in_the_process_itself(measured: Measured) -> None:
    of_proxy = [env for words, env in measured.seen.values() if any(f"/{measured.name}" in word for word in words)]
    assert of_proxy
    assert all(OFF[measured.name].items() <= env.items() for env in of_proxy)


def test_anthropics_form_reaches_the_same_upstream(witness: Witness) -> None:
    assert [body["path"] for body in witness.messages] == ["/v1/messages"]
    assert "Is anybody there?" in json.dumps(witness.messages)


def _environ(entry: Path) -> str:
    try:
        return (entry / "environ").read_text(errors="replace")
    except OSError:
        return ""


def show(measured: Measured, witness: Witness) -> None:
    """The figures, for whoever runs this with -s."""
    vendor = f"{measured.name} {_version(measured.name)}, up after {witness.seconds:.0f} s"
    columns = "dataset  rows  sent  upstream (tap)  (recorder)  saved  claimed  savings  untouched  overhead p50"
    lines = [vendor, columns]
    for dataset in DATASETS:
        chosen = [place for place, row in enumerate(measured.result["rows"]) if row["dataset"] == dataset]
        facts = [measured.result["rows"][place]["metadata"] for place in chosen]
        sent = sum(each["downstream_tokens"] for each in facts)
        upstream = sum(measured.result["rows"][place]["upstream_tokens"] for place in chosen)
        plain = sum(witness.tokens[place] for place in chosen)
        claimed = sum(each["claimed_tokens_saved"] for each in facts)
        untouched = sum(each["untouched"] for each in facts)
        overhead = statistics.median(each["proxy_overhead"] for each in facts) * 1000
        lines.append(
            f"{dataset}  {len(facts)}  {sent:,}  {upstream:,}  {plain:,}  {sent - upstream:,}  {claimed:,.0f}  "
            f"{1 - upstream / sent:.1%}  {untouched}  {overhead:.0f} ms"
        )
    print("\n" + "\n".join(lines))


def _version(name: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTEXT_BENCH_VENDORS", str(HOME))
        return recipe(name).version or "of unknown version"
