"""How one example of `--proxy URL --dataset needle` travels: the modules of ours that it touches, and the switches.

A run is traced over all threads, in its steady state, with a store and without one. A switch is a call from one module
of ours into another, also through a library in between; that a coroutine or a generator goes on where it waited is no
call. The calls of all traced examples are divided by their number: what is done for several at once counts in part.
Making the examples is no part of it.

    python tools/trace_example.py [--examples 256] [--list]
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import tempfile
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import context_bench
from context_bench import OpenAIProxy, evaluate
from context_bench.registry import registry

ROOT = str(Path(context_bench.__file__).parent)
FIRST = 5
"""Examples before the trace begins: what is done once for a run is no part of it."""

_CAN_GO_ON = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Trace:
    """Records the module of every function of ours that is called, thread by thread, while it is on."""

    def __init__(self) -> None:
        self.on = False
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
        if not self.on:
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


def trace(count: int, *, store: bool = True) -> Trace:
    """Run so many examples one at a time, with a store or without, and trace all but the first and the last few."""
    seen, read = Trace(), 0

    data = list(registry.get("dataset", "needle")(n=count + 2 * FIRST, length=500))

    def examples() -> Any:
        nonlocal read
        for example in data:
            seen.on = FIRST <= read < FIRST + count
            read += 1
            yield example

    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        with tempfile.TemporaryDirectory() as folder:
            proxy = OpenAIProxy(f"http://127.0.0.1:{server.server_port}", name="proxy")
            evaluate(proxy, examples(), progress=False, cache_dir=folder if store else None)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        server.shutdown()
        server.server_close()
    return seen


def main() -> None:
    """Print modules and switches for one example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=256, help="how many are traced (256)")
    parser.add_argument("--list", action="store_true", help="list the modules and the switches between them")
    options = parser.parse_args()
    count = options.examples
    for store in (False, True):
        seen = trace(count, store=store)
        steady = {name: number / count for name, number in seen.calls.items() if number >= count / 2}
        switches = sum(seen.switches.values()) / count
        print(
            f"one example {'with' if store else 'without'} a store: {len(steady)} modules, {switches:.0f} switches "
            f"between them; besides, coroutines and generators go on {seen.resumed / count:.0f} times"
        )
        if options.list:
            for module, number in sorted(steady.items()):
                print(f"{number:8.2f} calls     {module}")
            for (caller, module), number in seen.switches.most_common():
                print(f"{number / count:8.2f} switches  {caller} -> {module}")


if __name__ == "__main__":
    main()
