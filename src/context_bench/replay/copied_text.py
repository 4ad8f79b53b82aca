"""Text that the model's next call copied: it shows, without labels, which parts of the history the model needed.

A span is a path, identifier, number or quoted string in the arguments of the next tool call. A span is evidence if it
also occurs in a tool result or a user's text of the request, but in no system text, tool or other session. Evidence is
lost if the forwarded request has no copy of it. Some matches are due to chance. To estimate their number, each turn is
also judged with the reply of another session.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import orjson

from context_bench.stats.distributions import t_quantile
from context_bench.text import dump_json
from context_bench.text.evidence_state import is_recoverable
from context_bench.text.words import normalise
from context_bench.traffic.parts import Part, RecordedParts, list_messages, list_parts, list_reply_messages
from context_bench.traffic.sessions import Request, Session

MIN_SPAN_CHARS = 8
MIN_JUDGED_TURNS = 20  # with fewer true uses, no loss is estimated
MIN_SESSIONS = 10  # with fewer sessions, there is no interval

_QUOTED = re.compile(r"(?<!\w)([\"'`])([^\n]{0,200}?)\1")  # not from the apostrophe of a word
_WORD = re.compile(r"[\w./~:@+\-]{8,}")
_NUMBER = re.compile(r"[\d.,:\-]{8,}")
_TRIM = ".,:;-+@/"


def find_spans(text: str) -> set[str]:
    """Return the paths, identifiers, numbers and quoted strings of a text."""
    spans = {found[2].strip() for found in _QUOTED.finditer(text)}
    for found in _WORD.finditer(text):
        word = found[0].strip(_TRIM) if not found[0].startswith(("/", "./", "~")) else found[0].rstrip(_TRIM)
        if "/" in word or _NUMBER.fullmatch(word) or _is_identifier(word):
            spans.add(word)
    return {span for span in spans if len(span) >= MIN_SPAN_CHARS}


def _is_identifier(word: str) -> bool:
    """Whether a word is an identifier: it has an underscore, or a digit, dot or capital after its first letter."""
    inside = word[1:]
    return "_" in word or "." in inside or any(sign.isdigit() or sign.isupper() for sign in inside)


def list_call_spans(reply: Mapping[str, Any] | None) -> list[str]:
    """List the spans in the arguments of a reply's tool calls, in order."""
    found: dict[str, None] = {}
    for message in list_reply_messages(reply):
        for part in list_parts(message, {}):
            if part.kind == "call":
                found.update(dict.fromkeys(sorted(find_spans(_unpack(part.text)))))
    return list(found)


def _unpack(arguments: str) -> str:
    """Write the values of JSON arguments on separate lines, without JSON escapes."""
    try:
        document = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    return "\n".join(_list_leaves(document))


def _list_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _list_leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from _list_leaves(each)
    elif isinstance(value, str):
        yield value if "\n" in value or len(value) > 200 else f'"{value}"\n{value}'
    else:
        yield str(value)


# --- the history of a request


def read_sent(body: Mapping[str, Any]) -> str:
    """Return all texts of a forwarded body, without JSON escapes."""
    texts = [_unescape(part.text) for message in list_messages(body) for part in list_parts(message, {})]
    opening = (body.get("system", body.get("instructions")), *(body.get("tools") or ()))
    return "\n".join((*texts, *map(_dump, opening)))


