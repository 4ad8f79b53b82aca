"""Between the pipeline and the store: computes the keys of jobs, finds stored results and stores new ones.

A key covers everything that can change a result, and nothing else. An answer depends on the system and on the fields
that it may read; a row also on the gold, the evaluators and the tokenizer. Any change of these changes the key, so the
cache never returns stale results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from context_bench.core.call import Outcome
from context_bench.core.examples import Evaluators, Item, Wiring
from context_bench.core.judge import Scorer
from context_bench.core.row import Job
from context_bench.errors import warn
from context_bench.results import EvalRow, Scores
from context_bench.store import RunInfo, StoreBackend
from context_bench.store.backend import FIRST_FAILED, Keys, identify_row
from context_bench.store.fingerprints import fingerprint_of, may_read_gold
from context_bench.store.origin import DIGEST_SIZE, digest
from context_bench.types import Evaluator, System

GOLD_FIELDS = frozenset(
    {"answer", "answers", "correct_letter", "evidence", "ground_truth", "reference", "references"}
    | {"relevant_ids", "test", "test_list"}
)
"""Fields that systems do not read: a corrected gold answer needs no new request."""

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


class Cache:
    """Finds and keeps the answers and rows of a run.

    `counting` names everything that token counts depend on; None if unknown. A system's answers under one `tag` are not
    found under another.
    """

    def __init__(
        self,
        store: StoreBackend,
        run: RunInfo,
        scorer: Scorer,
        counting: str | None,
        *,
        reuse: bool,
        tag: str | None = None,
    ) -> None:
        self.store, self.run, self.reuse = store, run, reuse
        self._scorer, self._counting, self._tag = scorer, counting, tag or ""
        self._systems: dict[str, tuple[bytes | None, bool]] = {}
        self._rows: dict[Wiring, bytes | None] = {}
        self._complete = False
        self.looks_up = reuse and store.has_keys()  # False for a new store, which has no results
        if self.looks_up:
            store.index_rows()

    def prepare(self, systems: Sequence[System]) -> None:
        """Compute all fingerprints that are known before the first example; warn about systems without one."""
        for system in systems:
            if self._system_key(system)[0] is None and self.reuse:
                _warn_not_reused("answers", system.name)
        for evaluator in self._scorer.chosen:
            self._scorer.fingerprint(evaluator)
        for wiring in self._scorer.wirings:
            self._row_key(wiring)
        if not self.looks_up:
            self._index_rest()

    def digest(self, item: Item) -> None:
        """Compute an example's digests for its keys; in a thread if it is long."""
        if item.digests is None:
            item.digests = example_digests(item.example)

    def keys_of(self, job: Job) -> Keys:
        """Return the keys of a job; compute them on first use."""
        if job.keys is None:
            job.keys = self._make_keys(job)
        return job.keys

    def _make_keys(self, job: Job) -> Keys:
        item, system = job.item, job.system
        if item.digests is None:
            item.digests = example_digests(item.example)
        whole, visible = item.digests
        base, gold = self._systems.get(system.name) or self._system_key(system)
        wiring = item.wiring or self._scorer.wire(item)
        return make_keys(whole, whole if gold else visible, job.repeat, base, self._row_key(wiring))

    def _system_key(self, system: System) -> tuple[bytes | None, bool]:
        """Return the key of a system (None without one), and whether its keys include the gold."""
        if system.name not in self._systems:
            fingerprint = fingerprint_of(system)
            known = None if fingerprint is None else digest(system.name, fingerprint, self._tag)
            self._systems[system.name] = known, may_read_gold(system)
        return self._systems[system.name]

    def _row_key(self, wiring: Wiring) -> bytes | None:
        """Return the key of everything that a row depends on, apart from the answer; None if unknown."""
        if wiring not in self._rows:
            known = {each.name: self._scorer.fingerprint(each) for each in wiring.evaluators}
            for name in [name for name, fingerprint in known.items() if fingerprint is None and self.reuse]:
                _warn_not_reused("scores", name)
            unknown = None in known.values() or self._counting is None
            self._rows[wiring] = (
                None if unknown else digest(repr(known), self._counting or "", self._scorer.score_field)
            )
        return self._rows[wiring]

    def find_rows(self, jobs: Sequence[Job]) -> list[EvalRow | None]:
        """Find the stored row of each job; None if there is none, or if anything that it depends on has changed."""
        for job in jobs:  # step by step for all jobs, which takes half the time
            self.digest(job.item)
        rows: list[EvalRow | None] = []
        for job, found in zip(jobs, self.store.find_rows([(self.keys_of(job).row, job.item.example) for job in jobs])):
            if found is None:
                rows.append(None)
            else:
                keys = self.keys_of(job)
                keys.response, row, keys.record = found
                rows.append(row)
        return rows

    def find_answer(self, job: Job) -> Outcome | None:
        """Find the stored answer of a job; None if there is none."""
        keys = self.keys_of(job)
        found = self.store.find_answer(keys.answer, job.item.example) if keys.answer else None
        if found is None:
            return None
        keys.response, answer, keys.record = found
        return Outcome(
            processed=answer.processed,
            metadata=answer.metadata,
            latency=answer.latency,
            returns=answer.returns,
            known=True,
        )

    def keep_answer(self, job: Job, outcome: Outcome) -> None:
        """Store an answer, unless it is already stored."""
        keys = self.keys_of(job)
        if keys.response is None:
            keys.response = self.store.put_answer(self.run, job.order, keys.answer, job.item.example, outcome)

    def keep_row(self, job: Job, outcome: Outcome, row: EvalRow, *, final: bool) -> None:
        """Store a row, and its answer and example unless they are already stored.

        A row that is not final (an error, an unreachable judge) is kept only for this run.
        """
        keys, item = job.keys or self.keys_of(job), job.item
        if not self._complete:
            self._index_rest()
        answer = outcome if keys.response is None and outcome.error is None else None
        if outcome.error is not None and (seen := outcome.processed.get("tapped")):
            self.store.put_request(self.run, FIRST_FAILED + job.order, {**identify_row(row), "tapped": seen})
        item.kept = self.store.put_result(
            self.run, job.order, keys, item.example, item.kept, answer, row, key=keys.row if final else None
        )

    def copy_row(self, job: Job) -> None:
        """Store a row of an earlier run as a row of this run too."""
        keys = self.keys_of(job)
        assert keys.row is not None
        self.store.copy_row(self.run, job.order, keys.row, keys.whole, job.item.example)

    def prepare_for_misses(self) -> None:
        """Flush queued copies of rows and load the indexes before the first job that is not stored."""
        self.store.flush_copies()
        self._index_rest()

    def _index_rest(self) -> None:
        if not self._complete:
            self._complete = True
            self.store.index_examples()
            if self.looks_up:
                self.store.index_answers()

    def memory(self, job: Job, processed: Mapping[str, Any]) -> ScoreMemory:
        """Open the cached scores of slow evaluators for an answer."""
        return ScoreMemory(self.store, self._scorer, self.keys_of(job).whole, processed, reuse=self.reuse)


