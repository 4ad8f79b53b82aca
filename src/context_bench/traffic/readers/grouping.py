"""Threads from logs with one request per record. Recorded ids determine the threads; without ids, a request joins the
conversation that it continues.

Records are read twice, so that only one thread at a time is in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from context_bench.traffic.parts import list_parts
from context_bench.traffic.readers.sources import ODD_FIELDS, WRONG_SHAPE, Record, Source
from context_bench.traffic.sessions import Request, Thread, append_shared
from context_bench.wire.prompts import read_text

CHAINED = "threads: derived from which request continues which"
_SESSION_FIELDS = ("session_id", "sessionId", "conversation_id", "conversation", "thread_id", "trace_id")
_SESSION_HEADERS = ("x-claude-code-session-id", "session_id", "session-id", "x-session-id", "conversation_id")
_USER_SESSION = re.compile(r"session_([0-9a-f-]{36})")


@dataclass(slots=True)
class Logged:
    """A request in a log."""

    request: Request
    session: str = ""
    previous: str = ""  # id of the reply that it continues (`previous_response_id`)
    reconstructed: tuple[str, ...] = ()


Parse = Callable[[Any], "Logged | str"]  # returns the request in a record, or the reason why there is none


@dataclass(slots=True)
class _Chain:
    """A thread found in the first pass."""

    session: str
    number: int
    records: list[tuple[float, int, int]] = field(default_factory=list)  # start, line and place of each request


def group_requests(
    source: Source,
    format: str,
    parse: Parse,
    records: Iterable[Record] | None = None,
    read_again: Callable[[int], Any] | None = None,
) -> Iterator[Thread]:
    """Yield the threads of a log; records without a request are counted by reason.

    `records` and `read_again` replace those of the source if a request is built from several values.
    """
    chains = _find_chains(source, parse, source.records() if records is None else records)
    first = {chain.session: chain.number for chain in reversed(chains)}
    chains.sort(key=lambda chain: (first[chain.session] if chain.session else chain.number, chain.number))
    read_again = read_again or source.read_again
    for chain in chains:
        requests: list[Request] = []
        replies: dict[str, list[Any]] = {}
        reconstructed: dict[str, None] = {} if chain.session else {CHAINED: None}
        chain.records.sort(key=lambda each: each[0])
        for _, line, place in chain.records:
            logged = _parse(parse, read_again(place))
            if isinstance(logged, str):
                continue
            request = replace(logged.request, line=line)
            if logged.previous:
                if logged.previous not in replies:
                    source.skip(line, "continues a reply that is not in this file")
                    continue
                request.history = [*replies[logged.previous], *request.history]
                request.length = len(request.history)
                reconstructed["input: joined along previous_response_id"] = None
            reconstructed |= dict.fromkeys(logged.reconstructed)
            append_shared(requests, request)
            if request.id:
                output = (request.reply or {}).get("output")
                replies[request.id] = [*request.messages, *(output if isinstance(output, list) else ())]
        if requests:
            name = chain.session or f"{source.path.stem}-{chain.number}"
            yield Thread(name, f"{name}/{chain.number}", requests, format, source.name, "", tuple(reconstructed))


def _find_chains(source: Source, parse: Parse, records: Iterable[Record]) -> list[_Chain]:
    """Group records into threads: a request belongs to the longest conversation that it continues."""
    chains: list[_Chain] = []
    ends: dict[tuple[str, bytes], _Chain] = {}  # by session and hash of all messages so far
    replies: dict[str, _Chain] = {}
    for line, place, value in records:
        logged = _parse(parse, value)
        if isinstance(logged, str):
            source.skip(line, logged)
            continue
        states = digest_states(logged.request.messages, f"{logged.request.api}\0{read_text(logged.request.system)}")
        known = (ends.get((logged.session, state)) for state in reversed(states))
        chain = replies.get(logged.previous) if logged.previous else next((each for each in known if each), None)
        if chain is None:
            chain = _Chain(logged.session, len(chains) + 1)
            chains.append(chain)
        started = logged.request.started
        chain.records.append((started if started is not None else float(len(chain.records)), line, place))
        if not logged.previous:
            ends[logged.session, states[-1]] = chain
        if logged.request.id:
            replies[logged.request.id] = chain
    return chains


def _parse(parse: Parse, value: Any) -> Logged | str:
    try:
        return parse(value)
    except WRONG_SHAPE:
        return ODD_FIELDS


def digest_states(messages: Iterable[Any], start: str = "") -> list[bytes]:
    """Return the hash of a conversation after each message, without cache marks and thinking."""
    digest = blake2b(start.encode("utf-8", "replace"), digest_size=12)
    states: list[bytes] = []
    tools: dict[str, str] = {}
    for message in messages:
        for part in list_parts(message, tools):
            if part.kind != "thinking":
                digest.update(f"{part.kind}\0{part.text}\0".encode("utf-8", "replace"))
        states.append(digest.digest())
    return states or [b""]


def find_session(record: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Return the session id in a record, the request's metadata or its headers; "" without one."""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    for held in (record, metadata, body):
        for name in _SESSION_FIELDS:
            if isinstance(held.get(name), str) and held[name]:
                return str(held[name])
    user = metadata.get("user_id")
    if isinstance(user, str) and (found := _USER_SESSION.search(user)):
        return found[1]
    headers = record.get("headers")
    if isinstance(headers, Mapping):
        lower = {str(name).lower(): value for name, value in headers.items()}
        for name in _SESSION_HEADERS:
            if isinstance(lower.get(name), str) and lower[name] != "***":
                return str(lower[name])
    return ""
