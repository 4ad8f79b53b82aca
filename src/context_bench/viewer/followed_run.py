"""One run that somebody looks at: its rows are read once, in short pieces, also while more of them are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.comparison import choose_baseline
from context_bench.report.row_index import RowIndex
from context_bench.report.row_values import clean_name, read_values
from context_bench.report.run_facts import RunFacts
from context_bench.report.stored_runs import to_source, write_time
from context_bench.results import EvalResult
from context_bench.store import RunInfo
from context_bench.store.records import places_of
from context_bench.store.run_records import RunRecord, restore_result
from context_bench.viewer.live_store import LiveStore

__all__ = ["FollowedRun"]

_PIECE = 200
"""Rows that are read at once: nobody else can read meanwhile."""
_LOOKED_AT = 2_000
"""Ids among which new ones are looked for at once."""


class FollowedRun:
    """A run whose rows go into an index, and whose facts are gathered.

    Args:
        info: The run.
        checksum: Of what is known of it.
        index: That its rows go into.
    """

    def __init__(self, info: RunInfo, checksum: int, index: RowIndex) -> None:
        self._index = index
        self.info, self.checksum = info, checksum
        self.under_way = self.complete = False
        self._begin()

    def _begin(self) -> None:
        self.facts = RunFacts(_make_result(self.info), self.info.id, write_time(self.info))
        self._next = self._missing = places_of(self.info.number)[0]
        self._baseline = self.facts.baseline or _choose_baseline(self.info.config)
        self._index.remove(self.info.number)
        self._index.set_baseline(self.info.number, None if self._baseline is None else clean_name(self._baseline))

    @property
    def version(self) -> str:
        """Change whenever there is something new to show."""
        return f"{self.info.number}.{self.checksum & 0xFFFFFFFF:x}.{self.facts.seen}.{int(self.complete)}"

    def update(self, info: RunInfo, checksum: int, *, under_way: bool) -> None:
        """Take over what is known of the run now."""
        self.under_way = under_way
        if checksum == self.checksum:
            return
        self.info, self.checksum, self.complete = info, checksum, False
        result = _make_result(info)
        baseline = RunFacts(result, info.id).baseline
        if info.summary and baseline != self._baseline:
            self._begin()  # what changed against the baseline has to be found again
        else:
            self.facts.result = result

    def read_on(self, store: LiveStore) -> bool:
        """Read the next piece of rows; False when there is none for now.

        Rows are written in another order than their ids: each pass looks for new ones from the first that is missing.
        """
        was_under_way = self.under_way
        end = places_of(self.info.number)[1]
        with store.open() as reader:
            ids = reader.list_rows(self._next, end, _LOOKED_AT)
            if not ids:
                self._next = self._missing
                if not was_under_way and not self.complete:
                    self._index.find_flips()
                    self.complete = True
                return False
            known = self._index.list_ids(ids[0], ids[-1] + 1)
            new = [identity for identity in ids if identity not in known]
            found = reader.read_records(new[:_PIECE])
        self._add(found)
        self._next = new[_PIECE] if len(new) > _PIECE else ids[-1] + 1
        for identity in ids:
            if identity == self._missing and identity < self._next:
                self._missing += 1
        return True

    def _add(self, found: Sequence[tuple[int, RunRecord]]) -> None:
        facts, values = self.facts, []
        for identity, record in found:
            source = to_source(record)
            facts.add(source)
            score = facts.read_score(record.row)
            values.append(read_values(identity, self.info.number, source, score, facts.threshold))
        self._index.add(values)

    def describe(self, expected: int) -> RunFacts:
        """Return the facts as they are now, with what has to be said of a run that has not ended, or not been read."""
        facts = self.facts
        seen = f"{facts.seen:,} rows"
        if not self.info.summary:
            self.facts.result = _make_result(self.info, self._index.sum_up(self.info.number))
            ended = "is under way" if self.under_way else f"did not come to its end ({self.info.status})"
            facts.state = f"The run {ended}: {seen} so far; there are no intervals and no verdicts before its end."
        else:
            facts.state = ""
        read = f"Being read: {facts.seen:,} of {expected:,} rows so far."
        facts.unread = "" if self.complete or self.under_way else read
        return facts


def _make_result(info: RunInfo, summary: Mapping[str, dict[str, float]] | None = None) -> EvalResult:
    if info.summary:
        return restore_result(info, [])
    config = dict(info.config)
    systems = [name for name in config.get("systems") or () if summary is None or name in summary]
    numbers = {name: dict((summary or {}).get(name, {})) for name in systems}
    return EvalResult([], {**numbers, **(summary or {})}, config=config)


def _choose_baseline(config: Mapping[str, Any]) -> str | None:
    systems = list(config.get("systems") or ())
    wanted = config.get("baseline")
    if len(systems) < 2:
        return None
    return choose_baseline(systems, wanted if wanted in systems else None, config.get("controls") or ())
