"""Judges examples: wires the evaluators that fit each, asks them, and says which score is the primary one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from context_bench.datasets.catalog import Card, card_for
from context_bench.engine.judgement import (
    Judgement,
    Memory,
    Spending,
    ask_at_once,
    ask_slowly,
    lacks_answer,
    refuse_all,
)
from context_bench.engine.threads import call_beside
from context_bench.engine.wiring import (
    BY_FIELD,
    COMMON_EVALUATOR,
    DEFAULT_EVALUATORS,
    Judged,
    Wiring,
    build_all_evaluators,
    list_judging_fields,
    refuse_repeats,
)
from context_bench.errors import UsageError
from context_bench.evaluators.adapt import FunctionEvaluator
from context_bench.registry import registry
from context_bench.store.fingerprints import fingerprint_of
from context_bench.text.evidence_state import STATE_SCORES
from context_bench.traits import find_score_fields, is_slow
from context_bench.types import Evaluator, Example

__all__ = ["Scorer", "check_threshold", "is_own_score"]


class Scorer:
    """Applies evaluators to examples: the given ones to all, or else those that the catalog wires.

    Args:
        evaluators: What the user chose; None wires them by the dataset of each example.
        extra: Applied beside those, whatever they are.
        settings: Parameters for evaluators that are wired, by name.
        score_field: The score that counts; "score" leaves the choice to the dataset, or to the fields of an example.
        keep_reasoning: Show the reasoning in replies to the evaluators.

    Attributes:
        primaries: The name of the score that counts, for each dataset tag that was judged.
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
    ) -> Judgement:
        """Ask every evaluator that applies; one that fails gives a reason and no score.

        Args:
            item: The example as the dataset has it.
            processed: What the system made of it.
            threads: For evaluators that are slow.
            memory: What slow evaluators said before.
            long: For all others, when the texts are long; None calls them here.
            spending: The limit that judges share with systems; None for no limit.
        """
        judgement, example, wiring, processed = Judgement(), item.example, self.wire(item), self.show(processed)
        if "unscorable" in processed:
            return refuse_all(wiring.evaluators, processed)
        for evaluator, needs in zip(wiring.evaluators, wiring.needs_answer):
            if needs and lacks_answer(judgement, evaluator, processed):
                continue
            if not is_slow(evaluator):
                await call_beside(long, ask_at_once, judgement, evaluator, example, processed)
            else:
                await ask_slowly(judgement, evaluator, example, processed, threads, memory, spending)
        return self._set_primary(judgement, item)

    def judge_at_once(self, item: Judged, processed: Example) -> Judgement:
        """Do the same where no evaluator is slow."""
        judgement, example, wiring, processed = Judgement(), item.example, self.wire(item), self.show(processed)
        if "unscorable" in processed:
            return refuse_all(wiring.evaluators, processed)
        for evaluator, needs in zip(wiring.evaluators, wiring.needs_answer):
            if not (needs and lacks_answer(judgement, evaluator, processed)):
                ask_at_once(judgement, evaluator, example, processed)
        return self._set_primary(judgement, item)

    def _set_primary(self, judgement: Judgement, item: Judged) -> Judgement:
        scores = judgement.scores
        primary = "score" if self.score_field == "score" and "score" in scores else None  # a user's own score wins
        primary = primary or self._find_primary(scores, judgement.unscored, self.wire(item), item.example)
        if primary is not None:
            scores["score"] = scores[primary]
            self._note_primary(item.tag, primary)
        return judgement

    def note_known(self, item: Judged, scores: Mapping[str, float], unscored: Mapping[str, str]) -> None:
        """Note which score counts in a row that was judged by an earlier run."""
        tag = item.tag
        if tag in self.primaries and self._cards.get(tag):
            return  # a card names one score for all its rows
        if "score" in scores:
            own = {key: value for key, value in scores.items() if key != "score"}
            primary = self._find_primary(own, unscored, self.wire(item), item.example)
            self._note_primary(tag, primary if primary and own[primary] == scores["score"] else "score")

    def _note_primary(self, tag: str, primary: str) -> None:
        known = self.primaries.get(tag)
        if known is None:
            self.primaries[tag] = primary
        elif known != primary and primary not in known.split(" or "):
            self.primaries[tag] = f"{known} or {primary}"

    def _find_primary(
        self, scores: Mapping[str, float], unscored: Mapping[str, str], wiring: Wiring, example: Example
    ) -> str | None:
        """The name of the score that counts: the one asked for, what the dataset reports, or what fits the fields."""
        if self.score_field != "score":
            return self.score_field if self.score_field in scores else None
        if wiring.card:
            candidates = [wiring.card.primary]
        else:
            wired = [BY_FIELD[field] for field in list_judging_fields(example)]
            if any(evaluator in unscored for evaluator, _ in wired):
                return None  # what should count could not be judged: another score must not stand in for it
            candidates = [*(key for _, key in wired), "f1"]
        for key in candidates:
            if key in scores:
                return key
        # An evaluator of the user's own that gives one score: that is the one. Where a dataset has a primary score of
        # its own, it counts only if the user chose the evaluators.
        chosen = self._given is not None or candidates == ["f1"]
        own = [key for key in scores if key not in STATE_SCORES]
        return own[0] if chosen and len(own) == 1 else None


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
