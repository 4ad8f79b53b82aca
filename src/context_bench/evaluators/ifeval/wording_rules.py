"""IFEval instructions about the words of a reply: keywords, letters, case, language, lengths.

Each rule takes the reply and the arguments of the instruction, under the names that the benchmark gives
them, and says whether the reply follows. Letters and keywords count regardless of case; a keyword counts
inside longer words too, a forbidden word only as a whole word.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from context_bench.errors import DataError
from context_bench.evaluators.ifeval.language import is_language
from context_bench.evaluators.ifeval.word_counts import count_capitals, count_sentences, count_words

__all__ = ["RULES"]


def compare(count: int, relation: str, threshold: int) -> bool:
    """The two relations of the benchmark."""
    if relation == "at least":
        return count >= threshold
    if relation == "less than":
        return count < threshold
    raise DataError(f"unknown relation {relation!r} in an IFEval instruction: it is 'at least' or 'less than'")


def as_list(words: list[str] | str) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def existence(reply: str, *, keywords: list[str]) -> bool:
    return all(re.search(re.escape(word), reply, re.IGNORECASE) for word in as_list(keywords))


def forbidden_words(reply: str, *, forbidden_words: list[str]) -> bool:
    return not any(re.search(rf"\b{re.escape(word)}\b", reply, re.IGNORECASE) for word in as_list(forbidden_words))


def frequency(reply: str, *, keyword: str, frequency: int, relation: str) -> bool:
    return compare(len(re.findall(re.escape(keyword.strip()), reply, re.IGNORECASE)), relation, frequency)


def letter_frequency(reply: str, *, letter: str, let_frequency: int, let_relation: str) -> bool:
    # Two prompts ask for "#" and "!". The published code puts a random letter in their place; we count them.
    return compare(reply.lower().count(letter.strip().lower()), let_relation, let_frequency)


def number_words(reply: str, *, num_words: int, relation: str) -> bool:
    return compare(count_words(reply), relation, num_words)


def number_sentences(reply: str, *, num_sentences: int, relation: str) -> bool:
    return compare(count_sentences(reply), relation, num_sentences)


def capital_word_frequency(reply: str, *, capital_frequency: int, capital_relation: str) -> bool:
    return compare(count_capitals(reply), capital_relation, capital_frequency)


def english_capital(reply: str) -> bool:
    return reply.isupper() and is_language(reply, "en")


def english_lowercase(reply: str) -> bool:
    return reply.islower() and is_language(reply, "en")


def response_language(reply: str, *, language: str) -> bool:
    return is_language(reply, language)


def no_comma(reply: str) -> bool:
    return "," not in reply


RULES: dict[str, Callable[..., bool]] = {
    "keywords:existence": existence,
    "keywords:forbidden_words": forbidden_words,
    "keywords:frequency": frequency,
    "keywords:letter_frequency": letter_frequency,
    "length_constraints:number_words": number_words,
    "length_constraints:number_sentences": number_sentences,
    "change_case:capital_word_frequency": capital_word_frequency,
    "change_case:english_capital": english_capital,
    "change_case:english_lowercase": english_lowercase,
    "language:response_language": response_language,
    "punctuation:no_comma": no_comma,
}
