"""The 25 instructions of IFEval: first those about the form of a reply, then those about its words.

Each rule takes the reply and the arguments of the instruction, under the names that the benchmark gives
them, and says whether the reply follows. Letters and keywords count regardless of case; a keyword counts
inside longer words too, a forbidden word only as a whole word. The odd corners are the benchmark's own,
kept so that the scores compare.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from context_bench.errors import DataError
from context_bench.evaluators.ifeval.word_counts import count_capitals, count_sentences, count_words, is_language

# No pattern here may look far ahead from every place: replies can be a megabyte of one repeated character.
_STAR_BULLET = re.compile(r"^[^\S\n]*\*[^*].*$", re.MULTILINE)
_DASH_BULLET = re.compile(r"^[^\S\n]*-.*$", re.MULTILINE)
_SINGLE_STARS = re.compile(r"\*[^\n*]*\*")
_DOUBLE_STARS = re.compile(r"\*\*([^\n*]*)\*\*")
_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_VERDICTS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def number_paragraphs(reply: str, *, num_paragraphs: int) -> bool:
    """Count paragraphs parted by `***`; an empty one is allowed only before the first and after the last mark."""
    parts = [part.strip() for part in re.split(r"\s?\*\*\*\s?", reply)]
    if not all(parts[1:-1]):
        return False
    return sum(bool(part) for part in parts) == num_paragraphs


def nth_paragraph_first_word(reply: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Count paragraphs parted by an empty line. Blank ones are not counted, but they do take up a place."""
    parts = reply.split("\n\n")
    filled = sum(bool(part.strip()) for part in parts)
    if not 1 <= nth_paragraph <= filled or not parts[nth_paragraph - 1].strip():
        return False
    word = parts[nth_paragraph - 1].split()[0].lstrip("'").lstrip('"')
    return filled == num_paragraphs and re.split(r"""[.,?!'"]""", word)[0].lower() == first_word.lower()


def number_bullet_lists(reply: str, *, num_bullets: int) -> bool:
    """Lines that begin with `*` or `-`, exactly so many; `**bold**` at the start of a line is not a bullet."""
    return len(_STAR_BULLET.findall(reply)) + len(_DASH_BULLET.findall(reply)) == num_bullets


def number_highlighted_sections(reply: str, *, num_highlights: int) -> bool:
    """`*text*` and `**text**`, at least so many."""
    single = sum(bool(found.strip("*").strip()) for found in _SINGLE_STARS.findall(reply))
    double = sum(bool(found.strip()) for found in _DOUBLE_STARS.findall(reply))
    return single + double >= num_highlights


def multiple_sections(reply: str, *, section_spliter: str, num_sections: int) -> bool:
    """The section word followed by a number, at least so many times."""
    return len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", reply)) >= num_sections


def title(reply: str) -> bool:
    """Look for a title between `<<` and `>>` on one line."""
    for line in reply.split("\n"):
        start, stop = line.find("<<"), line.rfind(">>")
        if 0 <= start < stop - 2 and line[start:stop].lstrip("<").rstrip(">").strip():
            return True
    return False


def json_format(reply: str) -> bool:
    """JSON and nothing else, with or without a code fence around it."""
    text = reply.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def constrained_response(reply: str) -> bool:
    return any(verdict in reply for verdict in _VERDICTS)


def number_placeholders(reply: str, *, num_placeholders: int) -> bool:
    """`[text]` on one line, at least so many."""
    return sum(map(_count_placeholders, reply.split("\n"))) >= num_placeholders


def _count_placeholders(line: str) -> int:
    count = place = 0
    while (start := line.find("[", place)) >= 0 and (stop := line.find("]", start)) >= 0:
        count, place = count + 1, stop + 1
    return count


def postscript(reply: str, *, postscript_marker: str) -> bool:
    marker = postscript_marker.strip()
    return re.search(_POSTSCRIPTS.get(marker) or re.escape(marker.lower()), reply.lower()) is not None


def repeat_prompt(reply: str, *, prompt_to_repeat: str) -> bool:
    return reply.strip().lower().startswith(prompt_to_repeat.strip().lower())


def two_responses(reply: str) -> bool:
    """Two different answers parted by `******`."""
    parts = [part.strip() for part in reply.split("******")]
    if not all(parts[1:-1]):
        return False
    answers = [part for part in parts if part]
    return len(answers) == 2 and answers[0] != answers[1]


def quotation(reply: str) -> bool:
    text = reply.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def end_checker(reply: str, *, end_phrase: str) -> bool:
    return reply.strip().strip('"').lower().endswith(end_phrase.strip().lower())


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
    "length_constraints:number_paragraphs": number_paragraphs,
    "length_constraints:nth_paragraph_first_word": nth_paragraph_first_word,
    "detectable_format:number_bullet_lists": number_bullet_lists,
    "detectable_format:number_highlighted_sections": number_highlighted_sections,
    "detectable_format:multiple_sections": multiple_sections,
    "detectable_format:title": title,
    "detectable_format:json_format": json_format,
    "detectable_format:constrained_response": constrained_response,
    "detectable_content:number_placeholders": number_placeholders,
    "detectable_content:postscript": postscript,
    "combination:repeat_prompt": repeat_prompt,
    "combination:two_responses": two_responses,
    "startend:quotation": quotation,
    "startend:end_checker": end_checker,
}
