"""`replay` of 1,000 requests of 100 KB: through a policy, and through a proxy that passes on every byte.

Ten sessions of a hundred requests each, which grow from 50 to 150 KB. The time is the processor's, of the process that
replays alone, with its tap; the memory is the most that it held.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SESSIONS = 10
TURNS = 100
FIRST, GROWTH = 50_000, 900  # characters of the first prompt, and by which each turn adds to it
WORDS = (
    "the quick brown fox jumps over a lazy dog while our band plays on and every token counts because long contexts "
    "cost money retrieval compression evidence answer question model proxy upstream request reply number 1984 2,500"
)

_RELAY = """
import asyncio, sys
from urllib.parse import urlsplit
tap = urlsplit(sys.argv[2])

async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

async def serve(reader, writer):
    up_reader, up_writer = await asyncio.open_connection(tap.hostname, tap.port)
    await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer), return_exceptions=True)

async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(main())
"""

_REPLAY = """
import resource, sys
from context_bench.cli import main
code = main(["replay", *sys.argv[1:], "--no-store", "--quiet", "--output", "json", "--out", "replay.json"])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
print(code, used.ru_utime + used.ru_stime, peak)
"""


def write_sessions(folder: Path) -> int:
    """Write logs of chat completions; return the bytes of all requests."""
    written = 0
    for session in range(SESSIONS):
        draw = random.Random(session)
        messages = [{"role": "user", "content": _make_text(draw, FIRST)}]
        with (folder / f"{session}.jsonl").open("w", encoding="utf-8") as log:
            for turn in range(TURNS):
                path = f"src/part_{session}_{turn - 1}.py"
                call = {"id": f"call_{session}_{turn}", "type": "function"}
                call["function"] = {"name": "read", "arguments": json.dumps({"path": path})}
                said = {"role": "assistant", "content": None, "tool_calls": [call]}
                request = {"model": "gpt-4o", "messages": messages}
                reply = {"id": f"{session}-{turn}", "object": "chat.completion", "choices": [{"message": said}]}
                written += len(json.dumps(request))
                line = {"request": request, "response": reply, "timestamp": 1_767_000_000 + session * 9_000 + turn * 5}
                log.write(json.dumps(line) + "\n")
                told = f"See src/part_{session}_{turn}.py. {_make_text(draw, GROWTH)}"
                messages = [*messages, said, {"role": "tool", "tool_call_id": call["id"], "content": told}]
    return written


def _make_text(draw: random.Random, characters: int) -> str:
    return " ".join(draw.choices(WORDS.split(), k=characters // 5))[:characters]


def measure(folder: Path, *through: str) -> str:
    """Replay the sessions in a process of its own."""
    arguments = [sys.executable, "-c", _REPLAY, str(folder / "sessions"), *through]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=True)
    code, spent, peak = map(float, done.stdout.split())
    outcome = json.loads((folder / "replay.json").read_text(encoding="utf-8"))["systems"][0]
    if code or outcome["turns"] != SESSIONS * TURNS or outcome["errors"]:
        raise SystemExit(f"replay: {outcome['conclusion']}")
    each = spent / outcome["turns"] * 1000
    return f"{spent:.1f} s of processor time ({each:.1f} ms a request), at most {peak:.0f} MB"


def main() -> None:
    """Print both."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "sessions").mkdir()
        size = write_sessions(folder / "sessions")
        (folder / "relay.py").write_text(_RELAY, encoding="utf-8")
        requests = SESSIONS * TURNS
        print(f"replay of {requests:,} requests of {size / requests / 1000:.0f} KB on average", flush=True)
        print(f"  through a policy: {measure(folder, '--system', 'clear-tool-results:last=3')}", flush=True)
        command = f"{sys.executable} {folder / 'relay.py'} {{port}} {{tap}}"
        print(f"  through a proxy: {measure(folder, '--start', command)}")


if __name__ == "__main__":
    main()
