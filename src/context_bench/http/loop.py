"""Event loops that the client can work on, and a way to use it without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["new_event_loop", "run_sync"]

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A selector loop on every platform: libcurl's sockets need one, and Windows' default is another."""
    return asyncio.SelectorEventLoop()


class _Background:
    """An event loop in a thread of its own, started on first use; connections stay pooled between calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="context-bench-http", daemon=True).start()
            return self._loop


_background = _Background()


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from code that is not asynchronous, also where a loop is already running."""
    return asyncio.run_coroutine_threadsafe(work, _background.loop()).result()
