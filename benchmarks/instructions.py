"""Processor instructions for one example behind a proxy, counted by callgrind: a figure that repeats on a busy machine.

A run of 1,300 examples less one of 300, divided by 1,000: imports, start and end cancel out. `benchmarks/
instructions.json` holds the figures of the commit that set them last. `python -m benchmarks.instructions --check`
fails when one has risen by more than 3%; a commit that raises it on purpose writes the new one with `--write` and says
why. The count depends on the interpreter, so it is compared with the Python of the file alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.mock_server import REPLY

FIGURES = Path(__file__).with_name("instructions.json")
FEW, MANY = 300, 1_300
MAX_RISE = 0.03
WAYS = {"no store": False, "store": True}


class _Server(asyncio.Protocol):
    """Answers each request of a kept connection with the same reply; what is sent is not looked at."""

    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(REPLY)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self._received, self._length = transport, b"", None

    def data_received(self, data: bytes) -> None:
        self._received += data
        while True:
            head, found, body = self._received.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            size = int(length[1]) if length else 0
            if not found or len(body) < size:
                return
            self._received = body[size:]
            self._transport.write(self.head + REPLY)  # type: ignore[attr-defined]


async def serve() -> None:
    """Serve on a free port of loopback until the process is ended; prints the port."""
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def run(url: str, count: int, *, store: bool) -> None:
    """Run so many examples of 2 KB."""
    from benchmarks.throughput import examples, ours

    ours(url, examples(count), store=store)


def find_environment() -> dict[str, str]:
    """Return the environment of a run that compiles no module twice, so that its time is that of the run."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **kept,
        "PYTHONHASHSEED": "0",
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "context-bench-pyc"),
    }


def count_instructions(url: str, count: int, *, store: bool) -> int:
    """Count the instructions of a run in a process of its own."""
    command = [str(shutil.which("valgrind")), "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [sys.executable, "-m", "benchmarks.instructions", "--run", url, str(count), str(int(store))]
    with tempfile.TemporaryFile("w+") as said:
        subprocess.run(command, env=find_environment(), stderr=said, cwd=Path(__file__).parents[1], check=True)
        said.seek(0)
        (collected,) = re.findall(r"Collected : (\d+)", said.read())
    return int(collected)


@contextlib.contextmanager
def serving(core: int | None = None) -> Iterator[str]:
    """Serve in a process of its own, on that core if one is given; yields the URL."""
    command = [sys.executable, "-m", "benchmarks.instructions", "--serve"]
    folder = Path(__file__).parents[1]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
        try:
            if core is not None:
                os.sched_setaffinity(server.pid, {core})
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


def measure() -> dict[str, float]:
    """Return the thousands of instructions an example takes, without a store and with one."""
    found = {}
    with serving() as url:
        warm_up = [sys.executable, "-m", "benchmarks.instructions", "--run", url, "20", "1"]
        subprocess.run(warm_up, env=find_environment(), cwd=Path(__file__).parents[1], check=True)
        for name, store in WAYS.items():
            few, many = (count_instructions(url, count, store=store) for count in (FEW, MANY))
            found[name] = round((many - few) / (MANY - FEW) / 1_000, 1)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; `--check` compares them with those of the repository, `--write` puts them there."""
    arguments = arguments or []
    if arguments[:1] == ["--serve"]:
        asyncio.run(serve())
    elif arguments[:1] == ["--run"]:
        run(arguments[1], int(arguments[2]), store=bool(int(arguments[3])))
    else:
        return _report(arguments)
    return 0


def _report(arguments: list[str]) -> int:
    version = ".".join(map(str, sys.version_info[:2]))
    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if shutil.which("valgrind") is None:
        print("instructions: skipped, valgrind is not installed")
        return 0
    if "--check" in arguments and known.get("python") != version:
        print(f"instructions: skipped, the figures are those of Python {known.get('python')}, and this is {version}")
        return 0
    found = measure()
    failed = False
    for name, thousands in found.items():
        before = known.get(name)
        change = f", {thousands / before - 1:+.1%} against {before:g} in the repository" if before else ""
        print(f"instructions, {name}: {thousands:g} thousand an example{change}")
        failed |= "--check" in arguments and before is not None and thousands > before * (1 + MAX_RISE)
    if "--write" in arguments:
        FIGURES.write_text(json.dumps({"python": version, **found}, indent=1) + "\n")
    if failed:
        print(f"a request costs more than {MAX_RISE:.0%} more: find out why, or raise the figure with --write")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
