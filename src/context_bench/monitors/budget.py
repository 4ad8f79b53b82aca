"""The spending limit of a run: each request reserves its largest possible cost before it is sent.

Requests of systems and judges share the limit. A request waits if it might exceed the limit together with the requests
in flight. If it might exceed the limit even with nothing in flight, the run stops. So the total in the message is
final, and exceeds the limit by at most one request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from context_bench.core.call import Outcome, RequestSize, measure_judge_request, measure_request
from context_bench.core.row import Job
from context_bench.core.threads import call_beside
from context_bench.errors import warn
from context_bench.monitors.limits import Limits
from context_bench.monitors.monitor import Monitor
from context_bench.pricing import Price, Prices
from context_bench.results import Scores
from context_bench.traffic.exchanges import read_exchanges
from context_bench.traffic.row_facts import measure_row
from context_bench.traits import asks_model, find_model, is_endpoint
from context_bench.types import Evaluator, Example
from context_bench.utils.tokens import LONG_TEXT, Tokenizer, read_token_count

CHARGED_APART = RequestSize(0, 0)  # the size of a request whose cost is reported to `Budget.charge`

NOT_JUDGED = "the spending limit was reached before the judge was asked"


@dataclass(frozen=True)
class _Amount:
    """Dollars and tokens."""

    dollars: float = 0.0
    tokens: float = 0.0

    def __add__(self, other: _Amount) -> _Amount:
        return _Amount(self.dollars + other.dollars, self.tokens + other.tokens)


@dataclass
class _Learned:
    """The largest counts from one system's answers so far: prompt tokens billed per counted token, and reply tokens."""

    ratio: float | None = None
    completion: int | None = None

    def update(self, size: RequestSize, prompt: int, completion: int) -> None:
        if size.prompt:
            self.ratio = max(self.ratio or 0.0, prompt / size.prompt)
        self.completion = max(self.completion or 0, completion)


@dataclass(eq=False, slots=True)
class _Request:
    """An admitted request: its sender, price, size and reservation."""

    sender: str
    price: Price | None
    size: RequestSize
    reserved: _Amount | None = None  # None while nothing is known about the length of its reply


