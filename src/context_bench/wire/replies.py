"""From an answer to the bytes of a reply, as OpenAI's and Anthropic's APIs send them: plain, streamed, or an error.

The same request and the same answer give the same bytes: ids come from the request, and the clock is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from context_bench.utils.tokens import get_tokenizer
from context_bench.wire.dialects import Dialect
from context_bench.wire.requests import read_prompt

__all__ = ["Answer", "Reply", "ToolCall", "dump_body", "error_document", "make_reply"]

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model calls; `arguments` is the exact JSON text."""

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, in no API's form yet.

    Attributes:
        text: What the model says.
        tool_calls: What it calls.
        chunks: How a stream cuts the text; by default into a few dozen pieces.
        usage: Tokens of the prompt and of the completion; counted when it is None.
        finish: Why it stopped, in OpenAI's words; follows from the rest when it is None.
        choices: More texts, for a request that asks for several.
        delay: Seconds before anything is sent, the status included; whoever answers waits for them.
        pause: Seconds between two events of a stream.
        status: Anything from 400 on is an error, with `text` as its message.
        headers: Of the reply.
        extra: More fields for the top of the reply.
    """

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    chunks: Sequence[str] | None = None
    usage: tuple[int, int] | None = None
    finish: str | None = None
    choices: Sequence[str] = ()
    delay: float = 0.0
    pause: float = 0.0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer on its way to one request: what both of them say, put together."""

    answer: Answer
    dialect: Dialect
    id: str
    model: str
    usage: tuple[int, int]
    finish: str
    include_usage: bool

    def document(self) -> dict[str, Any]:
        """Write the body of the reply when it is not streamed."""
        return _make_message(self) if self.dialect == "anthropic" else _make_completion(self)


def make_reply(
    answer: Answer,
    document: Mapping[str, Any],
    dialect: Dialect,
    *,
    body: bytes | None = None,
    count_prompt: Callable[[], int] | None = None,
) -> Reply:
    """Put an answer together with what its request says.

    Args:
        answer: What is answered.
        document: The request.
        dialect: The API whose form the reply has.
        body: The same request as it came, for its id; written anew where it is not at hand.
        count_prompt: Counts the tokens of the request, for whoever has counted them already.
    """
    options = document.get("stream_options")
    return Reply(
        answer=answer,
        dialect=dialect,
        id=hashlib.blake2b(dump_body(document) if body is None else body, digest_size=12).hexdigest(),
        model=str(document.get("model", "")),
        usage=answer.usage or _count_usage(answer, document, count_prompt),
        finish=answer.finish or ("tool_calls" if answer.tool_calls else "stop"),
        include_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
    )


def error_document(status: int, message: str, dialect: Dialect | None) -> dict[str, Any]:
    """Make the body of an error in the form of its API."""
    kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    if dialect == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def dump_body(document: Any) -> bytes:
    """Write JSON in UTF-8; escaped where a text holds half a surrogate pair, which UTF-8 cannot."""
    try:
        return orjson.dumps(document)
    except TypeError:
        return json.dumps(document).encode()


def _count_usage(
    answer: Answer, document: Mapping[str, Any], count_prompt: Callable[[], int] | None
) -> tuple[int, int]:
    count = get_tokenizer()
    written = [answer.text, *answer.choices, *(call.arguments for call in answer.tool_calls)]
    if count_prompt is None:
        prompt = read_prompt(document)
        read = prompt.tokens(count) if prompt else 0
    else:
        read = count_prompt()
    return read, sum(count(text) for text in written if text)


def _make_completion(reply: Reply) -> dict[str, Any]:
    answer = reply.answer
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or (None if answer.tool_calls else "")}
    if answer.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.tool_calls
        ]
    messages = [message, *({"role": "assistant", "content": text} for text in answer.choices)]
    prompt, completion = reply.usage
    return {
        "id": f"chatcmpl-{reply.id}",
        "object": "chat.completion",
        "created": 0,
        "model": reply.model,
        "choices": [
            {"index": place, "message": each, "logprobs": None, "finish_reason": reply.finish}
            for place, each in enumerate(messages)
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        **answer.extra,
    }


def _make_message(reply: Reply) -> dict[str, Any]:
    answer = reply.answer
    blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in answer.tool_calls
    ]
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": blocks,
        "stop_reason": _STOP_REASONS.get(reply.finish, reply.finish),
        "stop_sequence": None,
        "usage": {"input_tokens": reply.usage[0], "output_tokens": reply.usage[1]},
        **answer.extra,
    }
