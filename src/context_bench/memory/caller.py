"""Calls of a memory system: in a thread of its own, one at a time, with a limit of time.

What is asynchronous runs on one event loop in one thread, as libraries that keep connections or background tasks need.
A call that does not return in time is given up and left alone: nothing more is asked of the system until it returns.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from context_bench.engine.threads import Raised, Threads, call_in_thread, unwrap
from context_bench.errors import SystemFailure, describe
from context_bench.http.loop import new_event_loop

__all__ = ["Worker"]


class Worker:
    """Calls the methods of one memory system.

    Args:
        name: Of the system, for messages.
        timeout: Seconds for one call.
    """

    def __init__(self, name: str, timeout: float) -> None:
        self._name, self._timeout = name, timeout
        self._threads = Threads(1, f"context-bench-memory-{name}")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hanging: tuple[str, asyncio.Future[Any]] | None = None

    async def call(self, what: str, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a method and return its result; whatever goes wrong becomes a SystemFailure that says what was done.

        Args:
            what: The call in words, for the message: `query()`.
            method: What is called.
            arguments: For the method.
            named: For the method.
        """
        if self._hanging is not None:
            doing, task = self._hanging
            if not task.done():
                raise SystemFailure(f"{self._name}: {what} was not tried: {doing} still has not returned")
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
        except KeyboardInterrupt as error:  # Ctrl-C reaches the main thread alone: here it is the system's own
            raise Raised(error) from error

    def _wait(self, made: Any) -> Any:
        """Wait for something asynchronous, on the loop that all such calls of this system share."""
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
        """End the threads; a call that hangs is left alone."""
        self._threads.shutdown(cancel_futures=True)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped; tasks that a system left behind are cancelled."""
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))
    loop.close()


def _drop_result(task: asyncio.Future[Any]) -> None:
    """Take the exception of a call that was given up, so that nobody complains that it was never looked at."""
    if not task.cancelled():
        task.exception()
