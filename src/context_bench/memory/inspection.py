"""Observe a memory system from outside: count the system's calls to models at the tap, and check the stored memories.

`Meter` counts calls at the tap, so that none can be missed: chat calls and embedding calls separately, by the phase in
which they arrive.

`Inspection` probes a memory before and after a conversation is written: whether anything survived `reset`, which turns
can be found, and which texts are stored. Questions alone would not show these faults: a memory that loses turns still
answers some.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from zlib import crc32

from context_bench.errors import SystemFailure
from context_bench.memory.conversations import Retrieved, Turn, check_retrieved
from context_bench.memory.members import Members, Worker
from context_bench.memory.probes import find_leftovers
from context_bench.memory.questions import History
from context_bench.pricing import Prices
from context_bench.tap.answering import Answerer, Incoming
from context_bench.tap.server import Tap
from context_bench.text.evidence_state import shows_turn
from context_bench.traffic.calls import Call
from context_bench.utils.tokens import get_tokenizer
from context_bench.wire.forms import read_bill

PROBE_PREFIX = "Was this said before?"
"""The prefix of the benchmark's own queries. Calls that these queries cause are not charged to the system."""


@dataclass
class PhaseCosts:
    """The costs of a phase: `ingest`, `background` (until the tap is quiet), `query`, `late` (outside all other phases)
    or `again` (probes and repeated questions, which are not charged).
    """

    calls: int = 0  # chat calls
    prompt_tokens: int = 0  # from the server, else by our count
    completion_tokens: int = 0
    embed_calls: int = 0  # embedding requests
    embed_tokens: int = 0
    usd: float | None = 0.0  # None once a call has no price
    unpriced: str = ""  # the model of the first call without a price; empty if all have one
    seconds: float = 0.0  # the sum over calls, also of concurrent ones
    failed: int = 0  # calls without an answer

    def add_cost(self, usd: float | None, model: str) -> None:
        """Add the dollars of a call; an unknown price makes the sum unknown."""
        if usd is None:
            self.unpriced = self.unpriced or model
        self.usd = None if usd is None or self.usd is None else self.usd + usd

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @staticmethod
    def add_up(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
        """Add two sums; the dollars are unknown if they are unknown in either."""
        unknown = one["usd"] is None or other["usd"] is None
        return {
            **{key: one[key] + other[key] for key in one if key not in ("usd", "unpriced")},
            "usd": None if unknown else one["usd"] + other["usd"],
            "unpriced": one["unpriced"] or other["unpriced"],
        }


@dataclass
class Meter:
    """The tap of one memory system; it counts calls by the current phase."""

    answerer: Answerer
    port: int
    prices: Prices | None = None
    phase: str = "late"
    last_call: float = 0.0  # the end of the last call of the system, probes excluded
    # the benchmark probes the memory: calls with its prefix belong to the phase `again`
    inspected: bool = False
    # receives the dollars (None if unknown), the tokens and the model of each call
    charge: Callable[[float | None, int, str], None] = lambda *_: None
    _under_way: int = 0
    _sums: dict[str, PhaseCosts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tap = Tap(self.answerer, port=self.port, on_call=self._begin, on_end=self._end)
        self._phases: dict[int, str] = {}

    @property
    def url(self) -> str:
        return f"{self._tap.url}/v1"

    async def start(self) -> None:
        await self._tap.start()

    async def stop(self) -> None:
        await self._tap.stop()

    def seconds_since_last_call(self) -> float:
        """Return the seconds without a call; 0 while one is in flight."""
        return 0.0 if self._under_way else perf_counter() - self.last_call

    def take(self, phase: str) -> PhaseCosts:
        """Return the costs of a phase, and reset them."""
        return self._sums.pop(phase, None) or PhaseCosts()

    def read(self, phase: str) -> PhaseCosts | None:
        """Return the costs of a phase so far; None without calls."""
        return self._sums.get(phase)

    def has_calls(self, phase: str) -> bool:
        return phase in self._sums

    def _begin(self, call: Call, incoming: Incoming) -> None:
        phase = "again" if self.inspected and PROBE_PREFIX.encode() in incoming.body else self.phase
        self._under_way += phase != "again"
        self._phases[id(call)] = phase
        sums = self._sums.setdefault(phase, PhaseCosts())
        if call.embeds:
            sums.embed_calls += 1
        elif call.asks_model:
            sums.calls += 1

    def _end(self, call: Call, incoming: Incoming) -> None:
        phase, now = self._phases.pop(id(call), self.phase), perf_counter()
        if phase != "again":
            self._under_way -= 1
            self.last_call = now
        sums = self._sums.setdefault(phase, PhaseCosts())
        sums.seconds += (call.ended or now) - call.started
        if not call.is_answered:
            sums.failed += 1
            return
        bill = read_bill(call.reply)
        model = str(incoming.document().get("model") or "")
        price = None if self.prices is None else self.prices.of(model)
        if call.embeds:
            tokens = bill["prompt_tokens"] if "prompt_tokens" in bill else _count_input(incoming)
            sums.embed_tokens += tokens
            usd = None if price is None else price.dollars(tokens, 0)
        elif call.asks_model:
            prompt = bill["prompt_tokens"] if "prompt_tokens" in bill else incoming.count_tokens()
            said = call.completion.tokens(get_tokenizer()) if call.completion and "completion_tokens" not in bill else 0
            completion = bill.get("completion_tokens", said)
            sums.prompt_tokens += prompt
            sums.completion_tokens += completion
            full = {**bill, "prompt_tokens": prompt, "completion_tokens": completion}
            usd, tokens = None if price is None else price.cost(full), prompt + completion
        else:
            return
        sums.add_cost(usd, model)
        self.charge(usd, tokens, model)


def _count_input(incoming: Incoming) -> int:
    given = incoming.document().get("input")
    texts = given if isinstance(given, list) else [given]
    count = get_tokenizer()
    return sum(count(each) if isinstance(each, str) else len(each) if isinstance(each, list) else 1 for each in texts)


MAX_CLAIMS = 40  # named turns whose text is looked for, in one search
SAMPLED_TURNS = 8  # turns of each conversation to search by their own text
MIN_WORDS = 5  # shorter turns are not probed: "I see." is in every conversation
MAX_QUESTION_CHARS = 600  # characters of a turn in its query
FIRST_PAUSE, PAUSE_GROWTH = 0.02, 1.25
"""The seconds before the second try, and the factor by which each pause grows."""


@dataclass
class Inspection:
    name: str
    members: Members
    worker: Worker
    meter: Meter | None
    quiet: float  # seconds without any change after which a missing turn counts as lost
    limit: float  # seconds to wait for a turn to be found
    asked: int = 0  # calls of `retrieve` for probes, which are not charged
    sampled: int = 0  # turns probed after they were written
    found: int = 0  # probed turns that were returned, by text or by id
    resets: int = 0  # conversations before which the memory was emptied
    survived: int = 0  # resets after which something was still there
    waited: int = 0  # turns that were found, but not at the first try
    last_lost: int = 0  # conversations whose last turn was not found
    elsewhere: int = 0  # turns that were not found, while turns of other sessions came back
    strangers: int = 0  # queries by users whose names share a prefix with another user's
    overheard: int = 0  # such queries that returned that other user's turn
    named: int = 0  # turns whose ids came back with a turn that was found
    unshown: int = 0  # those of them whose text did not come back
    _known: Turn | None = field(default=None, init=False)
    _named: int = field(default=0, init=False)  # turns whose ids were returned without their text

    def report(self) -> dict[str, int]:
        keys = ("asked", "sampled", "found", "resets", "survived", "waited", "last_lost", "elsewhere")
        return {key: getattr(self, key) for key in (*keys, "strangers", "overheard", "named", "unshown")}

    # -- before a conversation is written

    async def reset(self) -> None:
        """Empty the memory. A vendor's system that starts now calls its embedder; this call is not charged."""
        await self._call_apart("reset")

    async def check_reset(self, history: History) -> None:
        """Look for the previous and the current conversation in a memory that was just emptied."""
        listed, _ = await self._list_memories(history)
        turns = [turn for turn in (self._known, *_sample(history)[:1]) if turn is not None]
        shown = False
        for turn in turns if self._can_be_asked else ():
            shown |= any(shows_turn(item["text"], turn["content"]) for item in await self._ask(turn) or ())
        self.resets += 1
        self.survived += bool(listed) or shown
        self._known = None

    # -- after it was written

    async def wait_until_found(self, history: History, started: float) -> dict[str, Any]:
        """Search for some turns until each is found; a turn counts as lost if nothing changes while it is missing.

        Return `searchable_seconds` since the start of writing, or `unsearchable` with a reason.
        """
        if not self._can_be_asked:
            fixed = self.members.is_control or self.members.is_frozen
            return {} if fixed else {"unsearchable": "it has no retrieve()"}
        turns = _sample(history)
        deadline, patience, found, self._named = perf_counter() + self.limit, self.quiet, 0, 0
        sampled = 0
        for place, turn in enumerate(turns):
            was_found = await self._wait_for(turn, deadline, patience, history)
            if was_found is None:
                continue
            patience = patience if was_found else 0.0  # the other turns had the same time
            sampled, found = sampled + 1, found + was_found
            self.last_lost += place == 0 and not was_found
        ended = perf_counter()
        self.sampled += sampled
        self.found += found
        await self._ask_as_stranger(history)
        if found < sampled:
            if self.meter is None:
                self.quiet = 0.0  # without a tap, do not wait again in each conversation
            return {"unsearchable": "some turns were not found when searched by their own text"}
        if self._named:
            return {"unsearchable": "some turns were named, but their text was not returned"}
        return (
            {"searchable_seconds": ended - started} if turns else {"unsearchable": "its turns are too short to search"}
        )

    async def is_changed(self) -> bool:
        """Whether a turn that was found before is missing in another search."""
        if self._known is None:
            return False
        known = self._known["content"]
        return not any(shows_turn(item["text"], known) for item in await self._ask(self._known) or ())

    async def _ask_as_stranger(self, history: History) -> None:
        """Search for a turn as users who said nothing and whose names begin like the name of the turn's user."""
        turn = self._known
        user = None if turn is None else turn.get("user")
        if turn is None or not user or not self.members.filter_arguments("retrieve", user=user):
            return
        users = {each.get("user") for each in history.turns}
        for stranger in {user[:-1], f"{user}0"} - users - {""}:
            items = await self._ask({**turn, "user": stranger})
            self.strangers += 1
            self.overheard += any(shows_turn(item["text"], turn["content"]) for item in items or ())

    async def _wait_for(self, turn: Turn, deadline: float, patience: float, history: History) -> bool | None:
        """Search for a turn until it is found; return None if the memory fails."""
        pause, before, changed, tries = FIRST_PAUSE, "", perf_counter(), 0
        while True:
            items = await self._ask(turn)
            if items is None:
                return None
            tries += 1
            shown = any(shows_turn(item["text"], turn["content"]) for item in items)
            if shown:
                self._known = turn
            elif any(turn["id"] in (item.get("ids") or ()) for item in items):
                self._named += 1  # it may keep facts in its own words, or only ids
                shown = True
            if shown:
                self.waited += tries > 1
                self._count_claims(items, history)
                return True
            now, spelled = perf_counter(), "\n".join(item["text"] for item in items)
            if spelled != before:
                before, changed = spelled, now
            silent = self.meter is None or self.meter.seconds_since_last_call() >= patience
            if now >= deadline or (silent and now - changed >= patience):
                ids = [name for item in items for name in item.get("ids") or () if name in history.by_id]
                here = turn.get("session")
                self.elsewhere += bool(ids) and all(history.by_id[name][1].get("session") != here for name in ids)
                return False
            await asyncio.sleep(min(pause, max(FIRST_PAUSE, changed + patience - now)))
            pause *= PAUSE_GROWTH

    def _count_claims(self, items: Sequence[Retrieved], history: History) -> None:
        """Count the named turns, and the named turns whose text was not returned."""
        texts = defaultdict[str, list[str]](list)
        for item in items:
            for name in item.get("ids") or ():
                texts[name].append(item["text"])
        known = [history.by_id[name][1] for name in texts if name in history.by_id][:MAX_CLAIMS]
        for turn in _list_searchable(history, known):
            self.named += 1
            self.unshown += not shows_turn(" ".join(texts[turn["id"]]), turn["content"])

    @property
    def _can_be_asked(self) -> bool:
        return "retrieve" in self.members and not (self.members.is_control or self.members.is_frozen)

    async def _ask(self, turn: Turn) -> list[Retrieved] | None:
        """Search for a turn by its own text; return None on a failure, because the questions will show it too."""
        self.asked += 1
        named = self.members.filter_arguments("retrieve", user=turn.get("user"))
        question = f"{PROBE_PREFIX} {turn['content'][:MAX_QUESTION_CHARS]}"
        try:
            found = await self._call_apart("retrieve", question, **named)
            return check_retrieved(found, self.name)
        except SystemFailure:
            return None

    async def _call_apart(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Call a method; calls at the tap that contain our prefix are not charged."""
        if self.meter is not None:
            self.meter.inspected = True
        try:
            return await self.worker.call(f"{name}()", self.members[name], *arguments, **named)
        finally:
            if self.meter is not None:
                self.meter.inspected = False

    # -- stored data

    async def measure(self, history: History) -> dict[str, Any]:
        """Measure the stored size of a conversation, and look for texts that must not be stored."""
        storage: Path | None = await self.worker.call("storage", lambda: self.members.storage)
        facts: dict[str, Any] = {} if storage is None else {"disk_bytes": _measure_disk(storage)}
        held, problem = await self._list_memories(history)
        if held is not None:
            facts["memories"] = len(held)
        elif problem:
            facts["unlisted"] = problem
        if history.hidden:
            facts["store"] = find_leftovers(history.hidden, held, storage, history.kept)
        return facts

    async def _list_memories(self, history: History) -> tuple[list[Any] | None, str]:
        """List the memories of every user with turns; return None and the reason on a failure."""
        if "memories" not in self.members:
            return None, ""
        takes_user = bool(self.members.filter_arguments("ingest", user="any"))
        users = dict.fromkeys(turn.get("user") if takes_user else None for turn in history.turns)
        asked = {
            str(named): named for named in (self.members.filter_arguments("memories", user=user) for user in users)
        }
        held: list[Any] = []
        for named in asked.values():
            try:
                listed = await self.worker.call("memories()", self.members["memories"], **named)
            except SystemFailure as failure:
                return None, str(failure)
            if not isinstance(listed, list | tuple):
                return None, f"{self.name}: memories() must return a list (got {type(listed).__name__})"
            held += listed
        return held, ""


def _sample(history: History) -> list[Turn]:
    """Choose turns to probe: the last turn, since it becomes searchable last, and random turns, since roles may
    alternate.
    """
    said = Counter(turn["content"] for turn in history.turns)  # a repeated text cannot identify its turn
    turns = [turn for turn in _list_searchable(history, history.turns) if said[turn["content"]] == 1]
    drawn = sorted(turns[:-1], key=lambda turn: crc32(f"{history.name} {turn['id']}".encode()))
    return [*turns[-1:], *drawn[: SAMPLED_TURNS - 1]]


def _list_searchable(history: History, turns: Sequence[Turn]) -> list[Turn]:
    """List the turns that a memory must find: long enough, and without text that the memory may drop or replace."""
    dropped = [text.casefold() for text in (*history.hidden, *history.orders, *history.changed)]
    told = (turn for turn in turns if turn.get("forget") is None and len(turn["content"].split()) >= MIN_WORDS)
    return [turn for turn in told if not any(text in turn["content"].casefold() for text in dropped)]


def _measure_disk(path: Path) -> int:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files)
