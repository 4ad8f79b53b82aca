"""One instance of a memory system in a run: it holds one conversation at a time, and answers one question at a time.

If a conversation cannot be written, each of its questions gets that error, and the next conversation is tried. After
the last question of a conversation, the seat asks a tenth of the questions again, to detect memories that reading
changes.

A system with `restore` can continue a conversation that an interrupted run left unfinished, if its progress is known:
either the system reports the number of its turns, or the last call of that run had returned.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import Any
from zlib import crc32

from context_bench.core.call import Stopped
from context_bench.errors import BadOutput, SystemFailure
from context_bench.memory.conversations import Retrieved, Step, check_retrieved, plan_steps
from context_bench.memory.inspection import Inspection, Meter, PhaseCosts
from context_bench.memory.members import Members, Worker
from context_bench.memory.questions import History
from context_bench.memory.scoring import STOOD_IN
from context_bench.store.origin import digest
from context_bench.traits import is_script

REASKED_TIMES = 6  # repeats of a question whose result changed

REASK_EVERY = 10  # re-ask one question in ten to detect memories that reading changes

QUIET_POLL_SECONDS = 0.02  # pause between two checks for calls


@dataclass(frozen=True)
class HostSettings:
    granularity: str = "session"  # the unit of one `ingest` call: turn, pair or session
    timeout: float = 600.0  # limit of one call of the system, in seconds
    quiet: float = 5.0  # seconds without a call at the tap after which a memory counts as written
    max_quiet: float = 120.0  # limit of that wait, in seconds
    folder: Path | None = None  # notes on written conversations, for systems with `restore`
    reuse: bool = True  # whether conversations of an earlier run may be used


@dataclass
class Instance:
    """A memory system that was made for a run, and the tap that counts its calls."""

    members: Members
    meter: Meter | None = None


@dataclass
class Counts:
    """Counts of events over all seats of one memory system."""

    ingested: set[str] = field(default_factory=set)
    written_again: int = 0
    restored: int = 0
    continued: int = 0
    reasked: dict[str, int] = field(default_factory=lambda: {"asked": 0, "changed": 0, "unstable": 0, "failed": 0})


@dataclass
class _Progress:
    """The progress of an earlier run with a conversation."""

    done: int = 0  # calls that returned
    seconds: float = 0.0
    spent: dict[str, Any] | None = None


@dataclass
class _Written:
    history: History
    failure: SystemFailure | None = None  # why it could not be written
    facts: dict[str, Any] = field(default_factory=dict)  # the costs of writing
    store: dict[str, Any] | None = None  # forbidden texts in the store: see `find_leftovers`
    # the results of the questions to ask again
    asked: dict[str, tuple[dict[str, Any], str]] = field(default_factory=dict)


class Seat:
    """Writes conversations into one instance of a memory system, one after the other, and asks it questions."""

    def __init__(
        self,
        name: str,
        instance: Instance,
        fingerprint: str | None,
        settings: HostSettings,
        counts: Counts,
        lock: asyncio.Lock,
        *,
        asks_nobody: bool,
        may_write: Callable[[History], bool],
    ) -> None:
        self.name, self.members, self.meter = name, instance.members, instance.meter
        self.fingerprint, self.settings, self.lock, self.asks_nobody = fingerprint, settings, lock, asks_nobody
        self.status_text = ""
        self.inspection = Inspection(
            name,
            self.members,
            Worker(name, settings.timeout),
            self.meter,
            0.0 if asks_nobody else settings.quiet,  # without model calls there is nothing to wait for
            settings.max_quiet,
        )
        self._may_write = may_write
        self._counts, self._worker = counts, self.inspection.worker
        self._written: _Written | None = None
        self._last: History | None = None
        self._scripted = self.meter is not None and is_script(self.meter.answerer)

    async def start(self) -> None:
        if self.meter is not None:
            await self.meter.start()

    async def finish(self, *, check_reset: bool) -> None:
        """Re-ask the questions of the last conversation, and close the tap.

        Args:
            check_reset: Empty the memory and look for that conversation, if it was the only conversation.
        """
        try:
            async with self.lock:
                await self._reask_questions()
                if check_reset and self.inspection.resets == 1 and self._last and "restore" not in self.members:
                    await self.inspection.reset()
                    await self.inspection.check_reset(self._last)
        except SystemFailure:
            pass  # a failed reset concerns no question
        finally:
            self._worker.close()
            if self.meter is not None:
                await self.meter.stop()

    # -- a conversation

    async def ensure_written(self, history: History) -> dict[str, Any]:
        """Write a conversation into the memory unless it is there already; return the costs of writing."""
        if self._written is None or self._written.history.name != history.name:
            await self._reask_questions()
            self._written, self._last = _Written(history), history
            try:
                await self._write(self._written)
            except SystemFailure as failure:
                self._written.failure = failure
            finally:
                self.status_text = ""
                self._set_phase("late")
        if self._written.failure is not None:
            raise type(self._written.failure)(str(self._written.failure))
        return self._written.facts

    async def _write(self, written: _Written) -> None:
        history, counts = written.history, self._counts
        key = digest(self.fingerprint or "", self.name, self.settings.granularity, history.digest).hex()
        steps = list(
            plan_steps(
                history.turns,
                self.settings.granularity,
                takes_dates=self.members.takes_dates,
                forgets="forget" in self.members,
            )
        )
        self._set_phase("ingest")
        noted = self._read_note(key) if self.settings.reuse else None
        held = await self._restore(key)
        if held and noted is not None and "turns" in noted:
            counts.restored += 1
            written.facts, written.store = noted, noted.get("store")
            return
        before = _read_progress(held, noted or {}, steps)
        if before is None:
            counts.written_again += noted is not None or history.name in counts.ingested
            counts.ingested.add(history.name)
            self._save_note(key, {})  # started, not finished
            await self.inspection.reset()
            await self.inspection.check_reset(history)
            before = _Progress()
        else:
            counts.continued += 1
        started = perf_counter()
        await self._ingest(key, steps, history, before, started)
        ended = perf_counter()
        searchable = await self._wait_until_quiet(history, started)
        written.facts = {
            "turns": len(history.turns),
            "writes": len(steps),
            "seconds": before.seconds + ended - started,
            **searchable,
            "spent": self._take_with(before, "ingest"),
            "background": self.take_costs("background"),
            **await self.inspection.measure(history),
        }
        if self.members.is_frozen:
            written.facts["frozen"] = True
        written.store = written.facts.get("store")
        self._save_note(key, written.facts)

    async def _ingest(self, key: str, steps: Sequence[Step], history: History, before: _Progress, since: float) -> None:
        members, written = self.members, 0
        keeps = "restore" in members
        for place, (kind, user, given) in enumerate(steps):
            if place >= before.done:
                if not self._may_write(history):
                    raise Stopped(f"{self.name}: the run was stopped")
                self.status_text = f"{self.name}: {written:,} of {len(history.turns):,} turns written"
                if keeps:
                    self._note_progress(key, before, place, place + 1, since)
                named = members.filter_arguments(kind, user=user)
                await self._call(kind, f"{kind}() of conversation {history.name!r}", given, **named)
                if keeps:
                    self._note_progress(key, before, place + 1, place + 1, since)
            written += len(given) if kind == "ingest" else 1

    async def _wait_until_quiet(self, history: History, started: float) -> dict[str, Any]:
        """Wait until the turns can be found: call `flush()`, probe for them, then wait until the tap is quiet."""
        self._set_phase("background")
        if "flush" in self.members:
            await self._call("flush", "flush()")
        searchable = await self.inspection.wait_until_found(history, started)
        meter = self.meter
        if meter is not None and (meter.has_calls("ingest") or meter.has_calls("background")):
            deadline = perf_counter() + self.settings.max_quiet
            while meter.seconds_since_last_call() < self.settings.quiet and perf_counter() < deadline:
                await asyncio.sleep(min(QUIET_POLL_SECONDS, self.settings.quiet))
        if await self.inspection.is_changed():
            self._counts.reasked["asked"] += 1
            self._counts.reasked["changed"] += 1
        return searchable

    async def _reask_questions(self) -> None:
        """Ask a tenth of the questions of a conversation again, before the memory is emptied."""
        written, self._written = self._written, None
        if written is None or written.failure is not None:
            return
        for question, (named, before) in written.asked.items():
            self._set_phase("again")
            try:
                found = await self._retrieve(question, named)
            except SystemFailure:
                self._counts.reasked["failed"] += 1
            else:
                self._counts.reasked["asked"] += 1
                if _join_texts(found) != before:
                    kind = "unstable" if await self._is_unstable(question, named, found, before) else "changed"
                    self._counts.reasked[kind] += 1
        if self.meter is not None:
            self.meter.take("again")
        self._set_phase("late")

    async def _is_unstable(self, question: str, named: dict[str, Any], found: list[Retrieved], before: str) -> bool:
        """Whether repeated results vary at random: the same items in another order, or an earlier result once more."""
        said = [before]
        for _ in range(REASKED_TIMES):
            text = _join_texts(found)
            same_things = any(sorted(text.split("\n")) == sorted(each.split("\n")) for each in said if each != text)
            if same_things or (text in said and text != said[-1]):
                return True
            said.append(text)
            try:
                found = await self._retrieve(question, named)
            except SystemFailure:
                break
        return False

    # -- a question

    async def retrieve(self, example: Mapping[str, Any], k: int | None, budget: int | None) -> list[Retrieved]:
        about = example["memory"]
        if "point_to" in self.members and (self.members.is_control or self.members.is_frozen):
            ids = [str(example["id"])] if self.members.is_frozen else about.get("evidence_ids") or []
            await self._call("point_to", "point_to()", ids)
        named = self.members.filter_arguments("retrieve", k=k, budget_tokens=budget, user=about.get("user"))
        self._set_phase("query")
        try:
            found = await self._retrieve(example["question"], named)
        finally:
            self._set_phase("late")
        written = self._written
        fixed = self.members.is_control or self.members.is_frozen
        if written is not None and not fixed and _is_asked_again(example, written):
            written.asked.setdefault(example["question"], (named, _join_texts(found)))
        return found

    async def _retrieve(self, question: str, named: dict[str, Any]) -> list[Retrieved]:
        return check_retrieved(await self._call("retrieve", "retrieve()", question, **named), self.name)

    async def query(self, example: Mapping[str, Any]) -> str:
        named = self.members.filter_arguments("query", user=example["memory"].get("user"))
        self._set_phase("query")
        try:
            answer = await self._call("query", "query()", example["question"], **named)
        finally:
            self._set_phase("late")
        if not isinstance(answer, str):
            given = "None" if answer is None else f"a {type(answer).__name__}"
            raise BadOutput(f"{self.name}: query() returned {given}; it must return a text")
        return answer

    def list_evidence(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """List the facts about the memory that evaluators need in addition to the answer."""
        evidence: dict[str, Any] = {"takes_user": self.members.takes_user, "is_control": self.members.is_control}
        if self._written is not None and self._written.store is not None:
            evidence["store"] = self._written.store
        if self._scripted and _has_asked(facts):
            evidence["unscorable"] = STOOD_IN
        return evidence

    # -- the system

    async def _call(self, name: str, what: str, *arguments: Any, **named: Any) -> Any:
        return await self._worker.call(what, self.members[name], *arguments, **named)

    def _set_phase(self, phase: str) -> None:
        if self.meter is not None:
            self.meter.phase = phase

    def take_costs(self, phase: str) -> dict[str, Any] | None:
        """Return the costs of a phase; None without a tap, since not measured is not 0."""
        if self.meter is not None:
            return self.meter.take(phase).as_dict()
        return PhaseCosts().as_dict() if self.asks_nobody else None

    def _take_with(self, before: _Progress, phase: str) -> dict[str, Any] | None:
        spent = self.take_costs(phase)
        return spent if spent is None or before.spent is None else PhaseCosts.add_up(before.spent, spent)

    # -- state that outlives the process

    async def _restore(self, key: str) -> int:
        """Restore the memory of a conversation; return True or the number of restored turns, 0 for none."""
        if "restore" not in self.members or self.fingerprint is None:
            return 0
        held = await self._call("restore", "restore()", key)
        return held if isinstance(held, int) else 0

    def _note_progress(self, key: str, before: _Progress, done: int, begun: int, since: float) -> None:
        spent = None if self.meter is None else (self.meter.read("ingest") or PhaseCosts()).as_dict()
        if spent is not None and before.spent is not None:
            spent = PhaseCosts.add_up(before.spent, spent)
        seconds = before.seconds + perf_counter() - since
        self._save_note(key, {"done": done, "begun": begun, "seconds": seconds, "spent": spent})

    def _read_note(self, key: str) -> dict[str, Any] | None:
        """Read the note of an earlier run: it has the costs of writing, and is empty if writing did not finish."""
        if self.settings.folder is None or self.fingerprint is None:
            return None
        try:
            noted = json.loads((self.settings.folder / f"{key}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return noted if isinstance(noted, dict) else None

    def _save_note(self, key: str, facts: Mapping[str, Any]) -> None:
        """Record the start or the costs of writing, for a run that is killed and resumed."""
        folder = self.settings.folder
        if folder is None or self.fingerprint is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"{key}.{os.getpid()}.part"
        draft.write_text(json.dumps(facts), encoding="utf-8")
        draft.replace(folder / f"{key}.json")


def _read_progress(held: int, noted: Mapping[str, Any], steps: Sequence[Step]) -> _Progress | None:
    """Determine the progress of an earlier run from the restored turns; None if the progress is unknown."""
    done, begun = int(noted.get("done", 0)), int(noted.get("begun", 0))
    sizes = [len(given) if kind == "ingest" else 0 for kind, _, given in steps]
    turns = list(accumulate(sizes, initial=0))
    if not held or "done" not in noted or begun >= len(turns):
        return None
    ended = [place for place in range(done, begun + 1) if turns[place] == held]
    if held is True:
        ended = [done] if done == begun else []
    return _Progress(ended[0], float(noted.get("seconds") or 0.0), noted.get("spent")) if ended else None


def _has_asked(facts: Mapping[str, Any]) -> bool:
    """Whether a model or an embedder was called for the conversation or the question."""
    ingest, query = facts["ingest"], facts["query"]
    phases = (ingest.get("spent"), ingest.get("background"), query.get("spent"))
    return any(phase["calls"] or phase["embed_calls"] for phase in phases if phase)


def _join_texts(found: list[Retrieved]) -> str:
    return "\n".join(item["text"] for item in found)


def _is_asked_again(example: Mapping[str, Any], written: _Written) -> bool:
    """Choose a tenth of the questions by their ids, and the first of each conversation."""
    return not written.asked or crc32(str(example["id"]).encode()) % REASK_EVERY == 0
