"""Fuzzing sessions: run relations on many inputs, shrink failing inputs, and report rates with intervals."""

from __future__ import annotations

import difflib
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_bench.errors import DataError, SystemFailure
from context_bench.fuzz.cases import CONVERSATION, KINDS, Case, make_case
from context_bench.fuzz.chat_relations import CHAT_RELATIONS, make_conversation
from context_bench.fuzz.memory_relations import MEMORY_RELATIONS, finds_fact, make_memory_case
from context_bench.fuzz.relations import OUTPUT, RELATIONS, Broken, Relation, Skipped, holds_evidence
from context_bench.fuzz.targets import MemoryTarget, ProxyTarget, SystemTarget
from context_bench.stats import Interval, share_interval

AnyTarget = SystemTarget | ProxyTarget | MemoryTarget

MAX_SHRINK_CALLS = 150  # tries to shrink one finding
MAX_SHRINK_SECONDS = 10  # time to shrink one finding
MAX_FINDINGS = 3  # shrunk and kept findings of one relation
MAX_DIFF_LINES = 10  # shown changed lines of a finding
OWN_SHARE = 6  # inputs from the user's data per generated input of each kind
RECHECKS = 4  # repetitions of a broken relation, with the change and without it
SURE_AFTER = 10  # after this many consistent failures, the target counts as deterministic and is not repeated
MAX_P = 0.01  # p-value at which a random target breaks a relation


