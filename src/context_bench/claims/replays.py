"""Recorded sessions in the bundle of a replay, needed to judge the forwarded requests again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from context_bench.claims.bundle import RECORDING
from context_bench.claims.reading import Bundle
from context_bench.pricing import Price, Prices
from context_bench.replay.packing import digest_session, unpack_session
from context_bench.replay.replayer import Recording, replay_again
from context_bench.traffic.sessions import Session
from context_bench.types import Example
from context_bench.utils.tokens import Tokenizer


class Sessions:
    """Reader of the sessions of a bundle; the last one stays in memory."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._digests: set[str] = set()
        self._rest: Iterator[Session] = iter(())
        self._last: tuple[str, Session] | None = None

    @cached_property
    def _recording(self) -> Recording:
        """All sessions, because the judgement of one session depends on all others."""
        recording = Recording([])
        for session in self._read():
            recording.add(session)
            self._digests.add(digest_session(session))
        return recording

    def _read(self) -> Iterator[Session]:
        for line in self._bundle.read_lines("requests.jsonl"):
            if line.get("session"):
                yield unpack_session(line["session"])

    def judge(
        self, example: Example, replayed: Mapping[str, Any], priced: Mapping[str, Any], count: Tokenizer
    ) -> dict[str, Any] | None:
        """Judge the forwarded requests of a session again; None if the bundle lacks the session."""
        recording, digest = self._recording, str(example.get("digest"))
        if example.keys() != RECORDING or digest not in self._digests:
            return None
        while self._last is None or self._last[0] != digest:
            session = next(self._rest, None)
            if session is None:
                self._rest = self._read()
            else:
                self._last = digest_session(session), session
        prices = Prices({model: Price.from_dict(price) for model, price in priced.items()})
        return replay_again(self._last[1], recording, replayed, prices, count)
