"""Counts what a memory system asks of models, by phase, at the tap, where nothing can be left out.

A call belongs to the phase in which it arrived. Calls to models and calls for embeddings are apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from context_bench.pricing import Prices
from context_bench.tap.answering import Answerer, Incoming
from context_bench.tap.server import Tap
from context_bench.traffic.calls import Call
from context_bench.utils.tokens import get_tokenizer
from context_bench.wire.forms import read_bill

OURS = "Was this said before?"
"""How the benchmark begins to ask for a turn in its own words. The calls that this takes are charged to nobody."""

PHASES = ("ingest", "background", "query", "late", "again")
"""While turns are written; after that, until it is quiet; while a question is asked; outside of all of these; while
the benchmark asks for a turn, or for a question once more: that is our doing, and is charged to nobody."""


@dataclass
class Spending:
    """Sums over the calls of one phase.

    Attributes:
        calls: Of a model.
        prompt_tokens: What it read, as its server says, else as we count.
        completion_tokens: What it wrote.
        embed_calls: Requests for embeddings.
        embed_tokens: What was embedded.
        usd: Dollars; None once a call has no price.
        unpriced: The model of the first call without a price; empty where there was none.
        seconds: Spent in calls, each with its own time.
        failed: Calls that were not answered.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    embed_calls: int = 0
    embed_tokens: int = 0
    usd: float | None = 0.0
    unpriced: str = ""
    seconds: float = 0.0
    failed: int = 0

    def add_cost(self, usd: float | None, model: str) -> None:
        """Add the dollars of a call; what is not known makes the sum unknown."""
        if usd is None:
            self.unpriced = self.unpriced or model
        self.usd = None if usd is None or self.usd is None else self.usd + usd

    def as_dict(self) -> dict[str, Any]:
        """Return the sums as they stand in a row."""
        return dict(vars(self))


@dataclass
class Meter:
    """A tap for one memory system, which knows what the system is doing.

    Args:
        answerer: Who answers.
        port: Where it listens.
        prices: For the dollars.
        phase: What the system is doing.
        last_call: When the last call ended that the system made for itself.
        inspected: The benchmark asks a question of its own now: calls that repeat it belong to the phase `again`.
    """

    answerer: Answerer
    port: int
    prices: Prices | None = None
    phase: str = "late"
    last_call: float = 0.0
    inspected: bool = False
    _under_way: int = 0
    _sums: dict[str, Spending] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tap = Tap(self.answerer, port=self.port, on_call=self._begin, on_end=self._end)
        self._phases: dict[int, str] = {}

    @property
    def url(self) -> str:
        """The base URL for a client of OpenAI's API."""
        return f"{self._tap.url}/v1"

    async def start(self) -> None:
        await self._tap.start()

    async def stop(self) -> None:
        await self._tap.stop()

    def seconds_since_last_call(self) -> float:
        """Seconds without a call; 0 while one is under way."""
        return 0.0 if self._under_way else perf_counter() - self.last_call

    def take(self, phase: str) -> Spending:
        """Return what was spent in a phase since it was last asked for, and begin anew."""
        return self._sums.pop(phase, None) or Spending()

    def read(self, phase: str) -> Spending | None:
        """Return what was spent in a phase so far; None where nothing was asked."""
        return self._sums.get(phase)

    def has_calls(self, phase: str) -> bool:
        """Whether anything was asked in a phase."""
        return phase in self._sums

    def _begin(self, call: Call, incoming: Incoming) -> None:
        phase = "again" if self.inspected and OURS.encode() in incoming.body else self.phase
        self._under_way += phase != "again"
        self._phases[id(call)] = phase
        sums = self._sums.setdefault(phase, Spending())
        if call.embeds:
            sums.embed_calls += 1
        elif call.asks_model:
            sums.calls += 1

    def _end(self, call: Call, incoming: Incoming) -> None:
        phase, now = self._phases.pop(id(call), self.phase), perf_counter()
        if phase != "again":
            self._under_way -= 1
            self.last_call = now
        sums = self._sums.setdefault(phase, Spending())
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
            sums.add_cost(None if price is None else price.dollars(tokens, 0), model)
        elif call.asks_model:
            prompt = bill["prompt_tokens"] if "prompt_tokens" in bill else incoming.count_tokens()
            completion = bill["completion_tokens"] if "completion_tokens" in bill else _count_said(call)
            sums.prompt_tokens += prompt
            sums.completion_tokens += completion
            full = {**bill, "prompt_tokens": prompt, "completion_tokens": completion}
            sums.add_cost(None if price is None else price.cost(full), model)


def _count_said(call: Call) -> int:
    return call.completion.tokens(get_tokenizer()) if call.completion else 0


def _count_input(incoming: Incoming) -> int:
    given = incoming.document().get("input")
    texts = given if isinstance(given, list) else [given]
    count = get_tokenizer()
    return sum(count(each) if isinstance(each, str) else len(each) if isinstance(each, list) else 1 for each in texts)