@dataclass(frozen=True)
class Finding:
    """A shrunk input that breaks a relation."""

    relation: str
    reason: str
    case: Case
    seed: int
    before: str
    after: str

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "case": self.case.to_dict()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Finding:
        """Read the output of `to_dict`."""
        return cls(**{**stored, "case": Case.from_dict(stored["case"])})

    def diff(self) -> list[str]:
        """Show the effect of the change on the output, in a few lines."""
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), lineterm="", n=0)
        changed = [line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---"))]
        changed = changed or [f" {line}" for line in self.after.splitlines()]  # the fault is that nothing changed
        if len(changed) <= MAX_DIFF_LINES:
            return changed
        half = MAX_DIFF_LINES // 2
        gone, came = ([line for line in changed if line[0] == sign] for sign in "-+")
        shown = [*gone[: max(half, MAX_DIFF_LINES - len(came))], *came[: max(half, MAX_DIFF_LINES - len(gone))]]
        return [*shown, f"… and {len(changed) - len(shown):,} more lines"]


@dataclass
class RelationResult:
    """Counts of tries and failures of one relation."""

    relation: Relation
    declared: bool = False
    tried: int = 0
    broken: int = 0
    excused: int = 0
    failed: int = 0
    findings: list[Finding] = field(default_factory=list)
    rechecked: int = 0  # repetitions with the change, and as many without
    lost_with_change: int = 0
    lost_without: int = 0

    @property
    def varies(self) -> bool:
        """Whether the output is random: the change does not always cause a loss, or losses also occur without it."""
        return self.lost_with_change < self.rechecked or self.lost_without > 0

    @property
    def counts(self) -> bool:
        """Whether failures count against the target; with random output, only if the change adds significantly many."""
        if not self.relation.judged or self.declared:
            return False
        return not self.varies or _compute_p(self.lost_with_change, self.lost_without, self.rechecked) <= MAX_P

    @property
    def rate(self) -> Interval:
        """Share of tries that broke the relation, with its 95% interval."""
        return share_interval(self.broken, self.tried)

    def to_dict(self) -> dict[str, Any]:
        return {
            "relation": self.relation.id,
            "reason": self.relation.reason,
            "tried": self.tried,
            "broken": self.broken,
            "rate": self.rate.to_dict() if self.tried else None,
            "excused": self.excused,
            "varies": self.varies,
            "counts": self.counts,
            "failed": self.failed,
            "declared": self.declared,
            "judged": self.relation.judged,
            "findings": [each.to_dict() for each in self.findings],
        }


@dataclass
class Report:
    """Results of one target."""

    target: str
    seed: int
    results: dict[str, RelationResult]
    seconds: float = 0.0

    @property
    def broken(self) -> list[RelationResult]:
        """Broken relations that count against the target."""
        return [each for each in self.results.values() if each.broken and each.counts]

    @property
    def findings(self) -> list[Finding]:
        """All findings, in the order of the relations."""
        return [finding for each in self.results.values() for finding in each.findings]

    def to_dict(self) -> dict[str, Any]:
        found = [each.to_dict() for each in self.results.values()]
        return {"target": self.target, "seed": self.seed, "seconds": self.seconds, "relations": found}


def list_known(target: AnyTarget) -> dict[str, Relation]:
    """Return the relations for this kind of target."""
    if isinstance(target, MemoryTarget):
        return MEMORY_RELATIONS
    return {**RELATIONS, **CHAT_RELATIONS} if isinstance(target, ProxyTarget) else RELATIONS


def _make_cases(target: AnyTarget, own: Sequence[Case], seed: int) -> Iterator[Case]:
    """Yield inputs without end: generated ones of each kind in turn, and those from the user's data."""
    number = seed * 1_000_000
    while True:
        if isinstance(target, MemoryTarget):
            yield make_memory_case(number)
        else:
            yield from (make_case(kind, number, items=8 + number % 4 * 8) for kind in KINDS)
            if isinstance(target, ProxyTarget):
                yield make_conversation(number)
            for place in range(OWN_SHARE if own else 0):
                yield own[(OWN_SHARE * number + place) % len(own)]
        number += 1


async def fuzz(
    target: AnyTarget,
    relations: Sequence[Relation],
    *,
    n: int = 50,
    seconds: float = 60.0,
    seed: int = 0,
    own: Sequence[Case] = (),
    declared: Sequence[str] = (),
    on_progress: Callable[[int, float], None] | None = None,
) -> Report:
    """Try relations on a target until each relation was tried `n` times, or until time is up.

    Args:
        target: Tested system, proxy or memory.
        relations: Relations to try.
        n: Tries of each relation.
        seconds: Time limit, except for shrinking the last finding.
        seed: Seed of the inputs and their changes.
        own: Inputs from the user's data, in addition to generated ones.
        declared: Relations that the target declares to break: reported, but not counted.
        on_progress: Called after each input with the number of inputs and seconds so far.
    """
    began = time.monotonic()
    results = {each.id: RelationResult(each, each.id in declared) for each in relations}
    for place, case in enumerate(_make_cases(target, own, seed)):
        left = [each for each in results.values() if each.tried + each.excused < n and place < n * 20]
        if not left or time.monotonic() - began >= seconds:
            break
        for result in left:
            if case.kind in result.relation.kinds and time.monotonic() - began < seconds:
                await _try(target, result, case, seed + place)
        if on_progress is not None:
            on_progress(place + 1, time.monotonic() - began)
    return Report(target.name, seed, results, time.monotonic() - began)


async def _try(target: AnyTarget, result: RelationResult, case: Case, seed: int) -> None:
    relation = result.relation
    try:
        broken = await _check(target, relation, case, seed)
    except Skipped:
        return
    except SystemFailure as error:
        if relation.id != OUTPUT and await _fails_unchanged(target, case):
            return
        result.failed += 1
        result.tried += 1
        result.broken += 1
        if len(result.findings) < MAX_FINDINGS:
            result.findings.append(Finding(relation.id, str(error), case, seed, case.text, str(error)))
        return
    clean = True
    if broken is not None and relation.keeps_evidence and (result.varies or result.rechecked < RECHECKS * SURE_AFTER):
        tries, with_change, without = await _recheck(target, relation, case, seed)
        result.rechecked += tries
        result.lost_with_change += with_change
        result.lost_without += without
        if with_change <= without:
            result.excused += 1
            return
        clean = with_change == tries and not without
    result.tried += 1
    if broken is None:
        return
    result.broken += 1
    if len(result.findings) < MAX_FINDINGS:
        small, found = await shrink(target, relation, case, seed, broken) if clean else (case, broken)
        result.findings.append(Finding(relation.id, found.reason, small, seed, found.before, found.after))


async def _recheck(target: AnyTarget, relation: Relation, case: Case, seed: int) -> tuple[int, int, int]:
    """Repeat a broken relation; return the numbers of tries, of failures, and of losses on the unchanged input.

    A try does not count if its evidence is lost before the change, because the relation then does not apply.
    """
    tries = with_change = without = 0
    for _ in range(3 * RECHECKS):
        if tries == RECHECKS:
            break
        try:
            with_change += await _check(target, relation, case, seed) is not None
            without += not await _is_kept(target, case)
        except Skipped:
            continue
        except SystemFailure:
            break
        tries += 1
    return tries, with_change, without


async def _is_kept(target: AnyTarget, case: Case) -> bool:
    if isinstance(target, MemoryTarget):
        return await finds_fact(target, case)
    return holds_evidence(case, await target.read(case))


def _compute_p(changed: int, unchanged: int, each: int) -> float:
    """Return the one-sided p-value of Fisher's exact test that changed inputs lose no more than unchanged ones."""
    lost = changed + unchanged
    ways = [math.comb(each, k) * math.comb(each, lost - k) for k in range(changed, min(lost, each) + 1)]
    return sum(ways) / math.comb(2 * each, lost) if each else 1.0


async def _fails_unchanged(target: AnyTarget, case: Case) -> bool:
    """Whether a target fails on the unchanged input, so that no change is the cause."""
    if isinstance(target, MemoryTarget) or case.kind == CONVERSATION:
        return False
    try:
        await target.read(case)
    except SystemFailure:
        return True
    return False


async def _check(target: AnyTarget, relation: Relation, case: Case, seed: int) -> Broken | None:
    try:
        await relation.check(target, case, random.Random(f"{relation.id} {seed}"))
    except Broken as broken:
        return broken
    return None


async def shrink(target: AnyTarget, relation: Relation, case: Case, seed: int, broken: Broken) -> tuple[Case, Broken]:
    """Shrink an input that breaks a relation by delta debugging over its items.

    Items with evidence stay. Ever smaller groups of other items are removed while the relation still breaks.
    """
    calls, width, until = 0, max(1, len(case.items) // 2), time.monotonic() + MAX_SHRINK_SECONDS
    while calls < MAX_SHRINK_CALLS and time.monotonic() < until:
        removed = False
        start = 0
        while start < len(case.items) and calls < MAX_SHRINK_CALLS and time.monotonic() < until:
            gone = {place for place in range(start, start + width) if place not in case.evidence}
            kept = [place for place in range(len(case.items)) if place not in gone]
            if not gone or not kept or len(kept) == len(case.items):
                start += max(1, width // 2)
                continue
            smaller = case.reorder(kept)
            calls += 1
            try:
                found = await _check(target, relation, smaller, seed)
            except (Skipped, SystemFailure):
                found = None
            if found is not None:
                case, broken, removed = smaller, found, True
            else:
                start += max(1, width // 2)  # a call and its result are removed together, wherever they are
        if width == 1 and not removed:
            break
        width = width // 2 if width > 3 else max(1, width - 1)
    return case, broken


async def replay(target: AnyTarget, findings: Sequence[Finding]) -> list[tuple[Finding, Broken | None]]:
    """Try findings again; return each with its failure, or None if the relation now holds.

    An input that can no longer be tried, for example because its evidence is lost at once, is a failure.
    """
    known = list_known(target)
    tried = []
    for finding in findings:
        if finding.relation not in known:
            raise DataError(f"{finding.relation!r} is not a relation for {target.name}; choose from {', '.join(known)}")
        try:
            found = await _check(target, known[finding.relation], finding.case, finding.seed)
        except (Skipped, SystemFailure) as error:
            found = Broken(str(error), finding.before, str(error))
        tried.append((finding, found))
    return tried
