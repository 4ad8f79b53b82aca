"""The process of the tests: runs them with its own untouched builtins, and reports the outcome.

It calls the program in the other process, compares the results here, and reports "pass" only after the last test has
returned. The report goes through a pipe that the program does not have.
"""

from __future__ import annotations

import posix
import sys

from context_bench.sandbox.inside.confine import confine, linger
from context_bench.sandbox.inside.peer import Gone, Peer, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


TESTS = "tests"  # the module name of the test code: instances of its classes may be handed to the program


class Refused(Exception):
    """The program fails before the first test."""


def main(job: dict[str, Any]) -> None:
    """Run the tests and write the verdict: a word and a reason."""
    confine(job)
    peer = Peer(job["stream"], _is_allowed, _is_exported)
    started = _meet(peer)
    posix.write(job["verdict"], b"ready\n")
    verdict = _reach_verdict(peer, job) if started else "unusable the process of the program did not start"
    posix.write(job["verdict"], f"{verdict}\n".encode("utf-8", "replace"))
    linger()


def _meet(peer: Peer) -> bool:
    """Wait until the program's process is ready too; the time limit starts here."""
    try:
        peer.receive()
    except Gone:
        return False
    return True


def _reach_verdict(peer: Peer, job: dict[str, Any]) -> str:
    place = [0]
    try:
        _run(_receive_program(peer, job), job, place)
    except Unsupported as error:
        return f"unusable {_format_line(error)}"
    except Refused as error:
        return f"fail {_format_line(error)}"
    except BaseException as error:  # noqa: BLE001 - whatever ends the tests early is a failure
        return f"fail {peer.broken or _describe_error(error, job, place[0])}"
    return f"fail {peer.broken}" if peer.broken else "pass"


def _receive_program(peer: Peer, job: dict[str, Any]) -> dict[str, Any]:
    peer.send(("go",))
    kind, content = peer.check_parts(peer.receive(), str, object)
    if kind == "failed" and type(content) is str:
        raise Refused(content)
    if kind != "ready" or type(content) is not dict:
        raise Refused("the program broke the protocol")
    for name in job["names"]:
        if name not in content:
            raise Refused(f"the reply does not define {name}")
    return {name: content[name] for name in job["names"]}


def _run(names: dict[str, Any], job: dict[str, Any], place: list[int]) -> None:
    module = sys.modules[TESTS] = type(sys)(TESTS)
    space = module.__dict__
    for name in job["modules"]:
        space[name] = __import__(name)
    if job["helpers"]:
        _exec(job["helpers"], "<prompt>", space)
    space.update(names)
    _exec(job["setup"], "<setup>", space)
    for number, source in enumerate(job["tests"], 1):
        place[0] = number
        _exec(source, f"<test {number}>", space)
    if job["check"]:
        space["check"](names[job["entry"]])


def _exec(source: str, name: str, space: dict[str, Any]) -> None:
    exec(compile(source, name, "exec", dont_inherit=True), space)


def _describe_error(error: BaseException, job: dict[str, Any], number: int) -> str:
    """Describe the error that ended the tests by type, place and message; asserts of one source are numbered."""
    step, line, source = error.__traceback__, 0, f"<test {number}>"
    while step is not None:
        if step.tb_frame.f_code.co_filename == source:
            line = step.tb_lineno
        step = step.tb_next
    if len(job["tests"]) == 1 and line:
        lines = job["tests"][0].splitlines()[:line]
        number = max(1, sum(text.lstrip().startswith("assert") for text in lines))
    text = f"{type(error).__name__} in test {number}" if number else f"{type(error).__name__} before the first test"
    return f"{text}: {_format_line(error)}" if str(error) else text


def _format_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def _is_allowed(target: object, operation: str, args: tuple[Any, ...]) -> bool:
    """Whether the program may do this: it may only call functions and step through iterators that it received. It may
    use objects of the tests' own classes, except names with an underscore.
    """
    if operation == "call":
        return callable(target)
    if operation in ("iter", "next") and hasattr(type(target), "__next__"):
        return True
    hidden = operation in ("getattr", "setattr") and not (type(args[0]) is str and args[0][:1] not in ("", "_"))
    return type(target).__module__ == TESTS and not hidden


def _is_exported(value: object) -> bool:
    return callable(value) or hasattr(type(value), "__next__") or type(value).__module__ == TESTS
