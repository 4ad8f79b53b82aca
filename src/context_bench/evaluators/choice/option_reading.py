"""Reads which option a reply chooses.

Every place where the reply names an option, by letter, position or text, is weighed by the words around it.
What is stated as the answer outranks what an argument arrives at, and that outranks a mere mention; of
equals the last one counts, since replies reason first and correct themselves. Where nothing of that settles
it and the options are values, the final value of the reply is compared with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from context_bench.evaluators.choice.option_cues import EXCEPTION_ASKED, REVISION
from context_bench.evaluators.choice.option_mentions import Mention, Weight, find_mentions
from context_bench.evaluators.choice.option_places import make_option_key
from context_bench.evaluators.choice.option_values import find_equal_option
from context_bench.text.markup import remove_markup

__all__ = ["read_choice"]

_NEXT_QUESTION = re.compile(r"\n[^\w\n]*(?:Next\s+)?(?:Question|Q)\s*\d*\s*:\s", re.IGNORECASE)
_QUESTION_AND_ANSWER = re.compile(r"(?<![^\n])Q(?:uestion)?:[^\n]*\n\W*A(?=:)")
_BOLD = re.compile(r"\*\*([^*\n]{2,200})\*\*")
_CLOSING_REMARK = re.compile(
    r"\n[^\w\n]*(?:(?:i\s+)?hope\s+(?:this|that)\s+helps|let\s+me\s+know|(?:please\s+)?feel\s+free|is\s+there\s+anything"
    r"|would\s+you\s+like|do\s+you\s+want|can\s+i\s+help|happy\s+to)\b[^\n]*$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?]\s+(?=\S)|\n+(?=\S)")
_QUESTION_TAIL = 1000
_REMARK = 300


def read_choice(reply: str, letters: str, options: Sequence[str] = (), question: str = "") -> str | None:
    """The letter that the reply chooses; None when it chooses none, or several.

    Args:
        reply: What the model wrote.
        letters: The letters that exist, such as "ABCD".
        options: Their texts, where known, in the order of the letters.
        question: What was asked: of "which is NOT a mammal", the option that "is not" one is the answer.
    """
    exception = _asks_for_exception(question)
    bold = {make_option_key(remove_markup(text)) for text in _BOLD.findall(reply)} if options else set()
    for text in _drop_run_on(_drop_closing_remark(_QUESTION_AND_ANSWER.sub("Answer", remove_markup(reply)))):
        mentions = find_mentions(text, letters, options, bold)
        letter = _weigh(text, mentions, letters if options else "", exception)
        if letter is None and not _names_letters(mentions):
            equal = find_equal_option(reply, letters, options)
            letter = equal if equal and equal not in _list_rejected(mentions) else _choose_least(mentions)
        if letter:
            return letter
    return None


def _asks_for_exception(question: str) -> bool:
    """Whether the last sentence of the question asks for what is not so."""
    last = _SENTENCE_END.split(question.strip()[-_QUESTION_TAIL:])[-1]
    return bool(EXCEPTION_ASKED.search(last))


def _drop_closing_remark(text: str) -> str:
    """The text without a last line such as "Let me know if you have more questions!"."""
    text = text.rstrip()
    remark = _CLOSING_REMARK.search(text, max(0, len(text) - _REMARK))
    return text[: remark.start()] if remark and text[: remark.start()].strip() else text


def _drop_run_on(text: str) -> list[str]:
    """First the text up to a next question, which a base model may have made up and answered, then all of it."""
    following = _NEXT_QUESTION.search(text)
    head = text[: following.start()] if following else ""
    return [head, text] if head.strip() else [text]


def _weigh(text: str, mentions: Sequence[Mention], letters: str, exception: bool) -> str | None:
    """The option that is stated, suggested, left over or named; `letters` are given where all are known."""
    rejected = _list_rejected(mentions)
    stated = [each for each in mentions if each.weight is Weight.STATED]
    suggested = [
        each
        for each in mentions
        if each.weight is Weight.SUGGESTED and (exception or not _is_taken_back(each, mentions))
    ]
    if stated:
        return _choose_letter(_apply_revision(text, stated[-1], suggested), rejected)
    if suggested:
        return _choose_letter(suggested[-1], rejected)
    if letters and len(rejected) == len(letters) - 1:
        return _take_only({*letters} - rejected)
    if exception and len(rejected) == 1:
        return _take_only(rejected)
    return _take_only(_list_letters(Weight.NAMED, mentions) - rejected)


def _names_letters(mentions: Sequence[Mention]) -> bool:
    """Whether the reply names options, or claims some, that it does not rule out."""
    rejected = _list_rejected(mentions)
    return any({*each.letters} - rejected and each.weight >= Weight.NAMED for each in mentions)


def _choose_least(mentions: Sequence[Mention]) -> str | None:
    """The one option whose text is quoted, or else whose letter stands somewhere."""
    rejected = _list_rejected(mentions)
    for weight in (Weight.QUOTED, Weight.PASSING):
        named = _list_letters(weight, mentions) - rejected
        if named:
            return _take_only(named)
    return None


def _list_rejected(mentions: Sequence[Mention]) -> set[str]:
    return _list_letters(Weight.REJECTED, mentions)


def _list_letters(weight: Weight, mentions: Sequence[Mention]) -> set[str]:
    return {letter for each in mentions if each.weight is weight for letter in each.letters}


def _take_only(letters: set[str]) -> str | None:
    return next(iter(letters)) if len(letters) == 1 else None


def _choose_letter(mention: Mention, rejected: set[str]) -> str | None:
    """The one letter of a mention; of several, the one that was not ruled out elsewhere."""
    letters = {*mention.letters}
    return _take_only(letters) or _take_only(letters - rejected)


def _is_taken_back(mention: Mention, mentions: Sequence[Mention]) -> bool:
    return any(
        each.weight is Weight.REJECTED and each.start > mention.start and {*mention.letters} <= {*each.letters}
        for each in mentions
    )


def _apply_revision(text: str, stated: Mention, suggested: Sequence[Mention]) -> Mention:
    """The statement, or what a later "wait, it is C" puts in its place."""
    later = [each for each in suggested if each.start > stated.end]
    if later and REVISION.search(text, stated.end, later[-1].start):
        return later[-1]
    return stated
