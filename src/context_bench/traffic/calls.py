"""One request that reached the tap, with its reply: exact, timed, and without secrets."""

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
    """A request at the tap, in flight or stored.

    Times are values of `time.perf_counter` while the call is in flight; in the stored form, times are seconds since our
    request.
    """

    path: str  # such as `/v1/chat/completions`
    body: str  # exact text of the request
    headers: dict[str, str] = field(default_factory=dict)  # by lower-case name; possible secrets are `***`
    started: float = 0.0  # when the request was complete
    first: float | None = None  # when the first token of a stream, or the first byte of another body, was forwarded
    ended: float | None = None  # when its last byte was, or when it broke off; None while in flight
    status: int = 0  # of the reply; 0 before it starts
    reply: str = ""  # body of the reply as sent; for a stream, all events
    cut: bool = False  # whether the reply broke off: the upstream failed, or the client disconnected
    # calls that it may continue; not stored, see `link_calls`
    earlier: Sequence[Call] = field(default=(), repr=False)

    @property
    def asks_model(self) -> bool:
        """Whether the call asks a model for an answer."""
        return asks_model(self.path)

    @property
    def embeds(self) -> bool:
        """Whether the call asks for embeddings, which have a separate model and price."""
        return self.path.endswith("/embeddings")

    @property
    def is_answered(self) -> bool:
        """Whether the reply was successful."""
        return 200 <= self.status < 300

    @cached_property
    def document(self) -> dict[str, Any]:
        """The request as JSON; empty for other content."""
        return read_document(self.body)

    @cached_property
    def conversation(self) -> Mapping[str, Any] | None:
        """The request with the conversation that it continues; None if only the server knows it."""
        return expand_request(self.document, self._find_exchange)

    def _find_exchange(self, identity: str) -> Recorded | None:
        """Find an earlier request and its reply by the id of the reply."""
        for call in reversed(self.earlier):
            if identity in call.reply and call.conversation is not None:
                reply = read_recorded_reply(call.reply)
                if reply.get("id") == identity:
                    return Recorded(call.conversation, reply)
        return None

    @cached_property
    def prompt(self) -> Prompt | None:
        """The prompt with the conversation that it continues; None if there is no prompt, or if a part of it is
        unknown.
        """
        return None if self.conversation is None or not holds_prompt(self.path) else read_prompt(self.conversation)

    @cached_property
    def normalized_prompt(self) -> Prompt | None:
        """The normalized prompt: equal for all prompts with the same meaning for a model."""
        return self.prompt.as_read() if self.prompt else None

    @cached_property
    def edits(self) -> list[dict[str, Any]]:
        """The API's own edits of the conversation before the model read it, as reported in the reply."""
        return read_edits(self.reply)

    @cached_property
    def completion(self) -> Completion | None:
        """The model's answer; read it only after the call has ended."""
        return read_completion(self.reply)

    def as_dict(self, since: float) -> dict[str, Any]:
        """Return the stored form, with times as seconds after `since`."""
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
        """Read the output of `as_dict` from any version: missing fields get their defaults."""
        known = {name: record[name] for name in cls.__dataclass_fields__ if name in record}
        return cls(**known)


def link_calls(calls: Sequence[Call]) -> None:
    """Set `earlier` of each call; the calls are in the order of arrival."""
    for place, call in enumerate(calls):
        call.earlier = calls[:place]
        _ = call.conversation  # earlier ones first, so that no long chain is followed to its start again


_SAVED = ("x-kompact-tokens-saved", "x-headroom-tokens-saved", "x-tokens-saved")
_CLAIM = re.compile(r"\b(?:tokens|saved|savings|compress\w*|transforms)\b")
_LIMIT = re.compile(r"rate-?limit")
_SUM = re.compile(r"\b(?:session|total|cumulative|lifetime|overall|aggregate|global|all|day|daily|today|month\w*)\b")
"""Words in header names whose numbers cover more than one request."""


def claim_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the reply headers with a proxy's claims about tokens, savings or compression, by lower-case name."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in lower.items() if _CLAIM.search(name) and not _LIMIT.search(name)}


def says_cache_hit(headers: Mapping[str, str]) -> bool:
    """Whether a proxy reports an answer from its own cache, as in `x-cache: HIT` or `age: 30`."""
    lower = {name.lower(): value.strip().lower() for name, value in headers.items()}
    told = any(re.search(r"\bhit\b|^(?:true|1|yes)$", value) for name, value in lower.items() if "cache" in name)
    return told or bool(lower.get("age", "").strip("0"))


def read_claimed_tokens(headers: Mapping[str, str]) -> float | None:
    """Read the saved tokens that a proxy claims for this request; None if no claim is a number.

    Totals of a session or a day are ignored. If several headers match, a known name is used first, then the shortest
    name, because a longer name usually stands for only part of the saving. The order of the headers does not matter.
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
