"""A local model behind the tap, with no key and no network.

Requests are forwarded unchanged to a server process, which speaks all APIs. If a request crashes the process, only that
request fails: the next request gets a new process. Other programs cannot use the server, since it requires a key that
only this object knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from context_bench.errors import MissingExtra, UsageError
from context_bench.local.forced_calls import answer_forced_call, find_forced_call
from context_bench.local.serve import REPLY_TOKENS
from context_bench.local.weights import Say, Weights, choose
from context_bench.processes.child import LastLines, describe_exit, kill_group, start_child, wait_for_end
from context_bench.tap.address import url_of
from context_bench.tap.answering import Incoming, Outgoing, build_error, build_json
from context_bench.tap.forward import Forward
from context_bench.tap.services import EMBEDDINGS_PATH, MODELS_PATH, answer_embeddings, describe_model
from context_bench.wire.openai_responses import OPENAI_RESPONSES

CONTEXT = 8192
MIN_CONTEXT = 256
MAX_THREADS = 8
STOP_TIMEOUT = 5.0
MAX_LOG_LINES = 50


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a model server, passed through a pipe because other users can read a command line."""

    model: str  # the GGUF file
    name: str  # its name in replies
    context: int  # tokens of prompt and reply together
    threads: int  # cores that it uses
    host: str = "127.0.0.1"  # its listening address
    port: int = 0  # 0 for any free one
    key: str = ""  # the key that clients must send; empty for none

    @classmethod
    def of(cls, weights: Weights, say: Say, *, context: int | None, threads: int | None, **more: Any) -> Settings:
        """Make the settings for a model; fill in defaults, and fetch the weights if needed."""
        check_installed()
        context, threads = context or CONTEXT, threads or default_threads()
        if context < MIN_CONTEXT:
            raise UsageError(
                f"a context of {context} tokens is too small for a conversation: use at least {MIN_CONTEXT}"
            )
        if weights.most_context and context > weights.most_context:
            raise UsageError(
                f"context must be at most {weights.most_context} tokens for {weights.name} (got {context})"
            )
        if threads > _cores():
            raise UsageError(f"threads must be at most {_cores()}, the number of usable cores (got {threads})")
        return cls(str(weights.ready(say)), weights.name, context, threads, **more)


