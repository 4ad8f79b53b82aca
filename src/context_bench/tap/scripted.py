"""An upstream that answers by a script: for tests, conformance checks, and runs without a model.

    echo                        the last user's text
    extract                     the passage that answers the question, by shared words
    text:SOMETHING              always that
    rules.jsonl, rules.json     the first rule that matches, see `context_bench.tap.rules`
    file.py:function            its result for the body of a request: a text, or a dict like a rule
    module:function

If a request demands JSON, a schema or a tool call, the reply has that form: the script writes it, or the form is filled
with the script's text. `services.py` has the other routes: models, embeddings, token counts, stored responses,
`/v1/completions`.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import inspect
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import chain
from math import fsum, log
from operator import attrgetter
from pathlib import Path
from typing import Any

from context_bench.errors import UsageError, describe
from context_bench.http.loop import work_beside
from context_bench.refs import import_code
from context_bench.store.fingerprints import fingerprint_of
from context_bench.tap.answering import LONG_BODY, Incoming, Outgoing, build_error
from context_bench.tap.rules import fit_answer, read_answer, read_rules
from context_bench.tap.services import (
    COMPACT_PATH,
    COMPLETIONS_PATH,
    Conversations,
    answer_service,
    build_compaction,
    build_completion,
)
from context_bench.text.words import split_words, undo_html, undo_json
from context_bench.wire.form import Answer
from context_bench.wire.forms import read_prompt
from context_bench.wire.prompts import read_text

UNKNOWN = "I do not know."

_MAX_QUESTION_CHARS = 400
_LONGEST_VALUE = 6
_MAX_DEPTH = 8  # no API nests content more deeply

_STOP = frozenset(
    split_words(
        """a an and are as at be by did do does each for from had has have how in is it its many much of on or that
        the these this those to was were what when where which who whom whose why will with"""
    )
)
_LINE_BREAK = re.compile(r"\n")
_PARAGRAPHS = re.compile(r"\n\s*\n")
_UNITS = re.compile(r"\n+|(?<=[.!?。！？])\s+")
_PASSAGES = re.compile(r"\n+|(?<=[.!?。！？])\s+|(?<=\})\s*,\s*(?=\{)")
_FIELDS = re.compile(
    r"(?<=[.!?。！？])\s+|(?<=[\"\d\]\}el]),\s*(?=\")"
)  # after a text, number, list, object, true, null
_CELLS = re.compile(
    r",(?=[^\s\d]|\Z)|(?<=\D),(?=\d)"
)  # of a CSV row; in prose a space follows, or digits are on both sides
_MIN_CELLS = 3
_MAX_PACKED_DEPTH = 2
_PACKED = re.compile(r"\\(?:[n\"]|u00)")
_DRIVE = re.compile(r"\b[A-Za-z]:\\(?!\\)")
_WORD = re.compile(r"[^\W_]+")
_BEFORE_VALUE = re.compile(r"[^\w]*(?:(?:is|are|was|were|to|as|of|at|by)\b[^\w]*)*", re.IGNORECASE)
_AROUND_VALUE = " \t\r\n.,;:\"'`()[]{}<>="


def extract_answer(document: Mapping[str, Any]) -> str:
    """Answer the last user's question from the rest of a request, in the form of either API."""
    question, texts = _split_question(document)
    asked = frozenset(split_words(question)) - _STOP
    lines = (line for text in texts for line in _unpack(text))
    passages = (piece for line in lines for piece in _split(line, _PASSAGES) if piece and not piece.endswith("?"))
    best = _find_best(passages, asked)
    if best is None:
        return UNKNOWN
    return _find_field_value(best, asked) or _find_value(best, asked) or best.strip()


def _split(text: str, between: re.Pattern[str]) -> Iterator[str]:
    """Yield the parts of a text one by one: a list of all parts may take several times the memory."""
    start = 0
    for gap in between.finditer(text):
        yield text[start : gap.start()]
        start = gap.end()
    yield text[start:]


def _unpack(text: str, depth: int = 0) -> Iterator[str]:
    """Yield the lines of a text; if a line contains an escaped text, yield the lines of that text instead."""
    if depth == _MAX_PACKED_DEPTH or not ("\\" in text or "&" in text):
        yield text
        return
    for line in (line for packed in _split(text, _LINE_BREAK) for line in undo_html(packed).split("\n")):
        if _PACKED.search(line) and not _DRIVE.search(line):
            yield from _unpack(undo_json(line), depth + 1)
        else:
            yield line


