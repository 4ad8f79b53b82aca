"""How one example of `context-bench --proxy` travels: the modules of ours that it passes, and the calls between them.

The command itself is run in this process, with one example and one worker:

    context-bench --proxy URL --dataset needle:n=1 --max-workers 1 --cache-dir DIR

All threads are traced from the moment at which the run reads the example to that at which its row is handed to SQLite.
A switch is a call from one module of ours into another, also through a library in between; a coroutine or a generator
that goes on where it waited is no call. Making the example and the end of the run are no part of it.

    python tools/trace_example.py [--list]
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import context_bench
from context_bench.cli import main as run_command
from context_bench.core import run_settings
from context_bench.core.run import Run
from context_bench.store.writer import WriteBatch

ROOT = str(Path(context_bench.__file__).parent)

_CAN_GO_ON = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Trace:
    """Records the module of every function of ours that is called, thread by thread, while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.only_thread: str | None = None
        self._names: dict[CodeType, str | None] = {}
        self._starts: dict[CodeType, int] = {}
        self.calls: Counter[str] = Counter()
        self.switches: Counter[tuple[str, str]] = Counter()
        self.resumed = 0

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Note that a function is called."""
        if event != "call":
            return
        module = self._module(frame)
        if module is None:
            return
        goes_on = self._goes_on(frame)
        if not self.on or (self.only_thread and threading.current_thread().name != self.only_thread):
            return
        last = self._find_caller(frame)
        if goes_on:
            self.resumed += last is not None and last != module
            return
        self.calls[module] += 1
        if last is not None and last != module:
            self.switches[last, module] += 1

    def _goes_on(self, frame: FrameType) -> bool:
        """Whether a coroutine or generator goes on where it waited: it is then further on than where it begins."""
        code = frame.f_code
        if not code.co_flags & _CAN_GO_ON:
            return False
        return frame.f_lasti > self._starts.setdefault(code, frame.f_lasti)

    def _find_caller(self, frame: FrameType) -> str | None:
        caller = frame.f_back
        while caller is not None and self._module(caller) is None:
            caller = caller.f_back
        return None if caller is None else self._module(caller)

    def _module(self, frame: FrameType) -> str | None:
        code = frame.f_code
        if code not in self._names:
            path = code.co_filename
            ours = path.startswith(ROOT)
            self._names[code] = path[len(ROOT) + 1 : -3].replace("/", ".") if ours else None
        return self._names[code]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer with a chat completion."""
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "The answer is 42."}
        usage = {"prompt_tokens": 500, "completion_tokens": 8, "total_tokens": 508}
        body = json.dumps({"choices": [{"index": 0, "message": message}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def tracing(seen: Trace) -> Iterator[None]:
    """Trace from the reading of the example until its row is written; the end of the run is no part of it."""
    read_items, take, write = run_settings.read_items, Run._take, WriteBatch.write

    def read(dataset: Any, *arguments: Any) -> Iterator[Any]:
        def examples() -> Iterator[Any]:
            for example in dataset:
                seen.on = True
                yield example

        return read_items(examples(), *arguments)

    def take_rows(*arguments: Any) -> None:
        take(*arguments)
        seen.only_thread = "context-bench-store"

    def write_rows(*arguments: Any) -> int:
        size = write(*arguments)
        seen.on = False
        return size

    run_settings.read_items, Run._take = read, take_rows  # type: ignore[assignment, method-assign]
    WriteBatch.write = write_rows  # type: ignore[assignment, method-assign]
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        run_settings.read_items, Run._take, WriteBatch.write = read_items, take, write  # type: ignore[method-assign]


def trace() -> Trace:
    """Run the command on one example, and trace it."""
    seen = Trace()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as folder, tracing(seen), contextlib.redirect_stdout(io.StringIO()):
            url = f"http://127.0.0.1:{server.server_port}"
            command = ["--proxy", url, "--dataset", "needle:n=1", "--max-workers", "1", "--cache-dir", folder]
            code = run_command([*command, "--quiet"])
    finally:
        server.shutdown()
        server.server_close()
    if code:
        raise SystemExit(f"the command failed with exit code {code}")
    return seen


def main() -> None:
    """Print modules and switches for one example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="list the modules and the switches between them")
    options = parser.parse_args()
    seen = trace()
    print(
        f"one example: {len(seen.calls)} modules, {sum(seen.switches.values())} switches between them; "
        f"besides, coroutines and generators go on {seen.resumed} times"
    )
    if options.list:
        for module, number in sorted(seen.calls.items()):
            print(f"{number:4d} calls     {module}")
        for (caller, module), number in seen.switches.most_common():
            print(f"{number:4d} switches  {caller} -> {module}")


if __name__ == "__main__":
    main()
