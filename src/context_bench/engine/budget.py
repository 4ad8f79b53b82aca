"""The spending limit of a run: each request reserves what it may cost before it is sent.

A request that would pass the limit together with those in flight waits for them; if it still would when nothing is in
flight, the run stops. So the sum that is told then is final, and passes the limit by one request at the most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from context_bench.engine.call import Outcome, is_endpoint
from context_bench.engine.estimates import RequestSize, measure_request
from context_bench.engine.jobs import Job
from context_bench.engine.limits import Limits
from context_bench.engine.threads import call_beside
from context_bench.pricing import Price, Prices
from context_bench.traits import asks_model, find_model
from context_bench.utils.tokens import LONG_TEXT, Tokenizer, read_token_count

__all__ = ["Budget"]


@dataclass(frozen=True)
class _Amount:
    """Dollars and tokens."""

    dollars: float = 0.0
    tokens: float = 0.0

    def __add__(self, other: _Amount) -> _Amount:
        return _Amount(self.dollars + other.dollars, self.tokens + other.tokens)


@dataclass
class _Learned:
    """Estimates learnt from the answers of one system: its tokens per token of a prompt, and its longest reply."""

    ratio: float | None = None
    completion: int | None = None

    def update(self, size: RequestSize, prompt: int, completion: int) -> None:
        if size.prompt:
            self.ratio = max(self.ratio or 0.0, prompt / size.prompt)
        self.completion = max(self.completion or 0, completion)


class Budget:
    """Admits requests as long as they fit.

    Args:
        limits: The most dollars and tokens.
        prices: What tokens cost; None without a limit on dollars.
        count: Counts tokens.
        on_stop: Called when the limit is reached, with the reason.
    """

    def __init__(
        self, limits: Limits, prices: Prices | None, count: Tokenizer, on_stop: Callable[[str], None] = lambda _: None
    ) -> None:
        self._limits, self._prices, self._count, self._on_stop = limits, prices, count, on_stop
        self.spent = _Amount()
        self._estimated = 0.0
        self._in_flight: dict[int, tuple[RequestSize, _Amount | None]] = {}
        self._learned: dict[str, _Learned] = {}
        self._stopped = False
        self._turn, self._changed = asyncio.Lock(), asyncio.Event()

    async def reserve(self, job: Job, long: Executor | None = None) -> bool:
        """Wait until the request of a job fits; False when the run has stopped, and it is not to be sent.

        Args:
            job: What would be sent.
            long: Counts the tokens of a long example, so that the event loop goes on; None counts them here.
        """
        threads = long if job.item.is_long else None
        size = await call_beside(threads, measure_request, job.system, job.item.example, self._count)
        async with self._turn:  # first come, first served
            while not self._stopped:
                need = self._estimate(job, size)
                if self._fits(need):
                    self._in_flight[job.order] = (size, need)
                    return True
                if not self._in_flight:
                    self._on_stop(self._describe(need))
                    self.stop()
                    return False
                self._changed.clear()
                await self._changed.wait()
        return False

    def stop(self) -> None:
        """Admit nothing more; `reserve` returns False to those who wait."""
        self._stopped = True
        self._changed.set()

    async def land(self, job: Job, outcome: Outcome, long: Executor | None = None) -> None:
        """Count what a request has really cost, in place of what was reserved for it, which stays until then.

        Args:
            job: What was sent.
            outcome: What came back.
            long: Counts the tokens of a long reply; None counts them here.
        """
        size, _ = self._in_flight[job.order]
        usage, price = outcome.metadata, self._price(job)
        prompt, completion = (read_token_count(usage.get(key)) for key in ("prompt_tokens", "completion_tokens"))
        told = prompt is not None and completion is not None
        if not told and outcome.error is None:  # a server that tells no usage cannot switch the limit off
            prompt = size.prompt if prompt is None else prompt
            if completion is None:
                response = outcome.processed.get("response") or ""
                completion = await call_beside(long if len(response) >= LONG_TEXT else None, self._count, response)
        del self._in_flight[job.order]
        dollars = price.dollars(prompt or 0, completion or 0) if price else 0.0
        if told and price:
            dollars = price.cost(usage) or 0.0
        elif outcome.error is None:
            self._estimated += dollars
        tokens = max(read_token_count(usage.get("total_tokens")) or 0, (prompt or 0) + (completion or 0))
        self.spent += _Amount(dollars, tokens)
        if prompt is not None and completion is not None:
            self._learned.setdefault(job.system.name, _Learned()).update(size, prompt, completion)
        self._changed.set()

    def _price(self, job: Job) -> Price | None:
        """Find the price of the model that a system asks; None for a system that asks none."""
        if self._prices is None or not (is_endpoint(job.system) or asks_model(job.system)):
            return None
        return self._prices.of(find_model(job.system))

    def _estimate(self, job: Job, size: RequestSize) -> _Amount | None:
        """Estimate the most that a request may cost; None when nothing is known about its reply yet."""
        learned = self._learned.get(job.system.name, _Learned())
        replies = [each for each in (size.reply, learned.completion) if each is not None]
        if not replies:
            return None
        prompt, price = size.prompt * (learned.ratio or 1.0), self._price(job)
        return _Amount(price.dollars(prompt, max(replies)) if price else 0.0, prompt + max(replies))

    def _fits(self, need: _Amount | None) -> bool:
        """Whether a request may go. Of those whose reply is unknown only one goes at a time: any may be the last."""
        unknown = any(reserved is None for _, reserved in self._in_flight.values())
        if need is None and unknown:
            return False
        taken = self.spent
        for _, reserved in self._in_flight.values():
            taken += reserved or _Amount()
        total = taken + (need or _Amount())
        for limit, before, after in (
            (self._limits.max_cost, taken.dollars, total.dollars),
            (self._limits.max_total_tokens, taken.tokens, total.tokens),
        ):
            if limit is not None and (after > limit if need is not None else before >= limit):
                return False
        return True

    def _describe(self, need: _Amount | None) -> str:
        """Say why nothing more is sent; called when nothing is in flight, so that the sum is final."""
        dollars, tokens = self._limits.max_cost, self._limits.max_total_tokens
        coming = need or _Amount()
        if dollars is not None and self.spent.dollars + coming.dollars >= dollars:
            guessed = f", ${self._estimated:.4f} of it by our own count" if self._estimated else ""
            after = f"; the next request may cost ${coming.dollars:.4f}" if need else ""
            return f"the limit of ${dollars:g} is reached (${self.spent.dollars:.4f} spent{guessed}{after})"
        after = f"; the next request may take {coming.tokens:,.0f}" if need else ""
        return f"the limit of {tokens:,} tokens is reached ({self.spent.tokens:,.0f} used{after})"
