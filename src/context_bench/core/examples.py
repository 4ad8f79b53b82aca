"""Reads the examples of a run: checks each example, and chooses its evaluators and its primary score.

The dataset's card decides how an example is judged; without a card, the example's fields decide. The choice is made
once for each dataset or, without a card, for each set of judging fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, Literal

from context_bench.datasets.catalog import Card, card_for
from context_bench.datasets.example_check import MAX_DEPTH, ExampleCheck, find_deep_fields
from context_bench.datasets.joined import FieldCounts
from context_bench.errors import ScoreClash, UsageError
from context_bench.evaluators.adapt import FunctionEvaluator, adapt_evaluator, build_evaluators
from context_bench.evaluators.evidence_map import EvidenceMap
from context_bench.registry import registry
from context_bench.store.fingerprints import fingerprint_of
from context_bench.text.golds import list_scoring_fields
from context_bench.traits import dataset_traits, find_need, find_score_fields, is_slow
from context_bench.types import Evaluator, Example
from context_bench.utils.tokens import LONG_TEXT

COMMON_EVALUATOR = "answer-quality"  # the evaluator that every dataset has; without a gold answer it gives no score

DEFAULT_EVALUATORS = ("context-recall",)  # also applied to datasets that have no catalog card

BY_FIELD = {
    "correct_letter": ("multiple-choice-accuracy", "mc_accuracy"),
    "test": ("code-execution", "pass_at_1"),
    "test_list": ("code-execution", "pass_at_1"),
    "instruction_id_list": ("ifeval-checker", "ifeval_strict"),
    "ground_truth": ("tool-call-match", "tool_call_match"),
}
"""For each field that an example may have: the evaluator that reads it, and the score that is then primary."""


class Wiring:
    """The evaluators of one kind of example, with facts about them that are known before the run.

    Attributes:
        evaluators: All evaluators of this kind of example.
        slow: Whether one of the evaluators takes so long that an endpoint should not wait for it.
        card: The dataset's card, if it has one.
        threshold: The lowest score that passes, by the card.
        cluster_field: The field of `meta` that names the document or conversation shared by several examples.
        asks: Each evaluator, with whether it is slow and the only kind of output that it judges, if any.
        emits: The scores that the evaluators declare.
    """

    __slots__ = ("asks", "card", "cluster_field", "emits", "evaluators", "slow", "threshold")

    def __init__(self, evaluators: list[Evaluator], card: Card | None, score_field: str = "score") -> None:
        self.evaluators, self.card = evaluators, card
        self.threshold = card.threshold if card and score_field in ("score", card.primary) else None
        self.cluster_field = find_cluster_field(card)
        self.asks = [(each, is_slow(each), find_need(each)) for each in evaluators]
        self.slow = any(slow for _, slow, _ in self.asks)
        self.emits = {key for each in evaluators for key in find_score_fields(each) or ()}


def find_cluster_field(card: Card | None) -> str | None:
    """Find the field of `meta` that names the document or conversation shared by several examples of a dataset."""
    return "group" if card is None else card.cluster or None


class Item:
    """An example, with the facts that are computed once for all systems."""

    __slots__ = (
        *("counted", "counting", "digests", "evidence", "example", "fault"),
        *("is_long", "kept", "place", "tag", "tokens", "wiring"),
    )

    def __init__(self, example: Example, tag: str | None = None, wiring: Wiring | None = None) -> None:
        self.counted = False  # whether it was counted for its dataset
        self.example = example
        # why it cannot be sent or stored unchanged. `example` then has the remaining fields, without those in
        # question
        self.fault: str | None = None
        if deep := find_deep_fields(example):
            self.fault = f"{deep[0]!r} is nested more than {MAX_DEPTH} levels deep"
            self.example = {key: value for key, value in example.items() if key not in deep}
        self.tag = str(example.get("dataset") or "") if tag is None else tag
        # those of its prompt, once counted; `counting` is the task that counts a long one
        self.tokens: int | None = None
        self.counting: Future[None] | None = None
        # whether its texts are so long that counting them is worth a thread
        self.is_long = count_characters(self.example) >= LONG_TEXT
        self.kept: int | None = None  # its id in the store
        self.place: int | None = None  # its place in the result; None for the order of reading
        self.digests: tuple[bytes, bytes] | None = None
        self.wiring = wiring  # what judges it; None until that is looked up
        # the place of its evidence, once located; False if the context contains none
        self.evidence: EvidenceMap | Literal[False] | None = None


def count_characters(example: Example) -> int:
    """Count the characters of the context and the conversation, the only fields that can be long."""
    size, context, turns = 0, example.get("context"), example.get("turns")
    if isinstance(context, str):
        size = len(context)
    if turns and isinstance(turns, list):
        size += sum([len(turn["content"]) for turn in turns if isinstance(turn.get("content"), str)])
    return size


def list_judging_fields(example: Mapping[str, Any]) -> tuple[str, ...]:
    """List the fields of an example that decide how it is judged; most examples have none."""
    if BY_FIELD.keys().isdisjoint(example):
        return ()
    return tuple(field for field in BY_FIELD if example.get(field))


def choose_score(fields: Sequence[str], *, unread: bool) -> str | None:
    """Choose the score that fits an example with these fields; None if nothing can be scored.

    Args:
        fields: The fields from `list_scoring_fields`.
        unread: The system returned a context that no model has read, so its content is scored.
    """
    has_answer = "answer" in fields or "answers" in fields
    if unread:
        return "evidence_recall" if "evidence" in fields else "answer_in_context" if has_answer else None
    judged = (key for field, (_, key) in BY_FIELD.items() if field in fields)
    return next(judged, "f1" if has_answer else None)


def build_all_evaluators(evaluators: Any) -> list[Evaluator]:
    """Build evaluators from the user's argument: one or several objects, functions or references."""
    if not isinstance(evaluators, list | tuple):
        evaluators = [evaluators]
    built: list[Evaluator] = []
    for each in evaluators:
        built += build_evaluators(each) if isinstance(each, str) else [adapt_evaluator(each)]
    return built


