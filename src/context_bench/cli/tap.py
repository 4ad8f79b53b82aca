"""`context-bench tap`: serve a recording upstream for a proxy, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, add_store
from context_bench.cli.messages import say
from context_bench.cli.recorded_command import mask_arguments
from context_bench.config import STORE
from context_bench.text import count_things

if TYPE_CHECKING:
    from context_bench.store import RunInfo, Store
    from context_bench.tap.answering import Answerer, Incoming
    from context_bench.tap.server import Tap
    from context_bench.traffic.calls import Call

MAX_PATHS = 20  # paths of uncounted calls that are listed separately

_EXAMPLE = """\
example:
  context-bench tap --forward https://api.openai.com --listen :9100
"""


def main(arguments: Sequence[str]) -> int:
    options = _build_parser().parse_args(arguments[1:])

    from context_bench.cli.build_systems import choose_answerer
    from context_bench.cli.messages import show_warnings
    from context_bench.http.loop import open_event_loop
    from context_bench.store import Store
    from context_bench.tap.address import parse_listen
    from context_bench.tap.server import Tap
    from context_bench.traits import find_secrets
    from context_bench.utils.tokens import set_tokenizer

    if options.tokenizer:
        set_tokenizer(options.tokenizer)
    host, port = parse_listen(options.listen)
    answerer = choose_answerer(options.forward, options.model, options.reply)
    with open_event_loop() as loop, show_warnings():
        store = None if options.no_store else Store(options.cache_dir or STORE)
        with closing(Log(store, shown=options.verbose or sys.stderr.isatty())) as log:
            secrets = find_secrets(answerer)
            tap = Tap(answerer, host=host, port=port, on_end=log.take, secrets=secrets, hosts=options.tap_host)
            loop.run_until_complete(_serve(tap, answerer, log, arguments))
    return 0


def _build_parser() -> Parser:
    parser = Parser(prog="context-bench tap", description=f"{_EXAMPLE}\n{COMMANDS['tap']}")
    parser.add_argument(
        "--listen",
        default=":9100",
        metavar="[HOST]:PORT",
        help="where to listen (default: %(default)s, for this machine only)",
    )
    add_flags(parser, "tap_host")
    modes = parser.add_mutually_exclusive_group(required=True)
    modes.add_argument("--forward", metavar="URL", help="forward requests to this server, including their key")
    modes.add_argument(
        "--model", metavar="local|FILE", help="answer with a small model on this machine, or a GGUF file"
    )
    modes.add_argument("--reply", metavar="SCRIPT", help="answer from a script: extract, echo, text:ANSWER or a file")
    keeping = parser.add_mutually_exclusive_group()
    add_store(keeping)
    add_flags(keeping, "no_store")
    add_flags(parser, "tokenizer")
    add_flags(parser, "verbose", help="print a line for each request, also without a terminal")
    return parser


async def _serve(tap: Tap, answerer: Answerer, log: Log, arguments: Sequence[str]) -> None:
    from context_bench.tap.address import is_open_to_others
    from context_bench.tap.answering import describe_answerer

    stopped = watch_signals()
    if is_open_to_others(tap.host):
        say(f"{tap.host} is not a loopback address: anyone who can reach it can use your key")
    await tap.start()
    try:
        log.begin(arguments, describe_answerer(answerer))
        say(f"the tap listens on {tap.url} ({describe_answerer(answerer)})")
        say(f"set {tap.url} (or {tap.url}/v1) as the upstream of a proxy; Ctrl-C stops the tap")
        while not stopped.is_set():  # on Windows a signal is handled only between waits
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stopped.wait(), 1.0)
            log.watch_store()
    finally:
        await tap.stop()


def watch_signals() -> asyncio.Event:
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stopped.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopped.set))
    return stopped


class Log:
    def __init__(self, store: Store | None, *, shown: bool) -> None:
        from context_bench.tap.services import Conversations

        self._conversations = Conversations()
        self._uncounted: Counter[str] = Counter()
        self._store, self._shown = store, shown
        self._run: RunInfo | None = None
        self._since = time.perf_counter()
        self._requests = self._tokens = 0
        self._failed = self._began = False

    def begin(self, command: Sequence[str], answers: str) -> None:
        from context_bench._version import __version__
        from context_bench.utils.tokens import current_tokenizer

        self._since, self._began = time.perf_counter(), True
        config: dict[str, Any] = {
            "kind": "tap",
            "command": ["context-bench", *mask_arguments(command)],
            "version": __version__,
            "tokenizer": current_tokenizer(),
            "answers": answers,
            # facts of every run
            "systems": [],
            "datasets": {},
            "metrics": [],
            "score_field": "score",
        }
        self._run = self._store.start_run(config) if self._store else None

    def take(self, call: Call, request: Incoming) -> Awaitable[None] | None:
        """Record a request after its reply or disconnect; for a long request, return an awaitable that records it."""
        from context_bench.utils.tokens import LONG_TEXT

        number = self._requests
        self._requests += 1
        if len(request.body) + len(call.reply) >= LONG_TEXT or (self._store and self._store.is_behind):
            return self._take_beside(number, call, request)
        self._note(call, *self._record(number, call, request))
        return None

    async def _take_beside(self, number: int, call: Call, request: Incoming) -> None:
        """Record a request in a thread when the store has room, while other requests are answered."""
        from context_bench.http.loop import work_beside

        if self._store:
            await self._store.catch_up()
        self._note(call, *await work_beside(self._record, number, call, request))

    def _record(self, number: int, call: Call, request: Incoming) -> tuple[int | None, int]:
        tokens, prompt = self._count(call, request), request.prompt()
        if self._store and self._run and not self._store.failure:
            self._store.put_request(self._run, number, {**call.as_dict(self._since), "tokens": tokens})
        return tokens, len(prompt.tools) if prompt else 0

    def _count(self, call: Call, request: Incoming) -> int | None:
        """Count the tokens that a model read; None if no model was asked, or if part of its input did not pass here."""
        from context_bench.wire.forms import read_recorded_reply

        expanded = self._conversations.expand(request) if call.asks_model else None
        if expanded is None or request.prompt() is None:
            return None
        self._conversations.store(expanded, read_recorded_reply(call.reply))
        return request.count_tokens()

    def _note(self, call: Call, tokens: int | None, tools: int) -> None:
        self._tokens += tokens or 0
        if tokens is None:
            path = call.path if call.path in self._uncounted or len(self._uncounted) < MAX_PATHS else "other paths"
            self._uncounted[path] += 1
        self.watch_store()
        if self._shown:
            from context_bench.errors import printable

            took = "cut off" if call.cut or call.ended is None else f"{call.ended - call.started:.2f} s"
            counted = "not counted" if tokens is None else f"{tokens:,} tokens"
            told = f"{call.path}: {counted}, {tools} tools, {call.status or 'no reply'}, {took}"
            print(printable(f"{time.strftime('%H:%M:%S')} {told}"), file=sys.stderr, flush=True)

    def watch_store(self) -> None:
        """Warn as soon as recording fails; requests are still answered."""
        failure = self._store.failure if self._store else None
        if failure and not self._failed:
            self._failed = True
            say(f"requests are no longer recorded: {failure}")

    def close(self) -> None:
        """Close the run and the store, then print how many requests came and how many are recorded."""
        from context_bench.errors import StoreError
        from context_bench.results import EvalResult

        failure, recorded = None, ""
        if self._store:
            try:
                if self._run:
                    self._store.end_run(self._run, "done", EvalResult([], {}, {}, self._run.config))
                self._store.close()
                recorded = f", recorded as run {self._run.id}" if self._run else ""
            except StoreError as error:
                failure, recorded = error, self._count_kept(self._store.directory)
        if self._began:
            say(f"{count_things(self._requests, 'request')}, {self._tokens:,} tokens{recorded}")
        for path, count in self._uncounted.items():
            say(f"{count_things(count, 'call')} to {path} {'was' if count == 1 else 'were'} not counted")
        if failure:
            raise failure

    def _count_kept(self, directory: Path) -> str:
        from context_bench.store import Store

        if self._run is None:
            return ""
        with Store(directory, readonly=True, create=False) as store:
            kept = sum(1 for _ in store.run_requests(self._run))
        return f", only {kept:,} of the requests recorded as run {self._run.id}"
