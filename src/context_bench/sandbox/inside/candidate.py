"""The process of the program under test: loads it, hands out the names that the tests use, serves calls.

Nothing here is trusted by anybody: the program may rewrite all of it. It never sees the tests, only
the arguments of their calls.
"""

from __future__ import annotations

import sys

from context_bench.sandbox.inside.confine import confine, linger
from context_bench.sandbox.inside.peer import Gone, Peer
from context_bench.sandbox.inside.program import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["main"]


def main(job: dict[str, Any]) -> None:
    """Load the program and serve the tests until they hang up."""
    confine(job)
    peer = Peer(job["stream"], allowed=_anything, exported=_anything)
    peer.send(("hello",))
    peer.receive()  # nothing of the program runs before its tests are there: it cannot keep them from starting
    module = sys.modules["solution"] = type(sys)("solution")
    try:
        load(job["blocks"], job["prompt"], job["entry"], module.__dict__)
    except BaseException as error:  # noqa: BLE001 - a program that cannot be loaded is an outcome
        peer.send(("failed", f"{type(error).__name__} while the program was loaded: {error}"[:300]))
        linger()
    peer.send(("ready", {name: module.__dict__[name] for name in job["names"] if name in module.__dict__}))
    try:
        while True:
            peer.serve(peer.receive())
    except Gone:
        linger()


def _anything(*_: object) -> bool:
    return True
