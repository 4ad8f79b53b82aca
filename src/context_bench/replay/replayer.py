"""Sessions as examples of a run, and the system that sends their requests through an arm and judges the results.

An example is a whole session: its threads share a prompt cache, and a proxy may keep state for each session. A resumed
run continues with the sessions that are still missing. Requests are sent one at a time, ordered by start. The result
keeps the parts that an arm changed, and a few passages around lost text.
"""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from context_bench.errors import ConnectionFailed, SystemFailure
from context_bench.http.loop import run_sync
from context_bench.pricing.price import CACHE_MINIMUM
from context_bench.pricing.price_table import Prices
from context_bench.pricing.prompt_cache import Block, CacheUse
from context_bench.replay.arms import Arm, Sent
from context_bench.replay.cache_bill import (
    Billed,
    BlockReader,
    Simulator,
    fit_scales,
    order_requests,
    price_recorded,
)
from context_bench.replay.copied_text import (
    Foreign,
    SessionSpans,
    ThreadJudge,
    Turn,
    count_naively,
    count_turns,
    list_call_spans,
)
from context_bench.replay.integrity import find_faults
from context_bench.replay.packing import SentPacker, SentReader, digest_session
from context_bench.replay.simulation_error import judge_simulation
from context_bench.text import dump_json
from context_bench.traffic.parts import Part, RecordedParts, list_messages, list_parts
from context_bench.traffic.readers import Findings, read_sessions
from context_bench.traffic.sessions import Request, Session
from context_bench.traffic.text_diff import diff_texts
from context_bench.traits import SystemTraits
from context_bench.types import Example
from context_bench.utils.tokens import Tokenizer
from context_bench.wire.forms import read_prompt

MAX_REPLIES = 500  # of one session that are given to turns of other sessions
MAX_OPEN_SESSIONS = 4
MAX_LOSSES = 3  # passages kept for each session
MAX_PASSAGE_CHARS = 400
MAX_SILENT = 3  # timeouts in a row that end a session
BROKEN_TOKENS = 64
"""The cache counts as broken if a request reads at least this many tokens fewer than with a stable prefix."""
BROKEN_STEPS = 256  # the same for caches that read in steps of 128 tokens


@dataclass
class Recording:
    """Recorded sessions from one or more files: facts about all of them, and each session on demand."""

    paths: list[str]
    findings: Findings = field(default_factory=Findings)
    spans: SessionSpans = field(default_factory=SessionSpans)
    examples: list[Example] = field(default_factory=list)
    _replies: dict[str, list[list[str]]] = field(default_factory=dict)
    _open: OrderedDict[str, Session] = field(default_factory=OrderedDict)

    @classmethod
    def read(cls, paths: Sequence[str | Path]) -> Recording:
        """Read all files once; raise DataError if a named file is no recording."""
        recording = cls([str(path) for path in paths])
        for session in read_sessions(recording.paths, recording.findings):
            recording.add(session)
        return recording

    def add(self, session: Session) -> None:
        self.spans.add(session)
        source = random.Random(session.id)
        spans = [list_call_spans(request.reply) for request in session.requests]
        self._replies[session.id] = spans if len(spans) <= MAX_REPLIES else source.sample(spans, MAX_REPLIES)
        files = sorted({thread.path for thread in session.threads})
        namesakes = sum(each["meta"]["session"] == session.id for each in self.examples)
        self.examples.append(
            {
                "id": f"{session.id} ({namesakes + 1})" if namesakes else session.id,
                "context": "",
                "digest": digest_session(session),
                "meta": {"session": session.id, "files": files, "requests": len(session.requests)},
            }
        )

    @property
    def digest(self) -> str:
        """Return a hash of all sessions: the judgement of each session depends on all others."""
        return blake2b(dump_json([each["digest"] for each in self.examples]).encode(), digest_size=8).hexdigest()

    def open(self, example: Example) -> Session:
        """Return a session; the most recent ones stay in memory."""
        identity = str(example["id"])
        if identity not in self._open:
            self._open[identity] = open_session(example)
            while len(self._open) > MAX_OPEN_SESSIONS:
                self._open.popitem(last=False)
        return self._open[identity]

    def draw_replies(self, session: str) -> Iterator[Foreign]:
        """Yield random replies of other sessions, the same for every system; empty replies if there is no other
        session.
        """
        others = [(other, spans) for other, replies in self._replies.items() if other != session for spans in replies]
        source = random.Random(session)
        while True:
            yield source.choice(others) if others else ("", [])


