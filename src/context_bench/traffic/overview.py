"""Overview of recorded sessions: requests, tokens by kind, caching, dollars, and repeated contents.

Sessions are counted one by one and then dropped, so any number of sessions can be counted. Tokens by kind are our own
count of the sent prompts, before any masking. Billed tokens are those that the API reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from hashlib import blake2b
from typing import Any

from context_bench.pricing import Prices
from context_bench.text import dump_json
from context_bench.traffic.parts import Part, list_parts
from context_bench.traffic.sessions import Request, Session, Thread, fit_tokens
from context_bench.utils.tokens import Tokenizer, get_tokenizer
from context_bench.wire.prompts import read_text

MIN_REPEATED_TOKENS = 50  # shorter contents are ignored
MAX_CONTENTS = 5000  # contents kept while counting
_PREVIEW_CHARS = 200
_LAST_WORD = re.compile(r"[\w+/=.~-]+\Z")  # the cut word at the end: the start of a key would not be masked
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]?")  # terminal codes for colours and cursor

KINDS = ("system", "tools", "user", "result", "call", "assistant")
"""Kinds of text in a prompt, in order; a result is the output of a tool."""


@dataclass
class Sums:
    """Totals of a group of requests."""

    requests: int = 0
    billed: int = 0  # requests with recorded usage
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int | None = None  # None if no request reports it
    cache_known: int = 0  # prompt tokens of requests that report cache use
    dollars: float = 0.0
    dollars_uncached: float = 0.0
    unpriced: int = 0  # billed requests of models without a price

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write

    @property
    def hit_rate(self) -> float | None:
        """Share of prompt tokens read from the cache, in requests that report cache use."""
        return self.cache_read / self.cache_known if self.cache_known else None

    @property
    def cost(self) -> float | None:
        return self.dollars if self.billed and self.unpriced < self.billed else None

    @property
    def cost_uncached(self) -> float | None:
        return self.dollars_uncached if self.cost is not None else None

    def add(self, request: Request, prices: Prices) -> None:
        self.requests += 1
        usage = request.usage
        if usage is None:
            return
        self.billed += 1
        self.input += usage.input
        self.cache_read += usage.cache_read or 0
        self.cache_write += usage.cache_write
        if usage.output is not None:
            self.output = (self.output or 0) + usage.output
        self.cache_known += usage.prompt if usage.cache_read is not None else 0
        price = prices.of(request.model)
        if price is None:
            self.unpriced += 1
            return
        cost = price.cost({"completion_tokens": 0, **usage.as_counts()})
        self.dollars += cost or 0.0
        self.dollars_uncached += price.dollars(usage.prompt, usage.output or 0)

    def as_dict(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "requests_with_usage": self.billed,
            "prompt_tokens": self.prompt if self.billed else None,
            "input_tokens": self.input if self.billed else None,
            "cache_read_tokens": self.cache_read if self.cache_known else None,
            "cache_write_tokens": self.cache_write if self.cache_known or self.cache_write else None,
            "output_tokens": self.output,
            "cache_hit_rate": self.hit_rate,
            "cost_usd": self.cost,
            "cost_uncached_usd": self.cost_uncached,
            "requests_without_price": self.unpriced,
        }


@dataclass
class ToolSums:
    """Totals of one tool."""

    results: int = 0
    tokens: int = 0  # of its results, each counted once
    sent: int = 0  # of its results in all prompts
    repeated: int = 0  # of results that repeat content of the same prompt

    def as_dict(self) -> dict[str, Any]:
        return {
            "results": self.results,
            "result_tokens": self.tokens,
            "sent_tokens": self.sent,
            "repeated_tokens": self.repeated,
        }


@dataclass
class Content:
    """A text that occurs more than once in the same prompt."""

    tokens: int
    kind: str
    tool: str
    preview: str
    copies: int = 0  # after the first of a thread
    sent: int = 0  # tokens of these copies in all prompts

    def as_dict(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens,
            "kind": self.kind,
            "tool": self.tool or None,
            "copies": self.copies,
            "sent_tokens": self.sent,
            "preview": self.preview,
        }


@dataclass
class Overview:
    """Totals over all sessions, and by session, model, day and tool."""

    prices: Prices
    count: Tokenizer = field(default_factory=get_tokenizer)
    threads: int = 0
    total: Sums = field(default_factory=Sums)
    sessions: dict[str, Sums] = field(default_factory=dict)
    models: dict[str, Sums] = field(default_factory=dict)
    days: dict[str, Sums] = field(default_factory=dict)
    tools: dict[str, ToolSums] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)  # our token counts of all prompts, by kind
    repeated: int = 0  # our token counts of contents that repeat within a prompt
    hidden: int = 0  # billed tokens outside the recording, estimated by a fit
    fitted: int = 0  # requests covered by the fit
    worst: float = 0.0  # largest error of a fit, in tokens
    reconstructed: Counter[str] = field(default_factory=Counter)  # number of threads
    contents: dict[bytes, Content] = field(default_factory=dict)

    def add(self, session: Session) -> None:
        sums = self.sessions.setdefault(session.id, Sums())
        for thread in session.threads:
            self.threads += 1
            self.reconstructed.update(thread.reconstructed)
            counted = _ThreadCount(self, thread).count()
            if any("not stored" in each for each in thread.reconstructed):
                self._size_hidden(thread, counted)
            for request in thread.requests:
                for group in (
                    self.total,
                    sums,
                    self.models.setdefault(request.model or "unknown", Sums()),
                    self.days.setdefault(_name_day(request.started), Sums()),
                ):
                    group.add(request, self.prices)

    def _size_hidden(self, thread: Thread, counted: list[int]) -> None:
        known = [(own, each.usage.prompt) for own, each in zip(counted, thread.requests) if each.usage is not None]
        fit = fit_tokens([own for own, _ in known], [billed for _, billed in known])
        if fit is not None and fit.offset > 0:
            self.hidden += round(fit.offset) * len(thread.requests)
            self.fitted += len(thread.requests)
            self.worst = max(self.worst, fit.worst)

    def list_contents(self, most: int) -> list[Content]:
        """List the contents whose copies take the most tokens."""
        return sorted(self.contents.values(), key=lambda each: (-each.sent, each.preview))[:most]

    def drop_small(self) -> None:
        """Drop the contents whose copies take the fewest tokens, to limit memory use."""
        if len(self.contents) > 2 * MAX_CONTENTS:
            kept = sorted(self.contents.items(), key=lambda each: -each[1].sent)[:MAX_CONTENTS]
            self.contents = dict(kept)

    def as_dict(self, contents: int = 20) -> dict[str, Any]:
        """Return the overview as JSON."""
        fitted = {"billed_tokens": self.hidden, "requests": self.fitted, "largest_error_tokens": round(self.worst)}
        return {
            "sessions": len(self.sessions),
            "threads": self.threads,
            **self.total.as_dict(),
            "prompt_tokens_by_kind": {
                kind: self.sent[kind] or (None if f"{kind}: not stored" in self.reconstructed else 0) for kind in KINDS
            },
            "repeated_tokens": self.repeated,
            "not_recorded": fitted if self.fitted else None,
            "reconstructed_threads": dict(self.reconstructed),
            "by_model": _write_group(self.models),
            "by_day": _write_group(dict(sorted(self.days.items()))),
            "by_session": _write_group(self.sessions),
            "by_tool": _write_group(self.tools),
            "repeated_contents": [each.as_dict() for each in self.list_contents(contents)],
            "prices": {"source": self.prices.source, "date": self.prices.date},
        }


def _write_group(group: Mapping[str, Sums] | Mapping[str, ToolSums]) -> dict[str, Any]:
    return {name: each.as_dict() for name, each in group.items()}


def _name_day(started: float | None) -> str:
    if started is None:
        return "unknown"
    try:
        return datetime.fromtimestamp(started, timezone.utc).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return "unknown"


@dataclass(slots=True)
class _Piece:
    """A part of a message, with its token count."""

    kind: str
    tool: str
    tokens: int
    key: bytes  # hash of its text; empty for short texts
    preview: str


class _ThreadCount:
    """Counter of the prompts of one thread; if a prompt only grows, only its new messages are counted."""

    def __init__(self, overview: Overview, thread: Thread) -> None:
        self._overview, self._thread = overview, thread
        self._names: dict[str, str] = {}
        self._pieces: dict[int, tuple[Any, list[_Piece]]] = {}  # by id() of the message, which is kept alive
        self._kinds: Counter[str] = Counter()  # of the prompt so far
        self._tools: Counter[str] = Counter()
        self._twice: Counter[tuple[bytes, str]] = Counter()  # tokens of copies, by content and tool
        self._held: set[bytes] = set()

    def count(self) -> list[int]:
        """Add all prompts of the thread to the overview, and return the tokens of each."""
        overview, before, length = self._overview, None, 0
        counted: list[int] = []
        for request in self._thread.requests:
            if before is not request.history or length > request.length:
                self._kinds, self._tools, self._twice, self._held = Counter(), Counter(), Counter(), set()
                length = 0
            for message in request.history[length : request.length]:
                self._hold(message)
            before, length = request.history, request.length
            beside = self._count_beside(request)
            counted.append(self._kinds.total() + beside.total())
            overview.sent.update(self._kinds)
            overview.sent.update(beside)
            for tool, tokens in self._tools.items():
                overview.tools.setdefault(tool, ToolSums()).sent += tokens
            for (key, tool), tokens in self._twice.items():
                overview.repeated += tokens
                if key in overview.contents:  # else it was dropped as too small
                    overview.contents[key].sent += tokens
                if tool:
                    overview.tools.setdefault(tool, ToolSums()).repeated += tokens
        overview.drop_small()
        return counted

    def _count_beside(self, request: Request) -> Counter[str]:
        system, tools = request.system, request.tools
        counted = self._count_value(system, read_text(system)) if system else 0
        offered = sum(self._count_value(tool, "") for tool in tools)
        return Counter({"system": counted, "tools": offered})

    def _count_value(self, value: Any, text: str) -> int:
        known = self._pieces.get(id(value))
        if known is None or known[0] is not value:
            piece = _Piece("", "", self._overview.count(text or dump_json(value)), b"", "")
            known = self._pieces[id(value)] = value, [piece]
        return known[1][0].tokens

    def _hold(self, message: Any) -> None:
        """Add a message to the prompt."""
        known = self._pieces.get(id(message))
        if known is None or known[0] is not message:
            known = self._pieces[id(message)] = message, [self._make(part) for part in list_parts(message, self._names)]
            self._count_once(known[1])
        for piece in known[1]:
            if piece.kind in KINDS:
                self._kinds[piece.kind] += piece.tokens
            if piece.kind == "result":
                self._tools[piece.tool] += piece.tokens
            if piece.key in self._held:
                self._twice[piece.key, piece.tool if piece.kind == "result" else ""] += piece.tokens
            elif piece.key:
                self._held.add(piece.key)

    def _make(self, part: Part) -> _Piece:
        tokens = part.tokens(self._overview.count)
        tool = (part.tool or "unknown") if part.kind == "result" else part.tool
        watched = part.kind in ("user", "result", "system") and tokens >= MIN_REPEATED_TOKENS
        key = blake2b(part.text.encode("utf-8", "replace"), digest_size=12).digest() if watched else b""
        start = part.text[:_PREVIEW_CHARS]
        preview = start if len(part.text) <= _PREVIEW_CHARS else _LAST_WORD.sub("", start)
        return _Piece(part.kind, tool, tokens, key, preview)

    def _count_once(self, pieces: Iterable[_Piece]) -> None:
        for piece in pieces:
            if piece.kind == "result":
                sums = self._overview.tools.setdefault(piece.tool, ToolSums())
                sums.results += 1
                sums.tokens += piece.tokens
            if piece.key and piece.key in self._held:
                preview = " ".join(_STYLE.sub("", piece.preview).split())
                content = Content(piece.tokens, piece.kind, piece.tool, preview)
                self._overview.contents.setdefault(piece.key, content).copies += 1
