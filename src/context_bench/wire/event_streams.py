"""A reply as a stream of events, as OpenAI's and Anthropic's APIs send it: complete, in order, and ended.

Texts and the arguments of tools come in several pieces, so that whoever reads them has to put them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_bench.wire.replies import Reply, ToolCall, dump_body

__all__ = ["write_events"]

_PIECES = 32
_SHORTEST = 8
_ARGUMENT_PIECES = 4


def write_events(reply: Reply) -> Iterator[bytes]:
    """Write every event of a reply, each with the empty line that ends it."""
    if reply.dialect == "anthropic":
        for document in _make_anthropic_events(reply):
            yield b"event: %s\ndata: %s\n\n" % (document["type"].encode(), dump_body(document))
        return
    for document in _make_openai_events(reply):
        yield b"data: %s\n\n" % dump_body(document)
    yield b"data: [DONE]\n\n"


def _make_openai_events(reply: Reply) -> Iterator[dict[str, Any]]:
    texts = [reply.answer.text, *reply.answer.choices]
    for place in range(len(texts)):
        yield _make_chunk(reply, place, {"role": "assistant", "content": ""})
    for place, text in enumerate(texts):
        for piece in _cut_text(reply, place, text):
            yield _make_chunk(reply, place, {"content": piece})
    for number, call in enumerate(reply.answer.tool_calls):
        for delta in _make_call_deltas(number, call):
            yield _make_chunk(reply, 0, {"tool_calls": [delta]})
    for place in range(len(texts)):
        yield _make_chunk(reply, place, {}, reply.finish)
    if reply.include_usage:
        prompt, completion = reply.usage
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        yield {**_make_chunk(reply, 0, {}), "choices": [], "usage": usage}


def _make_chunk(reply: Reply, place: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    document = {
        "id": f"chatcmpl-{reply.id}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": reply.model,
        "choices": [{"index": place, "delta": delta, "logprobs": None, "finish_reason": finish}],
        **reply.answer.extra,
    }
    return {**document, "usage": None} if reply.include_usage else document


def _make_call_deltas(number: int, call: ToolCall) -> Iterator[dict[str, Any]]:
    """The first names the tool, the others bring its arguments piece by piece."""
    yield {"index": number, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
    for piece in _cut(call.arguments, _ARGUMENT_PIECES, 1):
        yield {"index": number, "function": {"arguments": piece}}


def _make_anthropic_events(reply: Reply) -> Iterator[dict[str, Any]]:
    whole = reply.document()
    start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    calls = iter(reply.answer.tool_calls)
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _cut_text(reply, 0, block["text"])]
        else:
            empty = {**block, "input": {}}
            pieces = _cut(next(calls).arguments, _ARGUMENT_PIECES, 1)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces)]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": reply.usage[1]}}
    yield {"type": "message_stop"}


def _cut_text(reply: Reply, place: int, text: str) -> Iterator[str]:
    if place == 0 and reply.answer.chunks is not None:
        yield from reply.answer.chunks
    else:
        yield from _cut(text, _PIECES, _SHORTEST)


def _cut(text: str, pieces: int, shortest: int) -> Iterator[str]:
    """Cut a text into about so many pieces of equal length, none but the last shorter than `shortest`."""
    size = max(shortest, -(-len(text) // pieces))
    for start in range(0, len(text), size):
        yield text[start : start + size]