def open_session(example: Example) -> Session:
    """Read an example's session from its files."""
    found = read_sessions(example["meta"]["files"])
    return next(session for session in found if session.id == example["meta"]["session"])


class Replayer:
    """System that replays sessions through an arm; its output describes the outcome of each request."""

    def __init__(self, arm: Arm, recording: Recording, prices: Prices, count: Tokenizer) -> None:
        self.arm, self.name = arm, arm.name
        self._recording, self._prices, self._count = recording, prices, count
        self.prepare, self.finish = arm.prepare, arm.finish
        self._status = ""

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(max_workers=1, own_client=True, competes=False, status_text=lambda: self._status)

    @property
    def fingerprint(self) -> str | None:
        own = self.arm.fingerprint
        return None if own is None else f"{own}, replay/7 of {self._recording.digest}"

    def process(self, example: Example) -> Example:
        """Run `aprocess` for callers without an event loop."""
        return run_sync(self.aprocess(example))

    async def aprocess(self, example: Example) -> Example:
        """Send all requests of a session, and judge it."""
        session = self._recording.open(example)
        job = SessionJob(session, self._recording, self._count, self._prices)
        packer, replayed = SentPacker(), []
        silent = 0
        for number, (thread, place, _) in enumerate(order_requests(session.threads), 1):
            self._status = f"{self.name}: request {number:,} of {example['meta']['requests']:,}"
            request = thread.requests[place]
            body = job.make_body(request)
            try:
                sent = await self.arm.send(request.api, body, f"{session.id}:{thread.id}", request.reply)
            except ConnectionFailed as failure:
                raise SystemFailure(f"at request {number}: {failure}") from None
            if sent.refused:
                raise SystemFailure(
                    f"not replayable: in request {number} {self.name} asked a model about the conversation; "
                    "add --tap-model local to let a small local model answer"
                )
            silent = silent + 1 if sent.timed_out else 0
            if silent == MAX_SILENT:
                raise SystemFailure(f"gave up at request {number}: {sent.error}, {MAX_SILENT} times in a row")
            job.judge_request(thread.id, place, request, body, sent)
            replayed.append(packer.pack(body, sent))
        kept = {"sent": replayed, "texts": packer.texts}
        return {"response": "", "replayed": kept, "metadata": {"replay": job.summarize()}}


def replay_again(
    session: Session, recording: Recording, replayed: Mapping[str, Any], prices: Prices, count: Tokenizer
) -> dict[str, Any]:
    """Judge the forwarded requests of a session again, from the stored output of its replay."""
    job, reader = SessionJob(session, recording, count, prices), SentReader(replayed["texts"])
    for (thread, place, _), packed in zip(order_requests(session.threads), replayed["sent"]):
        body = job.make_body(thread.requests[place])
        job.judge_request(thread.id, place, thread.requests[place], body, reader.read(body, packed))
    return job.summarize()


