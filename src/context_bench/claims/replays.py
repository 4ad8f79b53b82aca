"""The recorded sessions in a bundle of a replay, so that what was sent in their place can be judged again."""

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
    """Reads the sessions of a bundle; the one that was asked for last is kept."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._digests: set[str] = set()
        self._rest: Iterator[Session] = iter(())
        self._last: tuple[str, Session] | None = None

    @cached_property
    def _recording(self) -> Recording:
        """All sessions together: which text counts as copied depends on the others."""
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
        """Judge what was sent in the place of a session again; None where the bundle does not have the session."""
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
