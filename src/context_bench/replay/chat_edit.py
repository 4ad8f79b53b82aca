"""Functions that edit chat messages, applied to requests of other APIs.

A request is converted to a chat, edited, and converted back. Messages that the function left unchanged are restored
as recorded, with cache breakpoints and thinking blocks, so that only its own changes can break a prompt cache.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_bench.text import dump_json
from context_bench.traffic.parts import convert_to_chat, convert_tool_to_chat
from context_bench.wire.forms import get_form
from context_bench.wire.prompts import read_text

Edit = Callable[..., tuple[list[Any], list[Any]]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A message of the chat and its origin: blocks of one recorded message, or whole items."""

    chat: Mapping[str, Any]
    origin: Sequence[Any]
    owner: int | None  # index of the recorded message with these blocks; None for whole messages or items


def edit_as_chat(api: str, body: Mapping[str, Any], edit: Edit) -> dict[str, Any]:
    """Return a request after a function has edited its chat messages.

    Raises:
        DataError: The request contains something that a chat cannot represent, such as an image.
    """
    where, told = ("input", "instructions") if "input" in body else ("messages", "system")
    recorded = body[where] if isinstance(body[where], list) else [{"role": "user", "content": body[where]}]
    pieces = list(_split_items(recorded) if api == "responses" else _split_messages(recorded))
    text = read_text(body.get(told))
    opening = [{"role": "system", "content": text}] if text else []
    tools = {dump_json(convert_tool_to_chat(tool) or tool): tool for tool in body.get("tools") or ()}
    given = [convert_tool_to_chat(tool) or tool for tool in body.get("tools") or ()]
    edited, left = edit([*opening, *(dict(piece.chat) for piece in pieces)], given)
    made = dict(body)
    if edited[: len(opening)] == opening:
        edited = edited[len(opening) :]
    else:
        made.pop(told, None)
    made[where], beside = _join(api, where, edited, pieces)
    if beside:
        made[told] = "\n\n".join(filter(None, (read_text(made.get(told)), *beside)))
    if left != given:
        made["tools"] = [tools.get(dump_json(tool)) or _build(api, "tools", [], [tool])[0] for tool in left]
    return made


def _split_messages(messages: Sequence[Any]) -> Iterator[_Piece]:
    """Split Anthropic's messages: in a chat, each tool result is a separate message."""
    for owner, message in enumerate(messages):
        content = message.get("content")
        results = [block for block in content if _is_result(block)] if isinstance(content, list) else []
        if not results:
            yield from (_Piece(chat, [message], None) for chat in convert_to_chat([message]))
            continue
        yield from (_Piece(convert_to_chat([{**message, "content": [each]}])[0], [each], owner) for each in results)
        others = [block for block in content if not _is_result(block)]
        if others:
            yield _Piece(convert_to_chat([{**message, "content": others}])[0], others, owner)


def _is_result(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _split_items(items: Sequence[Any]) -> Iterator[_Piece]:
    """Split the items of the Responses API: text, thinking and calls of one model turn are one message."""
    step: list[Any] = []
    for item in [*items, None]:
        kind = item.get("type") if isinstance(item, Mapping) else None
        if item is not None and (item.get("role") == "assistant" or kind in ("reasoning", "function_call")):
            step.append(item)
            continue
        if step:
            chats = convert_to_chat(step)
            calls = [call for chat in chats for call in chat.get("tool_calls", ())]
            said = "".join(chat["content"] or "" for chat in chats) or None
            if chats:
                yield _Piece(
                    {"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})}, step, None
                )
            step = []
        if item is not None:
            yield from (_Piece(chat, [item], None) for chat in convert_to_chat([item]))


def _join(api: str, where: str, edited: Sequence[Any], pieces: Sequence[_Piece]) -> tuple[list[Any], list[str]]:
    """Return the messages or items of an edited chat, and the system texts that the API keeps apart from them."""
    waiting: dict[str, list[_Piece]] = defaultdict(list)
    for piece in pieces:
        waiting[dump_json(piece.chat)].append(piece)
    results = {piece.chat["tool_call_id"]: piece for piece in pieces if "tool_call_id" in piece.chat}
    joined: list[Any] = []
    beside: list[str] = []
    owner: int | None = None  # owner of the last message's blocks
    for message in edited:
        same = waiting.get(dump_json(message))
        found: _Piece | None = same.pop(0) if same else results.get(message.get("tool_call_id"))
        if found is not None and message != found.chat:
            found = _Piece(message, [_change_result(found.origin[0], message)], found.owner)
        if found is None and message.get("role") in ("system", "developer"):
            beside.append(read_text(message.get("content")))
        elif found is None or found.owner is None:
            joined += _build(api, where, [message], []) if found is None else found.origin
            owner = None
        elif found.owner == owner:
            joined[-1] = {**joined[-1], "content": [*joined[-1]["content"], *found.origin]}
        else:
            joined.append({"role": "user", "content": list(found.origin)})
            owner = found.owner
    return joined, beside


def _change_result(result: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the text of a recorded tool result, and keep its breakpoint and other fields."""
    return {**result, "output" if "output" in result else "content": message.get("content") or ""}


def _build(api: str, where: str, messages: list[Any], tools: list[Any]) -> list[Any]:
    built = get_form(api).build_request("", messages or [{"role": "user", "content": ""}], tools=tools)
    return list(built[where])