def _dump(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else dump_json(value)


def _unescape(text: str) -> str:
    return text.replace("\\/", "/").replace('\\"', '"') if "\\" in text else text


def _digest(span: str) -> bytes:
    return blake2b(span.encode("utf-8", "replace"), digest_size=8).digest()


class SessionSpans:
    """Index of the spans of all sessions, which finds spans that other sessions contain too."""

    def __init__(self) -> None:
        self._texts: dict[bytes, dict[str, int]] = defaultdict(
            dict
        )  # by span and session: number of texts with it, up to 2

    def add(self, session: Session) -> None:
        """Add all texts of a session's requests and replies; equal texts count once."""
        seen: set[bytes] = set()
        known: set[int] = set()
        for thread in session.threads:
            for request in thread.requests:
                for message in (*request.messages, *list_reply_messages(request.reply)):
                    if id(message) in known:
                        continue
                    known.add(id(message))
                    for part in list_parts(message, {}):
                        text = _unpack(part.text) if part.kind == "call" else part.text
                        if (digest := _digest(text)) not in seen:
                            seen.add(digest)
                            self._add_text(session.id, text)

    def _add_text(self, session: str, text: str) -> None:
        for span in find_spans(text):
            found = self._texts[_digest(span)]
            found[session] = min(2, found.get(session, 0) + 1)

    def is_elsewhere(self, span: str, session: str, source: str = "") -> bool:
        """Whether a span occurs in another session; `source` is the session of the span's reply.

        The reply itself does not count as an occurrence in `source`. So a reply that is put into another session is
        judged like a reply of that session.
        """
        found = self._texts.get(_digest(span), {})
        return any(each != session and count > (each == source) for each, count in found.items())


# --- turns


@dataclass(frozen=True, slots=True)
class Turn:
    """Spans that one turn, or another session's reply, copied from the turn's history, and which of these were lost."""

    copied: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    mendable: bool = False  # an added tool or a second read can recover all losses
    chance_copied: bool = False
    chance_lost: bool = False
    sources: tuple[str, ...] = ()  # tools whose results contained the lost spans
    naive: tuple[int, ...] = (0, 0, 0, 0)  # in the order of `NAIVE`


NAIVE = ("turns that match", "turns that lost", "foreign spans", "foreign spans that match")
"""Counts of a plain search, which counts every use and every match; shown for comparison with the rule."""

Foreign = tuple[str, Sequence[str]]
"""A reply of another session: the session's id, and the spans of its calls."""

_READS = re.compile(r"read|view|cat|open|grep|glob|search|list|ls|find|fetch|get|retrieve", re.IGNORECASE)


class ThreadJudge:
    """Judge of the turns of a thread, in order; only the first use of each span counts."""

    def __init__(self, session: str, spans: SessionSpans, parts: RecordedParts) -> None:
        self._session, self._spans, self._parts = session, spans, parts
        self._used: set[str] = set()
        self._chance_used: set[str] = set()

    def judge(self, request: Request, sent: Mapping[str, Any] | None, foreign: Foreign) -> Turn:
        """Judge a turn by its recorded request, the body sent instead, and a reply of another session.

        If no body was sent, no text counts as lost, because the request counts as failed.
        """
        called = list_call_spans(request.reply)
        if not called and not foreign[1]:
            return Turn()
        own = [span for span in called if span not in self._used]
        other, chance = foreign[0], [span for span in foreign[1] if span not in self._chance_used]
        history = _History(request, self._parts.list(request.messages))
        copied = [s for s in own if s in history and not self._spans.is_elsewhere(s, self._session)]
        chance = [s for s in chance if s in history and not self._spans.is_elsewhere(s, self._session, other)]
        self._used.update(copied)
        self._chance_used.update(chance)
        text = read_sent(sent) if sent is not None else None
        lost = [span for span in copied if text is not None and not is_left(span, text)]
        added = sent is not None and len(sent.get("tools") or ()) > len(request.tools)
        return Turn(
            tuple(copied),
            tuple(lost),
            bool(lost) and (added or all(_READS.search(history.find_tool(span)) for span in lost)),
            bool(chance),
            text is not None and any(not is_left(span, text) for span in chance),
            tuple(dict.fromkeys(history.find_tool(span) for span in lost)),
            _search_naively(history, text, called, foreign[1]),
        )


def _search_naively(
    history: _History, sent: str | None, called: Sequence[str], foreign: Sequence[str]
) -> tuple[int, ...]:
    """Return the counts of `NAIVE` for one turn."""
    found = [span for span in called if history.holds(span)]
    gone = sent is not None and any(span not in sent for span in found)
    return bool(found), gone, len(foreign), sum(map(history.holds, foreign))


class _History:
    """The tool results and user texts of a request; spans in its system text or tools do not count."""

    def __init__(self, request: Request, parts: Iterable[Part]) -> None:
        self._parts = parts = list(parts)
        self._given = [part for part in parts if part.kind in ("user", "result")]
        system = [part.text for part in parts if part.kind == "system"]
        self._opening = "\n".join((*system, *map(_dump, (request.system, *request.tools))))

    def __contains__(self, span: str) -> bool:
        return span not in self._opening and any(span in part.text for part in self._given)

    def holds(self, span: str) -> bool:
        """Whether a span occurs anywhere in the request."""
        return span in self._opening or any(span in part.text for part in self._parts)

    def find_tool(self, span: str) -> str:
        """Return the tool whose result contains a span; "" if only a user's text does."""
        return next((part.tool for part in self._given if part.kind == "result" and span in part.text), "")


def is_left(span: str, text: str) -> bool:
    """Whether a text still contains a span, or a reader can recover it; for a path, all its names must be left."""
    span = _unescape(span)
    if span in text:
        return True
    form = _normalise_sent(text)
    return normalise(span) in form or is_recoverable(span, [form], answers=() if " " in span else (span,))


@lru_cache(maxsize=1)
def _normalise_sent(text: str) -> str:
    return normalise(text)


# --- the estimate


@dataclass(frozen=True, slots=True)
class Loss:
    """Share of turns that lost text which the next call copied, corrected for chance matches."""

    turns: int
    matched: int  # turns whose next call contains a span of the history
    matched_lost: int  # of these, turns that lost one
    chance_matched: int  # turns in which a reply of another session contains one
    chance_lost: int
    uses: float  # estimated number of true uses
    of_uses: float | None  # share of true uses that lost text; None with too few uses
    by_turn: float | None  # the same as a share of all turns
    low: float | None = None  # 95% interval of `of_uses`, over sessions; None with too few sessions
    high: float | None = None
    sessions: int = 0


def count_turns(turns: Iterable[Turn]) -> list[int]:
    """Count a session's turns: all turns, turns that copied text, turns that lost text, and the last two by chance."""
    counts = [0] * 5
    for turn in turns:
        facts = (True, bool(turn.copied), bool(turn.lost), turn.chance_copied, turn.chance_lost)
        counts = [count + fact for count, fact in zip(counts, facts)]
    return counts


def count_naively(turns: Iterable[Turn]) -> list[int]:
    """Add up the counts of `NAIVE`."""
    return [sum(column) for column in zip(*(turn.naive for turn in turns))] or [0] * len(NAIVE)


def estimate_loss(counts: Sequence[Sequence[int]]) -> Loss:
    """Estimate the loss from the counts of each session, as a mixture of true uses and chance matches."""
    total = [sum(column) for column in zip(*counts)] or [0] * 5
    uses, of_uses, by_turn = _solve(total)
    low = high = None
    if of_uses is not None and len(counts) >= MIN_SESSIONS:
        left_out = [[whole - part for whole, part in zip(total, each)] for each in counts]
        low, high = _compute_limits(of_uses, [_solve(each)[1] for each in left_out])
    turns, matched, lost, chance_matched, chance_lost = total
    known = (turns, matched, lost, chance_matched, chance_lost, uses)
    return Loss(*known, _to_share(of_uses), _to_share(by_turn), low, high, len(counts))


def _to_share(value: float | None) -> float | None:
    return None if value is None else min(1.0, max(0.0, value))


def _solve(counts: Sequence[int]) -> tuple[float, float | None, float | None]:
    turns, matched, lost, chance_matched, chance_lost = counts
    share = max(0.0, (matched - chance_matched) / (turns - chance_matched)) if turns > chance_matched else 0.0
    uses = share * turns
    if uses < MIN_JUDGED_TURNS:
        return uses, None, None
    gone = lost - (1 - share) * chance_lost  # may fall below 0 by chance if little was lost
    return uses, gone / uses, gone / turns


def _compute_limits(value: float, without_one: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Return the 95% limits of an estimate by the jackknife over sessions; estimates may lie outside 0 to 1."""
    known = [each for each in without_one if each is not None]
    number = len(known)
    if number < len(without_one):
        return None, None
    mean = sum(known) / number
    error = math.sqrt((number - 1) / number * sum((each - mean) ** 2 for each in known))
    # Equal sessions, such as without any loss, show no spread: take the binomial limit over sessions.
    half = t_quantile(0.975, number - 1) * error or 1 - 0.025 ** (1 / number)
    return _to_share(value - half), _to_share(value + half)
