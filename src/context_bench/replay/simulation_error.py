"""Error of the simulated prompt cache against the recorded counters, on requests outside the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from context_bench.pricing.price_table import Prices
from context_bench.replay.cache_bill import Billed, Simulator, fit_scales, price_recorded
from context_bench.utils.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Deviation:
    """Distribution of the absolute difference between simulated and recorded tokens of a request."""

    median: float
    p95: float
    worst: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> Deviation:
        """Summarize absolute errors."""
        ordered = sorted(map(abs, errors))
        last = len(ordered) - 1
        return cls(*(ordered[round(share * last)] for share in (0.5, 0.95, 1)))


@dataclass(frozen=True, slots=True)
class SimulationError:
    """Errors of the simulated cache on requests outside the fit."""

    requests: int
    reads: Deviation
    writes: Deviation
    trivial_reads: Deviation  # errors of a model that reads the whole previous request
    trivial_writes: Deviation
    nearer: int  # requests whose reads the simulation predicts better than that model
    farther: int
    dollars: float | None  # simulated / recorded - 1; None without a price


def judge_simulation(simulator: Simulator, count: Tokenizer) -> SimulationError | None:
    """Fit the first half of each thread, simulate the whole thread, and compare the second half with the recording."""
    threads, prices = simulator.threads, simulator.prices
    run = simulator.rescale(fit_scales(threads, count, half=True)).run()
    simulated = {(each.thread.id, each.place): each for each in run}
    reads, writes, trivial_reads, trivial_writes = [], [], [], []
    bills: list[tuple[float, float] | None] = []
    for thread in threads:
        for place in range(max(2, len(thread.requests) // 2), len(thread.requests)):
            usage = thread.requests[place].usage
            if usage is None or usage.cache_read is None:
                continue
            billed, before = simulated[thread.id, place], simulated[thread.id, place - 1].uses[0]
            use = billed.uses[0]
            bills.append(_compare_dollars(billed, prices))
            reads.append(use.read - usage.cache_read)
            writes.append(use.write_5m + use.write_1h - usage.cache_write)
            trivial_reads.append(before.prompt - usage.cache_read)
            trivial_writes.append(use.prompt - before.prompt - usage.cache_write)
    if not reads:
        return None
    gained = [abs(trivial) - abs(error) for error, trivial in zip(reads, trivial_reads)]
    known = [bill for bill in bills if bill is not None]
    spent, recorded = sum(bill[0] for bill in known), sum(bill[1] for bill in known)
    dollars = spent / recorded - 1 if recorded and len(known) == len(bills) else None
    nearer, farther = sum(each > 0 for each in gained), sum(each < 0 for each in gained)
    return SimulationError(
        len(reads),
        Deviation.of(reads),
        Deviation.of(writes),
        Deviation.of(trivial_reads),
        Deviation.of(trivial_writes),
        nearer,
        farther,
        dollars,
    )


def _compare_dollars(billed: Billed, prices: Prices | None) -> tuple[float, float] | None:
    """Return the simulated and the recorded dollars of a request; None where either is not known."""
    price = prices.of(billed.request.model) if prices is not None else None
    recorded = price_recorded(billed.request, price) if price is not None else None
    return None if price is None or recorded is None else (billed.dollars(price), recorded)
