"""Systems that are programs: `claude` in print mode, and any command that exchanges lines of JSON."""

from __future__ import annotations

import queue
import shlex
import shutil
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from context_bench.errors import BadOutput, SystemFailure, TimedOut, UsageError
from context_bench.processes.child import kill_group, start_child, wait_for_end
from context_bench.systems.adapt import check_settings, settings_fingerprint
from context_bench.systems.prompts import Echo, task_text
from context_bench.text import dump_json
from context_bench.traits import ReferenceTraits, SystemTraits
from context_bench.types import Example
from context_bench.wire.anthropic_messages import read_anthropic_usage
from context_bench.wire.prompts import read_text


class ClaudeCLI:
    """Runs `claude -p` once for each example. A time-out, or an error that the program reports, is an error and not an
    answer.

    Args:
        model: The model, passed on if given.
        timeout: Seconds for one example; then the program and its child processes are killed.
        command: The program.
        name: "claude-cli" by default.
        max_turns: The largest number of agent steps; exceeding it is an error.
        allowed_tools: Tools that need no permission: "Bash,Read", or a list.
        system_prompt: Replaces the program's own.
        build_prompt: A function from an example to the prompt; by default, context and question.
    """

    sends_elsewhere = True
    reads_gold = False

    def __init__(
        self,
        model: str | None = None,
        timeout: float = 300.0,
        command: str = "claude",
        name: str | None = None,
        *,
        max_turns: int | None = None,
        allowed_tools: str | Sequence[str] | None = None,
        system_prompt: str | None = None,
        build_prompt: Callable[[Example], str] | None = None,
    ) -> None:
        check_settings(may_be_zero=False, timeout=timeout, max_turns=max_turns)
        if shutil.which(command) is None:
            raise UsageError(f"there is no program {command!r} to run: install Claude Code, or set command=")
        self.model, self.timeout, self.command = model, timeout, command
        self.name = name or "claude-cli"
        tools = allowed_tools if isinstance(allowed_tools, str) else ",".join(allowed_tools or ())
        flags = {"--max-turns": max_turns, "--allowedTools": tools or None, "--system-prompt": system_prompt}
        self._flags = {flag: str(value) for flag, value in flags.items() if value is not None}
        self._build_prompt = build_prompt
        self._running: set[subprocess.Popen[bytes]] = set()

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(asks_model=True)  # by default, the program chooses the model

    @property
    def fingerprint(self) -> str | None:
        """Program, model and flags."""
        return settings_fingerprint(
            "claude-cli/1", self._build_prompt, command=self.command, model=self.model, **self._flags
        )

    def process(self, example: Example) -> Example:
        """Ask once, and return the example with the answer."""
        arguments = [self.command, "-p", "--output-format", "json"]
        if self.model:
            arguments += ["--model", self.model]
        for flag, value in self._flags.items():
            arguments += [flag, value]
        prompt = (self._build_prompt or _build_default_prompt)(example)
        with start_child(arguments, stderr=subprocess.PIPE) as process:
            self._running.add(process)
            try:
                output, errors = process.communicate(prompt.encode("utf-8", "replace"), self.timeout)
            except subprocess.TimeoutExpired:
                raise TimedOut(f"{self.command} gave no answer within {self.timeout:g} s") from None
            finally:
                kill_group(process)
                self._running.discard(process)
        return Echo(example, _read_result(self.command, process.returncode, output, errors))

    def finish(self) -> None:
        for process in list(self._running):
            kill_group(process)


def _build_default_prompt(example: Example) -> str:
    """Build the prompt: a conversation turn by turn, or the context and the task."""
    if example.get("turns"):
        return "\n\n".join(f"{turn.get('role')}: {read_text(turn.get('content'))}" for turn in example["turns"])
    return "\n\n".join(part for part in (example.get("context", ""), task_text(example)) if part)


def _read_result(command: str, code: int, output: bytes, errors: bytes) -> Example:
    try:
        document: Any = orjson.loads(output)
    except orjson.JSONDecodeError:
        document = None
    report: Mapping[str, Any] = document if isinstance(document, dict) else {}
    subtype = str(report.get("subtype", ""))
    if code != 0 or report.get("is_error") or subtype.startswith("error"):
        said = report.get("errors") or report.get("result") or subtype or errors.decode("utf-8", "replace")
        text = "; ".join(map(str, said)) if isinstance(said, list) else str(said)
        shown = " ".join(text.split())[:300] or "it said nothing"
        raise SystemFailure(f"{command} failed (exit code {code}): {shown}")
    if not isinstance(report.get("result"), str):
        raise BadOutput(f"{command} printed something that is not a result: {output[:100]!r}")
    return {"response": report["result"], "metadata": read_anthropic_usage(report.get("usage"))}


MAX_LINE = 64 * 1024 * 1024
_CHUNK = 64 * 1024
_EXIT_TIMEOUT = 2.0  # seconds from the end of a program's output to its exit