def refuse_repeats(evaluators: Sequence[Evaluator]) -> None:
    """Check that no two evaluators declare the same score.

    Raises:
        ScoreClash: Two evaluators declare the same score.
    """
    owners: dict[str, str] = {}
    for evaluator in evaluators:
        for key in find_score_fields(evaluator) or ():
            if key in owners:
                raise ScoreClash(f"{owners[key]!r} and {evaluator.name!r} both emit the score {key!r}")
            owners[key] = evaluator.name


class Evaluators:
    """The evaluators of a run: the user's for all examples, else the catalog's choice for each dataset.

    Args:
        evaluators: The user's evaluators; None wires them by the dataset of each example.
        extra: Evaluators that are always applied in addition.
        settings: Parameters of wired evaluators, by the evaluator's name.
        score_field: The score that counts; "score" leaves the choice to the dataset, or to the fields of its examples.
        keep_reasoning: Show the reasoning in replies to the evaluators.
        made: Evaluators to use instead of new ones of the same name.
    """

    def __init__(
        self,
        evaluators: Sequence[Evaluator] | None = None,
        extra: Sequence[Evaluator] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        score_field: str = "score",
        keep_reasoning: bool = False,
        made: Mapping[str, Evaluator] | None = None,
    ) -> None:
        self.score_field, self.keep_reasoning = score_field, keep_reasoning
        self._settings = settings or {}
        self._given = None if evaluators is None else build_all_evaluators(evaluators)
        self._extra = build_all_evaluators(extra)
        refuse_repeats([*(self._given or ()), *self._extra])
        self._wirings: dict[tuple[str, tuple[str, ...]], Wiring] = {}
        self._cards: dict[str, Card | None] = {}
        self._made: dict[str, Evaluator] = dict(made or {})
        self._fingerprints: dict[int, tuple[Evaluator, str | None]] = {}
        self._chosen: dict[tuple[str, bool], str] = {}
        self.primaries: dict[str, str] = {}  # the score that counts for answers, for each dataset tag that was judged
        self.context_primaries: dict[str, str] = {}  # the same for contexts that no model has read
        self._settled: set[str] = set()

    def make_item(self, example: Example) -> Item:
        """Wire an example, and add the instruction on its dataset's card."""
        tag = str(example.get("dataset") or "")
        wiring = self.wiring(tag, example)
        if tag not in self._settled:
            self._choose_scores(tag, example)
        if wiring.card is not None and wiring.card.instruction:
            example = {"instruction": wiring.card.instruction, **example}
        return Item(example, tag, wiring)

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
            known = self._wirings[tag, fields] = Wiring(evaluators, card, self.score_field)
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
        """The evaluators that the user chose; they may have `prepare` and `finish`."""
        return [*(self._given or ()), *self._extra]

    @property
    def has_judge(self) -> bool:
        """Whether a model judges the answers in addition to the other evaluators."""
        return any("judge_score" in (find_score_fields(each) or ()) for each in self.chosen)

    @property
    def names(self) -> list[str]:
        """The evaluators that have judged something."""
        return sorted({each.name for wiring in self._wirings.values() for each in wiring.evaluators})

    @property
    def versions(self) -> dict[str, str | None]:
        """The fingerprint of each evaluator that has judged something: if they differ, runs are not comparable."""
        judged = {each.name: each for wiring in self._wirings.values() for each in wiring.evaluators}
        return {name: self.fingerprint(judged[name]) for name in sorted(judged)}

    def fingerprint(self, evaluator: Evaluator) -> str | None:
        """Return everything that the scores of an evaluator depend on; None if that is unknown.

        It is computed before the evaluator is used, because using it may change its state.
        """
        if id(evaluator) not in self._fingerprints:
            known = fingerprint_of(evaluator)
            self._fingerprints[id(evaluator)] = (
                evaluator,
                (f"{known} keeps reasoning" if known and self.keep_reasoning else known),
            )
        return self._fingerprints[id(evaluator)][1]

    @property
    def wirings(self) -> list[Wiring]:
        """The wirings made so far."""
        return list(self._wirings.values())

    def _evaluator(self, name: str) -> Evaluator:
        if name not in self._made:
            self._made[name] = registry.get("evaluator", name)(**self._settings.get(name, {}))
        return self._made[name]

    def fields_for(self, tags: Iterable[str]) -> set[str] | None:
        """All score keys that these datasets can have; None if an evaluator does not declare its keys."""
        fields = {"score"}
        for tag in tags:
            # One's own data may turn out to have any of these fields.
            for evaluator in (*self._wire(tag, list(BY_FIELD)), *self._extra):
                emitted = find_score_fields(evaluator)
                if emitted is None:
                    return None
                fields.update(emitted)
        return fields

    def wire(self, item: Item) -> Wiring:
        """Return the wiring of an example, looked up once for all systems."""
        if item.wiring is None:
            item.wiring = self.wiring(item.tag, item.example)
        return item.wiring

    # -- the score that counts, one for answers and one for contexts that no model has read

    def settle(self, counts: FieldCounts) -> None:
        """Choose the scores that fit most examples, for datasets whose examples were counted in advance."""
        votes: dict[tuple[str, bool], Counter[str]] = {}
        for (tag, fields), count in counts.items():
            for unread in (False, True) if card_for(tag) is None else ():
                if (score := choose_score(fields, unread=unread)) is not None:
                    votes.setdefault((tag, unread), Counter())[score] += count
        for place, found in votes.items():
            self._chosen[place] = max(found, key=lambda score: (found[score], score == "evidence_recall", score))

    def settle_as(self, primaries: Mapping[str, str], context_primaries: Mapping[str, str]) -> None:
        """Choose the score that an earlier run recorded for each dataset, unless it recorded several."""
        for unread, recorded in ((False, primaries), (True, context_primaries)):
            self._chosen |= {(tag, unread): score for tag, score in recorded.items() if " or " not in score}

    def _choose_scores(self, tag: str, example: Example) -> None:
        """Choose the scores of a dataset by its first scorable example, unless they are chosen already."""
        chosen = [self._choose_score(tag, example, unread=unread) for unread in (False, True)]
        if None not in chosen:
            self._settled.add(tag)

    def _choose_score(self, tag: str, example: Example, *, unread: bool) -> str | None:
        if (tag, unread) not in self._chosen:
            card = self._cards[tag] if tag in self._cards else card_for(tag)
            if card is None:
                score = choose_score(list_scoring_fields(example), unread=unread)
            else:
                score = card.primary if not unread else "evidence_recall" if card.evidence else "answer_in_context"
            if score is None:
                return None
            self._chosen[tag, unread] = score
        return self._chosen[tag, unread]


