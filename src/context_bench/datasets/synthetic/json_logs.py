"""`json-logs`: a fact inside a tool's output, which agent proxies compress: here, logs and source code.

Logs have time stamps that only go forward, levels, services and request ids. A line is made before its place is known,
so time stamps are filled in at the end; all time stamps have the same number of tokens. Source code always parses, and
no name is defined twice. Other lines and constants state similar facts about other names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from context_bench.datasets.synthetic.building import (
    Draw,
    Fact,
    Names,
    Stock,
    ToolOutput,
    assemble,
    check_cell,
    check_choice,
    check_share,
    choose_depth,
    make_example,
    phrases,
    words,
    write_depth_tag,
)
from context_bench.datasets.synthetic.tool_json import tool_json

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
    ("INFO", "signing key of tenant {name} rotated, new key id is {value}", "What is the new key id of tenant {name}?"),
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
    """Make log lines as filler and a fact; `variant` chooses the subject of the fact."""
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
        stock=Stock(filler, lambda: _write_note(draw), " ms", lambda units: _render_logs(units, start, value)),
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


def _write_note(draw: Draw) -> str:
    """Return a short line without a time stamp, as log shippers leave them."""
    ending = draw.pick(("", " from this host", " by the shipper", " because of the rate limit"))
    return f"\n... {draw.between(2, 99)} similar lines suppressed{ending}"


def _render_logs(units: Sequence[str], start: datetime, seed: str) -> str:
    draw = Draw("clock", seed)
    lines: list[str] = []
    for unit in units:
        line = unit[1:]
        if line.startswith(STAMP):
            start += timedelta(seconds=draw.between(1, 7))
            line = start.isoformat(timespec="seconds") + line[len(STAMP) - 1 :]
        lines.append(line)
    return "\n".join(lines)


VERBS = words("load merge filter group render parse validate sort index export trim collect")
CODE_NOUNS = words("order invoice session report contact payment message product event setting route")
ENDS = words("batch page table summary history map queue cache list stats view")
UNITS = ("LIMIT", "BUDGET_BYTES", "WINDOW_MS", "QUOTA", "OFFSET", "TIMEOUT_US")
PURPOSES = phrases(
    """Kept apart so that it can be tested alone.; Empty input gives an empty result.; The order of the input is kept.;
    Callers rely on the result being new.; Does not touch the disk.; Raises ValueError for anything else."""
)

BODIES: tuple[str, ...] = (
    """def {name}({noun}s: dict[str, float], limit: float = {number}) -> list[str]:
    \"\"\"{verb} every {noun} above the limit. {purpose}\"\"\"
    return sorted(key for key, value in {noun}s.items() if value > limit)""",
    """def {name}({noun}: str) -> str:
    \"\"\"{verb} one {noun}. {purpose}\"\"\"
    text = {noun}.strip().lower()
    if not text:
        raise ValueError("empty {noun}")
    return text.replace(" ", "_")""",
    """def {name}({noun}s: list[dict[str, str]], key: str = "id") -> dict[str, dict[str, str]]:
    \"\"\"{verb} each {noun} by its key. {purpose}\"\"\"
    result: dict[str, dict[str, str]] = {{}}
    for {noun} in {noun}s:
        if key not in {noun}:
            continue
        result[{noun}[key]] = {noun}
    return result""",
    """def {name}(path: str, attempts: int = {number}) -> str:
    \"\"\"{verb} the {noun} file, trying again when it is busy. {purpose}\"\"\"
    for attempt in range(attempts):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except BlockingIOError:
            time.sleep(attempt / {number})
    raise TimeoutError(path)""",
    """def {name}(values: list[int]) -> float:
    \"\"\"{verb} the {noun} values. {purpose}\"\"\"
    if not values:
        return 0.0
    middle = len(values) // 2
    return sorted(values)[middle] / {number}""",
    """def {name}(text: str) -> list[str]:
    \"\"\"{verb} {noun} lines. {purpose}\"\"\"
    return [line for line in text.splitlines() if line and not line.startswith("#")]""",
    """def {name}({noun}: object) -> str:
    \"\"\"{verb} the {noun} as JSON.\"\"\"
    return json.dumps({noun}, indent=2, sort_keys=True)""",
    """class {type}:
    \"\"\"State that is needed to {lower} the next {noun}. {purpose}\"\"\"

    def __init__(self, size: int = {number}) -> None:
        self.size = size
        self.items: list[str] = []

    def add(self, {noun}: str) -> bool:
        if len(self.items) >= self.size:
            return False
        self.items.append({noun})
        return True""",
)


class _Source:
    """Pieces of a source file in which every name is new."""

    def __init__(self, draw: Draw) -> None:
        self._draw, self._names, self._taken = draw, Names(draw), set[str]()

    def constant(self, near: tuple[str, str] | None = None) -> tuple[tuple[str, str], str, str]:
        """Return the words of a constant, its name and its value; with `near`, the words resemble those words."""
        pair = self._names.name() if near is None else self._names.other(near)
        name = "_".join((*pair, self._draw.pick(UNITS))).upper()
        while name in self._taken:
            name += "_" + self._draw.pick(UNITS)
        self._taken.add(name)
        return pair, name, self._names.value()

    def body(self) -> str:
        draw = self._draw
        verb, noun, name = self._name()
        return draw.pick(BODIES).format(
            name=name,
            type="".join(part.title() for part in name.split("_")),
            verb=verb.capitalize(),
            lower=verb,
            noun=noun,
            number=draw.between(2, 60),
            purpose=draw.pick(PURPOSES),
        )

    def _name(self) -> tuple[str, str, str]:
        draw = self._draw
        verb, noun = draw.pick(VERBS), draw.pick(CODE_NOUNS)
        name = f"{verb}_{noun}" if draw.chance(0.4) else f"{verb}_{noun}_{draw.pick(ENDS)}"
        while name in self._taken:
            name += "_" + draw.pick(ENDS)
        self._taken.add(name)
        return verb, noun, name


def tool_code(draw: Draw, _length: int, _variant: int) -> ToolOutput:
    """Make source code as filler and a constant to find in it."""
    source = _Source(draw)
    pair, name, value = source.constant()
    head = f'"""Helpers for {draw.pick(CODE_NOUNS)} data."""\n\nimport json\nimport time\n\n\n'

    def filler() -> str:
        if draw.chance(0.15):
            return _write_assignment(*source.constant(pair)[1:])
        return source.body() + "\n\n\n"

    def scrap() -> str:
        if draw.chance(0.5):
            return _write_assignment(*source.constant(pair)[1:])
        return f"# {draw.pick(PURPOSES)}\n\n\n"

    return ToolOutput(
        stock=Stock(filler, scrap, "\n", lambda units: head + "".join(units).rstrip() + "\n"),
        unit=_write_assignment(name, value),
        evidence=f"{name} = {value}",
        question=f"What is the value of {name} in this source file?",
        answer=value,
        layout="python",
    )


def _write_assignment(name: str, value: str) -> str:
    return f"{name} = {value}\n\n\n"


MIN_TOKENS = 100
KINDS: dict[str, Callable[[Draw, int, int], ToolOutput]] = {"json": tool_json, "logs": tool_logs, "code": tool_code}


def json_logs(
    *, length: int = 4000, depth: float | None = None, n: int = 20, seed: int = 0, kind: str = "mixed"
) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for one fact in JSON records, log lines or source code, with `framing` "tool".

    The `kind` "mixed" takes json, logs and code in turn. The other records, lines and constants hold facts of the same
    form about other names. JSON parses as JSON and code as Python.
    """
    check_cell(length, MIN_TOKENS, n, seed, what="a tool's output")
    check_share("depth", depth)
    check_choice("kind", kind, (*KINDS, "mixed"))
    return (_make_example(length, depth, index, n, seed, kind) for index in range(n))


def _make_example(length: int, depth: float | None, index: int, n: int, seed: int, kind: str) -> dict[str, Any]:
    asked = choose_depth(depth, index, n)
    draw = Draw("json-logs", kind, length, asked, seed, index)
    # The variant (JSON's layout, say) goes round at its own pace, so that every kind sees all of its variants.
    actual, variant = (list(KINDS)[index % 3], index // 3) if kind == "mixed" else (kind, index)
    tool = KINDS[actual](draw, length, variant)
    built = assemble(length, [Fact(tool.unit, tool.evidence, asked)], tool.stock)
    meta: dict[str, Any] = {"length": length, "depth": built.depths[0], "asked_depth": asked, "seed": seed}
    meta |= {"kind": actual, "layout": tool.layout}
    cell = f"{kind}-{length}-{write_depth_tag(depth, index, n)}-s{seed}-{index:03d}"
    more = {"evidence": built.evidence, "framing": "tool"}
    return make_example("json-logs", cell, built.context, tool.question, [tool.answer], meta, **more)