def _find_field_value(record: str, asked: frozenset[str]) -> str | None:
    """Find the value in one part of a record, if that part has all words of the question that the record has."""
    cells = [] if '":' in record else _CELLS.split(record)
    pieces = cells if len(cells) >= _MIN_CELLS else _FIELDS.split(record)
    field = _find_best([piece for piece in pieces if piece], asked)
    if field is None or asked.intersection(split_words(record)) != asked.intersection(split_words(field)):
        return None
    return _find_value(field, asked)


def _find_best(passages: Iterable[str], asked: frozenset[str]) -> str | None:
    """Find the passage with the rarest words of the question; ties go to the shortest, then the first.

    For each set of these words, only the best passage is kept, since there may be millions of passages.
    """
    best: dict[frozenset[str], tuple[int, int, str]] = {}
    alike: Counter[frozenset[str]] = Counter()
    total = 0
    for passage in passages:
        total += 1
        words = asked.intersection(split_words(passage))
        if not words:
            continue
        alike[words] += 1
        if words not in best or len(passage) < best[words][0]:
            best[words] = len(passage), total, passage
    if not best:
        return None
    counts: Counter[str] = Counter()
    for words, number in alike.items():
        counts.update(dict.fromkeys(words, number))
    weights = {word: log(1 + total / count) for word, count in counts.items()}
    # An exact sum, because the order of a set varies between processes.
    return max(best.items(), key=lambda each: (fsum(map(weights.__getitem__, each[0])), -each[1][0], -each[1][1]))[1][2]


def _find_value(passage: str, asked: frozenset[str]) -> str | None:
    """Return the part of a passage after the last of the question's words, or between two of them."""
    words = list(_WORD.finditer(passage))
    matched = [word for word in words if word.group().casefold() in asked]
    if not matched:
        return None
    ends = [word.start() for word in matched[1:]] + [len(passage)]
    for left, end in reversed(list(zip(matched, ends))):
        start = _BEFORE_VALUE.match(passage, left.end(), end)
        value = passage[start.end() if start else left.end() : end].strip(_AROUND_VALUE)
        said = value.split()
        if said and not _STOP.issuperset(map(str.casefold, said)):
            return value if len(said) <= _LONGEST_VALUE and '":' not in value else None
    return None


