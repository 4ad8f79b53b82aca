"""Judges examples: wires the evaluators that fit each, asks them, and says which score is the primary one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from context_bench.compare.pairing import is_unread_row
from context_bench.core.judgement import (
    Judgement,
    Memory,
    Spending,
    ask_at_once,
    ask_slowly,
    is_unread,
    refuse_all,
    refuse_context,
)
from context_bench.core.threads import call_beside
from context_bench.core.wiring import (
    BY_FIELD,
    COMMON_EVALUATOR,
    DEFAULT_EVALUATORS,
    Judged,
    Wiring,
    build_all_evaluators,
    choose_score,
    list_judging_fields,
    refuse_repeats,
)
from context_bench.datasets.catalog import Card, card_for
from context_bench.datasets.joined import FieldCounts
from context_bench.errors import UsageError
from context_bench.evaluators.adapt import FunctionEvaluator
from context_bench.registry import registry
from context_bench.results import EvalRow
from context_bench.store.fingerprints import fingerprint_of
from context_bench.text.evidence_state import STATE_SCORES
from context_bench.text.golds import list_scoring_fields
from context_bench.traits import find_score_fields, is_slow
from context_bench.types import Evaluator, Example

__all__ = ["Scorer", "check_threshold", "is_own_score"]


class Scorer:
    """Applies evaluators to examples: the given ones to all, or else those that the catalog wires.

    Args:
        evaluators: What the user chose; None wires them by the dataset of each example.
        extra: Applied beside those, whatever they are.
        settings: Parameters for evaluators that are wired, by name.
        score_field: The score that counts; "score" leaves the choice to the dataset, or to the fields of its examples.
        keep_reasoning: Show the reasoning in replies to the evaluators.

    A dataset has one such score for answers and one for contexts that no model has read, so that a mean is over one
    score; an example without it is unscored.

    Attributes:
        primaries: The name of the score that counts for answers, for each dataset tag that was judged.
        context_primaries: The same for contexts that no model has read.
    """

    def __init__(
        self,
        evaluators: Sequence[Evaluator] | None = None,
        extra: Sequence[Evaluator] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        score_field: str = "score",
        keep_reasoning: bool = False,
    ) -> None:
        self._settings = settings or {}
        self.keep_reasoning = keep_reasoning
        self.score_field = score_field
        self.primaries: dict[str, str] = {}
        self.context_primaries: dict[str, str] = {}
        self._chosen: dict[tuple[str, bool], str] = {}
        self._settled: set[str] = set()
        self._given = None if evaluators is None else build_all_evaluators(evaluators)
        self._extra = build_all_evaluators(extra)
        refuse_repeats([*(self._given or ()), *self._extra])
        self._wirings: dict[tuple[str, tuple[str, ...]], Wiring] = {}
        self._cards: dict[str, Card | None] = {}
        self._made: dict[str, Evaluator] = {}

    def wiring(self, tag: str, example: Mapping[str, Any]) -> Wiring:
        """Choose the evaluators of an example: by its dataset, or without a card also by its fields."""
        if tag not in self._cards:
            self._cards[tag] = card_for(tag)
        card = self._cards[tag]
        fields = list_judging_fields(example) if self._given is None and card is None else ()
        known = self._wirings.get((tag, fields))
        if known is None:
            evaluators = [*self._wire(tag, fields), *self._extra]
            refuse_repeats(evaluators)
            known = self._wirings[tag, fields] = Wiring(evaluators, card)
        return known

    def evaluators_for(self, tag: str, example: Mapping[str, Any] | None = None) -> list[Evaluator]:
        """The evaluators for a dataset tag, or for one example of it."""
        return self.wiring(tag, example or {}).evaluators

    def _wire(self, tag: str, fields: Sequence[str]) -> list[Evaluator]:
        if self._given is not None:
            return self._given
        card = card_for(tag)
        names = card.evaluators if card else (*DEFAULT_EVALUATORS, *(BY_FIELD[field][0] for field in fields))
        return [self._evaluator(name) for name in dict.fromkeys((COMMON_EVALUATOR, *names))]

    @property
    def chosen(self) -> list[Evaluator]:
        """The evaluators that the user chose, which may want to prepare themselves."""
        return [*(self._given or ()), *self._extra]

    @property
    def has_judge(self) -> bool:
        """Whether a model judges the answers beside the other evaluators."""
        return any("judge_score" in (find_score_fields(each) or ()) for each in self.chosen)

    @property
    def names(self) -> list[str]:
        """The evaluators that have judged something."""
        return sorted({each.name for wiring in self._wirings.values() for each in wiring.evaluators})

    @property
    def versions(self) -> dict[str, str | None]:
        """The fingerprint of each evaluator that has judged something: runs whose evaluators differ do not compare."""
        judged = {each.name: each for wiring in self._wirings.values() for each in wiring.evaluators}
        return {name: self.fingerprint(judged[name]) for name in sorted(judged)}

    def fingerprint(self, evaluator: Evaluator) -> str | None:
        """Return everything that the scores of an evaluator depend on; None where that cannot be known."""
        known = fingerprint_of(evaluator)
        return f"{known} keeps reasoning" if known and self.keep_reasoning else known

    def show(self, processed: Example) -> Example:
        """Return an answer as the evaluators are to read it."""
        return {**processed, "keep_reasoning": True} if self.keep_reasoning else processed

    def _evaluator(self, name: str) -> Evaluator:
        if name not in self._made:
            self._made[name] = registry.get("evaluator", name)(**self._settings.get(name, {}))
        return self._made[name]

    def find_cluster_field(self, tag: str) -> str | None:
        """Find the field of `meta` that names the document or conversation which examples of a dataset share."""
        card = card_for(tag)
        return "group" if card is None else card.cluster or None

    def find_threshold(self, tag: str) -> float | None:
        """The threshold that the card of a dataset recommends for the score that counts."""
        card = card_for(tag)
        return card.threshold if card and self.score_field in ("score", card.primary) else None

    def fields_for(self, tags: Iterable[str]) -> set[str] | None:
        """All score keys that can come up for these datasets; None when an evaluator does not say."""
        fields = {"score"}
        for tag in tags:
            # One's own data may turn out to have any of these fields.
            for evaluator in (*self._wire(tag, list(BY_FIELD)), *self._extra):
                emitted = find_score_fields(evaluator)
                if emitted is None:
                    return None
                fields.update(emitted)
        return fields

    def wire(self, item: Judged) -> Wiring:
        """Return what judges an example, which is looked up once for all systems."""
        if item.wiring is None:
            item.wiring = self.wiring(item.tag, item.example)
        return item.wiring

    async def judge(
        self,
        item: Judged,
        processed: Example,
        threads: Executor,
        memory: Memory | None = None,
        long: Executor | None = None,
        spending: Spending | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Judgement:
        """Ask every evaluator that applies; one that fails gives a reason and no score.

        Args:
            item: The example as the dataset has it.
            processed: What the system made of it.
            threads: For evaluators that are slow.
            memory: What slow evaluators said before.
            long: For all others, when the texts are long; None calls them here.
            spending: The limit that judges share with systems; None for no limit.
            metadata: What is known of the answer: whether a model has read the context.
        """
        judgement, example, wiring, processed = Judgement(), item.example, self.wire(item), self.show(processed)
        if "unscorable" in processed:
            return refuse_all(wiring.evaluators, processed)
        unread = is_unread(processed, metadata)
        for evaluator, needs in zip(wiring.evaluators, wiring.needs_answer):
            if needs and unread:
                refuse_context(judgement, evaluator)
            elif not is_slow(evaluator):
                await call_beside(long, ask_at_once, judgement, evaluator, example, processed)
            else:
                await ask_slowly(judgement, evaluator, example, processed, threads, memory, spending)
        return self._set_primary(judgement, item, unread=unread)

    def judge_at_once(self, item: Judged, processed: Example, metadata: Mapping[str, Any] | None = None) -> Judgement:
        """Do the same where no evaluator is slow."""
        judgement, example, wiring = Judgement(), item.example, item.wiring or self.wire(item)
        if self.keep_reasoning:
            processed = self.show(processed)
        if "unscorable" in processed:
            return refuse_all(wiring.evaluators, processed)
        unread = "context" in processed and is_unread(processed, metadata)
        for evaluator, needs in zip(wiring.evaluators, wiring.needs_answer):
            if needs and unread:
                refuse_context(judgement, evaluator)
            else:
                ask_at_once(judgement, evaluator, example, processed)
        return self._set_primary(judgement, item, unread=unread)

    def _set_primary(self, judgement: Judgement, item: Judged, *, unread: bool) -> Judgement:
        scores = judgement.scores
        if self.score_field == "score" and "score" in scores:  # a user's own score wins
            primary: str | None = "score"
        else:
            primary = self._find_primary(scores, item, unread=unread)
        if primary is not None:
            scores["score"] = scores[primary]
            if (self.context_primaries if unread else self.primaries).get(item.tag) != primary:
                self._note_primary(item.tag, primary, unread=unread)
        return judgement

    def note_known(self, item: Judged, row: EvalRow) -> bool:
        """Note which score counts in a row that was judged by an earlier run, and correct it where that is another.

        Returns:
            Whether the row is another now.
        """
        unread, before = is_unread_row(row), row.scores.pop("score", None)
        primary = self._find_primary(row.scores, item, unread=unread)
        if before is not None and (primary is None or row.scores[primary] != before) and self._may_give_score(item):
            row.scores["score"], primary = before, "score"
        elif primary is not None:
            row.scores["score"] = row.scores[primary]
        if primary is not None:
            self._note_primary(item.tag, primary, unread=unread)
        return row.scores.get("score") != before

    def _may_give_score(self, item: Judged) -> bool:
        """Whether an evaluator of the user's own may give a score of the name `score`."""
        return any("score" in (find_score_fields(each) or ("score",)) for each in self.wire(item).evaluators)

    def _note_primary(self, tag: str, primary: str, *, unread: bool) -> None:
        primaries = self.context_primaries if unread else self.primaries
        known = primaries.get(tag)
        if known is None:
            primaries[tag] = primary
        elif known != primary and primary not in known.split(" or "):
            primaries[tag] = f"{known} or {primary}"

    def settle(self, counts: FieldCounts) -> None:
        """Choose the scores of datasets whose examples were counted beforehand: those that fit most of them."""
        votes: dict[tuple[str, bool], Counter[str]] = {}
        for (tag, fields), count in counts.items():
            for unread in (False, True) if card_for(tag) is None else ():
                if (score := choose_score(fields, unread=unread)) is not None:
                    votes.setdefault((tag, unread), Counter())[score] += count
        for place, found in votes.items():
            self._chosen[place] = max(found, key=lambda score: (found[score], score == "evidence_recall", score))

    def see(self, example: Example) -> None:
        """Choose the scores of a dataset by its first example that any fits, where they are not chosen yet."""
        tag = str(example.get("dataset") or "")
        if tag not in self._settled:
            chosen = [self._choose(tag, example, unread=unread) for unread in (False, True)]
            if None not in chosen:
                self._settled.add(tag)

    def _choose(self, tag: str, example: Example, *, unread: bool) -> str | None:
        if (tag, unread) not in self._chosen:
            card = card_for(tag)
            score = choose_score(list_scoring_fields(example), unread=unread)
            if card is not None:
                score = card.primary if not unread else "evidence_recall" if card.evidence else "answer_in_context"
            if score is None:
                return None
            self._chosen[tag, unread] = score
        return self._chosen[tag, unread]

    def _find_primary(self, scores: Mapping[str, float], item: Judged, *, unread: bool) -> str | None:
        """The name of the score that counts: the one asked for, or the one of the dataset; None where it is missing."""
        if self.score_field != "score":
            return self.score_field if self.score_field in scores else None
        chosen = self._chosen.get((item.tag, unread)) or self._choose(item.tag, item.example, unread=unread)
        if chosen in scores:
            return chosen
        wiring = self.wire(item)
        if chosen is not None and (self._given is None or chosen in wiring.emits):
            return None
        # The user's own evaluators may not give the usual score: then one of theirs, if it is the only one. Where a
        # dataset has a primary score of its own, it counts only if the user chose the evaluators.
        theirs = self._given is not None or (wiring.card is None and not list_judging_fields(item.example))
        own = [key for key in scores if key not in STATE_SCORES]
        second = "contains" if unread else "f1"
        takes_second = second in scores and (unread or wiring.card is None)
        found = second if takes_second else own[0] if theirs and len(own) == 1 else None
        known = (self.context_primaries if unread else self.primaries).get(item.tag, found)
        return found if known == found else None


def is_own_score(scorer: Scorer, score_field: str) -> bool:
    """Whether an evaluator of the user's own may give a score: all others lie between 0 and 1."""
    own = {
        key
        for evaluator in scorer.chosen
        if isinstance(evaluator, FunctionEvaluator) or not type(evaluator).__module__.startswith("context_bench.")
        for key in find_score_fields(evaluator) or (score_field,)
    }
    return score_field in own


def check_threshold(threshold: float, scorer: Scorer, score_field: str) -> None:
    """A threshold outside of 0 to 1 must be for a score of the user's own.

    Raises:
        UsageError: Nothing, or everything, would pass.
    """
    if not 0 <= threshold <= 1 and not is_own_score(scorer, score_field):
        hint = f"; {threshold:g}% is {threshold / 100:g}" if 1 < threshold <= 100 else ""
        raise UsageError(f"threshold must be from 0 to 1, as the score {score_field!r} is (got {threshold:g}){hint}")
