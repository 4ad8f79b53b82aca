"""Check a dataset before paying a model to answer it: do the dataset's own evaluators accept the gold answers?

Each gold answer is scored as a reply, and so is a wrong one, by the evaluators that a run would use. Evidence must be
in the context. Repeated examples, answers in the question, and answers that occur in the context more than once are
counted, because they make a dataset easier than it looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_bench.datasets.catalog import card_for
from context_bench.datasets.example_check import ExampleCheck
from context_bench.evaluators.evidence_map import EvidenceMap, locate_evidence
from context_bench.runner import evaluate
from context_bench.text import count_things
from context_bench.text.golds import evidence_texts, gold_answers
from context_bench.text.words import normalise
from context_bench.types import Example
from context_bench.utils.tokens import count_tokens

FAULTS = {
    "gold refused": "the gold answer does not get full marks",
    "wrong accepted": "a wrong answer gets marks",
    "evidence missing": "the evidence is not in the context",
}
"""Faults of an example that make its scores untrustworthy."""

COUNTS = {
    "repeated": "the same context and question as an earlier example",
    "shared context": "the same context as an earlier example",
    "answer in question": "the answer is in the question",
    "several places": "the answer is in the context more than once",
    "not in context": "the answer is not in the context",
}
"""Properties that make an example easier or harder than it looks."""

ONE_CONTEXT = "all examples share one context, but none names it in meta.group, so verdicts treat them as independent"

_NONSENSE = "qwzx vkjh"
"""A reply that shares no word with any answer."""


@dataclass
class GoldCheck:
    """The findings of a dataset's check.

    Attributes:
        examples: The number of examples read.
        scored: The number of examples whose gold answer can be a reply and got a score.
        found: For each fault or count, the ids of the examples.
        depths: For each example whose context contains its evidence, the share of the tokens before the evidence.
        grouped: The number of examples that name their document or conversation in `meta`.
    """

    examples: int = 0
    scored: int = 0
    found: dict[str, list[Any]] = field(default_factory=dict)
    depths: list[tuple[float, float]] = field(default_factory=list)
    grouped: int = 0

    @property
    def shares_context(self) -> bool:
        """Whether all examples share one context without naming it in `meta.group`, so that a verdict counts each of
        them."""
        shared = {*map(repr, self.found.get("shared context", ())), *map(repr, self.found.get("repeated", ()))}
        return not self.grouped and len(shared) == self.examples - 1 > 0

    @property
    def is_sound(self) -> bool:
        """Whether no fault was found."""
        return not any(kind in self.found for kind in FAULTS)

    def describe(self) -> list[str]:
        """Describe each finding in a line, faults first, each with the first few ids."""
        lines = [*self.describe_faults(), *self._describe(COUNTS), *([ONE_CONTEXT] if self.shares_context else [])]
        return [*lines, *(f"evidence stands {each}" for each in describe_depths(self.depths))]

    def describe_faults(self) -> list[str]:
        """Describe each fault in a line."""
        return self._describe(FAULTS)

    def _describe(self, kinds: Mapping[str, str]) -> list[str]:
        lines = []
        for kind, meaning in kinds.items():
            if ids := self.found.get(kind):
                shown = ", ".join(map(repr, ids[:3])) + (", …" if len(ids) > 3 else "")
                lines.append(f"{meaning}: {len(ids):,} of {self.examples:,} examples (id {shown})")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for strict JSON."""
        return {"examples": self.examples, "scored": self.scored, "found": self.found, "depths": self.depths}


def describe_depths(depths: Sequence[tuple[float, float]]) -> list[str]:
    """Describe the depth of the evidence: the share of tokens before it; empty if no context contains evidence."""
    if not depths:
        return []
    first, last = sorted(each[0] for each in depths), sorted(each[1] for each in depths)
    middle = len(depths) // 2
    spread = f"{first[middle]:.0%} of the tokens (median), from {first[0]:.0%} to {last[-1]:.0%}"
    return [f"after {spread} ({count_things(len(depths), 'example')})"]


def find_depths(examples: Iterable[Example]) -> list[tuple[float, float]]:
    """For each context that contains evidence, find the shares of the tokens before the first and the last of it."""
    located = (locate_evidence(example, count_tokens) for example in examples)
    return [each.find_depths() for each in located if each is not None]


