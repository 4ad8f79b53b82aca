"""Remote calls between two processes over one stream.

Answers contain data. An object that is not data stays in its process, and the other side has a `Remote`, which requests
its results, attributes and items. A Remote equals only itself and has no order and no arithmetic: the owner of an
object is asked for values, never for the outcome of a comparison.
"""

from __future__ import annotations

import builtins
import posix

from context_bench.sandbox.inside.encoding import MINE, YOURS, EncodingError, decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Allowed = Callable[[object, str, tuple[Any, ...]], bool]


FRAME = 16 << 20  # the longest message in bytes

PLAIN = (str, int, float, bool, type(None))
"""Types of an exception's arguments that are sent as they are; others are sent as their text."""

NONSENSE = "the program broke the protocol"
ENDED = "the program ended before its tests"


class Gone(BaseException):
    """The other side has ended or broken the protocol. It is not an Exception, so that no test catches it."""


class Unsupported(EncodingError):
    """An object that must not be passed on."""


class ProgramError(Exception):
    """An exception of the other side whose type is not built in."""


class Remote:
    """An object of the other side."""

    __slots__ = ("_number", "_peer")

    def __init__(self, peer: Peer, number: int) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_number", number)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._peer.ask("call", self._number, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._peer.ask("getattr", self._number, (name,))

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.ask("setattr", self._number, (name, value))

    def __getitem__(self, key: Any) -> Any:
        return self._peer.ask("getitem", self._number, (key,))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._peer.ask("setitem", self._number, (key, value))

    def __iter__(self) -> Iterator[Any]:
        return self._peer.ask("iter", self._number)  # type: ignore[no-any-return]

    def __next__(self) -> Any:
        return self._peer.ask("next", self._number)

    def __len__(self) -> int:
        return int(self._peer.ask("len", self._number))

    def __bool__(self) -> bool:
        return self._peer.ask("bool", self._number) is True

    def __str__(self) -> str:
        return str(self._peer.ask("str", self._number))

    def __repr__(self) -> str:
        return str(self._peer.ask("repr", self._number))


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "getattr": getattr, "setattr": setattr, "getitem": lambda target, key: target[key],
    "setitem": lambda target, key, value: target.__setitem__(key, value), "iter": iter, "next": next, "len": len,
    "bool": bool, "str": str, "repr": repr,
}  # fmt: skip


class Reference:
    """Sends an object as a reference, even if its value could be sent."""

    def __init__(self, target: object) -> None:
        self.target = target


