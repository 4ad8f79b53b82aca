"""IFEval (Zhou et al., 2023): verifiable instructions, checked by the published rules.

Each rule takes the reply and the arguments of the instruction, under the benchmark's names. Letters and keywords count
regardless of case; a keyword counts inside longer words too, a forbidden word only as a whole word. The benchmark's own
oddities are kept, so that scores are comparable. Tables pad the arguments of each instruction with nulls, so null means
absent. An unknown instruction is an error, never a pass.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from context_bench.errors import DataError
from context_bench.evaluators.ifeval.word_counts import (
    count_capitals,
    count_sentences,
    count_words,
    is_language,
    name_data_source,
)
from context_bench.results import Scores
from context_bench.text.golds import response_text

# No pattern here may look far ahead from every place: replies can be a megabyte of one repeated character.
_STAR_BULLET = re.compile(r"^[^\S\n]*\*[^*].*$", re.MULTILINE)
_DASH_BULLET = re.compile(r"^[^\S\n]*-.*$", re.MULTILINE)
_SINGLE_STARS = re.compile(r"\*[^\n*]*\*")
_DOUBLE_STARS = re.compile(r"\*\*([^\n*]*)\*\*")
_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_VERDICTS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def number_paragraphs(reply: str, *, num_paragraphs: int) -> bool:
    """Count paragraphs separated by `***`; only before the first and after the last mark may one be empty."""
    parts = [part.strip() for part in re.split(r"\s?\*\*\*\s?", reply)]
    if not all(parts[1:-1]):
        return False
    return sum(bool(part) for part in parts) == num_paragraphs


def nth_paragraph_first_word(reply: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Count paragraphs separated by an empty line. Blank paragraphs are not counted, but take up a position."""
    parts = reply.split("\n\n")
    filled = sum(bool(part.strip()) for part in parts)
    if not 1 <= nth_paragraph <= filled or not parts[nth_paragraph - 1].strip():
        return False
    word = parts[nth_paragraph - 1].split()[0].lstrip("'").lstrip('"')
    return filled == num_paragraphs and re.split(r"""[.,?!'"]""", word)[0].lower() == first_word.lower()


def number_bullet_lists(reply: str, *, num_bullets: int) -> bool:
    """Check for an exact number of lines that begin with `*` or `-`; `**bold**` at the start of a line is no bullet."""
    return len(_STAR_BULLET.findall(reply)) + len(_DASH_BULLET.findall(reply)) == num_bullets


def number_highlighted_sections(reply: str, *, num_highlights: int) -> bool:
    """Check for `*text*` and `**text**`, at least `num_highlights` times."""
    single = sum(bool(found.strip("*").strip()) for found in _SINGLE_STARS.findall(reply))
    double = sum(bool(found.strip()) for found in _DOUBLE_STARS.findall(reply))
    return single + double >= num_highlights


def multiple_sections(reply: str, *, section_spliter: str, num_sections: int) -> bool:
    """Check for the section word followed by a number, at least `num_sections` times."""
    return len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", reply)) >= num_sections


def title(reply: str) -> bool:
    """Look for a title between `<<` and `>>` on one line."""
    for line in reply.split("\n"):
        start, stop = line.find("<<"), line.rfind(">>")
        if 0 <= start < stop - 2 and line[start:stop].lstrip("<").rstrip(">").strip():
            return True
    return False


def json_format(reply: str) -> bool:
    """Check for JSON and nothing else, with or without a code fence around the JSON."""
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
    """Check for a minimum number of `[text]` on one line each."""
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
    """Check for two different answers separated by `******`."""
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
    """Compare by one of the benchmark's two relations."""
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


_GROUPS: dict[str, tuple[Callable[..., bool], ...]] = {
    "keywords": (existence, forbidden_words, frequency, letter_frequency),
    "length_constraints": (number_words, number_sentences, number_paragraphs, nth_paragraph_first_word),
    "change_case": (capital_word_frequency, english_capital, english_lowercase),
    "language": (response_language,),
    "punctuation": (no_comma,),
    "detectable_format": (
        *(number_bullet_lists, number_highlighted_sections, multiple_sections),
        *(title, json_format, constrained_response),
    ),
    "detectable_content": (number_placeholders, postscript),
    "combination": (repeat_prompt, two_responses),
    "startend": (quotation, end_checker),
}
RULES = {f"{group}:{rule.__name__}": rule for group, rules in _GROUPS.items() for rule in rules}

Check = Callable[[str], bool]

