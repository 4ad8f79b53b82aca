"""An upstream that answers by a script: for tests, for conformance checks, and for runs with no model at all.

    echo                        the last user's text
    extract                     the passage that answers the question, by the words they share
    text:SOMETHING              always that
    rules.jsonl, rules.json     the first rule that fits, see `context_bench.tap.rules`
    file.py:function            whatever it returns for the body of a request: a text, or a dict like a rule
    module:function

It also lists a model at `/v1/models`, and counts at `/v1/messages/count_tokens`.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from context_bench.errors import UsageError, describe
from context_bench.refs import import_code
from context_bench.tap.answering import Incoming, Outgoing, build_error, build_json, build_reply
from context_bench.tap.extract import extract_answer
from context_bench.tap.rules import read_answer, read_rules
from context_bench.utils.tokens import get_tokenizer
from context_bench.wire.replies import Answer
from context_bench.wire.requests import read_prompt

__all__ = ["Scripted"]

Script = Callable[[dict[str, Any]], Answer | Awaitable[Answer]]

_MODELS = {
    "object": "list",
    "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "context-bench"}],
    "has_more": False,
}
_COUNT = "/v1/messages/count_tokens"


class Scripted:
    """Answers every request as its script says.

    Args:
        script: From the body of a request to the answer, or to an awaitable of it.
        fingerprint: What makes its answers differ.
    """

    label = (
        "a script answers behind the tap, not a model: scores tell what it could find in the prompt, and the API's "
        "usage is the tap's own count"
    )

    def __init__(self, script: Script, fingerprint: str) -> None:
        self._script = script
        self.fingerprint = f"scripted/1 {fingerprint}"

    @classmethod
    def from_text(cls, text: str) -> Scripted:
        """Read a script as it is given on the command line; UsageError when it is none."""
        kind, _, rest = text.partition(":")
        if text in _BUILT_IN:
            return cls(_BUILT_IN[text], _VERSIONS.get(text, text))
        if kind == "text":
            return cls(lambda _: Answer(rest), text)
        if text.endswith((".jsonl", ".json")):
            rules = read_rules(Path(text))
            return cls(rules.answer, _digest(rules.source))
        if ":" in text:
            return cls(*_function(text))
        raise UsageError(
            f"{text!r} is no script: give echo, extract, text:SOMETHING, a .jsonl file of rules, or file.py:function"
        )

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def answer(self, request: Incoming) -> Outgoing:
        """Answer a request."""
        if request.method in ("GET", "HEAD") and request.path == "/v1/models":
            return build_json(_MODELS)
        document = request.document()
        prompt = read_prompt(document)
        if request.method == "POST" and request.path == _COUNT and prompt:
            return build_json({"input_tokens": prompt.tokens(get_tokenizer())})
        if request.method != "POST" or request.dialect is None:
            return build_error(404, f"nothing answers {request.method} {request.path} here", request.dialect)
        if prompt is None:
            return build_error(400, "the body is no JSON object with messages", request.dialect)
        answer = self._script(document)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer.delay:
            await asyncio.sleep(answer.delay)
        return build_reply(answer, request)


def _echo(document: dict[str, Any]) -> Answer:
    """The text of the last message of the user that has any."""
    for message in reversed(document["messages"]):
        if isinstance(message, dict) and message.get("role") == "user":
            text = _said(message.get("content"))
            if text:
                return Answer(text)
    return Answer()


def _said(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


_BUILT_IN: dict[str, Script] = {"echo": _echo, "extract": lambda document: Answer(extract_answer(document))}
_VERSIONS = {"extract": "extract/2"}
"""Scripts whose answers have changed: what was stored of earlier ones is not served for them."""


def _function(text: str) -> tuple[Script, str]:
    """The user's own function, and what tells it apart: its source, or its name where that is not to be had."""
    source, _, name = text.rpartition(":")
    module = import_code(source)
    try:
        function = attrgetter(name)(module)
    except AttributeError:
        raise UsageError(f"{text!r}: {source} has no {name!r}") from None
    if not callable(function):
        raise UsageError(f"{text!r} is no function")

    async def script(document: dict[str, Any]) -> Answer:
        try:
            made = function(document)
            made = await made if inspect.isawaitable(made) else made
            return read_answer({"reply": made} if isinstance(made, str) else made, text)
        except Exception as error:  # noqa: BLE001 - a script may be anybody's; whoever asked is told
            return Answer(f"the script {text} failed: {describe(error)}", status=500)

    file = getattr(module, "__file__", None)
    return script, _digest(Path(file).read_bytes() + name.encode()) if file else text


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
