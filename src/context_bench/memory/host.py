"""One memory system in a run: several instances of it, each of which holds one conversation at a time.

Conversations are independent, so they are written and queried in parallel, each in its own instance (a seat).
Turns and questions of one conversation stay in order. A system that allows only one instance has one seat.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from context_bench.errors import describe
from context_bench.memory.inspection import PhaseCosts
from context_bench.memory.questions import History, Questions
from context_bench.memory.seat import Counts, HostSettings, Instance, Seat

if TYPE_CHECKING:
    from context_bench.monitors.budget import Budget


class Host:
    """Gives each conversation an instance of one memory system.

    If `asks_nobody`, the system is known to call no model: its costs are 0 although it has no tap. The system then
    works in this process, so its instances take turns to make their times comparable.

    Args:
        name: The name of the system.
        instance: The first instance.
        fingerprint: Identifies the system's answers; None if that is not possible.
        settings: How conversations are written.
        make: Makes another instance; None if the system was made outside of the run.
        asks_nobody: See above.
    """

    def __init__(
        self,
        name: str,
        instance: Instance,
        fingerprint: str | None,
        settings: HostSettings,
        make: Callable[[], Instance] | None = None,
        *,
        asks_nobody: bool = False,
    ) -> None:
        self.name, self.members, self.fingerprint, self.settings = name, instance.members, fingerprint, settings
        self.asks_nobody, self._make = asks_nobody, make
        self.questions: Questions | None = None
        self._counts = Counts()
        self._shared_lock = asyncio.Lock() if asks_nobody else None
        self._making = asyncio.Lock()
        self._users = self._arms = 0
        self._began = Counter[str]()  # by conversation, the questions in flight or answered
        self._spare: Instance | None = None
        self._budget: Budget | None = None
        self.is_stopped: Callable[[], bool] = lambda: False
        self._seats = [self._open(instance)]

    def _open(self, instance: Instance) -> Seat:
        lock = self._shared_lock or asyncio.Lock()
        if instance.meter is not None:
            instance.meter.charge = self._charge
        return Seat(
            *(self.name, instance, self.fingerprint, self.settings, self._counts, lock),
            asks_nobody=self.asks_nobody,
            may_write=self._may_write,
        )

    def join_run(self, budget: Budget | None, is_stopped: Callable[[], bool]) -> None:
        """Charge spending to a budget, and stop writing when the run is stopped."""
        self._budget, self.is_stopped = budget, is_stopped

    def _charge(self, usd: float | None, tokens: int, model: str) -> None:
        if self._budget is not None:
            self._budget.charge(usd, tokens, model)

    def _may_write(self, history: History) -> bool:
        """Whether to make the next call. After Ctrl-C, make it only if all questions of the conversation are in flight:
        no other question is asked then, and a memory that cannot be restored would be written in vain.
        """
        needed = self._began[history.name] == history.asked * self._arms
        return not self.is_stopped() or (needed and "restore" not in self.members and self._budget is None)

    @property
    def meets_tap(self) -> bool:
        """Whether its calls go through a tap."""
        return self._seats[0].meter is not None

    def find_obstacle(self) -> str:
        """Return the reason why parallel writing is not possible; empty if it is."""
        if self.members.one_at_a_time:
            return "it declares one_at_a_time"
        if self._make is None:
            return "it is an object: pass its class or a function that makes it"
        try:
            self._spare = self._make()
        except Exception as error:  # noqa: BLE001 - whatever the constructor raises, there is one instance
            return f"a second instance could not be created ({describe(error)})"
        first, second = self.members.storage, self._spare.members.storage
        return f"two instances would share {first}" if first is not None and first == second else ""

    @property
    def status_text(self) -> str:
        writing = [seat.status_text for seat in self._seats if seat.status_text]
        more = f" ({len(writing)} conversations at a time)" if len(writing) > 1 else ""
        return f"{writing[0]}{more}" if writing else ""

    async def prepare(self) -> None:
        self._users += 1
        self._arms += 1
        if self._users == 1:
            await self._seats[0].start()

    async def finish(self) -> None:
        """Re-ask questions of the last conversations, and close the taps after the last arm."""
        self._users -= 1
        if self._users == 0:
            several = self.questions is not None and self.questions.width > 1
            ended = await asyncio.gather(
                *(seat.finish(check_reset=several) for seat in self._seats), return_exceptions=True
            )
            for error in ended:
                if isinstance(error, BaseException):
                    raise error

    async def find_seat(self, history: History) -> Seat:
        """Return the seat of a conversation for one of its questions; make it at first use."""
        self._began[history.name] += 1
        async with self._making:
            while len(self._seats) <= history.place and self._make is not None:
                seat = self._open(await asyncio.to_thread(self._make) if self._spare is None else self._spare)
                self._spare = None
                await seat.start()
                self._seats.append(seat)
        return self._seats[min(history.place, len(self._seats) - 1)]

    def find_history(self, example: Mapping[str, Any]) -> History:
        assert self.questions is not None
        return self.questions.find(example["memory"]["conversation"])

    def report(self) -> dict[str, Any]:
        counts = self._counts
        meters = [seat.meter for seat in self._seats if seat.meter is not None]
        late = [costs.as_dict() for meter in meters if (costs := meter.read("late")) is not None]
        inspected: Counter[str] = Counter()
        for seat in self._seats:
            inspected.update(seat.inspection.report())
        return {
            "granularity": self.settings.granularity,
            "dates": "native" if self.members.takes_dates else "in the text",
            "takes_user": self.members.takes_user,
            "metered": bool(meters) or self.asks_nobody,
            "is_control": self.members.is_control,
            "asked_again": dict(counts.reasked),
            "inspected": dict(inspected),
            "restored": counts.restored,
            "continued": counts.continued,
            "written_again": counts.written_again,
            "at_a_time": len(self._seats),
            "late": reduce(PhaseCosts.add_up, late) if late else None,
        }
