"""The `claude` command in print mode: what a coding agent's own client makes of a context."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from context_bench.errors import BadOutput, SystemFailure, TimedOut, UsageError
from context_bench.processes.child import kill_group, start_child
from context_bench.systems.echo import Echo
from context_bench.systems.prompts import task_text
from context_bench.systems.settings import check_settings, settings_fingerprint
from context_bench.traits import SystemTraits
from context_bench.types import Example
from context_bench.wire.requests import read_text
from context_bench.wire.usage import read_anthropic_usage

__all__ = ["ClaudeCLI"]


class ClaudeCLI:
    """Runs `claude -p` once for each example. A time-out or a reported error is an error, not an answer.

    Args:
        model: Passed on when given.
        timeout: Seconds for one example; then the program and all that it started are ended.
        command: The program.
        name: "claude-cli" by default.
        max_turns: The most steps that the agent may take; running out of them is an error.
        allowed_tools: Tools that it may use without being asked: "Bash,Read", or a list of them.
        system_prompt: Replaces the program's own.
        build_prompt: Makes the prompt from an example, instead of context and question.
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
            raise UsageError(f"there is no program {command!r} to run: install Claude Code, or name it by command=")
        self.model, self.timeout, self.command = model, timeout, command
        self.name = name or "claude-cli"
        tools = allowed_tools if isinstance(allowed_tools, str) else ",".join(allowed_tools or ())
        flags = {"--max-turns": max_turns, "--allowedTools": tools or None, "--system-prompt": system_prompt}
        self._flags = {flag: str(value) for flag, value in flags.items() if value is not None}
        self._build_prompt = build_prompt
        self._running: set[subprocess.Popen[bytes]] = set()

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(asks_model=True)  # which one, is the program's choice where none is given

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
        """End what is still running."""
        for process in list(self._running):
            kill_group(process)


def _build_default_prompt(example: Example) -> str:
    """One text: a conversation turn by turn, or the context and what is asked."""
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
