"""The members of a memory system, calls to them, and the rules that every memory system must keep.

`context_bench.types.MemorySystem` documents the members; no other attribute of a memory system is used.

Calls run in a separate thread, one at a time, with a timeout. Asynchronous methods share one event loop in one thread,
because libraries with connections or background tasks need that. After a timeout, the system gets no further call until
the late call has returned.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from context_bench.core.threads import Raised, Threads, call_in_thread, unwrap
from context_bench.errors import SystemFailure, UsageError, describe
from context_bench.http.loop import new_event_loop

_REQUIRED = ("reset", "ingest", "query")
_OPTIONAL = ("retrieve", "flush", "memories", "forget", "restore", "point_to")


class Members:
    """The methods of one memory system, and its name (by default, that of its class).

    A system that `is_frozen` reads a file and ignores its input. Unless it `takes_dates`, the date is prepended to the
    text of each turn. It `takes_user` if `ingest` and all its query methods have that parameter.
    """

    def __init__(self, system: Any) -> None:
        self.system = system
        self.name = getattr(system, "name", type(system).__name__)
        self._methods = {name: found for name in (*_REQUIRED, *_OPTIONAL) if (found := _find_method(system, name))}
        self.is_control = is_control(system)
        self.is_frozen = getattr(system, "is_frozen", False) is True
        self.takes_dates = getattr(system, "takes_dates", False) is True
        self.one_at_a_time = getattr(system, "one_at_a_time", False) is True
        asked = [name for name in ("ingest", "query", "retrieve") if name in self]
        self.takes_user = all(_accepts(self._methods[name], "user") for name in asked)

    def __contains__(self, name: str) -> bool:
        return name in self._methods

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._methods[name]

    def filter_arguments(self, name: str, **given: Any) -> dict[str, Any]:
        """Return the named arguments that a method accepts; None leaves the default of the method."""
        method = self._methods[name]
        return {key: value for key, value in given.items() if value is not None and _accepts(method, key)}

    @property
    def storage(self) -> Path | None:
        path = getattr(self.system, "storage", None)
        return Path(path) if isinstance(path, str | Path) else None


def is_factory(found: Any) -> bool:
    """Whether this is a class or function that makes a memory system."""
    return isinstance(found, type) or (callable(found) and not hasattr(found, "ingest"))


def is_control(found: Any) -> bool:
    """Whether a memory system, or its class, is a control, which is not ranked."""
    return getattr(found, "is_control", False) is True


def read_members(system: Any) -> Members:
    """Look up the members of a memory system; UsageError names the missing members."""
    if isinstance(system, type):
        raise UsageError(f"{system.__name__} is a class: pass an instance of it, {system.__name__}(...)")
    members = Members(system)
    missing = [f"{name}()" for name in _REQUIRED if name not in members]
    if not isinstance(members.name, str) or not members.name:
        raise UsageError(f"a {type(system).__name__} has no usable name: .name must be a text")
    if missing:
        raise UsageError(f"a {type(system).__name__} is not a memory system: it has no {', '.join(missing)}")
    return members


def _find_method(system: Any, name: str) -> Callable[..., Any] | None:
    """Find a method, preferably in its asynchronous form: `aquery` before `query`."""
    for spelled in (f"a{name}", name):
        found = getattr(system, spelled, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


def _accepts(method: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


class Worker:
    def __init__(self, name: str, timeout: float) -> None:
        self._name, self._timeout = name, timeout
        self._threads = Threads(1, f"context-bench-memory-{name}")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hanging: tuple[str, asyncio.Future[Any]] | None = None

    async def call(self, what: str, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a method; any error becomes a SystemFailure that names the call by `what` (`query()`)."""
        if self._hanging is not None:
            doing, task = self._hanging
            if not task.done():
                raise SystemFailure(f"{self._name}: {what} was not called: {doing} has still not returned")
            self._hanging = None
        task = asyncio.ensure_future(call_in_thread(self._threads, self._do, method, arguments, named))
        done, _ = await asyncio.wait((task,), timeout=self._timeout)
        if not done:
            self._hanging = what, task
            task.add_done_callback(_drop_result)
            raise SystemFailure(f"{self._name}: {what} did not return within {self._timeout:g} s")
        try:
            return task.result()
        except Raised as raised:
            error = unwrap(raised.error)
            raise SystemFailure(f"{self._name}: {what} failed: {describe(error)}") from error

    def _do(self, method: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            made = method(*arguments, **named)
            return self._wait(made) if inspect.isawaitable(made) else made
        except KeyboardInterrupt as error:  # Ctrl-C reaches only the main thread: this one comes from the system
            raise Raised(error) from error

    def _wait(self, made: Any) -> Any:
        """Wait for an awaitable on the event loop of this system."""
        if self._loop is None:
            self._loop = new_event_loop()
            threading.Thread(target=_run_loop, args=(self._loop,), name=f"{self._name} loop", daemon=True).start()

        async def wait() -> Any:
            try:
                return await made
            except (KeyboardInterrupt, SystemExit) as error:  # either would end the loop for all later calls
                raise Raised(error) from error

        future: Future[Any] = asyncio.run_coroutine_threadsafe(wait(), self._loop)
        return future.result()

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped; cancel tasks that a system left behind."""
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))
    loop.close()


def _drop_result(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of an abandoned call, so that asyncio does not warn about it."""
    if not task.cancelled():
        task.exception()


_CANARY = "kestrel"
_FIRST = [
    {"id": "a1", "role": "user", "speaker": "Ana", "content": f"My password is {_CANARY}.", "session": "s1"},
    {"id": "a2", "role": "assistant", "speaker": "Bot", "content": "I see.", "session": "s1"},
]
_SECOND = [
    {"id": "b1", "role": "user", "speaker": "Ana", "content": "My dog is called Rex.", "session": "s1"},
    {"id": "b2", "role": "assistant", "speaker": "Bot", "content": "A good name.", "session": "s1"},
]
for _turn in (*_FIRST, *_SECOND):
    _turn["timestamp"] = "2024-03-04T10:00:00"

_QUESTIONS = ("What is the password?", "What is the dog called?", "", "名前は？")


def find_broken_rules(members: Members, timeout: float) -> Iterator[str]:
    """Yield a sentence for each rule that a memory system breaks when it is called as in a run."""
    worker = Worker(members.name, timeout)

    def call(name: str, *arguments: Any) -> Any:
        return asyncio.run(worker.call(f"{name}()", members[name], *arguments))

    try:
        yield from _try_conversations(members, call)
    except SystemFailure as failure:
        yield f"must not fail ({failure})"
    finally:
        worker.close()


def _try_conversations(members: Members, call: Callable[..., Any]) -> Iterator[str]:
    if "restore" in members and not isinstance(call("restore", "a conversation"), int):
        yield "must return True, False or a number of turns from restore()"
    for turns in (_FIRST, _SECOND):
        given = copy.deepcopy(turns)
        call("reset")
        call("ingest", given[:1])
        call("ingest", given[1:])
        if given != turns:
            yield "must not change the turns"
        if "flush" in members:
            call("flush")
        yield from _ask(members, call, {str(turn["id"]) for turn in turns})
    if "memories" in members and not isinstance(call("memories"), list | tuple):
        yield "must return a list from memories()"
    if "forget" in members:
        call("forget", {"what": "the name of the dog"})
    call("reset")
    call("query", _QUESTIONS[0])  # an empty memory is no reason to fail


def _ask(members: Members, call: Callable[..., Any], known: set[str]) -> Iterator[str]:
    found_text = ""
    for question in _QUESTIONS:
        answer = call("query", question)
        if not isinstance(answer, str):
            yield f"must return a text from query() (it returned {type(answer).__name__})"
        found_text += str(answer)
        if "retrieve" in members:
            found = call("retrieve", question)
            yield from _check_found(found, known)
            if call("retrieve", question) != found:
                yield "must return the same for the same question"
            found_text += str(found)
    if "b1" in known and _CANARY in found_text:
        yield "must forget the last conversation on reset()"


def _check_found(found: Any, known: set[str]) -> Iterator[str]:
    if not isinstance(found, list | tuple):
        yield f"must return a list from retrieve() (it returned {type(found).__name__})"
        return
    for item in found:
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            yield "must return objects with a 'text' from retrieve()"
        elif not set(map(str, item.get("ids") or ())) <= known:
            yield "must return only ids of ingested turns"