class Budget(Monitor):
    """Admits requests while they fit into the limit.

    Attributes:
        spent: The cost of all requests so far.
        judges: The part of `spent` that judges spent.
    """

    def __init__(
        self,
        limits: Limits,
        prices: Prices | None,
        count: Tokenizer,
        on_stop: Callable[[str], None] = lambda _: None,
        threads: Executor | None = None,
    ) -> None:
        self._limits, self._prices, self._count, self._on_stop = limits, prices, count, on_stop
        self._threads = threads
        self.spent, self.judges = _Amount(), _Amount()
        self._estimated = 0.0
        self._in_flight: set[_Request] = set()
        self._jobs: dict[int, _Request] = {}
        self._learned: dict[str, _Learned] = {}
        self._stopped = self._used_up = False
        self._turn, self._changed = asyncio.Lock(), asyncio.Event()

    def stop(self) -> None:
        """Admit no more requests of systems and drop those that wait. Answers in flight are still judged."""
        self._stopped = True
        self._changed.set()

    # -- requests of systems

    async def admit(self, job: Job) -> bool:
        """Wait until the request of a job fits, and reserve its cost; False if the run has stopped."""
        threads = self._threads if job.item.is_long else None
        size = await call_beside(threads, measure_request, job.system, job.item.example, self._count)
        request = _Request(job.system.name, self._price_of(job.system), size)
        if not await self._admit(request, lambda: self._stopped):
            return False
        self._jobs[job.order] = request
        return True

    async def settle(self, job: Job, outcome: Outcome | None) -> None:
        """Replace the reservation of a request by its real cost."""
        request = self._jobs.pop(job.order)
        if outcome is None or request.size == CHARGED_APART:
            self._in_flight.discard(request)
            self._changed.set()
            return
        if "tapped" in outcome.processed:
            self.spent += await call_beside(self._threads, self._price_embeddings, outcome)
        response = outcome.processed.get("response") or ""
        await self._count_cost(request, outcome.metadata, None if outcome.error else response)

    def _price_embeddings(self, outcome: Outcome) -> _Amount:
        """Price the embeddings that a proxy requested through the tap: the usage in its answers does not include
        them."""
        calls = measure_row(read_exchanges(outcome.processed["tapped"]), self._count).embedding_usage or []
        total = _Amount()
        for call in calls:
            tokens, price = read_token_count(call.get("prompt_tokens")) or 0, None
            if self._prices is not None:
                price = self._prices.of(call.get("model"))
            if price is None and self._limits.max_cost is not None:
                warn(f"embeddings by {call.get('model')!r} have no price, so --max-cost does not count them")
            total += _Amount(price.dollars(tokens, 0) if price else 0.0, tokens)
        return total

    def charge(self, dollars: float | None, tokens: int, model: str) -> None:
        """Count a system's spending outside of its answers, and stop the run if the total exceeds the limit."""
        if dollars is None and self._limits.max_cost is not None:
            warn(f"calls of {model!r} have no price, so --max-cost does not count them")
        self.spent += _Amount(dollars or 0.0, tokens)
        limits = (self._limits.max_cost, self.spent.dollars), (self._limits.max_total_tokens, self.spent.tokens)
        if not self._stopped and any(limit is not None and used >= limit for limit, used in limits):
            self._on_stop(f"{self._describe(None)}, and the calls in flight were finished")
            self.stop()
        self._changed.set()

    # -- requests of judges

    async def ask(
        self,
        evaluator: Evaluator,
        example: Example,
        processed: Example,
        ask: Callable[[], Awaitable[Mapping[str, float]]],
    ) -> Mapping[str, float]:
        """Ask an evaluator once its request fits into the limit; at once if it asks no model and so costs nothing."""
        if not asks_model(evaluator):
            return await ask()
        size = await asyncio.to_thread(measure_judge_request, evaluator, example, processed, self._count)
        if size is None:
            return await ask()
        request = _Request(evaluator.name, self._price_of(evaluator), size)
        if not await self._admit(request, lambda: self._used_up):
            return Scores(reason=NOT_JUDGED, transient=True)
        details: Mapping[str, Any] = {}
        try:
            scores = await ask()
            details = scores.details if isinstance(scores, Scores) else {}
            return scores
        finally:
            reply = details.get("reply")
            self.judges += await self._count_cost(request, details, reply if isinstance(reply, str) else None)

    # -- both

    async def _admit(self, request: _Request, closed: Callable[[], bool]) -> bool:
        async with self._turn:  # first come, first served
            while not closed():
                request.reserved = self._estimate(request)
                if self._fits(request.reserved):
                    self._in_flight.add(request)
                    return True
                if not self._in_flight:
                    self._used_up = True
                    self._on_stop(self._describe(request.reserved))
                    self.stop()
                    return False
                self._changed.clear()
                await self._changed.wait()
        return False

    async def _count_cost(self, request: _Request, usage: Mapping[str, Any], reply: str | None) -> _Amount:
        """Add the cost of a request by its usage, else by our own count; `reply` is None if there was none."""
        prompt, completion = (read_token_count(usage.get(key)) for key in ("prompt_tokens", "completion_tokens"))
        told = prompt is not None and completion is not None
        if not told and reply is not None:  # a server without usage must not disable the limit
            prompt = request.size.prompt if prompt is None else prompt
            if completion is None:
                completion = await call_beside(self._threads if len(reply) >= LONG_TEXT else None, self._count, reply)
        self._in_flight.discard(request)
        price = request.price
        dollars = price.dollars(prompt or 0, completion or 0) if price else 0.0
        if told and price:
            dollars = price.cost(usage) or 0.0
        elif reply is not None:
            self._estimated += dollars
        tokens = max(read_token_count(usage.get("total_tokens")) or 0, (prompt or 0) + (completion or 0))
        cost = _Amount(dollars, tokens)
        self.spent += cost
        if prompt is not None and completion is not None:
            self._learned.setdefault(request.sender, _Learned()).update(request.size, prompt, completion)
        self._changed.set()
        return cost

    def _price_of(self, sender: Any) -> Price | None:
        """Return the price of the model that a system or judge asks; None if it asks no model."""
        if self._prices is None or not (is_endpoint(sender) or asks_model(sender)):
            return None
        return self._prices.of(find_model(sender))

    def _estimate(self, request: _Request) -> _Amount | None:
        """Estimate the largest cost of a request; None while nothing is known about its reply."""
        learned = self._learned.get(request.sender, _Learned())
        replies = [each for each in (request.size.reply, learned.completion) if each is not None]
        if not replies:
            return None
        prompt, price = request.size.prompt * (learned.ratio or 1.0), request.price
        return _Amount(price.dollars(prompt, max(replies)) if price else 0.0, prompt + max(replies))

    def _fits(self, need: _Amount | None) -> bool:
        """Whether a request may be sent; while its reply cannot be estimated, only one is sent at a time."""
        if need is None and any(each.reserved is None for each in self._in_flight):
            return False
        taken = self.spent
        for each in self._in_flight:
            taken += each.reserved or _Amount()
        total = taken + (need or _Amount())
        for limit, before, after in (
            (self._limits.max_cost, taken.dollars, total.dollars),
            (self._limits.max_total_tokens, taken.tokens, total.tokens),
        ):
            if limit is not None and (after > limit if need is not None else before >= limit):
                return False
        return True

    def _describe(self, need: _Amount | None) -> str:
        """Say why nothing more is sent; called when nothing is in flight, so the sum is final."""
        dollars, tokens = self._limits.max_cost, self._limits.max_total_tokens
        coming = need or _Amount()
        if dollars is not None and self.spent.dollars + coming.dollars >= dollars:
            guessed = f", ${self._estimated:.4f} of it by our own count" if self._estimated else ""
            judged = f", ${self.judges.dollars:.4f} of it on judging" if self.judges.dollars else ""
            after = f"; the next request may cost ${coming.dollars:.4f}" if need else ""
            return f"the limit of ${dollars:g} is reached (${self.spent.dollars:.4f} spent{judged}{guessed}{after})"
        after = f"; the next request may take {coming.tokens:,.0f}" if need else ""
        judged = f", {self.judges.tokens:,.0f} of them by judges" if self.judges.tokens else ""
        return f"the limit of {tokens:,} tokens is reached ({self.spent.tokens:,.0f} used{judged}{after})"
