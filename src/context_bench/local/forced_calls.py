"""Forced tool calls: a small model tends to reply in prose, so a schema makes it write only the arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from context_bench.errors import DataError
from context_bench.tap.answering import Incoming, Outgoing, build_error, build_reply
from context_bench.traffic.parts import convert_to_chat
from context_bench.wire.form import Answer, Demand, ToolCall
from context_bench.wire.forms import find_demand, read_bill, read_completion, read_longest_reply
from context_bench.wire.prompts import dump_body

_KEPT_FIELDS = ("model", "temperature", "top_p", "seed")
_PATH = "/v1/chat/completions"


def find_forced_call(request: Incoming) -> Demand | None:
    """Return the tool that a request demands; None if the model may choose."""
    demand = find_demand(request.document()) if request.method == "POST" and request.form is not None else None
    return demand if demand is not None and demand.is_tool else None


async def answer_forced_call(
    request: Incoming, demand: Demand, ask: Callable[[Incoming], Awaitable[Outgoing]]
) -> Outgoing:
    """Ask for the arguments as JSON of the tool's schema, and answer with the call, in the API of the request."""
    document, prompt = request.document(), request.prompt()
    try:
        messages = convert_to_chat(prompt.messages, prompt.system) if prompt is not None else []
    except DataError as error:
        return build_error(400, str(error), request.form)
    told = [{"role": "system", "content": f"Answer with the arguments of the tool {demand.name} as JSON."}]
    schema = demand.schema if isinstance(demand.schema, Mapping) else {"type": "object"}
    wanted = {"type": "json_schema", "json_schema": {"name": demand.name, "schema": schema}}
    body: dict[str, Any] = {key: document[key] for key in _KEPT_FIELDS if key in document}
    body |= {"messages": [*told, *messages], "response_format": wanted}
    if (limit := read_longest_reply(document)) is not None:
        body["max_tokens"] = limit
    outgoing = await ask(Incoming("POST", _PATH, "", request.headers, dump_body(body)))
    reply = outgoing.body if isinstance(outgoing.body, bytes) else b"".join([chunk async for chunk in outgoing.body])
    text = reply.decode("utf-8", "replace")
    completion = read_completion(text) if outgoing.status < 300 else None
    if completion is None or not completion.texts:
        return build_error(outgoing.status if outgoing.status >= 400 else 502, text, request.form)
    try:
        orjson.loads(completion.texts[0])
    except orjson.JSONDecodeError:
        return build_error(
            400, f"the arguments of {demand.name} did not fit into the reply: allow more tokens", request.form
        )
    bill = read_bill(text)
    usage = (bill.get("prompt_tokens", 0), bill.get("completion_tokens", 0))
    return build_reply(Answer(tool_calls=[ToolCall("call_1", demand.name, completion.texts[0])], usage=usage), request)
