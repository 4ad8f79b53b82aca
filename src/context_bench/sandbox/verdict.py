"""Run one program against its tests, with two processes, one stream between them, and one pipe for the verdict."""

from __future__ import annotations

import ast
import builtins
import math
import os
import re
import select
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from context_bench.errors import DataError
from context_bench.sandbox.isolation import Isolation

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Task:
    """Tests for one program."""

    entry: str  # the name that the tests call
    prompt: str  # the code that a reply may continue; "" where the task is in words
    setup: str  # runs before the tests, after the program
    tests: tuple[str, ...]  # sources, run in order
    check: bool  # whether the tests define `check(candidate)`, which is then called
    names: tuple[str, ...]  # names that the tests take from the program, the entry point first
    modules: tuple[str, ...]  # standard modules that the tests use and do not import
    helpers: str  # the completed prompt, when the tests use its other functions


def read_task(example: Mapping[str, Any]) -> Task | None:
    """Read the task of an example; None without tests, DataError if the tests name no function."""
    given = example.get("test_list") or example.get("test") or ()
    tests = tuple(source for source in map(str, [given] if isinstance(given, str) else given) if source.strip())
    if not tests:
        return None
    setup = "\n".join([*map(str, example.get("test_imports") or ()), str(example.get("test_setup_code") or "")])
    try:
        tree = ast.parse("\n".join([setup, *tests]))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(f"the tests are not Python: {error}") from None
    check = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    free = _find_free_names(tree)
    entry = str(example.get("entry_point") or "") or _find_tested_name(tree, free, check)
    prompt = _find_prompt(example, entry)
    helpers = _complete_prompt(prompt) if prompt else None
    defined = _find_top_level_names(helpers) if helpers else set()
    wanted = [name for name in free if name != entry and name not in defined and not hasattr(builtins, name)]
    return Task(
        entry=entry,
        prompt=prompt,
        setup=setup,
        tests=tests,
        check=check,
        names=(entry, *(name for name in wanted if name not in sys.stdlib_module_names)),
        modules=tuple(name for name in wanted if name in sys.stdlib_module_names),
        helpers=ast.unparse(helpers) if helpers and (defined - {entry}) & set(free) else "",
    )


def _find_prompt(example: Mapping[str, Any], entry: str) -> str:
    """Find the field with the beginning of the program, if the example has such a field."""
    header = re.compile(rf"^(?:async\s+def|def|class)\s+{re.escape(entry)}\b", re.MULTILINE)
    for key in ("prompt", "context", "question"):
        text = example.get(key)
        if isinstance(text, str) and header.search(text):
            return text
    return ""