class Peer:
    """One side of the conversation, over the file descriptor `stream`.

    `allowed` decides whether the other side may perform an operation on an object that it received, `exported` whether
    an object that is not data may be passed as a reference.
    """

    def __init__(self, stream: int, allowed: Allowed, exported: Callable[[object], bool]) -> None:
        self._stream, self._allowed, self._exported = stream, allowed, exported
        self._objects: list[object] = []  # handed over; kept alive, so that their ids stay theirs
        self._numbers: dict[int, int] = {}
        self._remotes: dict[int, Remote] = {}
        self._types: set[object] = set()  # of this side, named by the other: `Pair = property`
        self.broken: str | None = None

    def ask(self, operation: str, number: int, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Ask the other side to operate on one of its objects, and serve its requests until it answers."""
        if self.broken is not None:
            raise Gone(self.broken)
        try:
            self.send(("ask", operation, number, args, kwargs or {}))
        except Unsupported as error:
            if operation == "call":
                raise
            # The other side chose to return this object, so its reply is still judged.
            raise TypeError(str(error)) from None
        while True:
            message = self.receive()
            if message[0] != "ask":
                return self._settle(message, operation, args)
            self.serve(message)

    def serve(self, message: tuple[Any, ...]) -> None:
        """Perform a request of the other side, and send the outcome."""
        _, operation, number, args, kwargs = self.check_parts(message, str, str, int, tuple, dict)
        target = self._object(number)
        before = self._encode(args)
        try:
            outcome: tuple[Any, ...] = ("ok", self._perform(operation, target, args, kwargs))
        except Gone:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever is raised is the answer
            outcome = self._describe_raised(operation, error)
        self._answer((*outcome, self._find_changes(args, before)))

    def _perform(self, operation: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._allowed(target, operation, args):
            raise TypeError(f"{operation} is not possible on this object")
        if operation == "call":
            result = target(*args, **kwargs)
            # The instances of a class have its methods: they stay with it.
            return Reference(result) if isinstance(target, type) and target.__module__ != "builtins" else result
        return _OPERATIONS[operation](target, *args)

    def _describe_raised(self, operation: str, error: BaseException) -> tuple[Any, ...]:
        if operation == "next" and isinstance(error, StopIteration):
            return "stop", None
        names = [kind.__name__ for kind in type(error).__mro__]
        return "raise", (names, tuple(part if type(part) in PLAIN else str(part) for part in error.args))

    def _find_changes(self, args: tuple[Any, ...], before: bytes) -> tuple[Any, ...] | None:
        """Return the arguments after the call, if it changed them."""
        try:
            return args if self._encode(args) != before else None
        except Exception:  # noqa: BLE001 - then they cannot be sent either
            return None

    def _answer(self, outcome: tuple[Any, ...]) -> None:
        try:
            self.send(outcome)
        except Exception as error:  # noqa: BLE001 - an object that cannot even be looked at
            self.send(("raise", (["ValueError"], (f"the result cannot be sent: {error}",)), None))

    def _settle(self, message: tuple[Any, ...], operation: str, args: tuple[Any, ...]) -> Any:
        kind, content, changed = self.check_parts(message, str, object, object)
        if type(changed) is tuple:
            mirror(args, changed)
        if kind == "ok":
            return content
        if kind == "stop" and operation == "next":
            raise StopIteration
        names, parts = self.check_parts(content, list, tuple)
        if (
            kind != "raise"
            or any(type(name) is not str for name in names)
            or any(type(part) not in PLAIN for part in parts)
        ):
            raise self.end(NONSENSE)
        error = _rebuild(names, parts)
        if error is None:
            raise self.end("the program exited")
        raise error

    def send(self, message: tuple[Any, ...]) -> None:
        """Write one message."""
        data = self._encode(message)
        if len(data) > FRAME:
            raise EncodingError(f"over {FRAME >> 20} MiB in one value")
        data = len(data).to_bytes(4, "big") + data
        try:
            while data:
                data = data[posix.write(self._stream, data) :]
        except OSError:
            raise self.end(ENDED) from None

    def receive(self) -> tuple[Any, ...]:
        """Read one message: a tuple that begins with a word."""
        size = int.from_bytes(self._read(4), "big")
        if size > FRAME:
            raise self.end(NONSENSE)
        data = self._read(size)
        try:
            message = decode(data, self._resolve, self._types)
        except EncodingError:
            raise self.end(NONSENSE) from None
        if type(message) is not tuple or not message:
            raise self.end(NONSENSE)
        return message

    def end(self, reason: str) -> Gone:
        """End the conversation for good, and return the exception to raise."""
        self.broken = self.broken or reason
        return Gone(self.broken)

    def _read(self, size: int) -> bytes:
        chunks = []
        while size:
            try:
                chunk = posix.read(self._stream, min(size, 1 << 20))
            except OSError:
                chunk = b""
            if not chunk:
                raise self.end(ENDED)
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def check_parts(self, message: Any, *kinds: type) -> tuple[Any, ...]:
        """Return the parts of a message, if they have these types."""
        if type(message) is not tuple or len(message) != len(kinds):
            raise self.end(NONSENSE)
        if not all(kind is object or type(part) is kind for part, kind in zip(message, kinds)):
            raise self.end(NONSENSE)
        return message

    def _object(self, number: Any) -> object:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise self.end(NONSENSE)
        return self._objects[number]

    def _encode(self, value: object) -> bytes:
        return encode(value, self._refer)

    def _refer(self, value: object) -> tuple[bytes, int]:
        if type(value) is Remote:
            return YOURS, value._number
        if type(value) is Reference:
            value = value.target
        elif not self._exported(value):
            if type(value) in self._types:  # the other side chose this value, so its reply is still judged
                raise self.end(f"the program gives the tests {type(value).__name__}, which they cannot hand back")
            raise Unsupported(f"a {type(value).__name__} cannot be handed to the program")
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return MINE, self._numbers[id(value)]

    def _resolve(self, tag: bytes, number: int) -> object:
        if tag == YOURS:
            return self._object(number)
        if number not in self._remotes:
            self._remotes[number] = Remote(self, number)
        return self._remotes[number]


def _rebuild(names: list[str], parts: tuple[Any, ...]) -> Exception | None:
    """Rebuild an exception like the one that was raised; None for one that ends a program. StopIteration never crosses,
    because a function that raises it would end a loop of the tests early.
    """
    for name in names:
        kind = getattr(builtins, name, None)
        if not isinstance(kind, type) or kind in (StopIteration, StopAsyncIteration):
            continue
        if issubclass(kind, Exception):
            try:
                return kind(*parts)
            except (TypeError, ValueError):  # its constructor takes unusual arguments
                return ProgramError(*parts)
        if kind is BaseException or not issubclass(kind, BaseException):
            break
        return None
    return ProgramError(*parts)


def mirror(old: Any, new: Any) -> Any:
    """Copy the content of `new` into `old` if that is mutable, and return the result. Mutable objects inside are kept
    too, so that other references to them see the change.
    """
    kind = type(old)
    if type(new) is not kind:
        return new
    if kind is tuple:
        return tuple(mirror(a, b) for a, b in zip(old, new)) if len(old) == len(new) else new
    if kind is list:
        kept = [mirror(a, b) for a, b in zip(old, new)]
        old[:] = kept + new[len(kept) :]
        return old
    if isinstance(old, dict):
        content = {key: mirror(old[key], value) if key in old else value for key, value in new.items()}
        old.clear()
        old.update(content)
        return old
    if kind in (set, bytearray) or (kind.__module__, kind.__name__) == ("collections", "deque"):
        old.clear()
        (old.update if kind is set else old.extend)(new)
        return old
    return new
