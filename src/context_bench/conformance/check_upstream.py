"""The upstream of the checks: answers as the current check asks it to, and keeps what reached it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from context_bench.tap.answering import Incoming, Outgoing, build_reply
from context_bench.tap.scripted import Scripted
from context_bench.wire.replies import Answer

__all__ = ["Script", "Upstream"]

Script = Callable[[Incoming], Awaitable[Outgoing]]


class Upstream:
    """An answerer for the tap. Requests to a model go to the script of the check; others to a plain one."""

    fingerprint = "conformance/1"

    def __init__(self) -> None:
        self.calls: list[Incoming] = []
        self._script: Script | None = None
        self._others = Scripted.from_text("text:ok")

    def expect(self, script: Answer | Script) -> None:
        """From now on answer like this; what came before is forgotten."""
        self.calls = []
        self._script = _answer_always(script) if isinstance(script, Answer) else script

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def answer(self, request: Incoming) -> Outgoing:
        """Answer as the current check asks."""
        if request.method != "POST" or request.dialect is None or self._script is None:
            return await self._others.answer(request)
        self.calls.append(request)
        return await self._script(request)


def _answer_always(answer: Answer) -> Script:
    async def script(request: Incoming) -> Outgoing:
        return build_reply(answer, request)

    return script
