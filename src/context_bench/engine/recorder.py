"""Between the pipeline and the store: which key a job has, what is known of it, and what is put down."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.engine.call import Outcome
from context_bench.engine.scheduler import Item, Job
from context_bench.engine.scoring import Scorer
from context_bench.results import EvalRow, Scores
from context_bench.store import Store
from context_bench.store.keys import digest, example_digests, fingerprint_of, joined
from context_bench.store.store import StoredAnswer
from context_bench.types import Evaluator, System

__all__ = ["Keys", "Recorder", "ScoreMemory"]


class Keys:
    """The keys of one job: its answer, and its finished row. None where reuse is not safe."""

    __slots__ = ("answer", "row", "whole")

    def __init__(self, whole: bytes, answer: bytes | None, row: bytes | None) -> None:
        self.whole, self.answer, self.row = whole, answer, row


class Recorder:
    """Finds and keeps what a run produces.

    Args:
        store: Where.
        run: The id of the run.
        scorer: Its evaluators are part of a row's key.
        counting: What token counts depend on; None when that cannot be known.
        reuse: Whether what is known is used, or asked for again.
        tag: Set apart from answers of the same system under another tag.
    """

    def __init__(
        self, store: Store, run: str, scorer: Scorer, counting: str | None, *, reuse: bool, tag: str | None = None
    ) -> None:
        self.store, self.run, self.reuse = store, run, reuse
        self._scorer, self._counting, self._tag = scorer, counting, tag or ""
        self._systems: dict[str, bytes | None] = {}
        self._rows: dict[str, bytes | None] = {}
        if reuse:
            store.index()

    def announce(self, systems: Sequence[System]) -> None:
        """Say which systems cannot be recognised again, so that their answers are not reused."""
        for system in systems:
            if self.reuse and self._system_key(system) is None:
                warnings.warn(
                    f"answers of {system.name!r} are not reused: what they depend on cannot be told. Give it a "
                    "text attribute `fingerprint`",
                    stacklevel=3,
                )

    def keys(self, job: Job) -> Keys:
        """The keys of a job."""
        item = job.item
        if item.digests is None:
            body, whole, visible = example_digests(item.example)
            item.digests = (whole, visible)
            self.store.put_example(whole, body)
        whole, visible = item.digests
        base = self._system_key(job.system)
        if base is None:
            return Keys(whole, None, None)
        read = whole if getattr(job.system, "reads_gold", False) else visible
        answer = digest(base, read, job.repeat.to_bytes(4, "little"))
        judged = self._row_key(item)
        return Keys(whole, answer, None if judged is None else digest(answer, whole, judged))

    def _system_key(self, system: System) -> bytes | None:
        if system.name not in self._systems:
            fingerprint = fingerprint_of(system)
            known = None if fingerprint is None else digest(system.name, fingerprint, self._tag)
            self._systems[system.name] = known
        return self._systems[system.name]

    def _row_key(self, item: Item) -> bytes | None:
        wiring = self._scorer.wiring(item.tag, item.example)
        if wiring not in self._rows:
            wired = self._scorer.evaluators_for(item.tag, item.example)
            evaluators = joined(fingerprint_of(each) for each in wired)
            unknown = evaluators is None or self._counting is None
            self._rows[wiring] = None if unknown else digest(evaluators or "", self._counting or "")
        return self._rows[wiring]

    def known_row(self, job: Job, keys: Keys) -> EvalRow | None:
        """The finished row, when nothing that it depends on has changed."""
        if not self.reuse or keys.row is None:
            return None
        row = self.store.find_row(keys.row, job.item.example)
        if row is not None:
            self.store.put_place(self.run, job.order, keys.row)
        return row

    def known_answer(self, job: Job, keys: Keys) -> Outcome | None:
        """The answer, when the system would be asked the same thing again."""
        if not self.reuse or keys.answer is None:
            return None
        found = self.store.find_answer(keys.answer, job.item.example)
        if found is None:
            return None
        return Outcome(
            processed=found.processed,
            metadata=dict(found.metadata),
            latency=found.latency,
            returns=found.returns,
            known=True,
        )

    def keep_answer(self, job: Job, keys: Keys, outcome: Outcome) -> bytes:
        """Put an answer down as soon as it is there; its key, made up when it will never be looked for."""
        key = keys.answer or digest("once", self.run, str(job.order))
        if not outcome.known:
            answer = StoredAnswer(outcome.processed, outcome.metadata, outcome.latency, outcome.returns)
            self.store.put_answer(key, keys.whole, job.system.name, job.item.example, answer)
        return key

    def keep_row(self, job: Job, keys: Keys, answer: bytes | None, row: EvalRow, *, final: bool) -> None:
        """Put a row down; one that is not final (an error, an unreachable judge) for this run alone."""
        key = keys.row if final and keys.row is not None else digest("once", self.run, str(job.order), "row")
        self.store.put_row(key, answer, row)
        self.store.put_place(self.run, job.order, key)


class ScoreMemory:
    """What slow evaluators said of one answer, kept by evaluator, example and answer."""

    def __init__(self, store: Store, whole: bytes, processed: Mapping[str, Any], *, reuse: bool) -> None:
        self._store, self._whole, self._reuse = store, whole, reuse
        self._processed = example_digests(processed)[1]

    def _key(self, evaluator: Evaluator) -> bytes | None:
        fingerprint = fingerprint_of(evaluator)
        if fingerprint is None:
            return None
        return digest("score", evaluator.name, fingerprint, self._whole, self._processed)

    def find(self, evaluator: Evaluator) -> Scores | None:
        """What it said before."""
        key = self._key(evaluator)
        found = self._store.find_scores(key) if key and self._reuse else None
        return None if found is None else Scores(found["scores"], reason=found["reason"], details=found["details"])

    def keep(self, evaluator: Evaluator, scores: Mapping[str, float]) -> None:
        """Remember what it said now."""
        key = self._key(evaluator)
        if key:
            reason, details = getattr(scores, "reason", None), getattr(scores, "details", {})
            self._store.put_scores(key, {"scores": dict(scores), "reason": reason, "details": details})
