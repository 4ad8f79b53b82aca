"""An upstream that answers by a script: for tests, for conformance checks, and for runs with no model at all.

    echo                        the last user's text
    extract                     the passage that answers the question, by the words they share
    text:SOMETHING              always that
    rules.jsonl, rules.json     the first rule that fits, see `context_bench.tap.rules`
    file.py:function            whatever it returns for the body of a request: a text, or a dict like a rule
    module:function

A request that demands JSON, a schema or the call of a tool gets it: from the script, or filled with what it said. It
also embeds by hashed words at `/v1/embeddings`, lists a model at `/v1/models`, and counts at
`/v1/messages/count_tokens`.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import inspect
from collections.abc import Awaitable, Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from context_bench.errors import UsageError, describe
from context_bench.http.loop import work_beside
from context_bench.refs import import_code
from context_bench.store.fingerprints import fingerprint_of
from context_bench.tap.answering import LONG_BODY, Incoming, Outgoing, build_error, build_json, build_reply
from context_bench.tap.offline_models import EMBEDDINGS_PATH, answer_embeddings, extract_answer
from context_bench.tap.rules import fit_answer, read_answer, read_rules
from context_bench.wire.form import Answer
from context_bench.wire.forms import FORMS, read_prompt
from context_bench.wire.prompts import read_text

__all__ = ["Scripted"]

Script = Callable[[dict[str, Any]], Answer | Awaitable[Answer]]

_MODELS = {
    "object": "list",
    "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "context-bench"}],
    "has_more": False,
}


class Scripted:
    """Answers every request as its script says.

    Args:
        script: From the body of a request to the answer, or to an awaitable of it.
        fingerprint: What makes its answers differ; None when that cannot be known.
        has_state: Whether an answer depends on earlier requests, so that one is to be answered after the other.
    """

    is_script = True
    label = (
        "a script answers behind the tap, not a model: scores tell what it could find in the prompt, and the API's "
        "usage is the tap's own count"
    )

    def __init__(self, script: Script, fingerprint: str | None, *, has_state: bool = True) -> None:
        self._script, self._has_state = script, has_state
        self.fingerprint = None if fingerprint is None else f"scripted/1 {fingerprint}"

    @classmethod
    def from_text(cls, text: str) -> Scripted:
        """Read a script as it is given on the command line; UsageError when it is none."""
        kind, _, rest = text.partition(":")
        if text in _BUILT_IN:
            return cls(_BUILT_IN[text], _VERSIONS.get(text, text), has_state=False)
        if kind == "text":
            return cls(lambda _: Answer(rest), text)
        if text.endswith((".jsonl", ".json")):
            rules = read_rules(Path(text))
            return cls(rules.answer, _hash(rules.source))
        if ":" in text:
            return cls(*_import_function(text))
        raise UsageError(
            f"{text!r} is not a script: give echo, extract, text:SOMETHING, a .jsonl file of rules, or file.py:function"
        )

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def answer(self, request: Incoming) -> Outgoing:
        """Answer a request."""
        if request.method in ("GET", "HEAD") and request.path == "/v1/models":
            return build_json(_MODELS)
        if request.method == "POST" and request.path == EMBEDDINGS_PATH:
            return await work_beside(answer_embeddings, request)
        prompt = request.prompt()
        is_long = len(request.body) >= LONG_BODY
        if request.method == "POST" and prompt and _counts_tokens(request.path):
            tokens = await work_beside(request.count_tokens) if is_long else request.count_tokens()
            return build_json({"input_tokens": tokens})
        if request.method != "POST" or request.form is None:
            return build_error(404, f"nothing answers {request.method} {request.path} here", request.form)
        if prompt is None:
            return build_error(400, "the body is not a JSON object with messages", request.form)
        if is_long and not self._has_state:
            answer = await work_beside(self._script, request.document())
        else:
            answer = self._script(request.document())
        if inspect.isawaitable(answer):
            answer = await answer
        answer = fit_answer(answer, request.document())
        if answer.delay:
            await asyncio.sleep(answer.delay)
        return await work_beside(build_reply, answer, request) if is_long else build_reply(answer, request)


def _counts_tokens(path: str) -> bool:
    return any(form.count_route is not None and path == f"/v1{form.count_route}" for form in FORMS)


def _answer_echo(document: dict[str, Any]) -> Answer:
    """Answer with the text of the user's last message that has any."""
    prompt = read_prompt(document)
    for message in reversed(prompt.messages if prompt else ()):
        if isinstance(message, dict) and message.get("role") == "user":
            text = read_text(message.get("content"))
            if text:
                return Answer(text)
    return Answer()


_BUILT_IN: dict[str, Script] = {"echo": _answer_echo, "extract": lambda document: Answer(extract_answer(document))}
_VERSIONS = {"extract": "extract/2"}
"""Scripts whose answers have changed: what was stored of earlier ones is not served for them."""


def _import_function(text: str) -> tuple[Script, str | None]:
    """Import the user's own function, and describe its code, with all of the user's code that it reaches."""
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
            made = function(copy.deepcopy(document))  # it may change what it is given
            made = await made if inspect.isawaitable(made) else made
            return read_answer({"reply": made} if isinstance(made, str) else made, text)
        except Exception as error:  # noqa: BLE001 - a script may be anybody's; whoever asked is told
            return Answer(f"the script {text} failed: {describe(error)}", status=500)

    return script, fingerprint_of(function)


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