def _warn_not_reused(what: str, name: str) -> None:
    warn(f"{what} of {name!r} are not reused: what they depend on is unknown. Give it a text attribute `fingerprint`")


class ScoreMemory:
    """Cached scores of slow evaluators for one answer."""

    def __init__(
        self, store: StoreBackend, evaluators: Evaluators, whole: bytes, processed: Mapping[str, Any], *, reuse: bool
    ) -> None:
        self._store, self._evaluators, self._whole, self._reuse = store, evaluators, whole, reuse
        self._processed = example_digests(processed)[0]

    def _key(self, evaluator: Evaluator) -> bytes | None:
        fingerprint = self._evaluators.fingerprint(evaluator)
        if fingerprint is None:
            return None
        return digest("score", evaluator.name, fingerprint, self._whole, self._processed)

    def find(self, evaluator: Evaluator) -> Scores | None:
        """Return the evaluator's stored scores."""
        key = self._key(evaluator)
        found = self._store.find_scores(key) if key and self._reuse else None
        return None if found is None else Scores(found["scores"], reason=found["reason"], details=found["details"])

    def keep(self, evaluator: Evaluator, scores: Mapping[str, float]) -> None:
        """Store the evaluator's new scores."""
        key = self._key(evaluator)
        if key:
            own = scores if isinstance(scores, Scores) else Scores(scores)
            self._store.put_scores(key, {"scores": dict(scores), "reason": own.reason, "details": own.details})


# -- keys


def digest_of(*parts: bytes) -> bytes:
    """Digest parts of fixed length, which need no separators."""
    return blake2b(b"".join(parts), digest_size=DIGEST_SIZE).digest()


def example_digests(example: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Digest the whole example, and the part that a system may read."""
    read = dict(example)
    gold = {key: read.pop(key) for key in GOLD_FIELDS.intersection(example)}
    visible = digest_of(_json(read))
    return digest_of(visible, _json(gold)), visible


def make_keys(whole: bytes, read: bytes, repeat: int, system: bytes | None, judged: bytes | None) -> Keys:
    """Make the keys of an answer and its row.

    `whole` is the digest of the example, `read` of the part that the system may read, `judged` of everything else that
    a row depends on (None if unknown).
    """
    if system is None:
        return Keys(whole, None, None)
    answer = digest_of(system, read, repeat.to_bytes(4, "little"))
    return Keys(whole, answer, None if judged is None else digest_of(answer, whole, judged))


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:  # lone surrogates, very large integers, objects: use their repr, which differs
        return orjson.dumps(_spell(value), option=_OPTIONS)


def _spell(value: Any) -> Any:
    """Write all keys and values as ASCII text, keeping the structure."""
    if isinstance(value, Mapping):
        return {ascii(key): _spell(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spell(item) for item in value]
    return value if isinstance(value, bool | None) else ascii(value)
