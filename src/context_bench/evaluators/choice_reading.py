"""Which option a reply chooses.

Every place where the reply names an option, by letter or by its text, is weighed by the words around it.
What is stated as the answer outranks what an argument arrives at, and that outranks a mere mention; of
equals the last one counts, since replies reason first and correct themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from context_bench.evaluators.choice_cues import REVISION
from context_bench.evaluators.choice_mentions import Mention, Weight, find_mentions
from context_bench.evaluators.verdicts import plain, reading_order

__all__ = ["read_choice"]

_NEXT_QUESTION = re.compile(r"\n[^\w\n]*(?:Next\s+)?(?:Question|Q)\s*\d*\s*:\s", re.IGNORECASE)


def read_choice(reply: str, letters: str, options: Sequence[str] = ()) -> str | None:
    """The letter that the reply chooses; None when it chooses none, or several.

    Args:
        reply: What the model wrote.
        letters: The letters that exist, such as "ABCD".
        options: Their texts, where known, in the order of the letters.
    """
    for part in reading_order(reply):
        for text in _without_run_on(plain(part.text)):
            mentions = find_mentions(text, letters, options)
            if not part.finished:
                mentions = [each for each in mentions if each.weight is Weight.STATED]
            letter = _verdict(text, mentions, letters if options else "")
            if letter:
                return letter
    return None


def _without_run_on(text: str) -> list[str]:
    """First the text up to a next question, which a base model may have made up and answered, then all of it."""
    following = _NEXT_QUESTION.search(text)
    head = text[: following.start()] if following else ""
    return [head, text] if head.strip() else [text]


def _verdict(text: str, mentions: Sequence[Mention], letters: str) -> str | None:
    """Weigh the mentions; `letters` are given where it is known that there are no others."""
    rejected = {letter for each in mentions if each.weight is Weight.REJECTED for letter in each.letters}
    stated = [each for each in mentions if each.weight is Weight.STATED]
    suggested = [each for each in mentions if each.weight is Weight.SUGGESTED and not _taken_back(each, mentions)]
    if stated:
        return _settle(_revised(text, stated[-1], suggested), rejected)
    if suggested:
        return _settle(suggested[-1], rejected)
    if letters and len(rejected) == len(letters) - 1:
        return _only({*letters} - rejected)
    for weight in (Weight.NAMED, Weight.QUOTED, Weight.PASSING):
        named = {letter for each in mentions if each.weight is weight for letter in each.letters}
        if named - rejected:
            return _only(named - rejected)
    return None


def _only(letters: set[str]) -> str | None:
    return next(iter(letters)) if len(letters) == 1 else None


def _settle(mention: Mention, rejected: set[str]) -> str | None:
    """The one letter of a mention; of several, the one that was not ruled out elsewhere."""
    letters = {*mention.letters}
    return _only(letters) or _only(letters - rejected)


def _taken_back(mention: Mention, mentions: Sequence[Mention]) -> bool:
    return any(
        each.weight is Weight.REJECTED and each.start > mention.start and {*mention.letters} <= {*each.letters}
        for each in mentions
    )


def _revised(text: str, stated: Mention, suggested: Sequence[Mention]) -> Mention:
    """The statement, or what a later "wait, it is C" puts in its place."""
    later = [each for each in suggested if each.start > stated.end]
    if later and REVISION.search(text, stated.end, later[-1].start):
        return later[-1]
    return stated