def check_golds(examples: Iterable[Example]) -> GoldCheck:
    """Score the gold answers of examples, and a wrong answer to each, by their own evaluators.

    Raises:
        DataError: A run could not use an example; the error names the first such example.
    """
    listed, require = [], ExampleCheck()
    for number, example in enumerate(examples, 1):
        require(example, f"example {number}")
        listed.append(example)
    check = GoldCheck(len(listed))
    golds = {str(example["id"]): _find_reply(example) for example in listed}
    wrong = _choose_wrong([golds[str(example["id"])] for example in listed], listed)
    answered = [example for example in listed if golds[str(example["id"])] is not None]
    if answered:
        _score(check, answered, golds, wrong)
    seen: set[tuple[str, str | None]] = set()
    for example in listed:
        _look_at(check, example, seen)
    return check


def _find_reply(example: Example) -> str | None:
    """Return a reply that must get full marks; None if the gold cannot be a reply."""
    if example.get("correct_letter"):
        return str(example["correct_letter"])
    if any(example.get(name) for name in ("test", "test_list", "instruction_id_list", "ground_truth", "turns")):
        return None
    golds = gold_answers(example)
    return ", ".join(golds[0]) if golds else None


def _choose_wrong(replies: Sequence[str | None], examples: Sequence[Example]) -> dict[str, str]:
    """Choose a wrong answer for each example: another letter or label, else words that no answer contains."""
    labels = {reply for reply in replies if reply is not None}
    # a classification, whose labels come again and again: the other labels are the wrong answers
    few = len(labels) <= max(min(5, len(examples) // 2), len(examples) // 10)
    chosen = {}
    for example, reply in zip(examples, replies):
        if reply is None:
            continue
        accepted = {normalise(part) for gold in gold_answers(example) for part in gold} | {normalise(reply)}
        others = [label for label in sorted(labels) if normalise(label) not in accepted]
        choices = example.get("choices") or ()
        if example.get("correct_letter"):
            letters = [chr(ord("A") + place) for place in range(max(len(choices), 2))]
            chosen[str(example["id"])] = next(letter for letter in letters if letter != reply)
        else:
            chosen[str(example["id"])] = others[0] if few and others else _NONSENSE
    return chosen


class _Replies:
    """A system that returns prepared replies."""

    reads_gold = True

    def __init__(self, name: str, replies: Mapping[str, str | None]) -> None:
        self.name = self.fingerprint = name
        self._replies = replies

    def process(self, example: Example) -> Example:
        return {"response": self._replies[str(example["id"])]}


def _score(
    check: GoldCheck, examples: Sequence[Example], golds: Mapping[str, str | None], wrong: Mapping[str, str]
) -> None:
    result = evaluate([_Replies("gold", golds), _Replies("wrong", wrong)], examples, progress=False)
    for row in result.rows:
        score = row.scores.get("score", math.nan)
        if row.system == "gold":
            check.scored += not math.isnan(score)
            if score < 1 or row.error is not None:
                check.found.setdefault("gold refused", []).append(row.example_id)
        elif score > 0:
            check.found.setdefault("wrong accepted", []).append(row.example_id)


def _look_at(check: GoldCheck, example: Example, seen: set[tuple[str, str | None]]) -> None:
    def note(kind: str) -> None:
        check.found.setdefault(kind, []).append(example["id"])

    question = str(example.get("question") or "")
    context = str(example.get("context") or example.get("turns") or "")
    card = card_for(str(example.get("dataset") or ""))
    check.grouped += ("group" if card is None else card.cluster) in (example.get("meta") or {})
    if context and (context, None) in seen:
        note("repeated" if (context, question) in seen else "shared context")
    seen |= {(context, None), (context, question)}
    located = locate_evidence(example, count_tokens)
    if located is not None:
        check.depths.append(located.find_depths())
    evidence = evidence_texts(example)
    if evidence and (located is None or len(located.needs[0]) < len(evidence)):
        note("evidence missing")
    _look_at_answer(example, question, note, located)


def _look_at_answer(example: Example, question: str, note: Any, located: EvidenceMap | None) -> None:
    golds = gold_answers(example)
    if not golds or example.get("correct_letter"):
        return
    asked = normalise(question)
    if question and any(all(normalise(part) in asked for part in gold) for gold in golds):
        note("answer in question")
    answer = locate_evidence({**example, "evidence": None}, count_tokens) if example.get("evidence") else located
    if answer is None and example.get("context"):
        note("not in context")
    elif answer is not None and answer.count_places() > 1:
        note("several places")
