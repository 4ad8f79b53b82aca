"""Two sides of one conversation, over a real socket: what passes, and what is refused."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from context_bench.sandbox.inside.peer import FRAME, Gone, Peer, ProgramError, Remote, Unsupported
from context_bench.sandbox.inside.tester import _is_allowed, _is_exported


class Stack(list[Any]):
    """An object of the program with methods of its own."""

    def top(self) -> Any:
        return self[-1]


class Odd(Exception):
    pass


def _raise(kind: type[BaseException]) -> None:
    raise kind("no")


PROGRAM: dict[str, Any] = {
    "add": lambda a, b=0: a + b,
    "append": lambda items: items.append(1),
    "squares": lambda n: (x * x for x in range(n)),
    "apply": lambda function, values: [function(value) for value in values],
    "drain": list,
    "peek": lambda thing: thing.secret,
    "globals_of": lambda function: function.__globals__,
    "name_of": lambda function: function.name,
    "Stack": Stack,
    "Odd": Odd,
    "raise_": lambda name: _raise({"odd": Odd, "exit": SystemExit, "stop": StopIteration}.get(name, ValueError)),
}


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """What the program's side hands out, seen from the tests' side."""
    here, there = socket.socketpair()
    other = Peer(there.fileno(), lambda *_: True, lambda _: True)

    def serve() -> None:
        other.send(("ready", PROGRAM))
        with contextlib.suppress(Gone):
            while True:
                other.serve(other.receive())

    thread = threading.Thread(target=serve)
    thread.start()
    peer = Peer(here.fileno(), _is_allowed, _is_exported)
    yield peer.receive()[1]
    here.shutdown(socket.SHUT_RDWR)
    thread.join()
    here.close()
    there.close()


def test_calls(names: dict[str, Any]) -> None:
    assert names["add"](1, 2) == 3
    assert names["add"](1, b=2) == 3
    assert names["add"]("é", "🍕") == "é🍕"


def test_changed_arguments(names: dict[str, Any]) -> None:
    items = [0]
    assert names["append"](items) is None
    assert items == [0, 1]


def test_iterators_are_asked_step_by_step(names: dict[str, Any]) -> None:
    assert next(names["squares"](10**9)) == 0
    assert list(names["squares"](4)) == [0, 1, 4, 9]


def test_functions_and_iterators_of_the_tests(names: dict[str, Any]) -> None:
    assert names["apply"](lambda x: x + 1, [1, 2]) == [2, 3]
    assert names["drain"](iter([1, 2])) == [1, 2]


def test_functions_of_the_tests_cannot_be_looked_into(names: dict[str, Any]) -> None:
    with pytest.raises(AttributeError):
        names["globals_of"](lambda: 1)
    with pytest.raises(TypeError, match="not possible"):
        names["name_of"](lambda: 1)


def test_other_objects_are_not_handed_over(names: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match="module"):
        names["peek"](socket)


def test_instances_of_the_programs_classes_stay_there(names: dict[str, Any]) -> None:
    stack = names["Stack"]([1, 2])
    assert type(stack) is Remote
    assert (stack.top(), len(stack), stack[0], list(stack), bool(stack), str(stack)) == (
        2,
        2,
        1,
        [1, 2],
        True,
        "[1, 2]",
    )
    assert stack[:1] == [1]
    with pytest.raises(TypeError, match="cannot be handed"):
        stack[socket]
    stack[0] = 9
    stack.label = "x"
    assert (stack[0], stack.label) == (9, "x")
    assert names["add"](stack, [3]) == [9, 2, 3]
    assert (stack == [9, 2], stack == stack, 9 in stack) == (False, True, True)
    with pytest.raises(TypeError):
        stack < 5  # noqa: B015
    with pytest.raises(AttributeError):
        stack.__dict__["x"] = 1


def test_exceptions_arrive_as_the_nearest_built_in_type(names: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no"):
        names["raise_"]("value")
    with pytest.raises(Exception, match="no") as raised:
        names["raise_"]("odd")
    assert type(raised.value) in (Exception, ProgramError)


def test_no_call_ends_a_loop_of_the_tests(names: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="no") as raised:
        list(map(names["raise_"], ["stop"]))
    assert not isinstance(raised.value, StopIteration)


def test_an_exit_is_final(names: dict[str, Any]) -> None:
    with pytest.raises(Gone, match="exited"):
        names["raise_"]("exit")
    with pytest.raises(Gone, match="exited"):
        names["add"](1, 2)


def _answered(*frames: bytes) -> Peer:
    """A peer whose other side has already said this, and gone."""
    here, there = socket.socketpair()
    with there:
        there.sendall(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
    return Peer(here.detach(), _is_allowed, _is_exported)


def _frame(message: object) -> bytes:
    return Peer(-1, _is_allowed, lambda _: True)._encode(message)


@pytest.mark.parametrize(
    "message",
    [
        5,
        (),
        ("ok",),
        ("ok", 1, 2, 3),
        ("stop", None, None),
        ("raise", None, None),
        ("raise", (["ValueError"], 5), None),
        ("raise", (["ValueError"], (len,)), None),
        ("raise", ([5], ()), None),
        ("raise", ("ValueError", ()), None),
        ("what", (["ValueError"], ()), None),
        ("ask", "call", 99, (), {}),
        ("ask", "call", -1, (), {}),
        ("ask", "call", "0", (), {}),
        ("ask", "call", 0, [], {}),
        ("ask", 5, 0, (), {}),
    ],
    ids=repr,
)
def test_nonsense_ends_the_conversation(message: object) -> None:
    peer = _answered(_frame(message))
    try:
        with pytest.raises(Gone, match=r"protocol|ended"):
            peer.ask("call", 0)
        assert peer.broken
    finally:
        socket.socket(fileno=peer._stream).close()


def test_a_frame_that_is_too_long_is_not_read() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall((FRAME + 1).to_bytes(4, "big"))
        with pytest.raises(Gone, match="protocol"):
            Peer(here.fileno(), _is_allowed, _is_exported).receive()