_ARGUMENTS = {name: list(inspect.signature(rule).parameters)[1:] for name, rule in RULES.items()}
_BY_SENTENCES = {"length_constraints:number_sentences", "change_case:capital_word_frequency"}


def list_checks(example: Mapping[str, Any]) -> list[tuple[str, Check]]:
    """Return the instructions of an example with their checks; empty for an example without instructions."""
    names = example.get("instruction_id_list") or []
    arguments = example.get("kwargs")
    if arguments is None:
        arguments = [{}] * len(names)
    if len(arguments) != len(names):
        raise DataError(f"{len(names)} IFEval instructions, but {len(arguments)} kwargs: one is needed for each")
    return [(name, _check(name, given or {})) for name, given in zip(names, arguments)]


def _check(name: str, given: Mapping[str, Any]) -> Check:
    if name not in RULES:
        raise DataError(f"unknown IFEval instruction {name!r}")
    chosen = {key: given.get(key) for key in _ARGUMENTS[name]}
    for key, value in chosen.items():
        if value is None or value == "" or value == []:
            raise DataError(f"the IFEval instruction {name!r} needs {key!r} in its kwargs")

    def follows(reply: str) -> bool:
        if not reply.strip():
            return False
        try:
            return RULES[name](reply, **chosen)
        except (TypeError, AttributeError) as error:
            raise DataError(f"the IFEval instruction {name!r} has kwargs of a wrong type: {chosen}") from error

    return follows


def describe_provenance(names: Iterable[str]) -> dict[str, str]:
    """Name the sentence parameters if the checks used them, since repeating the counts needs the same ones."""
    return {"sentences_by": name_data_source()} if _BY_SENTENCES.intersection(names) else {}


class IFEvalChecker:
    """Scores `ifeval_strict` (all instructions are followed) and `ifeval_loose` (more than half are).

    `ifeval_strict` is the published prompt-level strict accuracy. The published loose accuracy differs from this
    `ifeval_loose`; `IFEvalOfficial` computes it. An empty reply follows no instruction.
    """

    name = "ifeval-checker"
    version = 2
    needs_answer = True
    score_fields = ("ifeval_strict", "ifeval_loose")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        checks = list_checks(original)
        if not checks:
            return Scores(reason="no instruction_id_list")
        reply = response_text(processed)
        followed = [(name, check(reply)) for name, check in checks]
        count = sum(holds for _, holds in followed)
        return Scores(
            {"ifeval_strict": float(count == len(followed)), "ifeval_loose": float(2 * count > len(followed))},
            details={
                "followed": count,
                "total": len(followed),
                "failed": [name for name, holds in followed if not holds],
                **describe_provenance(name for name, _ in checks),
            },
        )


class IFEvalOfficial:
    """Scores `ifeval_prompt_strict`, `ifeval_prompt_loose`, `ifeval_inst_strict`, `ifeval_inst_loose`, as published.

    Loose ignores text that a chat model adds around its answer: an instruction is followed when any of eight readings
    of the reply follows it: with and without the first line, the last line, both lines, and the asterisks.

    The instruction-level accuracy of a benchmark is a ratio of sums over all prompts, not a mean of
    the rows' ratios, so `details` keep `followed` and `total` under `strict` and `loose`.
    """

    name = "ifeval-official"
    version = 2
    needs_answer = True
    score_fields = ("ifeval_prompt_strict", "ifeval_prompt_loose", "ifeval_inst_strict", "ifeval_inst_loose")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        checks = list_checks(original)
        if not checks:
            return Scores(reason="no instruction_id_list")
        reply = response_text(processed)
        readings = list_relaxed(reply)
        total = len(checks)
        strict = [check(reply) for _, check in checks]
        # A reply that follows unchanged is its own first reading.
        loose = [holds or any(map(check, readings)) for holds, (_, check) in zip(strict, checks)]
        return Scores(
            {
                "ifeval_prompt_strict": float(all(strict)),
                "ifeval_prompt_loose": float(all(loose)),
                "ifeval_inst_strict": sum(strict) / total,
                "ifeval_inst_loose": sum(loose) / total,
            },
            details={
                "strict": {"followed": sum(strict), "total": total},
                "loose": {"followed": sum(loose), "total": total},
                "failed": [name for (name, _), holds in zip(checks, strict) if not holds],
                **describe_provenance(name for name, _ in checks),
            },
        )


def list_relaxed(reply: str) -> list[str]:
    """Return the seven relaxed forms of a reply."""
    lines = reply.split("\n")
    cut = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    return [reply.replace("*", ""), *cut, *(text.replace("*", "") for text in cut)]