def read_items(dataset: Iterable[Example], max_examples: int | None, evaluators: Evaluators) -> Iterator[Item]:
    """Yield each example after it was checked and wired."""
    check, find_place = ExampleCheck(), dataset_traits(dataset).find_place
    for number, example in enumerate(islice(dataset, max_examples), 1):
        check(example, f"example {number}")
        if "context" not in example:  # a conversation without a context in addition to its turns
            example = {**example, "context": ""}
        item = evaluators.make_item(example)
        item.place = None if find_place is None else find_place(example)
        yield item


def is_own_score(scorer: Evaluators, score_field: str) -> bool:
    """Whether one of the user's own evaluators may give a score: all others lie between 0 and 1."""
    own = {
        key
        for evaluator in scorer.chosen
        if isinstance(evaluator, FunctionEvaluator) or not type(evaluator).__module__.startswith("context_bench.")
        for key in find_score_fields(evaluator) or (score_field,)
    }
    return score_field in own


def check_threshold(threshold: float, scorer: Evaluators, score_field: str) -> None:
    """Refuse a threshold outside 0 to 1, except for a user's own score.

    Raises:
        UsageError: With this threshold, nothing or everything would pass.
    """
    if not 0 <= threshold <= 1 and not is_own_score(scorer, score_field):
        hint = f"; {threshold:g}% is {threshold / 100:g}" if 1 < threshold <= 100 else ""
        raise UsageError(f"threshold must be from 0 to 1, like the score {score_field!r} (got {threshold:g}){hint}")
