"""The `claude` command in print mode: what a coding agent's own client makes of a context."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import orjson

from context_bench.errors import BadOutput, SystemFailure, TimedOut, UsageError
from context_bench.systems.prompts import task_text
from context_bench.systems.sampling import settings_fingerprint
from context_bench.types import Example

__all__ = ["ClaudeCLI"]


class ClaudeCLI:
    """Runs `claude -p` once for each example. A time-out or a non-zero exit is an error, not an answer.

    Args:
        model: Passed on when given.
        timeout: Seconds for one example.
        command: The program.
        name: "claude-cli" by default.
    """

    def __init__(
        self, model: str | None = None, timeout: float = 300.0, command: str = "claude", name: str | None = None
    ) -> None:
        if shutil.which(command) is None:
            raise UsageError(f"there is no program {command!r} to run: install Claude Code, or name it by command=")
        self.model, self.timeout, self.command = model, timeout, command
        self.name = name or "claude-cli"

    @property
    def fingerprint(self) -> str | None:
        """Program and model."""
        return settings_fingerprint("claude-cli/1", None, command=self.command, model=self.model)

    def process(self, example: Example) -> Example:
        """Ask once."""
        arguments = [self.command, "-p", "--output-format", "json"]
        if self.model:
            arguments += ["--model", self.model]
        prompt = "\n\n".join(part for part in (example.get("context", ""), task_text(example)) if part)
        try:
            done = subprocess.run(
                arguments,
                input=prompt.encode("utf-8", "replace"),
                capture_output=True,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TimedOut(f"{self.command} gave no answer within {self.timeout:g} s") from None
        if done.returncode != 0:
            said = " ".join(done.stderr.decode("utf-8", "replace").split())[:300] or "it said nothing"
            raise SystemFailure(f"{self.command} ended with exit code {done.returncode}: {said}")
        return _result(done.stdout, self.command)


def _result(output: bytes, command: str) -> Example:
    try:
        document: Any = orjson.loads(output)
        text, usage = document["result"], document.get("usage") or {}
        failed = bool(document.get("is_error"))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise BadOutput(f"{command} printed something that is no result: {output[:100]!r}") from None
    if failed:
        raise SystemFailure(f"{command} reports an error: {text}")
    cached = int(usage.get("cache_read_input_tokens") or 0)
    prompt = int(usage.get("input_tokens") or 0) + cached + int(usage.get("cache_creation_input_tokens") or 0)
    completion = int(usage.get("output_tokens") or 0)
    metadata = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"response": str(text), "metadata": {**metadata, "cached_tokens": cached} if usage else {}}