class Command:
    """Keeps a program running and exchanges lines with it; restarts the program if it exits or hangs.

    Args:
        command: The program and its arguments, as one line or as a list. Each example is one line of JSON on
            its stdin; the result (`response`, `context` or `documents`) is one line of JSON on its stdout.
        timeout: Seconds for one example; the first one includes the start of the program.
        name: The program's name by default.
    """

    __context_bench_reference__ = ReferenceTraits(argument="command", verbatim=True)

    def __init__(self, command: str | Sequence[str], timeout: float = 60.0, name: str | None = None) -> None:
        check_settings(may_be_zero=False, timeout=timeout)
        self.command = _split_command(command)
        if not self.command or shutil.which(self.command[0]) is None:
            shown = self.command[0] if self.command else ""
            raise UsageError(f"there is no program {shown!r} to run")
        self.timeout = timeout
        self.name = name or self.command[0]
        self._idle: queue.SimpleQueue[_Program] = queue.SimpleQueue()
        self._running: set[_Program] = set()
        weakref.finalize(self, _end_all, self._running)

    @property
    def fingerprint(self) -> str | None:
        """The command line; if the program itself changes, use another cache tag."""
        return settings_fingerprint("command/1", None, command=self.command)

    def process(self, example: Example) -> Example:
        """Send one example to an idle program; start a program if none is idle."""
        line = dump_json(example).encode() + b"\n"
        while True:
            program = self._take_free()
            try:
                result = _parse_answer(program.ask(line, self.timeout), example)
            except SystemFailure as error:
                self._running.discard(program)
                program.end()
                if not (isinstance(error, _EndedByItself) and program.has_answered):
                    raise
                continue  # a program for a single example exits after its answer
            program.has_answered = True
            self._idle.put(program)
            return result

    def _take_free(self) -> _Program:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            program = _Program(self.command)
            self._running.add(program)
            return program

    def finish(self) -> None:
        self._idle = queue.SimpleQueue()
        _end_all(self._running)


class _Program:
    """One running program, with one thread to write and one to read, so that neither blocks the other."""

    def __init__(self, command: Sequence[str]) -> None:
        self.has_answered = False
        self._process = start_child(command)
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._incoming: queue.Queue[bytes] = queue.Queue(maxsize=64)
        for work in (self._write, self._read):
            threading.Thread(target=work, name="context-bench-command", daemon=True).start()

    def _write(self) -> None:
        assert self._process.stdin is not None
        try:
            with self._process.stdin as pipe:
                while (line := self._outgoing.get()) is not None:
                    pipe.write(line)
                    pipe.flush()
        except OSError:  # it has exited, which the other thread will notice
            pass

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            while chunk := pipe.read1(_CHUNK):  # type: ignore[attr-defined]
                self._incoming.put(chunk)
        self._incoming.put(b"")

    def ask(self, line: bytes, timeout: float) -> bytes:
        """Send a line and return the answer line."""
        deadline = time.monotonic() + timeout
        self._refuse(b"".join(self._drain()))
        self._outgoing.put(line)
        answer = bytearray()
        while b"\n" not in answer[-_CHUNK:]:
            chunk = self._wait_for_chunk(deadline, timeout)
            if not chunk and not answer:
                raise self._explain_end()
            if not chunk:
                break
            answer += chunk if answer else chunk.lstrip()
            if len(answer) > MAX_LINE:
                raise BadOutput(f"the program answered with a line of more than {MAX_LINE // 2**20} MB")
        said, _, more = bytes(answer).partition(b"\n")
        self._refuse(more)
        return said

    def _explain_end(self) -> SystemFailure:
        """Explain the end of the output by the program's exit code, which may come a moment later."""
        code = wait_for_end(self._process, _EXIT_TIMEOUT)
        self.end()
        if code is None:
            return SystemFailure("the program closed its output without an answer, and was stopped")
        failure = SystemFailure if code else _EndedByItself
        return failure(f"the program ended (exit code {code}) without an answer")

    @staticmethod
    def _refuse(more: bytes) -> None:
        """Refuse an extra line of output, which would count as the answer to the next example."""
        if more.strip():
            raise BadOutput(f"the program printed more than one line for an example: {more[:100]!r}")

    def _wait_for_chunk(self, deadline: float, timeout: float) -> bytes:
        try:
            return self._take_chunk(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimedOut(f"the program gave no answer within {timeout:g} s") from None

    def _take_chunk(self, timeout: float) -> bytes:
        """Return the next part of the output; always empty after the end."""
        chunk = self._incoming.get(timeout=timeout)
        if not chunk:
            self._incoming.put(chunk)
        return chunk

    def _drain(self) -> Iterator[bytes]:
        """Return the output so far."""
        while not self._incoming.empty() and (chunk := self._take_chunk(0.0)):
            yield chunk

    def end(self) -> None:
        """Kill the program and end both threads."""
        kill_group(self._process)
        self._outgoing.put(None)
        list(self._drain())


class _EndedByItself(SystemFailure):
    """The program exited with code 0."""


def _end_all(programs: set[_Program]) -> None:
    while programs:
        programs.pop().end()


def _split_command(command: str | Sequence[str]) -> list[str]:
    try:
        return shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise UsageError(f"the command {command!r} cannot be split into words: {error}") from error


def _parse_answer(line: bytes, example: Example) -> Example:
    try:
        result: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        result = None
    if not isinstance(result, dict):
        raise BadOutput(f"the program answered with a line that is not a JSON object: {line[:100]!r}")
    if "id" in result and dump_json(result["id"]) != dump_json(example.get("id")):
        raise BadOutput(f"the program answered example {result['id']!r} instead of {example.get('id')!r}")
    return result
