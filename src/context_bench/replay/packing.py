"""A replay as JSON: recorded sessions, and the requests that arms forwarded instead.

Each message is written once. For each forwarded request, only the parts that the recording lacks are written. Together
with the recording, these parts are enough to repeat all measurements of a replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from hashlib import blake2b
from typing import Any

from context_bench.replay.arms import Sent
from context_bench.text import dump_json
from context_bench.traffic.sessions import Request, Session, Thread, Usage

_SHARED = ("history", "system", "tools", "usage")
_PLAIN = tuple(each.name for each in fields(Request) if each.name not in _SHARED)


def digest_session(session: Session) -> str:
    """Return a hash of all requests of a session and their replies."""
    digest = blake2b(digest_size=16)
    for thread in session.threads:
        for request in thread.requests:
            body = {"api": request.api, "body": request.body(), "reply": request.reply, "at": request.started}
            digest.update(dump_json(body).encode("utf-8", "replace"))
    return digest.hexdigest()


# --- a session


def pack_session(session: Session) -> dict[str, Any]:
    """Convert a session to JSON; values that several requests share are written once."""
    pool = _Pool()
    threads = []
    for thread in session.threads:
        requests = [
            {
                **{name: getattr(each, name) for name in _PLAIN},
                "history": pool.add(each.history, [pool.add(message) for message in each.history]),
                "system": pool.add(each.system),
                "tools": pool.add(each.tools),
                "usage": None if each.usage is None else asdict(each.usage),
            }
            for each in thread.requests
        ]
        threads.append({**{each.name: getattr(thread, each.name) for each in fields(Thread)}, "requests": requests})
    return {"id": session.id, "threads": threads, "values": pool.values}


def unpack_session(packed: Mapping[str, Any]) -> Session:
    """Rebuild a session from its JSON; shared values become shared objects again."""
    values = packed["values"]
    histories: dict[int, list[Any]] = {}
    threads = []
    for thread in packed["threads"]:
        requests = []
        for each in thread["requests"]:
            place, usage = each["history"], each["usage"]
            if place not in histories:
                histories[place] = [values[number] for number in values[place]]
            shared = {"history": histories[place], "system": values[each["system"]], "tools": values[each["tools"]]}
            requests.append(Request(**{**each, **shared, "usage": None if usage is None else Usage(**usage)}))
        threads.append(Thread(**{**thread, "requests": requests, "reconstructed": tuple(thread["reconstructed"])}))
    return Session(packed["id"], threads)


class _Pool:
    """List of values without repetition: the same object always gets the same index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[int, tuple[int, Any]] = {}  # by id(); holding the object keeps its id from being reused

    def add(self, value: Any, written: Any = None) -> int:
        if id(value) not in self._places:
            self._places[id(value)] = len(self.values), value
            self.values.append(value if written is None else written)
        return self._places[id(value)][0]


# --- forwarded requests

_BODIES = ("body", "repeated")


class SentPacker:
    """Writer of the bodies that were forwarded in a session."""

    def __init__(self) -> None:
        self.texts: dict[str, Any] = {}  # parts that the recording lacks, by name
        self._known: set[str] = set()

    def pack(self, body: Mapping[str, Any], sent: Sent) -> dict[str, Any]:
        """Pack the body sent instead of a recorded one."""
        self._known.update(name for name, _ in _list_parts(body))
        packed = {each.name: getattr(sent, each.name) for each in fields(Sent) if each.name not in _BODIES}
        bodies = [self._pack_body(each) for each in (sent.body, *sent.repeated) if each is not None]
        return {**packed, "bodies": bodies} if bodies else packed

    def _pack_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.texts.update((name, part) for name, part in _list_parts(body) if name not in self._known)
        return {
            key: list(map(_name, value)) if isinstance(value, list) else _name(value) for key, value in body.items()
        }


class SentReader:
    """Reader of what `SentPacker` wrote, given the recorded bodies."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        self._known = dict(texts)

    def read(self, body: Mapping[str, Any], packed: Mapping[str, Any]) -> Sent:
        """Return the body sent instead of a recorded one; raise KeyError if a part is missing."""
        self._known.update(_list_parts(body))
        plain = {name: value for name, value in packed.items() if name != "bodies"}
        bodies: list[Mapping[str, Any]] = [self._read_body(each) for each in packed.get("bodies", ())]
        return Sent(**plain, body=bodies[0] if bodies else None, repeated=bodies[1:])

    def _read_body(self, named: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: [self._known[each] for each in name] if isinstance(name, list) else self._known[name]
            for key, name in named.items()
        }


def _list_parts(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the messages, tools and other fields of a body, each with its hash as name."""
    for value in body.values():
        parts: Sequence[Any] = value if isinstance(value, list) else [value]
        yield from ((_name(part), part) for part in parts)


def _name(part: Any) -> str:
    return blake2b(dump_json(part).encode("utf-8", "replace"), digest_size=12).hexdigest()
