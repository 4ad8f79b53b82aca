"""Somebody else's function in a thread, whatever it raises.

A future hangs for ever on StopIteration, takes a CancelledError for its own, and hands SystemExit to the
event loop: so an exception comes out of the thread inside another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

__all__ = ["Raised", "call_in_thread", "unwrapped"]


class Raised(Exception):
    """What a function raised in its thread."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def call_in_thread(threads: Executor, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the function in a thread and return its result; every exception but Ctrl-C becomes Raised."""
    return await asyncio.get_running_loop().run_in_executor(threads, _guarded, function, arguments)


def _guarded(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Raised(error) from error


def unwrapped(error: BaseException) -> BaseException:
    """The exception that was meant."""
    return error.error if isinstance(error, Raised) else error
