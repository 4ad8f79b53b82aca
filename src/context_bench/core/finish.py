"""The start and the end of a run for its parts: each is told, and whatever it does at the end, the rows are kept."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from context_bench.core.threads import Threads, call_in_thread, unwrap
from context_bench.errors import UsageError, describe
from context_bench.traits import find_finish, find_prepare, has_plain_prepare

__all__ = ["MAX_FINISH_SECONDS", "finish_parts", "prepare_parts"]

MAX_FINISH_SECONDS = 60.0
"""A part that needs longer is left alone: our own need at most about 15, to end a program that does not want to."""


async def prepare_parts(parts: Sequence[Any]) -> None:
    """Await `prepare()` of every part that has one, all at once; one that is not asynchronous is warned about."""
    for part in filter(has_plain_prepare, parts):
        warnings.warn(f"prepare() of {part.name} is not called, as it is not `async def`", stacklevel=2)
    found = [prepare for prepare in map(find_prepare, parts) if prepare is not None]
    await asyncio.gather(*(prepare() for prepare in found))


async def finish_parts(parts: Iterable[Any], seconds: float | None = None) -> None:
    """Call `finish()` of every part that has one, one after the other; one that fails or hangs is warned about.

    Raises:
        CancelledError: The run was cancelled meanwhile. All parts have been told by then.
    """
    limit = MAX_FINISH_SECONDS if seconds is None else seconds
    cancelled = False
    for part in parts:
        try:
            finish = find_finish(part)
            problem = "" if finish is None else await _finish_within(finish, limit)
        except UsageError as unreadable:
            problem = str(unreadable)
        except asyncio.CancelledError:
            cancelled, problem = True, "interrupted"
        if problem:
            warnings.warn(f"{part.name} did not end well: {problem}", stacklevel=2)
    if cancelled:
        raise asyncio.CancelledError


async def _finish_within(finish: Callable[[], Any], seconds: float) -> str:
    """Call `finish` and return what went wrong; an empty text when nothing did."""
    threads = Threads(1, "context-bench-finish")
    task = asyncio.ensure_future(_call(finish, threads))
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=1.0)
            return f"finish() did not return within {seconds:g} s"
        error = task.result()
        return "" if error is None else describe(error)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        threads.shutdown()


async def _call(finish: Callable[[], Any], threads: Threads) -> BaseException | None:
    """Call `finish`, in a thread if it is not asynchronous, and return what it raised, which must not end the loop."""
    try:
        ended = finish() if inspect.iscoroutinefunction(finish) else await call_in_thread(threads, finish)
        if inspect.isawaitable(ended):
            await ended
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt would end the loop, and the run with it
        return unwrap(error)
    return None
