"""Record of one of our requests: the sent body, the resulting calls at the tap, and the returned answer.

The record is stored as JSON in the answer of an example (`tapped`), and read here into a typed form. The record shows
which calls asked a model, and which of these calls gave the answer.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from context_bench.text import dump_json
from context_bench.traffic.calls import Call, link_calls
from context_bench.wire.form import Completion
from context_bench.wire.forms import Bill, read_bill, read_prompt, read_settings
from context_bench.wire.prompts import Prompt, read_document


def find_sources(returned: Completion, replies: Sequence[Completion | None]) -> tuple[list[int], bool]:
    """Find the model replies that the returned answer was made from.

    Search in this order: a reply with equal text and calls, preferably with the same id; several replies whose texts or
    calls the answer joins; the reply with the answer's id; a reply that contains the whole answer.

    Returns:
        The places of the replies, and whether they are parts of one answer. If not, several places mean equal
        replies, and the answer may be any of them. No places are returned if the origin is unknown.
    """
    known = [(place, reply) for place, reply in enumerate(replies) if reply is not None]
    named = [place for place, reply in known if returned.id and reply.id == returned.id]
    same = [place for place, reply in known if reply.text == returned.text and reply.calls == returned.calls]
    if same:
        return [place for place in same if place in named] or same, False
    parts = _find_parts(returned, known)
    if len(parts) > 1:
        return parts, True
    if named or parts:
        return named or parts, False
    return [place for place, reply in known if returned.text and _find_whole(returned.text, reply.text) >= 0], False


def _find_parts(returned: Completion, known: Sequence[tuple[int, Completion]]) -> list[int]:
    """Return the replies that the returned answer contains completely and without overlap."""
    rest, calls, found = returned.text, Counter(returned.calls), []
    for place, reply in sorted(known, key=lambda each: -len(each[1].text)):
        at, own = _find_whole(reply.text, rest), Counter(reply.calls)
        if (reply.text and at < 0) or not own <= calls or not (reply.text or own):
            continue
        found.append(place)
        calls -= own
        if reply.text:
            rest = rest[:at] + "\0" + rest[at + len(reply.text) :]
    return sorted(found)


def _find_whole(part: str, whole: str) -> int:
    """Return where a text occurs in another at word boundaries; -1 if nowhere."""
    at = whole.find(part)
    while at >= 0:
        before, after = whole[at - 1 : at + 1] if at else "", whole[at + len(part) - 1 : at + len(part) + 1]
        if not _is_one_word(before) and not _is_one_word(after):
            return at
        at = whole.find(part, at + 1)
    return -1


def _is_one_word(pair: str) -> bool:
    return len(pair) == 2 and all(sign.isalnum() or sign == "_" for sign in pair)


_MAX_SETTING_CHARS = 40  # shown characters of a changed setting


@dataclass(eq=False)
class Exchange:
    """One of our requests, with all resulting calls."""

    sent: str  # body without secrets
    path: str = ""
    # calls at the tap for this request, in order of arrival
    calls: list[Call] = field(default_factory=list)
    attempts: int = 1  # number of times that our client sent it
    seconds: float = 0.0  # duration of the answered attempt
    alone: bool = False  # whether no other request of the system was ever in flight
    first_token: float | None = None  # seconds until the first token; None without streaming
    claims: Mapping[str, str] = field(default_factory=dict)  # reply headers with the proxy's claims
    cache_hit: bool = False  # whether the proxy reports an answer from its cache
    returned: Completion | None = None  # answer to the client; None if unreadable
    # calls of earlier attempts whose answers the proxy lost
    lost_calls: list[Call] = field(default_factory=list)
    earlier_calls: int = 0  # number of calls of earlier attempts
    unmatched: int = 0  # number of calls that may belong to this request
    unmatched_bodies: Sequence[str] = ()  # bodies of those calls that ask a model
    unmatched_bytes: int = 0  # size of further such bodies, for which there was no room
    unmatched_bills: Sequence[Bill] = ()  # usage in the replies to those calls, in order
    silent: bool = False  # whether the tap had not received any call yet
    asked_before: bool = False  # whether an equal request had reached the tap before
    failed: bool = False  # whether the example failed

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Exchange:
        """Read the output of `as_dict` from any version: missing fields get their defaults."""
        known = {name: record[name] for name in cls.__dataclass_fields__ if name in record}
        for name in ("calls", "lost_calls"):
            known[name] = [Call.from_dict(call) for call in record.get(name, ())]
        returned = record.get("returned")
        known["returned"] = None if returned is None else Completion.from_dict(returned)
        return cls(**known)

    def as_dict(self, since: float) -> dict[str, Any]:
        """Return the stored form, with times of calls as seconds after `since`."""
        record: dict[str, Any] = {"path": self.path, "sent": self.sent, "attempts": self.attempts}
        calls = [call.as_dict(since) for call in self.calls]
        unmatched: dict[str, Any] = {"unmatched": self.unmatched, "unmatched_bodies": list(self.unmatched_bodies)}
        if self.unmatched_bytes:
            unmatched["unmatched_bytes"] = self.unmatched_bytes
        if self.unmatched_bills:
            unmatched["unmatched_bills"] = list(self.unmatched_bills)
        if self.failed:
            return {**record, "calls": calls, **unmatched, "failed": True}
        return {
            **record,
            "seconds": self.seconds,
            "alone": self.alone,
            "first_token": self.first_token,
            "claims": self.claims,
            "cache_hit": self.cache_hit,
            "returned": None if self.returned is None else self.returned.as_dict(),
            "calls": calls,
            "lost_calls": [call.as_dict(since) for call in self.lost_calls],
            "earlier_calls": self.earlier_calls,
            **unmatched,
            "silent": self.silent,
            "asked_before": self.asked_before,
        }

    @cached_property
    def _document(self) -> dict[str, Any]:
        return read_document(self.sent)

    @cached_property
    def prompt(self) -> Prompt | None:
        """The sent prompt; None if the request has none."""
        return read_prompt(self._document)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The sent settings, such as model and temperature."""
        return read_settings(self._document)

    @cached_property
    def _normalized_prompt(self) -> Prompt | None:
        return self.prompt.as_read() if self.prompt else None

    @cached_property
    def model_calls(self) -> list[Call]:
        return [call for call in self.calls if call.asks_model]

    @cached_property
    def answered_calls(self) -> list[Call]:
        return [call for call in self.model_calls if call.is_answered]

    @cached_property
    def is_known(self) -> bool:
        """Whether all calls of the request are identified, complete and readable.

        If the tap has received no call at all, nothing is known, unless the proxy reports an answer from its cache.
        """
        if self.unmatched or (self.silent and not self.cache_hit):
            return False
        return all(call.status and (not call.is_answered or call.prompt is not None) for call in self.model_calls)

    def passes_on(self, call: Call) -> bool:
        """Whether a call has the same normalized prompt as the sent request."""
        empty = Prompt()
        if (call.prompt or empty) == (self.prompt or empty):
            return True
        return (call.normalized_prompt or empty) == (self._normalized_prompt or empty)

    def list_changes(self, call: Call) -> list[str]:
        """List the settings that differ between a call and the sent request, and `tools` if they differ."""
        sent, passed_on = self.settings, read_settings(call.document)
        changes = []
        for name in sorted(sent.keys() | passed_on.keys()):
            before, after = (None if each is None else _show(each) for each in (sent.get(name), passed_on.get(name)))
            if sent.get(name) != passed_on.get(name):
                happened = "left out" if after is None else f"{before} became {after}" if before else f"{after} added"
                changes.append(f"{name}: {happened}")
        if (call.normalized_prompt or Prompt()).tools != (self._normalized_prompt or Prompt()).tools:
            changes.append("tools")
        return changes

    def find_swapped_model(self, call: Call) -> str | None:
        """Return the model of a call if it is not the requested one."""
        model = call.document.get("model")
        swapped = isinstance(model, str) and read_settings({"model": model})["model"] != self.settings.get("model")
        return model if swapped else None

    @cached_property
    def answering_calls(self) -> list[Call] | None:
        """The calls that gave the answer to the client; None if unknown, empty if no call was answered.

        They are found by the answer's id, text and tool calls. If a proxy sends a prompt in parts and joins the
        answers, there are several calls. If the proxy rewrote the answer beyond recognition, a single answered call
        counts.
        """
        calls = self.answered_calls
        if self.returned is not None:
            places, joined = find_sources(self.returned, [call.completion for call in calls])
            found = [calls[place] for place in places]
            if found:
                chosen = found if joined else self._choose(found)
                return chosen if chosen and all(call.prompt is not None for call in chosen) else None
        if not self.is_known:
            return None
        return calls if len(calls) < 2 else self._choose(calls) or None

    def _choose(self, alike: list[Call]) -> list[Call]:
        """Choose one of several calls with equal answers, if all prompts are equal or one of them equals the sent
        prompt.
        """
        prompts = [call.normalized_prompt for call in alike]
        if all(prompt == prompts[0] for prompt in prompts):
            return alike[:1]
        own = self._normalized_prompt
        return [call for call, prompt in zip(alike, prompts) if own is not None and prompt == own][:1]