def _split_question(document: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Find the question, and all other texts except the instructions after it in the same message."""
    prompt = read_prompt(document)
    said: list[tuple[str, str]] = []
    for message in prompt.messages_and_system() if prompt else ():
        if isinstance(message, Mapping):
            said += _list_spoken(str(message.get("role")), message.get("content"))
    last = max((place for place, (role, text) in enumerate(said) if role == "user" and text.strip()), default=None)
    if last is None:
        return "", [text for _, text in said]
    question, before = _find_question(said[last][1])
    return question, [text for place, (_, text) in enumerate(said) if place != last] + [before]


def _list_spoken(role: str, content: Any, depth: int = 0) -> Iterator[tuple[str, str]]:
    """List the texts with their speakers; a tool result counts as spoken by the tool, even in a user message."""
    if isinstance(content, str):
        yield role, content
    elif depth == _MAX_DEPTH:
        return
    elif isinstance(content, list):
        for part in content:
            yield from _list_spoken(role, part, depth + 1)
    elif isinstance(content, Mapping):
        if isinstance(content.get("text"), str):
            yield role, content["text"]
        own = "tool" if content.get("type") == "tool_result" else role
        yield from _list_spoken(own, content.get("content"), depth + 1)


def _find_question(text: str) -> tuple[str, str]:
    """Find the last paragraph with a question, and all text before it; in a long paragraph, its last question."""
    question, before = _find_last_asking(text, _PARAGRAPHS)
    if len(question) <= _MAX_QUESTION_CHARS and "\n" not in question.strip():
        return question, before
    shorter, more = _find_last_asking(question, _UNITS)
    return shorter, f"{before}\n\n{more}"


def _find_last_asking(text: str, between: re.Pattern[str]) -> tuple[str, str]:
    """Find the last part with a question mark, or the last part, and the text before it."""
    start, last, asking = 0, (0, len(text)), None
    for end in chain((gap.end() for gap in between.finditer(text)), (len(text),)):
        part = text[start:end]
        if part.strip():
            last = start, end
            asking = last if "?" in part else asking
        start = end
    start, end = asking or last
    return text[start:end].strip(), text[:start]


Script = Callable[[dict[str, Any]], Answer | Awaitable[Answer]]


class Scripted:
    """Answers every request by a script.

    Args:
        script: A function from the body of a request to the answer, or to an awaitable of it.
        fingerprint: Identifies its answers; None if that is not possible.
        has_state: Whether answers depend on earlier requests, so that requests are answered one at a time.
    """

    is_script = True
    label = (
        "a script answers behind the tap, not a model: scores show what it found in the prompt, and the "
        "API's usage is the tap's count"
    )

    def __init__(self, script: Script, fingerprint: str | None, *, has_state: bool = True) -> None:
        self._script, self._has_state = script, has_state
        self._conversations = Conversations()
        self.fingerprint = None if fingerprint is None else f"scripted/1 {fingerprint}"

    @classmethod
    def from_text(cls, text: str) -> Scripted:
        """Read a script from the command line; UsageError if it is invalid."""
        kind, _, rest = text.partition(":")
        if text in _BUILT_IN:
            return cls(*_BUILT_IN[text], has_state=False)
        if kind == "text":
            return cls(lambda _: Answer(rest), text)
        if text.endswith((".jsonl", ".json")):
            rules = read_rules(Path(text))
            return cls(rules.answer, hashlib.blake2b(rules.source, digest_size=16).hexdigest())
        if ":" in text:
            return cls(*_import_function(text))
        raise UsageError(
            f"{text!r} is not a script: give echo, extract, text:SOMETHING, a .jsonl file of rules, or file.py:function"
        )

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def answer(self, request: Incoming) -> Outgoing:
        prompt, is_long = request.prompt(), len(request.body) >= LONG_BODY
        if request.form is None and (reply := await answer_service(request, self._conversations)):
            return reply
        compacts, completes = request.path == COMPACT_PATH, request.path == COMPLETIONS_PATH
        if request.method != "POST" or (request.form is None and not compacts and not completes):
            return build_error(404, f"nothing answers {request.method} {request.path} here", request.form)
        if prompt is None:
            return build_error(400, "the body is not a JSON object with messages, an input or a prompt", request.form)
        expanded = self._conversations.expand(request)
        if expanded is None:
            return build_error(
                400, "the conversation that the request continues is not stored here: send all of it", request.form
            )
        document = dict(expanded)
        if is_long and not self._has_state:
            answer = await work_beside(self._script, document)
        else:
            answer = self._script(document)
        if inspect.isawaitable(answer):
            answer = await answer
        answer = fit_answer(answer, request.document())
        if answer.delay:
            await asyncio.sleep(answer.delay)
        build = build_compaction if compacts else build_completion if completes else self._conversations.reply
        return await work_beside(build, answer, request) if is_long else build(answer, request)


def _answer_echo(document: dict[str, Any]) -> Answer:
    """Answer with the text of the last user message that has text."""
    prompt = read_prompt(document)
    for message in reversed(prompt.messages if prompt else ()):
        if isinstance(message, dict) and message.get("role") == "user":
            text = read_text(message.get("content"))
            if text:
                return Answer(text)
    return Answer()


_BUILT_IN: dict[str, tuple[Script, str]] = {
    "echo": (_answer_echo, "echo"),
    "extract": (lambda document: Answer(extract_answer(document)), "extract/2"),
}


def _import_function(text: str) -> tuple[Script, str | None]:
    """Import the user's function, and fingerprint its code and all user code that it calls."""
    source, _, name = text.rpartition(":")
    module = import_code(source)
    try:
        function = attrgetter(name)(module)
    except AttributeError:
        raise UsageError(f"{text!r}: {source} has no {name!r}") from None
    if not callable(function):
        raise UsageError(f"{text!r} is not a function")

    async def script(document: dict[str, Any]) -> Answer:
        try:
            made = function(copy.deepcopy(document))  # it may modify its argument
            made = await made if inspect.isawaitable(made) else made
            return read_answer({"reply": made} if isinstance(made, str) else made, text)
        except Exception as error:  # noqa: BLE001 - a script may be the user's; its error goes to the client
            return Answer(f"the script {text} failed: {describe(error)}", status=500)

    return script, fingerprint_of(function)
