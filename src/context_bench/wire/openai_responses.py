"""OpenAI's Responses API: a conversation is a list of items, and may continue a reply that the server stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from context_bench.text import dump_json
from context_bench.wire.form import (
    Completion,
    Demand,
    ModelReply,
    NotAReply,
    Recorded,
    Reply,
    Samples,
    StreamedReply,
    check_usage,
    ignore_zeros,
    split_counts,
)
from context_bench.wire.openai_chat import OPENAI_CHAT
from context_bench.wire.prompts import Message, Prompt, choose_tool, dump_body, normalize_json, read_text
from context_bench.wire.response_items import COMPACTIONS, list_items, read_items, write_items, write_output
from context_bench.wire.response_items import write_events as list_events

_COUNTS = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"), ("total_tokens", "total_tokens"))
_DETAILS = (
    ("input_tokens_details", ("cached_tokens", "cache_write_tokens")),
    ("output_tokens_details", ("reasoning_tokens",)),
)
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_TEXT_DELTAS = ("response.output_text.delta",)
_CALL_DELTAS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
_SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


def read_responses_usage(usage: Any) -> dict[str, Any]:
    """Read token counts; Anthropic uses the same names, but has neither a total nor details of the input."""
    if not isinstance(usage, Mapping) or not usage.keys() & {"input_tokens", "output_tokens"}:
        return {}
    if not usage.keys() & {"total_tokens", "input_tokens_details"}:
        return {}
    counts, refused = split_counts(usage, [name for name, _ in _COUNTS])
    numbers = {ours: counts[name] for name, ours in _COUNTS if name in counts}
    for part, names in _DETAILS:
        details = usage.get(part)
        if isinstance(details, Mapping):
            more, wrong = split_counts(details, names)
            numbers |= {"cache_creation_tokens" if name == "cache_write_tokens" else name: more[name] for name in more}
            refused |= wrong
    if numbers.get("prompt_tokens") == 0:
        numbers, refused = ignore_zeros(numbers, refused)
    return {**numbers, "ignored_usage": refused} if refused else numbers


class _OpenAIResponses:
    """`/v1/responses`."""

    name = "responses"
    title = "OpenAI Responses"
    route = "/responses"
    count_route: str | None = "/responses/input_tokens"
    key_variable = "OPENAI_API_KEY"
    key_header = ("Authorization", "Bearer {key}")
    headers: Mapping[str, str] = {}
    default_model = "gpt-4o-mini"
    default_max_tokens: int | None = None
    limit_fields: tuple[str, ...] = ("max_output_tokens",)
    prompt_fields: tuple[str, ...] = ("input", "instructions", "tools", "previous_response_id")
    samples = Samples(
        model=OPENAI_CHAT.samples.model,
        headers=OPENAI_CHAT.samples.headers,
        settings={
            "temperature": 0.37,
            "top_p": 0.91,
            "max_output_tokens": 321,
            "reasoning": {"effort": "low"},
            "parallel_tool_calls": False,
            "truncation": "disabled",
            "text": {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": _SCHEMA}},
        },
        caller={"user": "user-conformance", "metadata": {"ticket": "T-1001"}, "store": False},
        usage={"input_tokens": 12345, "output_tokens": 678, "total_tokens": 13023},
        finish="max_output_tokens",
        end="event: response.completed",
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
        limit_field: str | None = None,  # noqa: ARG002 - this API has only one name
        stream: bool = False,
    ) -> dict[str, Any]:
        """Build the body of a request; leading system texts become its instructions.

        Every request contains its whole conversation, so `store` is false.
        """
        rest = list(messages)
        system: list[str] = []
        while rest and rest[0].get("role") in ("system", "developer"):
            system.append(read_text(rest.pop(0).get("content")))
        body: dict[str, Any] = {
            "model": model,
            "instructions": "\n\n".join(system) or None,
            "input": write_items(rest),
            "tools": [_convert_tool(tool) for tool in tools] or None,
            "temperature": temperature,
            "max_output_tokens": max_tokens,
            "store": False,
            "stream": stream or None,
        }
        return {key: value for key, value in body.items() if value is not None}

    def build_image(self, text: str, kind: str, data: str) -> Message:
        image = {"type": "input_image", "image_url": f"data:{kind};base64,{data}", "detail": "low"}
        return {"role": "user", "content": [{"type": "text", "text": text}, image]}

    def mark_request(self, body: Mapping[str, Any], mark: str) -> dict[str, Any]:
        return {**body, "user": body.get("user", mark)}

    def read_prompt(self, document: Mapping[str, Any]) -> Prompt | None:
        """Read the prompt of a request; if it continues a stored reply, read only the new items."""
        if "messages" in document or document.keys() & {"encoding_format", "dimensions"}:
            return None
        given = document.get("input")
        if given is None and isinstance(document.get("previous_response_id"), str):
            given = []
        if not isinstance(given, str) and not (isinstance(given, list) and all(map(_is_item, given))):
            return None
        tools = document.get("tools")
        return Prompt(document.get("instructions"), read_items(given), tools if isinstance(tools, list) else [])

    def expand(
        self, document: Mapping[str, Any], find_exchange: Callable[[str], Recorded | None]
    ) -> Mapping[str, Any] | None:
        previous, items = document.get("previous_response_id"), list_items(document.get("input"))
        if "messages" in document:
            return document
        if document.get("conversation") or isinstance(document.get("prompt"), Mapping):
            return None  # only the server knows their content
        if any(isinstance(item, Mapping) and item.get("type") == "item_reference" for item in items):
            return None
        if not isinstance(previous, str):
            return document
        earlier = find_exchange(previous)
        if earlier is None or not isinstance(earlier.reply.get("output"), list):
            return None
        told = [*list_items(earlier.request.get("input")), *earlier.reply["output"]]
        cuts = [place for place, item in enumerate(told) if _is_item(item) and item.get("type") in COMPACTIONS]
        rest = {name: value for name, value in document.items() if name != "previous_response_id"}
        return {**rest, "input": [*told[cuts[-1] if cuts else 0 :], *items]}

    def find_demand(self, document: Mapping[str, Any]) -> Demand | None:
        choice = document.get("tool_choice")
        named = choice.get("name") if isinstance(choice, Mapping) else None
        if found := choose_tool(document.get("tools"), named, any_tool=choice == "required"):
            return Demand(*found, is_tool=True)
        text = document.get("text")
        wanted = text.get("format") if isinstance(text, Mapping) else None
        if not isinstance(wanted, Mapping) or wanted.get("type") not in ("json_schema", "json_object"):
            return None
        return Demand(str(wanted.get("name") or ""), wanted.get("schema"))

    def read_schema(self, tool: Mapping[str, Any]) -> Any:
        return tool.get("parameters")

    def read_tool_ids(self, messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return OPENAI_CHAT.read_tool_ids(messages)

    # --- replies

    def read_reply(self, document: Any) -> ModelReply:
        usage = read_responses_usage(document.get("usage")) if isinstance(document, dict) else {}
        try:
            if document.get("status") not in ("completed", "incomplete", None):
                raise TypeError("the response has failed, or is not finished")
            output = list(document["output"])
            text = _join_texts(output)
            calls = [call for message in read_items(output) for call in message.get("tool_calls") or ()]
            reason = (document.get("incomplete_details") or {}).get("reason")
            timings = dict(document.get("timings_of_stream", {}))
            finish = reason or ("function_call" if calls else document.get("status"))
            return ModelReply(text, calls, finish, check_usage(usage, text or calls), timings)
        except (KeyError, TypeError, AttributeError):
            raise NotAReply("finished response", document, usage, "output") from None

    def read_completion(self, document: Mapping[str, Any]) -> Completion | None:
        output = document.get("output")
        if not isinstance(output, list) or document.get("object") == "response.compaction":
            return None  # the summary of a compaction is encrypted
        calls = []
        for item in output:
            kind = item.get("type") if isinstance(item, Mapping) else None
            if kind in _CALLS:
                written = item.get(_CALLS[kind])
                written = written if isinstance(written, str) else dump_json(written)
                calls.append((_read_str(item.get("name")), normalize_json(written)))
        return Completion(_read_str(document.get("id")), [_join_texts(output)], calls)

    def list_edits(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List the compactions in a reply, or in the stream event that completes a compaction."""
        if document.get("type") == "response.output_item.done":
            output = [document.get("item")]
        else:
            output = list_items(document.get("output"))
        kinds = (item.get("type") for item in output if isinstance(item, Mapping))
        return [{"type": kind} for kind in kinds if kind in COMPACTIONS]

    def add_event(self, stream: StreamedReply, event: Mapping[str, Any]) -> bool:
        kind = event.get("type")
        if kind == "error" and "sequence_number" in event:
            stream.error = f"{event.get('code')}: {event.get('message')}"
        elif not isinstance(kind, str) or not kind.startswith("response."):
            return False
        elif kind in _TEXT_DELTAS:
            stream.add_text(event["delta"])
        elif kind in _CALL_DELTAS:
            stream.add_call(event["output_index"], None, None, event["delta"])
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._add_item(stream, event.get("output_index", 0), event["item"], done=kind.endswith("done"))
        elif "response" in event:
            self._add_response(stream, event["response"], ended=kind in _ENDS)
        return True

    def _add_item(self, stream: StreamedReply, place: int, item: Mapping[str, Any], *, done: bool) -> None:
        """Add a tool call when it begins; when it is done, add its arguments unless an event has delivered them."""
        field = _CALLS.get(str(item.get("type")))
        if field is None:
            return
        known = stream.calls.get((0, place))
        if known is None:
            stream.add_call(place, item.get("call_id"), item.get("name"), item.get(field) if done else None)
        elif done and not known.arguments:
            stream.add_call(place, None, None, item.get(field))

    def _add_response(self, stream: StreamedReply, response: Mapping[str, Any], *, ended: bool) -> None:
        stream.add_id(response.get("id"))
        if not ended:
            return
        if response.get("error"):
            error = response["error"]
            stream.error = str(error.get("message") if isinstance(error, Mapping) else error)
        details = response.get("incomplete_details") or {}
        stream.ended, stream.usage, stream.whole = True, response.get("usage"), response
        stream.finish = details.get("reason") or response.get("status")
        if not stream.texts and not stream.calls:  # a server that sends the whole text in the last event
            stream.add_text(_join_texts(response.get("output") or []))

    def join_stream(self, stream: StreamedReply) -> dict[str, Any]:
        whole = stream.whole or {}
        cut = stream.finish in _REASONS.values()
        reply = {
            "id": stream.id,
            "status": "incomplete" if cut else stream.finish,
            "incomplete_details": {"reason": stream.finish} if cut else None,
            "output": write_output(stream.text, stream.list_calls(), stream.id),
            "usage": stream.usage,
        }
        # Other items, such as reasoning, are only in the last event.
        others = [item for item in list_items(whole.get("output")) if _is_item(item) and _is_other(item)]
        return {**reply, "output": [*others, *reply["output"]]}

    def find_usage(self, document: Mapping[str, Any]) -> Any:
        response = document.get("response")
        return response.get("usage") if isinstance(response, Mapping) else document.get("usage")

    def read_usage(self, usage: Any) -> dict[str, Any]:
        return read_responses_usage(usage)

    # --- answers of the tap

    def write_reply(self, reply: Reply) -> dict[str, Any]:
        request, reason = reply.request, _REASONS.get(reply.finish)
        prompt, completion = reply.usage
        return {
            "id": f"resp_{reply.id}",
            "object": "response",
            "created_at": 0,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": request.get("instructions"),
            "metadata": request.get("metadata") or {},
            "model": reply.model,
            "output": write_output(reply.answer.text, reply.answer.tool_calls, reply.id),
            "parallel_tool_calls": request.get("parallel_tool_calls", True),
            "previous_response_id": request.get("previous_response_id"),
            "store": request.get("store", True),
            "temperature": request.get("temperature"),
            "text": request.get("text") or {"format": {"type": "text"}},
            "tool_choice": request.get("tool_choice", "auto"),
            "tools": request.get("tools") or [],
            "top_p": request.get("top_p"),
            "usage": {
                "input_tokens": prompt,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": completion,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": prompt + completion,
            },
            **reply.answer.extra,
        }

    def write_events(self, reply: Reply) -> Iterator[bytes]:
        for number, document in enumerate(list_events(reply, self.write_reply(reply))):
            body = dump_body({**document, "sequence_number": number})
            yield b"event: %s\ndata: %s\n\n" % (document["type"].encode(), body)

    def write_error(self, kind: str, message: str) -> dict[str, Any]:
        return OPENAI_CHAT.write_error(kind, message)


OPENAI_RESPONSES = _OpenAIResponses()


def _is_item(item: Any) -> bool:
    return isinstance(item, Mapping)


def _is_other(item: Mapping[str, Any]) -> bool:
    return item.get("type") != "message" and item.get("type") not in _CALLS


def _read_str(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _join_texts(output: Sequence[Any]) -> str:
    """Join the texts of all messages of an output."""
    messages = (item for item in output if isinstance(item, Mapping) and item.get("type", "message") == "message")
    return "".join(read_text(message.get("content")) for message in messages)


def _convert_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a tool definition; one in this API's form is returned unchanged."""
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return dict(tool)
    # Without `strict` this API assumes true, and rejects or rewrites schemas that are not strict.
    return {"type": "function", "strict": False, **function}
