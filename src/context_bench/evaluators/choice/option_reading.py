"""Reads which option a reply chooses.

Every place where the reply names an option, by letter, position or text, is weighed by the words around it. A stated
answer outranks the conclusion of an argument, which outranks a mere mention; among equals the last one counts, since
replies reason first and correct themselves. If this gives no choice and the options are values, the final value of the
reply is compared with the options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from context_bench.evaluators.choice.option_cues import EXCEPTION_ASKED, REVISION
from context_bench.evaluators.choice.option_mentions import OptionMention, Weight, find_mentions
from context_bench.evaluators.choice.option_places import make_option_key
from context_bench.evaluators.math.answer import find_final_answer
from context_bench.evaluators.math.answer_equality import compare
from context_bench.evaluators.math.exact import ExactNumber, equal, number
from context_bench.evaluators.math.notation import ONES, TENS, canonical, unify
from context_bench.text.golds import remove_markup

# Options that are values: the final value of a reply against each of them, as mathematical answers are compared.
# `0.75` is 3/4, `25%` is 0.25, `10^6` is 1,000,000, and thirty-six is 36. Unlike in mathematics, where units are
# ignored, an option may differ from another by its unit alone: values with units of one kind are compared by what
# they are worth (10,000 J is 10 kJ), and 15 m is not 15 km.

_VALUE = re.compile(r"\d|\\(?:frac|sqrt|pi)|[π√½⅓¼]")
_UNDECIDED = re.compile(
    r"(?i)\b(?:or|either|between\s[^,.]{1,30}\sand|not|than)[\s*$(]*$|\b(?:unsure|not\s+sure|can't\s+tell)\b"
)
_SENTENCE_SPLIT = re.compile(r"[.!?](?=\s|$)|\n")
TAIL_CHARS = 4000


def find_equal_option(reply: str, letters: str, options: Sequence[str]) -> str | None:
    """Return the letter of the one option that equals the final value of the reply; None when there is none."""
    if not options or not all(_VALUE.search(option) and len(option) < 100 for option in options):
        return None
    text = unify(write_numerals(reply[-TAIL_CHARS:]))
    answer = find_final_answer(text)
    if not answer or not _VALUE.search(answer):
        return None
    place = text.rfind(answer)
    if place >= 0:
        sentence = _SENTENCE_SPLIT.split(text[max(0, place - 200) : place])[-1]
        if _UNDECIDED.search(sentence):
            return None
        answer += _read_following_unit(text, place + len(answer))
    equals = [letter for letter, option in zip(letters, options) if _is_same(option, answer)]
    return equals[0] if len(equals) == 1 else None


def _is_same(option: str, answer: str) -> bool:
    wanted, given = _read_quantity(option), _read_quantity(answer)
    if wanted and given and wanted.unit and given.unit and wanted.unit != given.unit:
        known = {wanted.unit, given.unit} & _DIMENSIONS
        if known:  # metres are not seconds
            return False
    if wanted and given and wanted.unit and given.unit:
        return equal(wanted.scale_value(), given.scale_value())
    return compare(option, answer) is True


# ---- units -----------------------------------------------------------------------------------------------------------

_PREFIXES = {"p": -12, "n": -9, "µ": -6, "μ": -6, "u": -6, "m": -3, "c": -2, "d": -1, "k": 3, "M": 6, "G": 9, "T": 12}
_SPELLED_PREFIXES = {"nano": -9, "micro": -6, "milli": -3, "centi": -2, "deci": -1, "kilo": 3, "mega": 6, "giga": 9}
_BASES = {"m": "m", "g": "g", "s": "s", "J": "J", "W": "W", "N": "N", "V": "V", "A": "A", "Pa": "Pa", "Hz": "Hz",
          "L": "L", "l": "L", "mol": "mol", "Ω": "Ω", "ohm": "Ω", "eV": "eV", "C": "C", "F": "F", "B": "B"}  # fmt: skip
_SPELLED = {"metre": "m", "meter": "m", "gram": "g", "second": "s", "joule": "J", "watt": "W", "newton": "N",
            "volt": "V", "ampere": "A", "amp": "A", "pascal": "Pa", "hertz": "Hz", "litre": "L", "liter": "L",
            "mole": "mol", "ohm": "Ω", "electronvolt": "eV", "coulomb": "C", "byte": "B"}  # fmt: skip
_TIMES = {"sec": 1, "min": 60, "minute": 60, "h": 3600, "hr": 3600, "hour": 3600, "day": 86400, "week": 604800}
_DIMENSIONS = {*_BASES.values()}
_UNIT = re.compile(r"(?P<value>.*?[\d)}])\s*(?P<unit>[A-Za-zµμΩ]{1,15})\.?", re.DOTALL)
_FOLLOWING = re.compile(r"(?:\s|\\[ ,;]|\$|\\(?:text|mathrm)\{)*([A-Za-zµμΩ]{1,15})(?![A-Za-z]|\s*[/^*·])")


class _Quantity(NamedTuple):
    """A number and its unit, converted to the unit without prefix."""

    value: ExactNumber
    unit: str
    scale: Fraction

    def scale_value(self) -> ExactNumber:
        return ExactNumber(self.value.value * self.scale, self.value.factor, self.value.decimal)


def _read_following_unit(text: str, place: int) -> str:
    """Return the unit right after a value, with a space in front; an unknown unit is empty."""
    found = _FOLLOWING.match(text, place)
    return f" {found[1]}" if found and _read_unit(found[1]) else ""


def _read_quantity(text: str) -> _Quantity | None:
    form = canonical(text, keep_units=True)
    found = _UNIT.fullmatch(form.strip())
    unit = _read_unit(found["unit"]) if found else None
    value = number(canonical(found["value"])) if found and unit else number(form)
    if value is None:
        return None
    return _Quantity(value, *unit) if unit else _Quantity(value, "", Fraction(1))


@lru_cache(maxsize=256)
def _read_unit(name: str) -> tuple[str, Fraction] | None:
    """Return the base unit of a unit, and the factor between them: km is 1,000 m."""
    spelled = name.lower()
    spelled = spelled[:-1] if len(spelled) > 3 and spelled.endswith("s") else spelled
    if spelled in _TIMES:
        return "s", Fraction(_TIMES[spelled])
    if name in _BASES:
        return _BASES[name], Fraction(1)
    if name[:1] in _PREFIXES and name[1:] in _BASES:
        return _BASES[name[1:]], Fraction(10) ** _PREFIXES[name[0]]
    for prefix, power in (("", 0), *_SPELLED_PREFIXES.items()):
        if spelled.startswith(prefix) and spelled[len(prefix) :] in _SPELLED:
            return _SPELLED[spelled[len(prefix) :]], Fraction(10) ** power
    return None


# ---- number words ----------------------------------------------------------------------------------------------------

_WORD_VALUES = ONES | TENS
_MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_ANY = "|".join([*_WORD_VALUES, *_MULTIPLES])
_NUMBER_WORDS = re.compile(rf"(?i)(?<![\w-])(?:{'|'.join(_WORD_VALUES)})(?:(?:-|\s+(?:and\s+)?)(?:{_ANY}))*(?![\w-])")


def write_numerals(text: str) -> str:
    """Return the text with number words from eleven on replaced by numerals. Small numbers stay, because "one" is
    usually a pronoun.
    """
    return _NUMBER_WORDS.sub(_read_numeral, text)


def _read_numeral(words: re.Match[str]) -> str:
    total = part = 0
    for word in re.split(r"[\s-]+", words[0].lower()):
        if word in _MULTIPLES and _MULTIPLES[word] > 100:
            total, part = total + max(part, 1) * _MULTIPLES[word], 0
        elif word in _MULTIPLES:
            part = max(part, 1) * 100
        else:
            part += _WORD_VALUES.get(word, 0)
    value = total + part
    return str(value) if value > 10 else words[0]


_NEXT_QUESTION = re.compile(r"\n[^\w\n]*(?:Next\s+)?(?:Question|Q)\s*\d*\s*:\s", re.IGNORECASE)
_QUESTION_AND_ANSWER = re.compile(r"(?<![^\n])Q(?:uestion)?:[^\n]*\n\W*A(?=:)")
_BOLD = re.compile(r"\*\*([^*\n]{2,200})\*\*")
_CLOSING_REMARK = re.compile(
    r"(?i)\n[^\w\n]*(?:(?:i\s+)?hope\s+(?:this|that)\s+helps|let\s+me\s+know|(?:please\s+)?feel\s+free|is\s+there\s+anything"
    r"|would\s+you\s+like|do\s+you\s+want|can\s+i\s+help|happy\s+to)\b[^\n]*$"
)
_SENTENCE_END = re.compile(r"[.!?]\s+(?=\S)|\n+(?=\S)")
QUESTION_TAIL_CHARS = 1000
MAX_REMARK_CHARS = 300


def read_choice(reply: str, letters: str, options: Sequence[str] = (), question: str = "") -> str | None:
    """Return the letter, one of `letters`, that the reply chooses; None when the reply chooses no letter, or several.

    `options` are the texts of the options, where known. If the question is "which is NOT a mammal", a reply that says
    of an option that it is not a mammal chooses that option.
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
    """Whether the last sentence of the question asks for the exception."""
    last = _SENTENCE_END.split(question.strip()[-QUESTION_TAIL_CHARS:])[-1]
    return bool(EXCEPTION_ASKED.search(last))