class SessionJob:
    """Judge of one session, request by request."""

    def __init__(self, session: Session, recording: Recording, count: Tokenizer, prices: Prices) -> None:
        self._session, self._count, self._prices = session, count, prices
        self._reader = BlockReader(count)
        self._simulator = Simulator(session.threads, fit_scales(session.threads, count), self._reader, prices)
        self.make_body = self._simulator.make_body
        self._parts = RecordedParts()
        self._judges = {thread.id: ThreadJudge(session.id, recording.spans, self._parts) for thread in session.threads}
        self._foreign = recording.draw_replies(session.id)
        self._blocks: dict[tuple[str, int], list[list[Block]]] = {}
        self._turns: list[Turn] = []
        self._facts: list[dict[str, Any]] = []
        self._losses: list[dict[str, Any]] = []
        self._known: dict[tuple[int, int], int] = {}  # tokens of a text, by its length and hash
        self._tools: dict[str, ToolFacts] = defaultdict(ToolFacts)

    def judge_request(self, thread: str, place: int, request: Request, body: Mapping[str, Any], sent: Sent) -> None:
        """Judge the body sent instead of one request."""
        turn = self._judges[thread].judge(request, sent.body, next(self._foreign))
        self._turns.append(turn)
        # A request that did not reach the model is billed as recorded: failures save nothing.
        bodies = [body] if sent.body is None else [sent.body, *sent.repeated]
        self._blocks[thread, place] = [self._simulator.read(each) for each in bodies]
        before = _count_body(body, self._count)
        after = before if sent.body is None else sum(_count_body(each, self._count) for each in bodies)
        facts = {
            "thread": thread,
            "turn": place + 1,
            "tokens": before,
            "sent_tokens": after,
            "result_tokens": self._take_results(request, bodies, turn),
            "faults": find_faults(request.api, body, sent.body) if sent.body is not None else [],
            "copied": len(turn.copied),
            "lost": list(turn.lost[:MAX_LOSSES]),
            "mendable": turn.mendable,
        }
        optional = {
            "error": sent.error or ("nothing reached the model" if sent.body is None else ""),
            "side_calls": sent.side_calls,
            "repeated": len(sent.repeated),
            "claimed": sent.claimed,
            "changed_reply": sent.changed_reply,
        }
        self._facts.append(facts | {key: value for key, value in optional.items() if value})
        if turn.lost and sent.body is not None:
            loss = {"thread": thread, "turn": place + 1, "lost": len(turn.lost)}
            self._losses.append(loss | _show_loss(turn.lost[0], request, sent.body))
            self._losses = sorted(self._losses, key=lambda each: -each["lost"])[:MAX_LOSSES]

    def summarize(self) -> dict[str, Any]:
        """Bill the session with the simulated cache, and return all its facts."""
        prices = self._prices
        runs = {
            "recorded": self._simulator.run(),
            "sent": self._simulator.run(self._blocks),
            "recorded_cold": self._simulator.run(cold=True),
            "sent_cold": self._simulator.run(self._blocks, cold=True),
        }
        for facts, bills in zip(self._facts, _compare_bills(runs["recorded"], runs["sent"], prices)):
            facts |= bills
        found = judge_simulation(self._simulator, self._count)
        dollars = {name: _sum_dollars(billed, prices) for name, billed in runs.items()}
        uncached = {f"{name}_uncached": _sum_dollars(runs[name], prices, without_cache=True) for name in _SIDES}
        times = [request.started for request in self._session.requests if request.started is not None]
        models = {request.model: prices.of(request.model) for request in self._session.requests if request.model}
        return {
            "requests": len(self._facts),
            "prices": {model: price.to_dict() for model, price in models.items() if price is not None},
            "counts": count_turns(self._turns),
            "naive": count_naively(self._turns),
            "dollars": dollars | uncached,
            "times": [min(times), max(times)] if times else [],
            "cache_reads": _sum_reads(runs["recorded"]) if self._simulator.reads_best_case() else None,
            "billed_dollars": _sum_recorded(self._session, prices),
            "simulation": None if found is None else asdict(found),
            "unpriced": sorted(
                {each.model or "an unnamed model" for each in self._session.requests if prices.of(each.model) is None}
            ),
            "has_usage": any(request.usage is not None for request in self._session.requests),
            "reconstructed": sorted({each for thread in self._session.threads for each in thread.reconstructed}),
            "tools": {name: asdict(facts) for name, facts in self._tools.items()},
            "turns": self._facts,
            "losses": self._losses,
        }

    def _take_results(self, request: Request, bodies: Sequence[Mapping[str, Any]], turn: Turn) -> int:
        """Add up the tool results on both sides; return the recorded tokens."""
        before = self._count_results(self._parts.list(request.messages))
        for tool, tokens in before.items():
            self._tools[tool].tokens += tokens
        for each in bodies:
            given = _list_given(list_messages(each))
            for tool, tokens in self._count_results(given).items():
                self._tools[tool].sent_tokens += tokens
        for tool in turn.sources:
            self._tools[tool or "user"].lost += 1
        return before.total()

    def _count_results(self, parts: Iterable[Part]) -> Counter[str]:
        """Count the tokens of results by tool."""
        found: Counter[str] = Counter()
        for part in parts:
            if part.kind == "result":
                key = len(part.text), hash(part.text)
                if key not in self._known:
                    self._known[key] = self._count(part.text)
                found[part.tool or "?"] += self._known[key]
        return found


@dataclass(slots=True)
class ToolFacts:
    """Totals of one tool's results in a session; a result counts each time it was sent."""

    tokens: int = 0
    sent_tokens: int = 0
    lost: int = 0  # turns that lost text from its results


