"""Finds passages and answers in a model's input, by the same rule for all evaluators. Texts are compared by their
normalised words (see `text.words.normalise`), unchanged and with their escapes undone: HTML's, and JSON's once and
twice, for JSON text within a JSON string.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from context_bench.systems.prompts import merge
from context_bench.text.evidence_state import State, is_recoverable
from context_bench.text.golds import gold_answers
from context_bench.text.words import normalise, undo_escapes, undo_html
from context_bench.types import Example
from context_bench.wire.prompts import Prompt


class _Field(NamedTuple):
    """The words of a key and of its value; a field without a value, such as null, may be an empty cell."""

    key: str
    value: str
    nested: bool


def has_record(span: str, form: str) -> bool:
    """Whether all fields of a JSON record are adjacent, in any order, with nothing else between them. The fields may
    have keys, or form a table row without keys. A row is not recognised if its values could be adjacent by chance
    (fewer than three words, or only numbers).
    """
    record = _read_record(span)
    if record is None:
        return False
    fields = list(_list_fields(record))
    keyed = [f"{field.key} {field.value}" for field in fields if field.value]
    empty = [field.key for field in fields if not field.value]
    if _stand_together(keyed, [*empty, *(f"{key} null" for key in empty)], form):
        return True
    values = [field.value for field in fields if field.value]
    together = " ".join(values)
    if len(values) < 2 or len(together.split()) < 3 or not re.search(r"[^\W\d_]", together):
        return False
    return _stand_together(values, [*(field.key for field in fields if field.nested), "null", "none"], form)


def _read_record(span: str) -> dict[str, Any] | None:
    try:
        record = json.loads(span.rstrip(", \n"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _list_fields(value: Any, key: str = "", depth: int = 0) -> Iterator[_Field]:
    """Return the fields of a record, and of the records in it; a list of plain values is one value."""
    if isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(each, Mapping) for each in value)):
        items = value.items() if isinstance(value, Mapping) else ((key, each) for each in value)
        if depth:
            yield _Field(key, "", depth > 1)
        for name, item in items:
            yield from _list_fields(item, normalise(name).strip(), depth + 1)
    else:
        yield _Field(key, " ".join(_list_plain_words(value)), depth > 1)


def _list_plain_words(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _list_plain_words(each)
    elif value is not None:
        yield from normalise(value if isinstance(value, str) else json.dumps(value)).split()


def _stand_together(pieces: Sequence[str], between: Sequence[str], form: str) -> bool:
    """Whether a stretch of words consists of exactly the pieces and the permitted words between them."""
    if not pieces or not all(f" {piece} " in form for piece in pieces):
        return False
    needed, seen, end = Counter(pieces), Counter[str](), -1
    may = sorted({*pieces, *between} - {""}, key=len, reverse=True)
    for match in re.finditer(f"(?<= )({'|'.join(map(re.escape, may))}) ", form):
        if match.start() != end:
            seen.clear()
        end = match.end()
        seen[match[1]] += 1
        if needed <= seen:
            return True
    return False


CONTEXT_CHARS = 40
MAX_NEW_WORD_SHARE = 0.05
"""Share of new words up to which a text does not count as rewritten, because a proxy may note that it left text out."""


def read_sent_texts(original: Example, processed: Mapping[str, Any]) -> list[str] | None:
    """List the texts that a model would receive after a system in this process; None if it returned only an answer. The
    texts are those of the conversation, if there is one and the system did not turn it into a context (see
    `prompts.merge`).
    """
    if not isinstance(processed.get("context"), str) and not isinstance(processed.get("turns"), list):
        return None
    return list_prompt_texts(merge(original, processed))


def list_prompt_texts(example: Mapping[str, Any]) -> list[str]:
    """List the texts of an example that a model reads: its conversation, or else its context."""
    turns, context = example.get("turns"), example.get("context")
    if turns and isinstance(turns, list):
        return Prompt(messages=turns).texts()
    return [context] if isinstance(context, str) else []


class TextSearch:
    """Looks for spans in `texts`, which a model read; each text is normalised once.

    Text in a repetition of the question does not count, because it was asked and not read. In a conversation, whose
    last message may hold both question and evidence, it counts if the original has the span nowhere else.
    """

    def __init__(self, texts: Sequence[str], original: Mapping[str, Any]) -> None:
        self._texts = [_read_text(text) for text in texts]
        self._original = original
        self._question = str(original.get("question") or original.get("prompt") or "").strip()

    def find_states(self, spans: Iterable[str]) -> list[tuple[str, State]]:
        """Return the state of each passage, except those that the original does not contain, which cannot be lost."""
        found = [(span, self.find_state(span)) for span in spans]
        whole = self.source
        return [each for each in found if each[1] != "lost" or whole is None or whole.find_state(each[0]) != "lost"]

    def find_state(self, span: str) -> State:
        """Return how a passage occurs: in whole words, cut within words as in the original, or changed."""
        wanted = _read_span(span)
        texts = self._choose_texts(wanted)
        if _find(wanted, texts) or (any(wanted.raw in text.raw for text in texts) and self._is_cut(wanted)):
            return "verbatim"
        forms = [form for text in self._outside_question for form in text.forms]
        golds = [part for gold in gold_answers(self._original) for part in gold]
        if is_recoverable(span, forms, self._question, golds) or any(has_record(span, form) for form in forms):
            return "recoverable"
        return "lost"

    def has_words(self, span: str) -> bool:
        """Whether a text occurs in whole words; a text without words (a sign, an emoji) must occur unchanged."""
        wanted = _read_span(span)
        return _find(wanted, self._choose_texts(wanted))

    def has_new_words(self, sent: Sequence[str]) -> bool:
        """Whether a system added more than a few new words, as in a summary."""
        known = {word for text in sent for form in _read_text(text).forms for word in form.split()}
        texts = [[form.split() for form in text.forms] for text in self._texts if text.forms]
        new = sum(min(sum(word not in known for word in words) for words in forms) for forms in texts)
        return bool(known) and new > MAX_NEW_WORD_SHARE * sum(len(forms[0]) for forms in texts)

    @cached_property
    def source(self) -> TextSearch | None:
        """A search in the example that the system received; None if that had no text."""
        texts = list_prompt_texts(self._original)
        return TextSearch(texts, self._original) if any(text.strip() for text in texts) else None

    def _choose_texts(self, span: _Text) -> list[_Text]:
        if not self._question or not self._is_asked(span):
            return self._texts
        if self._original.get("turns") and not _find(span, _split(self._source, self._question)):
            return self._texts
        return self._outside_question

    def _is_asked(self, span: _Text) -> bool:
        return span.raw in self._question or (bool(span.plain.strip()) and span.plain in self._normalised_question)

    @cached_property
    def _normalised_question(self) -> str:
        return normalise(self._question)

    @cached_property
    def _outside_question(self) -> list[_Text]:
        return _split(self._texts, self._question) if self._question else self._texts

    @cached_property
    def _source(self) -> list[_Text]:
        return [_read_text(text) for text in list_prompt_texts(self._original)]

    def _is_cut(self, span: _Text) -> bool:
        """Whether the original contains the span only with partial words at its ends."""
        sources = [*self._source, _Text(str(self._original.get("context") or ""))]
        return any(span.raw in text.raw for text in sources) and not _find(span, sources)


class _Text:
    """A text, with normalised forms that are made when needed."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self._looked = 0

    @cached_property
    def plain(self) -> str:
        """The words of the text after HTML's escapes are undone."""
        return normalise(undo_html(self.raw))

    @cached_property
    def forms(self) -> list[str]:
        """The words after undoing HTML's escapes, then also JSON's; empty for a text without words."""
        forms = [self.plain, *map(normalise, undo_escapes(self.raw)[1:])]
        return [form for form in forms if form.strip()]

    def has_whole(self, span: _Text) -> bool:
        """Whether a span that occurs in this text does so in whole words. The first occurrence nearly always does. For
        a few spans, checking around that place is cheaper than normalising a long text.
        """
        self._looked += len(span.raw) + 2 * CONTEXT_CHARS
        if "plain" not in self.__dict__ and 2 * self._looked < len(self.raw):
            around = _cut_around(self.raw, self.raw.index(span.raw), len(span.raw))
            if around and span.plain in normalise(undo_html(around)):
                return True
        return span.plain in self.plain