def _drop_closing_remark(text: str) -> str:
    """Return the text without a last line such as "Let me know if you have more questions!"."""
    text = text.rstrip()
    remark = _CLOSING_REMARK.search(text, max(0, len(text) - MAX_REMARK_CHARS))
    return text[: remark.start()] if remark and text[: remark.start()].strip() else text


def _drop_run_on(text: str) -> list[str]:
    """Yield the text before a further question, which a base model may have invented; then the whole text."""
    following = _NEXT_QUESTION.search(text)
    head = text[: following.start()] if following else ""
    return [head, text] if head.strip() else [text]


def _weigh(text: str, mentions: Sequence[OptionMention], letters: str, exception: bool) -> str | None:
    """Return the option that is stated, suggested, left over or named; pass `letters` if all options are known."""
    rejected = _list_rejected(mentions)
    stated = [each for each in mentions if each.weight is Weight.STATED]
    suggested = [each for each in mentions if each.weight is Weight.SUGGESTED]
    if not exception:
        suggested = [each for each in suggested if not _is_taken_back(each, mentions)]
    if stated:
        return _choose_letter(_apply_revision(text, stated[-1], suggested), rejected)
    if suggested:
        return _choose_letter(suggested[-1], rejected)
    if letters and len(rejected) == len(letters) - 1:
        return _take_only({*letters} - rejected)
    if exception and len(rejected) == 1:
        return _take_only(rejected)
    return _take_only(_list_letters(Weight.NAMED, mentions) - rejected)


