"""Types of recorded sessions: a session has threads, a thread has requests, as the model received them.

A thread is one conversation with a model; an agent's session has one thread for the agent and one for each subagent.
Requests that only append share one list of messages. `Thread.reconstructed` names what a format does not store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_bench.utils.tokens import read_token_count
from context_bench.wire.forms import read_usage

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of a request in disjoint buckets, as reported by its API."""

    input: int  # neither read from nor written to a cache
    cache_read: int | None = 0  # None if the API does not report the cache; `input` then includes it
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int | None = None  # None if not recorded

    @property
    def prompt(self) -> int:
        """All tokens of the prompt."""
        return self.input + (self.cache_read or 0) + self.cache_write

    @property
    def cache_write(self) -> int:
        return self.cache_write_5m + self.cache_write_1h

    @classmethod
    def read(cls, usage: Any) -> Usage | None:
        """Read an API's usage in any form; None without counts."""
        counts = read_usage(usage)
        prompt = counts.get("prompt_tokens")
        if prompt is None:
            return None
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
        details = details if isinstance(details, Mapping) else {}
        # Gateways report cache writes in several places
        told = (
            counts.get("cache_creation_tokens"),
            details.get("cache_write_tokens"),
            usage.get("cache_creation_input_tokens"),
        )
        written = next((count for count in map(read_token_count, told) if count), 0)
        read = counts.get("cached_tokens")
        if read is None:
            read = read_token_count(usage.get("cache_read_input_tokens"))
        for_an_hour = min(written, counts.get("cache_creation_1h_tokens", 0))
        return cls.of_prompt(prompt, read, written - for_an_hour, for_an_hour, counts.get("completion_tokens"))

    @classmethod
    def of_names(cls, told: Any, names: tuple[str, str, str, str], *, with_cache: bool = False) -> Usage | None:
        """Read prompt, cache reads, cache writes and output by name; `with_cache` if the prompt includes the cache."""
        counts = (read_token_count(told.get(name)) for name in names) if isinstance(told, Mapping) else [None] * 4
        prompt, read, written, output = counts
        if prompt is None:
            return None
        make = cls.of_prompt if with_cache else cls
        return make(prompt, read, written or 0, 0, output)

    @classmethod
    def of_prompt(
        cls, prompt: int, read: int | None, written_5m: int = 0, written_1h: int = 0, output: int | None = None
    ) -> Usage:
        """Build usage from prompt tokens that include those of the cache."""
        read = None if read is None else min(read, prompt)
        written_5m = min(written_5m, prompt - (read or 0))
        written_1h = min(written_1h, prompt - (read or 0) - written_5m)
        return cls(prompt - (read or 0) - written_5m - written_1h, read, written_5m, written_1h, output)

    def as_counts(self) -> dict[str, int]:
        """Return the counts by the names that `Price.cost` reads."""
        counts = {
            "prompt_tokens": self.prompt,
            "cached_tokens": self.cache_read or 0,
            "cache_creation_tokens": self.cache_write,
            "cache_creation_1h_tokens": self.cache_write_1h,
        }
        return counts if self.output is None else {**counts, "completion_tokens": self.output}


@dataclass(slots=True)
class Request:
    """One request and its recorded reply, both in the form of `api`."""

    api: str  # a value of `--api`
    model: str | None
    history: list[Any]  # messages or input items; requests that only append share this list
    length: int  # number of messages of this request
    system: Any = None  # outside the messages: Anthropic's `system`, or `instructions` of responses
    tools: list[Any] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)  # all other fields of the body
    started: float | None = None  # seconds since 1970
    reply: dict[str, Any] | None = None  # body of the reply; streams are joined
    usage: Usage | None = None
    id: str = ""  # id of the reply
    line: int = 0  # line in its file

    @property
    def messages(self) -> list[Any]:
        return self.history[: self.length]

    def body(self) -> dict[str, Any]:
        """Build the sent body, as far as it was recorded."""
        conversation, system = _FIELDS.get(self.api, ("messages", "system"))
        body: dict[str, Any] = {"model": self.model, conversation: self.messages, **self.settings}
        if self.system is not None:
            body[system] = self.system
        return {**body, "tools": self.tools} if self.tools else body


_FIELDS = {"responses": ("input", "instructions")}


@dataclass(slots=True)
class Thread:
    """One conversation with a model: its requests in order of start."""

    session: str
    id: str
    requests: list[Request]
    format: str  # name of the reader
    path: str  # of the file
    agent: str = ""  # subagent; empty for the main agent
    reconstructed: tuple[str, ...] = ()  # parts that are not stored, or were derived


@dataclass(slots=True)
class Session:
    """The threads of one run of an agent, or of one conversation."""

    id: str
    threads: list[Thread]

    @property
    def requests(self) -> list[Request]:
        """All requests, sorted by their recorded start."""
        found = [request for thread in self.threads for request in thread.requests]
        return sorted(found, key=lambda each: each.started or 0.0)


def append_shared(requests: list[Request], request: Request) -> None:
    """Append a request to its thread; it shares common messages with its predecessor."""
    before = requests[-1] if requests else None
    requests.append(request)
    if before is None:
        return
    same = 0
    for old, new in zip(before.history[: before.length], request.history):
        if old != new:
            break
        same += 1
    if same == before.length == len(before.history):
        before.history.extend(request.history[same:])
        request.history = before.history
    else:
        request.history[:same] = before.history[:same]
    if before.system == request.system:
        request.system = before.system
    if before.tools == request.tools:
        request.tools = before.tools


# --- size of the parts that a format does not store


@dataclass(frozen=True, slots=True)
class Fit:
    """Billed tokens of a prompt as a linear function of our count; the offset is the size of unrecorded parts."""

    offset: float
    slope: float
    worst: float  # largest residual, in tokens
    points: int


def fit_tokens(counted: Sequence[float], billed: Sequence[float]) -> Fit | None:
    """Fit billed to counted tokens by least squares; None if there are fewer than three different counts."""
    if len(set(counted)) < 3:
        return None
    number = len(counted)
    mean_x, mean_y = sum(counted) / number, sum(billed) / number
    spread = sum((x - mean_x) ** 2 for x in counted)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(counted, billed)) / spread
    offset = mean_y - slope * mean_x
    worst = max(abs(y - offset - slope * x) for x, y in zip(counted, billed))
    return Fit(offset, slope, worst, number)