def _cut_around(text: str, start: int, length: int) -> str | None:
    """Return a place in a text with a few whole words on either side; None if there is no space nearby."""
    end = start + length
    first = 0 if start <= CONTEXT_CHARS else text.find(" ", start - CONTEXT_CHARS, start)
    last = len(text) if end + CONTEXT_CHARS >= len(text) else text.rfind(" ", end, end + CONTEXT_CHARS)
    return text[first:last] if first >= 0 and last >= 0 else None


@lru_cache(maxsize=8)
def _read_text(text: str) -> _Text:
    """Return a text to search in; cached, because the evaluators of a row search the same few large texts."""
    return _Text(text)


@lru_cache(maxsize=256)
def _read_span(span: str) -> _Text:
    """Return a text to search for; cached, because evaluators, systems and repeats search for the same text."""
    return _Text(span.strip())


def _split(texts: Sequence[_Text], question: str) -> list[_Text]:
    parts = [[_Text(part) for part in text.raw.split(question)] if question in text.raw else [text] for text in texts]
    return [part for several in parts for part in several]


def _find(span: _Text, texts: Sequence[_Text]) -> bool:
    """Whether one of the texts contains a span in whole words."""
    holders = [text for text in texts if span.raw in text.raw]
    if not span.plain.strip():
        return bool(holders)
    if any(text.has_whole(span) for text in holders):
        return True
    return any(each in form for text in texts for form in text.forms for each in span.forms)
