"""OpenAI's Chat Completions API, which most servers support."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from context_bench.utils.tokens import MAX_TOKEN_COUNT
from context_bench.wire.form import (
    Answer,
    Completion,
    Demand,
    ModelReply,
    NotAReply,
    Recorded,
    Reply,
    Samples,
    StreamedReply,
    ToolCall,
    check_usage,
    cut_arguments,
    cut_text,
    ignore_zeros,
    split_counts,
)
from context_bench.wire.prompts import Message, Prompt, choose_tool, dump_body, normalize_json, read_messages, read_text

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS = (
    # gateways to APIs that bill cache writes send the last one
    ("prompt_tokens_details", ("cached_tokens", "cache_write_tokens", "cache_creation_tokens")),
    ("completion_tokens_details", ("reasoning_tokens",)),
)
_SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


def read_chat_completion(document: Any) -> ModelReply:
    """Read the first choice of a chat completion; raise NotAReply without one."""
    usage = read_openai_usage(document.get("usage")) if isinstance(document, dict) else {}
    try:
        choice = document["choices"][0]
        message = choice["message"]
        if type(message) is not dict:
            message = dict(message)
        timings = dict(document["timings_of_stream"]) if "timings_of_stream" in document else {}
        calls = message.get("tool_calls") or []
        content = message.get("content")
        text = content if type(content) is str else read_text(content)
        if not usage.get("completion_tokens"):
            usage = check_usage(usage, text or calls)
        return ModelReply(text, calls, choice.get("finish_reason"), usage, timings)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise NotAReply("chat completion", document, usage, "choices") from None


def read_openai_usage(usage: Any) -> dict[str, Any]:
    """Read token counts, including cached prompt tokens; implausible values are listed in `ignored_usage`."""
    if not isinstance(usage, (dict, Mapping)):
        return {}
    prompt, completion, total = usage.get("prompt_tokens"), usage.get("completion_tokens"), usage.get("total_tokens")
    if (
        type(prompt) is type(completion) is type(total) is int
        and 0 < prompt <= MAX_TOKEN_COUNT
        and 0 <= completion <= total <= MAX_TOKEN_COUNT
    ):
        counts: dict[str, int] = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
        refused: dict[str, str] = {}
        if len(usage) == len(_COUNTS):
            return counts
    else:
        counts, refused = split_counts(usage, _COUNTS)
    for part, names in _DETAILS:
        details = usage.get(part)
        if details and isinstance(details, (dict, Mapping)):
            more, wrong = split_counts(details, names)
            counts |= more
            refused |= wrong
    if "cache_write_tokens" in counts:
        counts["cache_creation_tokens"] = counts.pop("cache_write_tokens")
    if counts.get("prompt_tokens") == 0:
        counts, refused = ignore_zeros(counts, refused)
    return {**counts, "ignored_usage": refused} if refused else counts


class _OpenAIChat:
    """`/v1/chat/completions`."""

    name = "openai"
    title = "OpenAI"
    route = "/chat/completions"
    count_route: str | None = None
    key_variable = "OPENAI_API_KEY"
    key_header = ("Authorization", "Bearer {key}")
    headers: Mapping[str, str] = {}
    default_model = "gpt-3.5-turbo"
    default_max_tokens: int | None = None
    limit_fields: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    prompt_fields: tuple[str, ...] = ("messages", "tools")
    samples = Samples(
        model="gpt-4o-mini-2024-07-18",
        headers={"openai-organization": "org-conformance", "openai-project": "proj-conformance"},
        settings={
            "temperature": 0.37,
            "top_p": 0.91,
            "max_tokens": 321,
            "stop": ["END", "\n\n"],
            "seed": 4242,
            "logprobs": True,
            "top_logprobs": 3,
            "presence_penalty": 0.25,
            "frequency_penalty": -0.25,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": _SCHEMA},
            },
        },
        caller={"user": "user-conformance", "metadata": {"ticket": "T-1001"}},
        usage={"prompt_tokens": 12345, "completion_tokens": 678, "total_tokens": 13023},
        finish="length",
        end="data: [DONE]",
    )

    # --- requests

    def build_request(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        limit_field: str | None = None,
        stream: bool = False,
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": model, "messages": messages}
        if temperature is not None:
            body["temperature"] = temperature
        if max_tokens is not None:
            body[limit_field or "max_tokens"] = max_tokens
        if tools:
            body["tools"] = tools
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def build_image(self, text: str, kind: str, data: str) -> Message:
        url = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}", "detail": "low"}}
        return {"role": "user", "content": [{"type": "text", "text": text}, url]}

    def mark_request(self, body: Mapping[str, Any], mark: str) -> dict[str, Any]:
        return {**body, "user": body.get("user", mark)}

    def read_prompt(self, document: Mapping[str, Any]) -> Prompt | None:
        """Read the prompt of a request; in the older `/v1/completions` it is one text."""
        prompt = document.get("prompt")
        if isinstance(prompt, str) and not document.keys() & {"messages", "input"}:
            return Prompt(None, [{"role": "user", "content": prompt}])
        return read_messages(document)

    def expand(
        self,
        document: Mapping[str, Any],
        find_exchange: Callable[[str], Recorded | None],  # noqa: ARG002 - each request contains its whole conversation
    ) -> Mapping[str, Any] | None:
        return document

    def find_demand(self, document: Mapping[str, Any]) -> Demand | None:
        choice = document.get("tool_choice")
        held = choice.get("function") if isinstance(choice, Mapping) else None
        named = held.get("name") if isinstance(held, Mapping) else None
        if found := choose_tool(document.get("tools"), named, any_tool=choice == "required"):
            return Demand(*found, is_tool=True)
        wanted = document.get("response_format")
        if not isinstance(wanted, Mapping) or wanted.get("type") not in ("json_schema", "json_object"):
            return None
        held = wanted.get("json_schema")
        return (
            Demand(str(held.get("name") or ""), held.get("schema")) if isinstance(held, Mapping) else Demand("", None)
        )

    def read_schema(self, tool: Mapping[str, Any]) -> Any:
        return tool["function"].get("parameters")

    def read_tool_ids(self, messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        called = [message for message in messages if message.get("role") == "assistant"]
        answered = [message for message in messages if message.get("role") == "tool"]
        return (
            [call.get("id") for message in called for call in message.get("tool_calls") or ()],
            [message.get("tool_call_id") for message in answered],
        )

    # --- replies

    def read_reply(self, document: Any) -> ModelReply:
        return read_chat_completion(document)

    def read_completion(self, document: Mapping[str, Any]) -> Completion | None:
        if not isinstance(document.get("choices"), list):
            return None
        found = Completion(_read_str(document.get("id")))
        for choice in document["choices"]:
            message = choice.get("message") if isinstance(choice, Mapping) else None
            if message is None and isinstance(choice, Mapping) and isinstance(choice.get("text"), str):
                found.texts.append(choice["text"])  # of `/v1/completions`
            if isinstance(message, Mapping):
                found.texts.append(read_text(message.get("content")))
                calls = message.get("tool_calls")
                for call in calls if isinstance(calls, list) else ():
                    function = call.get("function") if isinstance(call, Mapping) else None
                    if isinstance(function, Mapping):
                        arguments = normalize_json(_read_str(function.get("arguments")))
                        found.calls.append((_read_str(function.get("name")), arguments))
        return found if found.texts else None

    def list_edits(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:  # noqa: ARG002 - this API edits nothing
        return []

    def add_event(self, stream: StreamedReply, event: Mapping[str, Any]) -> bool:
        if "choices" not in event:
            return False
        stream.add_id(event.get("id"))
        stream.usage = event.get("usage") or stream.usage
        for choice in event["choices"] or ():
            number = choice.get("index", 0)
            if number == 0:
                stream.finish = choice.get("finish_reason") or stream.finish
            delta = choice.get("delta") or {}
            stream.add_text(delta.get("content", choice.get("text")), number)
            for piece in delta.get("tool_calls") or ():
                function = piece.get("function") or {}
                place = piece.get("index", 0)
                stream.add_call(place, piece.get("id"), function.get("name"), function.get("arguments"), number)
        return True

    def join_stream(self, stream: StreamedReply) -> dict[str, Any]:
        message: dict[str, Any] = {"content": stream.text}
        if calls := stream.list_calls():
            message["tool_calls"] = [_write_call(call) for call in calls]
        return {"choices": [{"message": message, "finish_reason": stream.finish}], "usage": stream.usage}

    def find_usage(self, document: Mapping[str, Any]) -> Any:
        return document.get("usage")

    def read_usage(self, usage: Any) -> dict[str, Any]:
        return read_openai_usage(usage)

    # --- answers of the tap

    def write_reply(self, reply: Reply) -> dict[str, Any]:
        answer = reply.answer
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or (None if answer.tool_calls else "")}
        if answer.tool_calls:
            message["tool_calls"] = [_write_call(call) for call in answer.tool_calls]
        messages = [message, *({"role": "assistant", "content": text} for text in answer.choices)]
        choices = [
            {"index": place, "message": each, "logprobs": None, "finish_reason": reply.finish}
            for place, each in enumerate(messages)
        ]
        head = {"id": f"chatcmpl-{reply.id}", "object": "chat.completion", "created": 0, "model": reply.model}
        return {**head, "choices": choices, "usage": _write_usage(reply), **answer.extra}

    def write_events(self, reply: Reply) -> Iterator[bytes]:
        for document in _make_chunks(reply):
            yield b"data: %s\n\n" % dump_body(document)
        yield b"data: [DONE]\n\n"

    def write_error(self, kind: str, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}


OPENAI_CHAT = _OpenAIChat()


def _read_str(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _write_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _write_usage(reply: Reply) -> dict[str, int]:
    prompt, completion = reply.usage
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _make_chunks(reply: Reply) -> Iterator[dict[str, Any]]:
    options = reply.request.get("stream_options")
    include_usage = isinstance(options, Mapping) and options.get("include_usage") is True

    def make(place: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        document = {
            "id": f"chatcmpl-{reply.id}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": reply.model,
            "choices": [{"index": place, "delta": delta, "logprobs": None, "finish_reason": finish}],
            **reply.answer.extra,
        }
        return {**document, "usage": None} if include_usage else document

    answer: Answer = reply.answer
    texts = [answer.text, *answer.choices]
    for place in range(len(texts)):
        yield make(place, {"role": "assistant", "content": ""})
    for place, text in enumerate(texts):
        for piece in cut_text(reply, place, text):
            yield make(place, {"content": piece})
    for number, call in enumerate(answer.tool_calls):
        function = {"name": call.name, "arguments": ""}
        yield make(0, {"tool_calls": [{"index": number, "id": call.id, "type": "function", "function": function}]})
        for piece in cut_arguments(call):
            yield make(0, {"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    for place in range(len(texts)):
        yield make(place, {}, reply.finish)
    if include_usage:
        yield {**make(0, {}), "choices": [], "usage": _write_usage(reply)}
