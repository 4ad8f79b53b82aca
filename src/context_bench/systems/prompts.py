"""From an example to the messages that a chat model is sent.

One place decides how a context, a question, its options and the dataset's instruction are put to a
model, so that every endpoint is asked the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.errors import UsageError
from context_bench.types import Example

__all__ = [
    "Message",
    "build_messages",
    "is_open",
    "join_documents",
    "merge",
    "open_turns",
    "task_text",
    "with_context",
]

Message = dict[str, Any]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FRAMINGS = ("system", "user", "tool")
_TOOL = "read_context"


def task_text(example: Mapping[str, Any]) -> str:
    """Write what is asked: the question or prompt, its options by letter, and the form of the answer."""
    question = str(example.get("question") or example.get("prompt") or "")
    choices, instruction = example.get("choices"), example.get("instruction")
    if not choices and not instruction:
        return question
    options = "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices or ()))
    return "\n\n".join(part for part in (question, options, str(instruction or "")) if part)


def build_messages(example: Example, system_prompt: str | None = None) -> list[Message]:
    """Build the messages for one example, as its `framing` says.

    `system` (the default) puts the context into the system message, `user` before the question, and
    `tool` into a tool's result, which is what agent proxies compress. A conversation in `turns` is sent
    as it is.
    """
    opening: list[Message] = [{"role": "system", "content": system_prompt}] if system_prompt else []
    if example.get("turns"):
        return opening + [dict(turn) for turn in example["turns"]]
    context, task = example.get("context", ""), task_text(example)
    framing = example.get("framing", "system")
    if framing not in _FRAMINGS:
        raise UsageError(f"framing must be one of {', '.join(_FRAMINGS)} (got {framing!r})")
    if not context:
        return [*opening, _make_user_message(task)]
    if framing == "user" or not task:
        return [*opening, _make_user_message("\n\n".join(part for part in (context, task) if part))]
    if framing == "tool":
        return [*opening, _make_user_message(task), *_make_tool_result(context)]
    parts = (system_prompt, context) if system_prompt else (context,)
    return [{"role": "system", "content": "\n\n".join(parts)}, _make_user_message(task)]


def _make_user_message(text: str) -> Message:
    return {"role": "user", "content": text}


def _make_tool_result(context: str) -> list[Message]:
    call = {"id": "call_1", "type": "function", "function": {"name": _TOOL, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": context},
    ]


def open_turns(turns: Sequence[Mapping[str, Any]]) -> int:
    """Count the user turns of a conversation that still wait for their reply."""
    return sum(is_open(turn, after) for turn, after in zip(turns, [*turns[1:], None]))


def is_open(turn: Mapping[str, Any], after: Mapping[str, Any] | None) -> bool:
    """Whether a turn of the user has no reply yet."""
    return turn.get("role") == "user" and (after is None or after.get("role") != "assistant")


def merge(example: Example, processed: Mapping[str, Any]) -> Example:
    """Make the example that a model would be sent after a system changed it.

    What the system returned replaces what was there. A new context stands for the conversation too,
    unless the system returned that as well.
    """
    merged = {**example, **processed}
    untouched = "turns" in example and merged["turns"] == example["turns"]
    if untouched and processed.get("context") not in (None, example.get("context")):
        del merged["turns"]
    return merged


def with_context(processed: Example, example: Mapping[str, Any]) -> Example:
    """Return what a system returned, with the context that its documents make unless it chose one beside them."""
    documents, context = processed.get("documents"), processed.get("context")
    chosen = context is not None and (context != example.get("context") or documents == example.get("documents"))
    if documents is None or chosen:
        return processed
    return {**processed, "context": join_documents(documents)}


def join_documents(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the context that documents make: their texts in order."""
    return "\n\n".join(str(item.get("text", "")) for item in documents)
