"""Diff of each request: sent to a system, and forwarded by that system to the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from context_bench.text import dump_json
from context_bench.traffic.exchanges import Exchange, read_exchanges
from context_bench.traffic.text_diff import Segment, diff_texts
from context_bench.wire.prompts import Prompt


class DiffPart(NamedTuple):
    """One message, or another part of a prompt, before and after."""

    title: str
    segments: list[Segment]


def diff_prompts(before: Prompt, after: Prompt) -> list[DiffPart]:
    """Compare each part of two prompts; prompts with the same meaning for a model show no change.

    Messages are paired by their order. If the number of messages changed, no pairing is certain, so the text of all
    messages is compared as one text.
    """
    before, after = before.as_read(), after.as_read()
    old, new = before.messages_and_system(), after.messages_and_system()
    if len(old) == len(new):
        parts = [_diff_messages(number, len(old), *pair) for number, pair in enumerate(zip(old, new), 1)]
    else:
        title = f"all messages ({len(old)} sent, {len(new)} passed on)"
        parts = [DiffPart(title, diff_texts(*("\n\n".join(map(_join_texts, side)) for side in (old, new))))]
    if before.tools or after.tools:
        parts.append(DiffPart("tools", diff_texts(_list_tools(before.tools), _list_tools(after.tools))))
    return parts


def _diff_messages(number: int, total: int, old: Any, new: Any) -> DiffPart:
    """Compare the texts of two messages; if only other fields differ, compare the messages as JSON."""
    title = f"message {number} of {total}: {_read_role(old)}"
    if _read_role(old) != _read_role(new):
        title += f", passed on as {_read_role(new)}"
    texts = _join_texts(old), _join_texts(new)
    if texts[0] == texts[1] and _drop_role(old) != _drop_role(new):
        texts = dump_json(old), dump_json(new)
    return DiffPart(title, diff_texts(*texts))


def _read_role(message: Any) -> str:
    return str(message.get("role")) if isinstance(message, dict) else "?"


def _join_texts(message: Any) -> str:
    return "\n".join(filter(None, Prompt(messages=[message]).texts()))


def _drop_role(message: Any) -> Any:
    return {**message, "role": None} if isinstance(message, dict) else message


def _list_tools(tools: Iterable[Any]) -> str:
    return "".join(dump_json(tool) + "\n" for tool in tools)


class PassedOn(NamedTuple):
    """A sent request compared with a forwarded one; `parts` is empty if the title is enough."""

    title: str
    parts: list[DiffPart]


def compare_passed_on(example: Mapping[str, Any], processed: Mapping[str, Any] | None) -> list[PassedOn]:
    """Compare an example with a system's output or, with a tap, with each forwarded request.

    `processed` is None if no answer is stored.
    """
    if processed is None:
        return [PassedOn("nothing to compare: no answer is stored", [])]
    if processed.get("tapped"):
        exchanges = read_exchanges(processed["tapped"])
        return [
            each
            for number, exchange in enumerate(exchanges, 1)
            for each in _compare_tapped(exchange, f"request {number} of {len(exchanges)}")
        ]
    return _compare_contexts(example, processed)


def _compare_tapped(exchange: Exchange, name: str) -> Iterator[PassedOn]:
    """Compare a sent request with each resulting call."""
    sent, calls = exchange.prompt or Prompt(), exchange.calls
    seen: dict[str, int] = {}
    if not calls:
        why = "its request at the tap is unknown" if exchange.unmatched else "nothing was passed on"
        yield PassedOn(f"{name}: {why}", [])
    for number, call in enumerate(calls, 1):
        title = f"{name}, call {number} of {len(calls)}, {f'status {call.status}' if call.status else 'not answered'}"
        if call.body in seen:
            yield PassedOn(f"{title}: same as call {seen[call.body]}", [])
        elif call.prompt is None:
            why = "continues a reply that the tap did not see" if call.conversation is None else "holds no messages"
            yield PassedOn(f"{title}: {call.path} {why}", [])
        else:
            parts = diff_prompts(sent, call.prompt)
            if changes := [each for each in exchange.list_changes(call) if each != "tools"]:
                parts.append(DiffPart("settings", diff_texts("", "\n".join(changes))))
            hidden = [f"{prompt.count_opaque()} encrypted or stored items" for prompt in (sent, call.prompt)]
            if any(not each.startswith("0 ") for each in hidden):
                parts.append(DiffPart("items that only the API can read", diff_texts(*hidden)))
            if call.edits:
                edits = "\n".join(", ".join(f"{key}: {edit[key]}" for key in edit) for edit in call.edits)
                parts.append(DiffPart("edited by the API before the model read it", diff_texts("", edits)))
            yield PassedOn(title if len(calls) > 1 else name, parts)
        seen.setdefault(call.body, number)


def _compare_contexts(example: Mapping[str, Any], processed: Mapping[str, Any]) -> list[PassedOn]:
    """Compare the context or conversation with the output of a compressor in this process."""
    context, turns = processed.get("context"), processed.get("turns")
    if isinstance(turns, list) and turns != example.get("turns"):
        return [PassedOn("", diff_prompts(Prompt(messages=example.get("turns") or []), Prompt(messages=turns)))]
    if isinstance(context, str):
        return [PassedOn("", [DiffPart("context", diff_texts(str(example.get("context") or ""), context))])]
    return [
        PassedOn(
            "nothing to compare: the system returned an answer only; --tap shows the requests that it passes on", []
        )
    ]