def _count_body(body: Mapping[str, Any] | None, count: Tokenizer) -> int:
    prompt = read_prompt(body) if body is not None else None
    return prompt.tokens(count) if prompt is not None else 0


def _show_loss(span: str, request: Request, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded passage around a lost span, as a diff with the text sent instead."""
    held = next((part for part in _list_given(request.messages) if span in part.text), None)
    if held is None:
        return {"span": span}
    given = _list_given(list_messages(sent))
    after = next((part.text for part in given if part.kind == held.kind and part.id == held.id), "") if held.id else ""
    low, high = held.text.index(span) - MAX_PASSAGE_CHARS // 2, held.text.index(span) + MAX_PASSAGE_CHARS // 2
    diff, at = [], 0
    for segment in diff_texts(held.text, after):
        start, end = max(low, at) - at, min(high, at + len(segment.text)) - at
        if start < end or (not segment.text and low <= at <= high):
            diff.append([segment.kind, segment.text[max(0, start) : end], segment.new[:MAX_PASSAGE_CHARS]])
        at += len(segment.text)
    return {"span": span, "tool": held.tool, "diff": diff}


def _list_given(messages: Iterable[Any]) -> list[Part]:
    """List the tool results and user texts."""
    tools: dict[str, str] = {}
    parts = [part for message in messages for part in list_parts(message, tools)]
    return [part for part in parts if part.kind in ("result", "user")]


def _compare_bills(recorded: Sequence[Billed], sent: Sequence[Billed], prices: Prices) -> Iterator[dict[str, Any]]:
    """Yield the cache use of each request on both sides, its dollars if the model has a price, and the cache damage.

    If the prefix is stable, a request reads from the cache the same share of the previous request in its thread as in
    the recording, and nothing that its own turn added.
    """
    last: dict[str, tuple[int, int]] = {}  # previous prompt of each thread: recorded, sent
    for old, new in zip(recorded, sent):
        facts: dict[str, Any] = {
            "recorded_prompt": old.prompt,
            "recorded_read": old.read,
            "prompt": new.prompt,
            "read": new.read,
        }
        old_before, new_before = last.get(old.thread.id, (0, 0))
        first = new.uses[0]
        last[old.thread.id] = old.prompt, first.prompt
        share = old.read / old_before if old_before else 0.0
        price = prices.of(old.request.model)
        stable = min(round(share * new_before), first.prompt - new.added)
        if stable < (CACHE_MINIMUM if price is None else price.cache_minimum):
            stable = 0  # too short for any cache
        if stable - first.read >= (BROKEN_TOKENS if old.request.api == "anthropic" else BROKEN_STEPS):
            facts["lost_reads"] = stable - first.read
        if price is not None:
            facts |= {"recorded_dollars": old.dollars(price), "dollars": new.dollars(price)}
        if price is not None and "lost_reads" in facts:
            kept = replace(new, uses=(CacheUse(0, stable, first.prompt - stable), *new.uses[1:]))
            facts["damage_dollars"] = max(0.0, facts["dollars"] - kept.dollars(price))
        yield facts


_SIDES = ("recorded", "sent")


def _sum_reads(billed: Sequence[Billed]) -> dict[str, int]:
    """Add up simulated and recorded cache reads of the requests with recorded reads."""
    known = [(each.read, each.request.usage.cache_read) for each in billed if each.request.usage is not None]
    reported = [(simulated, read) for simulated, read in known if read is not None]
    return {"simulated": sum(each for each, _ in reported), "recorded": sum(each for _, each in reported)}


def _sum_dollars(billed: Sequence[Billed], prices: Prices, *, without_cache: bool = False) -> float | None:
    """Add up the dollars of all requests; None if the price of a model is unknown."""
    known = [(each, prices.of(each.request.model)) for each in billed]
    spent = [each.dollars(price, without_cache=without_cache) for each, price in known if price is not None]
    return sum(spent) if len(spent) == len(known) else None


def _sum_recorded(session: Session, prices: Prices) -> float | None:
    known = [(request, prices.of(request.model)) for request in session.requests]
    spent = [price_recorded(request, price) for request, price in known if price is not None]
    bills = [each for each in spent if each is not None]
    return sum(bills) if len(bills) == len(known) else None
