"""The limit of open files, in processes of their own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command import shell
from numbered import right, write
from servers import Reply, Request, Server, reply
from timing import depends_on_time

pytest.importorskip("resource", reason="this system has no limit of open files")

CODE = """
import resource, warnings
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from context_bench.http.open_files import warn_of_few_files
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    warn_of_few_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], *(warning.message for warning in told), sep="|")
"""


def outcome(soft: str, hard: str) -> list[str]:
    code = CODE.format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip().split("|")


def test_it_is_raised_to_what_may_be_had() -> None:
    assert outcome("256", "min(most, 5000) if most > 0 else 5000") == ["5000"]


def slow(request: Request) -> Reply:
    given = right(request)
    given.delay = 0.15
    return given


def test_too_low_a_limit_is_told() -> None:
    raised, warning = outcome("256", "1024")
    assert raised == "1024"
    assert warning.startswith("only 1024 files may be open at once")


def limit_files(number: int) -> Callable[[], None]:
    import resource

    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


@pytest.mark.long
@depends_on_time("latency is what the clock on the wall says")
def test_few_files_and_many_workers_cost_no_row(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(1500))
    with Server(slow) as server:
        arguments = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--max-workers", "2000")
        done = shell(*arguments, "--output", "json", cwd=tmp_path, preexec_fn=limit_files(256))
        assert server.most_in_flight < 256
    rows = json.loads(done.stdout)["rows"]
    assert [row["error"] for row in rows] == [None] * 1500
    assert done.returncode == 0
    told = [line for line in done.stderr.splitlines() if "256 files" in line]
    assert len(told) == 1, done.stderr
    assert "ulimit -n" in told[0]
    # Waiting for a free connection of ours is not the server's latency.
    assert statistics.median(row["latency"] for row in rows) < 1.0
    assert max(row["metadata"]["waited"] for row in rows) > 1.0


SHORTAGE = """
import asyncio, resource, socket, sys
from context_bench.errors import LocalShortage
from context_bench.http.endpoint import Endpoint
from context_bench.http.gate import RetryPolicy

async def main():
    endpoint = Endpoint(sys.argv[1], policy=RetryPolicy(max_retries=0, base_delay=0.05, deadline=1.0))
    await endpoint.post("/", {})  # the loop and libcurl have all that they need; no connection is kept
    await asyncio.sleep(0.2)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    try:
        while True:
            taken.append(socket.socket())
    except OSError:
        pass
    failed = await asyncio.gather(*(endpoint.post("/", {}) for _ in range(60)), return_exceptions=True)
    assert all(isinstance(error, LocalShortage) for error in failed), failed
    print(failed[0])
    for each in taken:
        each.close()
    print((await endpoint.post("/", {})).document)  # nobody was found to be dead

asyncio.run(main())
"""


def test_our_own_shortage_is_told_as_ours_and_kills_no_server() -> None:
    with Server(reply(200, {"a": 1}, headers={"Connection": "close"})) as server:
        done = subprocess.run([sys.executable, "-c", SHORTAGE, server.url], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said, document = done.stdout.splitlines()
    assert said.startswith(f"this machine has no free connection for {server.url}/ (too many open files)")
    assert document == "{'a': 1}"


PORTS = """
import asyncio, subprocess, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
from context_bench.http.endpoint import Endpoint
from context_bench.http.gate import RetryPolicy
from servers import Server, reply

Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("50000 50004")

async def main(url):
    endpoint = Endpoint(url, policy=RetryPolicy(max_retries=0, base_delay=0.05, deadline=20.0))
    done = await asyncio.gather(*(endpoint.post("/", {"n": n}) for n in range(40)))
    print(len(done), max(each.attempts for each in done) > 1)

with Server(reply(200, {}, delay=0.05), port=9000) as server:
    asyncio.run(main(server.url))
"""


def test_too_few_ports_are_waited_for() -> None:
    """In a network namespace with five ports to connect from."""
    tests = str(Path(__file__).parent.parent)
    run = f'ip link set lo up && exec "{sys.executable}" -c "$0" {tests}'
    command = ["unshare", "--user", "--net", "--map-root-user", "sh", "-c", run, PORTS]
    try:
        allowed = subprocess.run([*command[:4], "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare on this machine")
    if allowed.returncode:
        pytest.skip("no network namespace for this user")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["40", "True"], done.stderr
