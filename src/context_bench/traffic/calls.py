"""One request that reached the tap, with what it was answered: exact, timed, and without a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any

from context_bench.wire.form import Completion, Recorded
from context_bench.wire.forms import (
    asks_model,
    expand_request,
    holds_prompt,
    read_completion,
    read_edits,
    read_prompt,
    read_recorded_reply,
)
from context_bench.wire.prompts import Prompt, read_document


@dataclass(eq=False)
class Call:
    """A request at the tap, while it is under way and as it is stored.

    Moments are of `time.perf_counter` under way, and seconds since our request was sent in a stored record.
    """

    path: str  # where it was sent, such as `/v1/chat/completions`
    body: str  # the exact text of the request
    headers: dict[str, str] = field(default_factory=dict)  # by lower-case name; values that may be secrets are `***`
    started: float = 0.0  # when the whole request was there
    first: float | None = None  # when the first token of a stream was passed on, or the first byte of another body
    ended: float | None = None  # when its last byte was, or when it broke off; None while it is under way
    status: int = 0  # of the reply; 0 before there is one
    reply: str = ""  # the body of the reply as it was sent; for a stream all its events
    cut: bool = False  # whether it broke off: the upstream failed, or the other side went away
    # those before it that it may go on from; not stored, see `link_calls`
    earlier: Sequence[Call] = field(default=(), repr=False)

    @property
    def asks_model(self) -> bool:
        """Whether a model was to answer it."""
        return asks_model(self.path)

    @property
    def embeds(self) -> bool:
        """Whether it asks for embeddings, which another model makes at a price of its own."""
        return self.path.endswith("/embeddings")

    @property
    def is_answered(self) -> bool:
        """Whether a model answered it, and did not refuse."""
        return 200 <= self.status < 300

    @cached_property
    def document(self) -> dict[str, Any]:
        """The request as JSON; empty when it is none."""
        return read_document(self.body)

    @cached_property
    def conversation(self) -> Mapping[str, Any] | None:
        """The request with the conversation that it goes on from; None where only the server knows that."""
        return expand_request(self.document, self._find_exchange)

    def _find_exchange(self, identity: str) -> Recorded | None:
        """Find the request of an earlier call, and its reply, by the id of the reply."""
        for call in reversed(self.earlier):
            if identity in call.reply and call.conversation is not None:
                reply = read_recorded_reply(call.reply)
                if reply.get("id") == identity:
                    return Recorded(call.conversation, reply)
        return None

    @cached_property
    def prompt(self) -> Prompt | None:
        """The prompt in it, with all that it goes on from; None when it holds none, or not all is known."""
        return None if self.conversation is None or not holds_prompt(self.path) else read_prompt(self.conversation)

    @cached_property
    def spelled_prompt(self) -> Prompt | None:
        """The prompt in the one spelling of all that mean the same to a model."""
        return self.prompt.as_read() if self.prompt else None

    @cached_property
    def edits(self) -> list[dict[str, Any]]:
        """What the API itself did to the conversation before the model read it, as its reply tells."""
        return read_edits(self.reply)

    @cached_property
    def completion(self) -> Completion | None:
        """The answer of the model; only to be asked for once the call has ended."""
        return read_completion(self.reply)

    def as_dict(self, since: float) -> dict[str, Any]:
        """Write it as it is stored: moments become seconds after `since`."""
        return {
            "path": self.path,
            "body": self.body,
            "headers": self.headers,
            "started": self.started - since,
            "first": None if self.first is None else self.first - since,
            "ended": None if self.ended is None else self.ended - since,
            "status": self.status,
            "reply": self.reply,
            "cut": self.cut,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Call:
        """Read what `as_dict` wrote, of whatever version: what it lacks has its default."""
        known = {name: record[name] for name in cls.__dataclass_fields__ if name in record}
        return cls(**known)


def link_calls(calls: Sequence[Call]) -> None:
    """Tell each of several calls, in the order in which they came, which ones it may go on from."""
    for place, call in enumerate(calls):
        call.earlier = calls[:place]
        _ = call.conversation  # the earlier ones first: a long chain is not followed to its start each time


_SAVED = ("x-kompact-tokens-saved", "x-headroom-tokens-saved", "x-tokens-saved")
_CLAIM = re.compile(r"\b(?:tokens|saved|savings|compress\w*|transforms)\b")
_LIMIT = re.compile(r"rate-?limit")
_SUM = re.compile(r"\b(?:session|total|cumulative|lifetime|overall|aggregate|global|all|day|daily|today|month\w*)\b")
"""A claim about more than one request."""


def claim_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Find the reply headers in which a proxy speaks of tokens, savings or compression, by lower-case name."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in lower.items() if _CLAIM.search(name) and not _LIMIT.search(name)}


def says_cache_hit(headers: Mapping[str, str]) -> bool:
    """Tell whether a proxy says that it answered from a cache of its own, as in `x-cache: HIT` or `age: 30`."""
    lower = {name.lower(): value.strip().lower() for name, value in headers.items()}
    told = any(re.search(r"\bhit\b|^(?:true|1|yes)$", value) for name, value in lower.items() if "cache" in name)
    return told or bool(lower.get("age", "").strip("0"))


def read_claimed_tokens(headers: Mapping[str, str]) -> float | None:
    """Read the tokens that a proxy says it saved on this request; None when it says nothing of it, or no number.

    Sums over a session or a day are left out. Of several others a known name comes first, then the shortest: more words
    in a name narrow down what it counts. The order of the headers does not matter.
    """
    claims = claim_headers(headers)
    names = [name for name in claims if name.endswith("tokens-saved") and not _SUM.search(name)]
    known = {name: place for place, name in enumerate(_SAVED)}
    for name in sorted(names, key=lambda name: (known.get(name, len(known)), len(name), name)):
        try:
            number = float(claims[name])
        except ValueError:
            continue
        if isfinite(number):
            return number
    return None