def _complete_prompt(prompt: str) -> ast.Module | None:
    for body in ("", "\n    pass\n", "\n  pass\n", "\n\tpass\n"):
        try:
            return ast.parse(prompt + body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _find_bound_names(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
    return names


def _find_top_level_names(tree: ast.Module) -> set[str]:
    bound = ({each.name} if isinstance(each, _DEFINITIONS) else _find_bound_names(each) for each in tree.body)
    return {name for names in bound for name in names}


def _find_free_names(tree: ast.Module) -> list[str]:
    bound = _find_bound_names(tree)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return [name for name in dict.fromkeys(node.id for node in names) if name not in bound]


def _find_tested_name(tree: ast.Module, free: list[str], check: bool) -> str:
    """Find the function that plain asserts test: the first called function that is not defined. If the asserts call
    only builtins, the task asks for a function with the name of a builtin.
    """
    calls = [
        node.func.id
        for statement in tree.body
        if isinstance(statement, ast.Assert)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in free
    ]
    calls.sort(key=lambda name: hasattr(builtins, name))
    if check or not calls:
        raise DataError("the example has tests but no entry_point that says which function they test")
    return calls[0]


_READY = b"ready\n"
_WORDS = {"pass": True, "fail": False, "unusable": None}
_MAX_VERDICT_BYTES = 4096
_MIN_START_SECONDS = 10.0
"""The least time given to the processes to start, in seconds; on a quiet machine they need less than 0.1 s."""

_KNOWN_TASK = Task("add", "", "", ("assert add(1, 2) == 3\n",), False, ("add",), (), "")
_KNOWN_BLOCKS = ["def add(a, b):\n    return a + b\n"]  # a program that is known to be good


@dataclass(frozen=True)
class ProgramVerdict:
    """The outcome of a program."""

    passed: bool | None  # None when it is not known
    reason: str = ""  # why it did not pass
    explained: bool = True  # False while the fault may be the program's or the sandbox's


def run(task: Task, blocks: list[str], isolation: Isolation, timeout: float) -> ProgramVerdict:
    """Run a program, given as the pieces of a reply, against the tests of a task. If the tests' process fails or runs
    out of time, a known good program runs in the same kind of sandbox. If the good program passes, the tested program
    is at fault; if not, nothing is known about the tested program.
    """
    verdict = _run_once(task, blocks, isolation, timeout)
    if verdict.explained:
        return verdict
    known = _run_once(_KNOWN_TASK, _KNOWN_BLOCKS, isolation, max(timeout, _MIN_START_SECONDS))
    if known.passed:
        return replace(verdict, explained=True)
    return ProgramVerdict(None, f"{verdict.reason}, and a known-good program does not pass either: {known.reason}")


def _run_once(task: Task, blocks: list[str], isolation: Isolation, timeout: float) -> ProgramVerdict:
    """Run both processes once.

    The program's process gets its source and the stream; the tests' process gets the tests, the stream and the pipe.
    Only output of the pipe that arrives in time counts. The time starts when both processes are ready, because a slow
    start is not the program's fault.
    """
    seconds = math.ceil(timeout) + 1
    facts = asdict(task)
    with ExitStack() as stack:
        ours, theirs = (stack.enter_context(closing(end)) for end in socket.socketpair())
        pipe, verdict = os.pipe()
        stack.callback(os.close, pipe)
        try:
            job = {key: facts[key] for key in ("entry", "prompt", "names")}
            job |= {"blocks": blocks, "stream": theirs.fileno()}
            candidate = isolation.start("candidate", job, [theirs.fileno()], seconds)
            stack.callback(candidate.end)
            job = {**facts, "stream": ours.fileno(), "verdict": verdict}
            tester = isolation.start("tester", job, [ours.fileno(), verdict], seconds)
            stack.callback(tester.end)
        except OSError as error:  # this machine is out of processes, memory or files
            return ProgramVerdict(None, f"the sandbox did not start: {error}")
        finally:
            os.close(verdict)
        ours.close()
        theirs.close()
        candidate.follow()
        tester.follow()
        patience = max(timeout, _MIN_START_SECONDS)
        said, in_time = _listen(pipe, len(_READY), patience)
        if said != _READY:
            return ProgramVerdict(None, "the sandbox did not start" + ("" if in_time else f" within {patience:g} s"))
        said, in_time = _listen(pipe, _MAX_VERDICT_BYTES, timeout)
    return _read_verdict(said) if in_time else ProgramVerdict(False, f"timed out after {timeout:g} s", explained=False)


def _listen(pipe: int, length: int, seconds: float) -> tuple[bytes, bool]:
    """Read a line of limited length from the tests' process; also return whether the line came in time."""
    deadline = time.monotonic() + seconds
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    said = b""
    while not said.endswith(b"\n") and len(said) < length:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return said, False
        chunk = os.read(pipe, length - len(said))
        if not chunk:
            break
        said += chunk
    return said, True


def _read_verdict(said: bytes) -> ProgramVerdict:
    word, _, reason = said.decode("utf-8", "replace").rstrip("\n").partition(" ")
    if not said.endswith(b"\n") or word not in _WORDS:
        return ProgramVerdict(False, "the process of the tests ended without a verdict", explained=False)
    return ProgramVerdict(_WORDS[word], "".join(char if char.isprintable() else " " for char in reason))