_recent: list[tuple[tuple[Mapping[str, Any], ...], list[Exchange]]] = []
"""Cache of the last records, since row facts and each evaluator read the same large records."""


def read_exchanges(records: Sequence[Mapping[str, Any]]) -> list[Exchange]:
    """Read the stored records of an example (`tapped`); the last results are reused."""
    global _recent
    for known, exchanges in _recent:
        if len(known) == len(records) and all(map(operator.is_, known, records)):
            return exchanges
    exchanges = [Exchange.from_dict(record) for record in records]
    link_calls([call for exchange in exchanges for call in (*exchange.lost_calls, *exchange.calls)])
    _recent = [(tuple(records), exchanges), *_recent[:1]]
    return exchanges


def _show(value: Any) -> str:
    """Return a setting as text, cut if long."""
    text = value if isinstance(value, str) else dump_json(value)
    return text if len(text) <= _MAX_SETTING_CHARS else f"{text[:_MAX_SETTING_CHARS]}…"


def find_answers(exchanges: Iterable[Exchange]) -> list[list[Call]] | str:
    """Return the calls that gave the answer of each exchange, or the reason why they are unknown."""
    found = [(exchange, exchange.answering_calls) for exchange in exchanges]
    known = [calls for _, calls in found if calls is not None]
    if len(known) == len(found):
        return known
    if all(exchange.is_known for exchange, calls in found if calls is None):
        return "it is unknown which of several calls gave the answer"
    return "it is unknown which requests at the tap belong to this example"


def read_bills(paid: Iterable[tuple[Exchange, Call]]) -> list[Bill] | None:
    """Return the usage of each answered call; None if any of them lacks prompt tokens.

    A bill names the model if it differs from the requested one.
    """
    bills = []
    for exchange, call in paid:
        if not (call.asks_model and call.is_answered):
            continue
        bill = read_call_bill(call)
        if "prompt_tokens" not in bill:
            return None
        if model := exchange.find_swapped_model(call):
            bill["model"] = model
        bills.append(bill)
    return bills


def read_call_bill(call: Call) -> Bill:
    """Return the usage in the reply to a call; a completion count of 0 is ignored if the answer is not empty."""
    bill, said = read_bill(call.reply), call.completion
    if bill.get("completion_tokens") == 0 and said is not None and (any(said.texts) or said.calls):
        del bill["completion_tokens"]
    return bill
