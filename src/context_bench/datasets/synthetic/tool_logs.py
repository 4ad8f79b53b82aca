"""Server logs: time stamps that only go forward, levels, services, request ids; one line states the fact.

Other lines say the same of other names. A line is made before its place is known, so the clock is set
at the end; every time stamp has the same number of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from context_bench.datasets.synthetic.draw import Draw, Names, words
from context_bench.datasets.synthetic.fit import Stock, ToolOutput

STAMP = "2026-03-14T00:00:00Z"

SERVICES = words("checkout search gateway mailer resizer billing cache auth")
MESSAGES: tuple[tuple[str, str], ...] = (
    ("INFO", "GET {path} status=200 bytes={large} in {small} ms"),
    ("INFO", "POST {path} status=201 in {small} ms"),
    ("INFO", "cache hit for {path}"),
    ("DEBUG", "cache miss for {path}, asking the origin"),
    ("INFO", "job {job} finished after {large} ms, {small} rows written"),
    ("DEBUG", "job {job} picked up by worker {small}"),
    ("WARN", "slow query on table {table}: {large} ms"),
    ("WARN", "retrying {path} after timeout, attempt {digit} of 5"),
    ("ERROR", "upstream reset the connection while reading {path}"),
    ("INFO", "connection pool resized to {small}"),
    ("DEBUG", "parsed {large} bytes of configuration"),
    ("INFO", "user session renewed"),
    ("ERROR", "could not write to table {table}: lock held for {large} ms, giving up"),
    ("INFO", "health check passed"),
    ("WARN", "queue {job} is {small} messages behind"),
    ("DEBUG", "garbage collection took {small} ms and freed {large} kB"),
)
FACTS: tuple[tuple[str, str, str], ...] = (
    (
        "INFO",
        "signing key of tenant {name} rotated, new key id is {value}",
        "What is the new key id of tenant {name}?",
    ),
    (
        "WARN",
        "failover of cluster {name} recorded as incident {value}",
        "As which incident was the failover of cluster {name} recorded?",
    ),
    (
        "INFO",
        "quota of bucket {name} raised to {value} objects",
        "To how many objects was the quota of bucket {name} raised?",
    ),
)
PATHS = words("/v1/orders /v1/cart /v2/items/{0} /login /v1/users/{0}/avatar /search /v2/invoices/{0} /status")
TABLES = ("orders", "sessions", "invoices", "audit_trail", "inventory")
JOBS = ("nightly-export", "thumbnail-batch", "mail-digest", "index-refresh", "stock-sync")


def tool_logs(draw: Draw, _length: int, variant: int) -> ToolOutput:
    """Make log lines as filler and a fact; `variant` chooses what the fact is about."""
    level, message, question = FACTS[variant % len(FACTS)]
    names = Names(draw)
    pair, value = names.name(), names.value()
    name = "-".join(pair)
    fact = message.format(name=name, value=value)
    start = datetime(2026, 3, 14, draw.between(0, 20), draw.between(0, 59), draw.between(0, 59))

    def filler() -> str:
        if draw.chance(0.15):
            other = message.format(name="-".join(names.other(pair)), value=names.value())
            return _write_line(draw, level, other)
        return _write_line(draw, *_draw_message(draw))

    return ToolOutput(
        stock=Stock(filler, lambda: _note(draw), " ms", lambda units: _render(units, start, value)),
        unit=_write_line(draw, level, fact),
        evidence=fact,
        question=question.format(name=name),
        answer=value,
        layout="lines",
    )


def _draw_message(draw: Draw) -> tuple[str, str]:
    level, text = draw.pick(MESSAGES)
    return level, text.format(
        path=draw.pick(PATHS).format(draw.between(100, 9999)),
        table=draw.pick(TABLES),
        job=draw.pick(JOBS),
        digit=draw.between(1, 5),
        small=draw.between(2, 99),
        large=draw.between(100, 9999),
    )


def _write_line(draw: Draw, level: str, message: str) -> str:
    return f"\n{STAMP} {level:<5} {draw.pick(SERVICES)} [{draw.hexadecimal(4)}] {message}"


def _note(draw: Draw) -> str:
    """Return a short line without a time stamp, as log shippers leave them."""
    ending = draw.pick(("", " from this host", " by the shipper", " because of the rate limit"))
    return f"\n... {draw.between(2, 99)} similar lines suppressed{ending}"


def _render(units: Sequence[str], start: datetime, seed: str) -> str:
    draw = Draw("clock", seed)
    lines: list[str] = []
    for unit in units:
        line = unit[1:]
        if line.startswith(STAMP):
            start += timedelta(seconds=draw.between(1, 7))
            line = start.isoformat(timespec="seconds") + line[len(STAMP) - 1 :]
        lines.append(line)
    return "\n".join(lines)