def _names_letters(mentions: Sequence[OptionMention]) -> bool:
    """Whether the reply names or claims options that it does not rule out."""
    rejected = _list_rejected(mentions)
    return any({*each.letters} - rejected and each.weight >= Weight.NAMED for each in mentions)


def _choose_least(mentions: Sequence[OptionMention]) -> str | None:
    """Return the only option whose text is quoted, else the only option whose letter occurs."""
    rejected = _list_rejected(mentions)
    for weight in (Weight.QUOTED, Weight.PASSING):
        named = _list_letters(weight, mentions) - rejected
        if named:
            return _take_only(named)
    return None


def _list_rejected(mentions: Sequence[OptionMention]) -> set[str]:
    return _list_letters(Weight.REJECTED, mentions)


def _list_letters(weight: Weight, mentions: Sequence[OptionMention]) -> set[str]:
    return {letter for each in mentions if each.weight is weight for letter in each.letters}


def _take_only(letters: set[str]) -> str | None:
    return next(iter(letters)) if len(letters) == 1 else None


def _choose_letter(mention: OptionMention, rejected: set[str]) -> str | None:
    """Return the letter of a mention; of several letters, choose the letter that was not ruled out elsewhere."""
    letters = {*mention.letters}
    return _take_only(letters) or _take_only(letters - rejected)


def _is_taken_back(mention: OptionMention, mentions: Sequence[OptionMention]) -> bool:
    return any(
        each.weight is Weight.REJECTED and each.start > mention.start and {*mention.letters} <= {*each.letters}
        for each in mentions
    )


def _apply_revision(text: str, stated: OptionMention, suggested: Sequence[OptionMention]) -> OptionMention:
    """Return the stated option, or the option of a later correction, such as "wait, it is C"."""
    later = [each for each in suggested if each.start > stated.end]
    if later and REVISION.search(text, stated.end, later[-1].start):
        return later[-1]
    return stated
