"""Rules that every forwarded request must keep; a broken rule is a fault, found without labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from context_bench.text import dump_json
from context_bench.traffic.parts import list_messages
from context_bench.wire.forms import get_form
from context_bench.wire.prompts import Prompt

FAULTS = {
    "pairing": "a tool call without its result, or a result without its call",
    "ids": "a tool call or result with an id that was not recorded",
    "order": "messages, tool calls or results in a different order",
    "roles": "a message with a different role",
    "images": "an image or a document was removed",
    "system": "the system text was changed",
    "tools": "a tool or its schema was changed or removed",
    "thinking": "a thinking block or its signature was changed",
    "cache marks": "a breakpoint of the prompt cache was removed",
}
"""Meaning of each fault, by name."""


def find_faults(api: str, recorded: Mapping[str, Any], sent: Mapping[str, Any]) -> list[str]:
    """Compare a recorded request with the one sent instead, and list the faults."""
    before, after = list_messages(recorded), list_messages(sent)
    form = get_form(api)
    old, new = form.read_tool_ids(before), form.read_tool_ids(after)
    broken = {
        "pairing": bool(_find_unpaired(new) - _find_unpaired(old)),
        "ids": bool(set(chain(*new)) - set(chain(*old))),
        "order": _changes_order((*old, _list_contents(before)), (*new, _list_contents(after))),
        "roles": _changes_roles(before, after),
        "images": _count_kinds(after, _MEDIA) < _count_kinds(before, _MEDIA),
        "system": _read_system(recorded) != _read_system(sent),
        "tools": not _keeps_tools(recorded, sent),
        "thinking": _changes_thinking(before, after),
        "cache marks": _count_marks(sent) < _count_marks(recorded),
    }
    return [name for name in FAULTS if broken[name]]


_MEDIA = frozenset({"image", "image_url", "input_image", "document", "file", "input_file", "input_audio"})


def _find_unpaired(ids: tuple[Sequence[Any], Sequence[Any]]) -> set[Any]:
    calls, results = ids
    return set(calls) ^ set(results)


def _changes_order(before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]) -> bool:
    """Whether values that occur exactly once on both sides have a different order in any of these lists."""
    for old, new in zip(before, after):
        once = _list_once(old) & _list_once(new)
        if [each for each in old if each in once] != [each for each in new if each in once]:
            return True
    return False


def _list_once(values: Sequence[Any]) -> set[Any]:
    return {value for value, count in Counter(values).items() if count == 1}


def _list_contents(messages: Sequence[Any]) -> list[str]:
    contents = (message.get("content") for message in messages if isinstance(message, Mapping))
    return [dump_json(content) for content in contents if content]


def _changes_roles(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Whether a content that occurs on both sides has a different role."""
    roles: dict[str, set[Any]] = {}
    for message in before:
        if isinstance(message, Mapping):
            roles.setdefault(dump_json(message.get("content")), set()).add(message.get("role"))
    return any(
        message.get("role") not in roles.get(dump_json(message.get("content")), {message.get("role")})
        for message in after
        if isinstance(message, Mapping)
    )


def _list_blocks(messages: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message.get("content", message.get("output")) if isinstance(message, Mapping) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, Mapping):
                yield block
                yield from _list_blocks([block])


def _count_kinds(messages: Sequence[Any], kinds: frozenset[str]) -> int:
    return sum(block.get("type") in kinds for block in _list_blocks(messages))


def _read_system(body: Mapping[str, Any]) -> list[str]:
    system = body.get("system", body.get("instructions"))
    spoken = [
        message
        for message in list_messages(body)
        if isinstance(message, Mapping) and message.get("role") in ("system", "developer")
    ]
    return Prompt(system, spoken).texts()


def _keeps_tools(recorded: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether all recorded tools are unchanged; tools that a proxy adds are no fault."""
    before = Counter(dump_json(tool) for tool in Prompt(tools=list(recorded.get("tools") or ())).as_read().tools)
    after = Counter(dump_json(tool) for tool in Prompt(tools=list(sent.get("tools") or ())).as_read().tools)
    return before <= after


def _changes_thinking(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Whether thinking was changed or added, or removed from a last model turn that waits for a tool.

    Thinking in other turns may be removed, because the API itself removes it.
    """
    old, new = (_find_waiting_turn(messages) for messages in (before, after))
    is_gone = bool(new and _list_thinking(old) - _list_thinking(new))
    return is_gone or not _list_thinking(after) <= _list_thinking(before)


def _find_waiting_turn(messages: Sequence[Any]) -> list[Any]:
    """Return the model's last turn if it calls a tool."""
    said = [message for message in messages if isinstance(message, Mapping) and message.get("role") == "assistant"]
    return said[-1:] if any(block.get("type") == "tool_use" for block in _list_blocks(said[-1:])) else []


def _list_thinking(messages: Sequence[Any]) -> Counter[str]:
    kinds = ("thinking", "redacted_thinking")
    return Counter(dump_json(block) for block in _list_blocks(messages) if block.get("type") in kinds)


def _count_marks(value: Any) -> int:
    if isinstance(value, Mapping):
        return ("cache_control" in value) + sum(map(_count_marks, value.values()))
    return sum(map(_count_marks, value)) if isinstance(value, list) else 0
