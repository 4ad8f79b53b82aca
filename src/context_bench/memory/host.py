"""One memory system in a run: the host writes each conversation into it once, then asks its questions.

The host asks one question at a time, in the order of the run. If a conversation cannot be written, each of its
questions gets that error, and the next conversation is tried. After the last question of a conversation the host asks a
tenth of them again, to detect memories that reading changes.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from zlib import crc32

from context_bench.errors import BadOutput, SystemFailure
from context_bench.memory.conversations import Retrieved, check_retrieved, plan_steps
from context_bench.memory.inspection import Inspection, Meter, PhaseCosts
from context_bench.memory.members import Members, Worker
from context_bench.memory.questions import History, Questions
from context_bench.memory.scoring import STOOD_IN
from context_bench.store.origin import digest
from context_bench.traits import is_script

REASK_EVERY = 10  # re-ask one question in ten to detect memories that reading changes

QUIET_POLL_SECONDS = 0.02  # pause between two checks whether a memory still makes calls


@dataclass(frozen=True)
class HostSettings:
    granularity: str = "session"  # what one call of `ingest` brings: a turn, a pair or a session
    timeout: float = 600.0  # seconds for one call of the system
    quiet: float = 5.0  # seconds without a call at the tap after which a memory counts as written
    max_quiet: float = 120.0  # the most seconds that are waited for that
    folder: Path | None = None  # where it is kept which conversations are written, for systems that can restore them
    reuse: bool = True  # whether what an earlier run wrote may be used


@dataclass
class _Written:
    history: History  # its turns
    failure: SystemFailure | None = None  # why it could not be written
    facts: dict[str, Any] = field(default_factory=dict)  # what writing it took
    store: dict[str, Any] | None = None  # what must not be kept and is: see `find_leftovers`
    # what was found for the questions that will be asked again
    asked: dict[str, tuple[dict[str, Any], str]] = field(default_factory=dict)


class Host:
    """Writes conversations into one memory system and asks it questions.

    With `asks_nobody` it is known to ask no model, so that it costs nothing although no tap counts.
    """

    def __init__(
        self,
        name: str,
        members: Members,
        fingerprint: str | None,
        settings: HostSettings,
        meter: Meter | None = None,
        *,
        asks_nobody: bool = False,
    ) -> None:
        self.name, self.members, self.fingerprint, self.settings = name, members, fingerprint, settings
        self.meter, self.asks_nobody = meter, asks_nobody
        self.questions: Questions | None = None
        self.status_text = ""
        self.lock = asyncio.Lock()
        self._worker = Worker(name, settings.timeout)
        self._written: _Written | None = None
        self._users = 0
        self._ingested: set[str] = set()
        self._written_again = 0
        self._reasked = {"asked": 0, "changed": 0, "failed": 0}
        self._restored = 0
        self._scripted = meter is not None and is_script(meter.answerer)
        patience = 0.0 if asks_nobody else settings.quiet  # what asks nobody has nothing to wait for
        self._inspection = Inspection(name, members, self._worker, meter, patience, settings.max_quiet)

    async def prepare(self) -> None:
        self._users += 1
        if self._users == 1 and self.meter is not None:
            await self.meter.start()

    async def finish(self) -> None:
        """Re-ask the questions of the last conversation, and close the tap with the last arm."""
        self._users -= 1
        if self._users > 0:
            return
        try:
            async with self.lock:
                await self._reask_questions()
        finally:
            self._worker.close()
            if self.meter is not None:
                await self.meter.stop()

    def report(self) -> dict[str, Any]:
        late = None if self.meter is None else self.meter.read("late")
        return {
            "granularity": self.settings.granularity,
            "dates": "native" if self.members.takes_dates else "in the text",
            "takes_user": self.members.takes_user,
            "metered": self.meter is not None or self.asks_nobody,
            "is_control": self.members.is_control,
            "asked_again": dict(self._reasked),
            "inspected": self._inspection.report(),
            "restored": self._restored,
            "written_again": self._written_again,
            "late": None if late is None else late.as_dict(),
        }

    # -- a conversation

    async def ensure_written(self, name: str) -> dict[str, Any]:
        """Write a conversation into the memory unless it is there already; return what writing it took."""
        assert self.questions is not None
        if self._written is None or self._written.history.name != name:
            await self._reask_questions()
            self._written = _Written(self.questions.find(name))
            try:
                await self._write(self._written)
            except SystemFailure as failure:
                self._written.failure = failure
            finally:
                self.status_text = ""
                self._set_phase("late")
        if self._written.failure is not None:
            raise SystemFailure(str(self._written.failure))
        return self._written.facts

    async def _write(self, written: _Written) -> None:
        history = written.history
        key = digest(self.fingerprint or "", self.name, self.settings.granularity, history.digest).hex()
        self._set_phase("ingest")
        if await self._restore(key, written):
            return
        earlier = self.settings.reuse and self._read_note(key) is not None
        self._written_again += earlier or history.name in self._ingested
        self._ingested.add(history.name)
        self._save_note(key, {})  # begun, and not whole
        await self._inspection.reset()
        await self._inspection.check_reset(history)
        started = perf_counter()
        calls = await self._ingest(history)
        ended = perf_counter()
        searchable = await self._wait_until_quiet(history, started)
        written.facts = {
            "turns": len(history.turns),
            "writes": calls,
            "seconds": ended - started,
            **searchable,
            "spent": self.take_costs("ingest"),
            "background": self.take_costs("background"),
            **await self._inspection.measure(history),
        }
        written.store = written.facts.get("store")
        self._save_note(key, written.facts)

    async def _ingest(self, history: History) -> int:
        members, calls, written = self.members, 0, 0
        steps = plan_steps(
            history.turns, self.settings.granularity, takes_dates=members.takes_dates, forgets="forget" in members
        )
        for kind, user, given in steps:
            calls += 1
            self.status_text = f"{self.name}: {written:,} of {len(history.turns):,} turns written"
            named = members.filter_arguments(kind, user=user)
            await self._call(kind, f"{kind}() of conversation {history.name!r}", given, **named)
            written += len(given) if kind == "ingest" else 1
        return calls

    async def _wait_until_quiet(self, history: History, started: float) -> dict[str, Any]:
        """Wait until the turns can be found: call `flush()`, probe for them, then wait until the tap is quiet."""
        self._set_phase("background")
        if "flush" in self.members:
            await self._call("flush", "flush()")
        searchable = await self._inspection.wait_until_found(history, started)
        meter = self.meter
        if meter is not None and (meter.has_calls("ingest") or meter.has_calls("background")):
            deadline = perf_counter() + self.settings.max_quiet
            while meter.seconds_since_last_call() < self.settings.quiet and perf_counter() < deadline:
                await asyncio.sleep(min(QUIET_POLL_SECONDS, self.settings.quiet))
        if await self._inspection.is_changed():
            self._reasked["asked"] += 1
            self._reasked["changed"] += 1
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
                self._reasked["failed"] += 1
            else:
                self._reasked["asked"] += 1
                self._reasked["changed"] += _join_texts(found) != before
        if self.meter is not None:
            self.meter.take("again")
        self._set_phase("late")

    # -- a question

    async def retrieve(self, example: Mapping[str, Any], k: int | None, budget: int | None) -> list[Retrieved]:
        about = example["memory"]
        if "point_to" in self.members and self.members.is_control:
            await self._call("point_to", "point_to()", about.get("evidence_ids") or [])
        named = self.members.filter_arguments("retrieve", k=k, budget_tokens=budget, user=about.get("user"))
        self._set_phase("query")
        try:
            found = await self._retrieve(example["question"], named)
        finally:
            self._set_phase("late")
        written = self._written
        if written is not None and not self.members.is_control and _is_asked_again(example, written):
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
        """List what evaluators must know of the memory beside the answer."""
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
        """Return the sums of a phase; None where no tap counts, since what was not measured is not 0."""
        if self.meter is not None:
            return self.meter.take(phase).as_dict()
        return PhaseCosts().as_dict() if self.asks_nobody else None

    # -- what outlives the process

    async def _restore(self, key: str, written: _Written) -> bool:
        if "restore" not in self.members or self.fingerprint is None:
            return False
        known = await self._call("restore", "restore()", key)
        noted = self._read_note(key) if self.settings.reuse else None
        if known is not True or not noted:
            return False
        self._restored += 1
        written.facts, written.store = noted, noted.get("store")
        return True

    def _read_note(self, key: str) -> dict[str, Any] | None:
        """Read what an earlier run noted of a conversation: what writing it took, or nothing if it did not end."""
        if self.settings.folder is None or self.fingerprint is None:
            return None
        try:
            noted = json.loads((self.settings.folder / f"{key}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return noted if isinstance(noted, dict) else None

    def _save_note(self, key: str, facts: Mapping[str, Any]) -> None:
        """Record that writing has begun, or what it took, for a run that is killed and resumed."""
        folder = self.settings.folder
        if folder is None or self.fingerprint is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"{key}.{os.getpid()}.part"
        draft.write_text(json.dumps(facts), encoding="utf-8")
        draft.replace(folder / f"{key}.json")


def _has_asked(facts: Mapping[str, Any]) -> bool:
    """Whether a model or an embedder was asked to write the conversation, or for the question."""
    ingest, query = facts["ingest"], facts["query"]
    phases = (ingest.get("spent"), ingest.get("background"), query.get("spent"))
    return any(phase["calls"] or phase["embed_calls"] for phase in phases if phase)


def _join_texts(found: list[Retrieved]) -> str:
    return "\n".join(item["text"] for item in found)


def _is_asked_again(example: Mapping[str, Any], written: _Written) -> bool:
    """Choose a tenth of the questions by their ids, and the first of each conversation."""
    return not written.asked or crc32(str(example["id"]).encode()) % REASK_EVERY == 0