class ModelProcess:
    """One model server. `url` is its address after the start; a restart keeps the address."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.url = ""
        self._child: subprocess.Popen[bytes] | None = None
        self._said: LastLines | None = None

    def start(self) -> None:
        """Start or restart the server, and return once it answers; on failure, stop everything and raise UsageError."""
        check_installed()
        self.stop()
        _check_port(self.settings.host, self.settings.port)
        report: dict[str, str] = {}
        try:
            report = self._spawn()
        finally:
            if "url" not in report:
                self.stop()
        if "url" not in report:
            raise UsageError(f"cannot serve {Path(self.settings.model).name}: {self._reason(report)}")
        port = urlsplit(report["url"]).port or 0
        self.settings = replace(self.settings, port=port)
        self.url = url_of(self.settings.host, port)

    def _spawn(self) -> dict[str, str]:
        """Start the process and return its report when it is ready or has failed; empty if it ended without one."""
        # Started by path, so that the current folder cannot shadow its imports.
        child = start_child([sys.executable, str(Path(__file__).with_name("serve.py"))], stderr=subprocess.PIPE)
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._child, self._said = child, LastLines(child.stderr, MAX_LOG_LINES)
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(json.dumps(asdict(self.settings)).encode() + b"\n")
            child.stdin.flush()
        report: dict[str, str] = json.loads(child.stdout.readline() or b"{}")
        return report

    @property
    def pid(self) -> int | None:
        """The number of the process; None before the start."""
        return self._child.pid if self._child is not None else None

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def ending(self) -> str:
        return describe_exit(self._child.poll() if self._child is not None else None)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait at most `seconds` for the process to end; return whether it has ended."""
        assert self._child is not None
        return wait_for_end(self._child, seconds) is not None

    def stop(self) -> None:
        """End the process, and return when it is gone."""
        if self._child is None:
            return
        kill_group(self._child)  # it has no state to lose
        if self._said is not None:
            self._said.wait(STOP_TIMEOUT)
        for stream in (self._child.stdin, self._child.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()

    def _reason(self, report: dict[str, str]) -> str:
        """Explain why the model's process did not start: its message about the file, its report, or how it exited."""
        lines = list(self._said.lines) if self._said is not None else []
        for line in lines:
            if "error loading model: " in line:
                return line.partition("error loading model: ")[2]
        last = lines[-1] if lines else ""
        return f"{report.get('error') or f'its process was {self.ending}'} {last}".strip()


def check_installed() -> None:
    """Raise MissingExtra if the extra for local models is missing, without loading the native code."""
    if find_spec("xllamacpp") is None:
        raise MissingExtra("a local model", "local")


def default_threads() -> int:
    """Return half the number of cores that this process may use, at most eight.

    The other cores are for the proxy and the run. On a busy core, threads that wait for each other make a model many
    times slower (on two cores, one of them busy: 58 tokens a second with one thread, 13 with two).
    """
    return max(1, min(_cores() // 2, MAX_THREADS))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_port(host: str, port: int) -> None:
    """Check that the port is free, because the native server would fail without naming the reason."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error


REPLY_TIMEOUT = 3600.0  # seconds for a reply, since requests queue for one model
EXIT_TIMEOUT = 2.0  # seconds for a process to end after its connections

_KEYS = ("authorization", "x-api-key")


def _tell(message: str) -> None:
    print(f"context-bench: {message}", file=sys.stderr, flush=True)


class LocalModel:
    """Answers with a local model from a GGUF file.

    `spec` is its path, or `local` for the small model, which is fetched when needed. `context` is the number of tokens
    of prompt and reply together; `say` receives progress messages.
    """

    def __init__(
        self, spec: str = "local", *, threads: int | None = None, context: int = CONTEXT, say: Say = _tell
    ) -> None:
        self.spec, self.threads, self.context = spec, threads, context
        self.weights = choose(spec)
        limits = f"context={context} reply={REPLY_TOKENS} calls=1"
        self.fingerprint = f"local {self.weights.sha256} {limits} xllamacpp={_engine()}"
        self.label = self.weights.label  # the caution that goes with its scores
        self._say = say
        self._key = secrets.token_urlsafe(32)
        self._process: ModelProcess | None = None
        self._forward: Forward | None = None
        self._starting = asyncio.Lock()

    async def open(self) -> None:
        """Fetch the weights if needed, and start the model."""
        more: dict[str, Any] = {"context": self.context, "threads": self.threads, "key": self._key}
        self._process = ModelProcess(await asyncio.to_thread(Settings.of, self.weights, self._say, **more))
        try:
            await asyncio.to_thread(self._process.start)
            self._forward = Forward(self._process.url, timeout=REPLY_TIMEOUT)
            await self._forward.open()
        except BaseException:
            await self.close()
            raise

    async def answer(self, request: Incoming) -> Outgoing:
        """Ask the model; reply with status 502 when the request ended the model's process."""
        if request.method == "POST" and request.path == EMBEDDINGS_PATH:  # the small model has no embeddings
            return await asyncio.to_thread(answer_embeddings, request)
        if request.method == "GET" and request.path.startswith(f"{MODELS_PATH}/"):
            return build_json(describe_model(self.weights.name))
        if refusal := _find_refusal(request):
            return build_error(400, refusal, request.form)
        if (demand := find_forced_call(request)) is not None:
            return await answer_forced_call(request, demand, self._ask)
        return await self._ask(request)

    async def _ask(self, request: Incoming) -> Outgoing:
        process, forward = self._process, self._forward
        assert process is not None, "not opened yet"
        assert forward is not None
        try:
            async with self._starting:
                if not process.alive:
                    self._say(f"the local model's process was {process.ending}: starting it again")
                    await asyncio.to_thread(process.start)
        except UsageError as error:
            return build_error(502, str(error), request.form)
        request = replace(request, headers=self._headers(request.headers))
        outgoing = await forward.answer(request)
        if outgoing.status == 502:
            if await asyncio.to_thread(process.wait, EXIT_TIMEOUT):
                return build_error(
                    502, f"the local model's process was {process.ending} during a request", request.form
                )
            outgoing = await forward.answer(
                request
            )  # on a busy machine the server may close a connection while it is used
        if request.form is OPENAI_RESPONSES and not isinstance(outgoing.body, bytes):
            outgoing.body = _number_events(outgoing.body)
        return outgoing

    async def close(self) -> None:
        if self._forward is not None:
            await self._forward.close()
        if self._process is not None:
            await asyncio.to_thread(self._process.stop)

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Replace the client's key in the headers by ours, so that the client's key is not sent."""
        kept = {name: value for name, value in headers.items() if name.lower() not in _KEYS}
        return {**kept, "authorization": f"Bearer {self._key}"}


def _find_refusal(request: Incoming) -> str | None:
    """Return why a request must not reach the native server, which would fail, or answer an invalid request; else
    None."""
    if request.method != "POST" or request.form is None:
        return None
    prompt = request.prompt()
    if prompt is None:
        return "the body is not a JSON object with messages or an input"
    contents = [message.get("content") for message in prompt.messages if isinstance(message, Mapping)]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    kinds = {str(block.get("type")) for block in blocks if isinstance(block, Mapping)}
    shown = kinds & {"image", "image_url", "input_image", "input_audio", "input_file", "file", "document"}
    return f"the local model reads only text: leave out {', '.join(sorted(shown))}" if shown else None


async def _number_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Add sequence numbers to the events of a streamed response, because clients need them and llama.cpp omits them."""
    places: dict[str, int] = {}
    number, rest = 0, b""
    try:
        async for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    line = b"data: " + orjson.dumps(_number(orjson.loads(line[6:]), number, places))
                    number += 1
                yield line + b"\n"
        yield rest
    finally:
        if hasattr(chunks, "aclose"):
            await chunks.aclose()


def _number(event: dict[str, Any], number: int, places: dict[str, int]) -> dict[str, Any]:
    item = event.get("item_id") or (event.get("item") or {}).get("id")
    at = {"output_index": places.setdefault(item, len(places)), "content_index": 0} if item else {}
    return {"sequence_number": number, **at, **event}


def _engine() -> str:
    """Return the version of the native code, because another version may reply differently."""
    check_installed()
    try:
        return version("xllamacpp")
    except PackageNotFoundError:  # built from source
        return "unknown"
