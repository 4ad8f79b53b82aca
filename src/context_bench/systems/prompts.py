"""Turn an example into messages, answer its open turns, and mark echoed fields of an answer.

`process()` returns the example with its response, for scripts that call it directly. Echoed fields are marked, because
a run must not count them as output of the system.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from context_bench.errors import BadOutput, SystemFailure, UsageError
from context_bench.refs import check_awaitable
from context_bench.traits import can_await_turns
from context_bench.types import Example

Message = dict[str, Any]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FRAMINGS = ("system", "user", "tool")
_TOOL = "read_context"


def task_text(example: Mapping[str, Any]) -> str:
    """Write the task: the question or prompt, its options by letter, and the form of the answer."""
    question = str(example.get("question") or example.get("prompt") or "")
    choices, instruction = example.get("choices"), example.get("instruction")
    if not choices and not instruction:
        return question
    options = "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices or ()))
    return "\n\n".join(part for part in (question, options, str(instruction or "")) if part)


def build_messages(example: Example, system_prompt: str | None = None) -> list[Message]:
    """Build the messages for one example by its `framing`.

    `system` (the default) puts the context into the system message, `user` before the question, and
    `tool` into a tool's result, which agent proxies compress. A conversation in `turns` is sent
    unchanged.
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
    """Count the user turns of a conversation that still wait for a reply."""
    return sum(is_open(turn, after) for turn, after in zip(turns, [*turns[1:], None]))


def is_open(turn: Mapping[str, Any], after: Mapping[str, Any] | None) -> bool:
    """Whether a turn of the user has no reply yet."""
    return turn.get("role") == "user" and (after is None or after.get("role") != "assistant")


def merge(example: Example, processed: Mapping[str, Any]) -> Example:
    """Merge a system's output into the example for the model.

    Returned fields replace the original ones. A new context replaces the conversation too, unless
    the system also returned a conversation.
    """
    merged = {**example, **processed}
    untouched = "turns" in example and merged["turns"] == example["turns"]
    if untouched and processed.get("context") not in (None, example.get("context")):
        del merged["turns"]
    return merged


def with_context(processed: Example, example: Mapping[str, Any]) -> Example:
    """Add the context of returned documents to a result, unless the system chose a context."""
    documents, context = processed.get("documents"), processed.get("context")
    chosen = context is not None and (context != example.get("context") or documents == example.get("documents"))
    if documents is None or chosen:
        return processed
    return {**processed, "context": join_documents(documents)}


def join_documents(documents: Sequence[Mapping[str, Any]]) -> str:
    """Join the texts of documents, in order, to a context."""
    return "\n\n".join(str(item.get("text", "")) for item in documents)


_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")


class Echo(dict[str, Any]):
    """The fields of an example, overlaid with an answer; `api_usage` has the tokens that the server reported."""

    def __init__(self, example: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        super().__init__({**example, **answer})
        self._echoed = {key: value for key, value in example.items() if key not in answer}
        usage = {key: answer["metadata"][key] for key in _USAGE if key in answer.get("metadata", {})}
        if usage:
            self["api_usage"] = self._echoed["api_usage"] = usage

    def answer(self) -> Example:
        """Return the fields that are not echoed: the answer, and changes by the caller."""
        return {key: value for key, value in self.items() if self._echoed.get(key, self) is not value}


def drop_echo(result: Any) -> Any:
    """Return the fields that a system made itself; a result without echo stays unchanged."""
    return result.answer() if isinstance(result, Echo) else result


_SUMS = (
    *("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "cache_creation_tokens"),
    *("cache_creation_1h_tokens", "reasoning_tokens", "attempts", "timed_out_attempts", "waited", "request_seconds"),
)
_BILLED = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_creation_tokens", "cache_creation_1h_tokens")
"""The token counts that determine the price of a request."""


def has_open_turns(example: Mapping[str, Any]) -> bool:
    """Whether an example asks for several replies."""
    turns = example.get("turns")
    return open_turns(turns) > 1 if turns else False


def ask(system: Any, example: Example, original: Example | None = None) -> Awaitable[Any]:
    """Ask an asynchronous system for one reply, or for a reply to each open turn if the system can do that.

    Pass the `original` example if a compressor may have dropped replies, because turns that had a reply are not open.
    """
    if has_open_turns(original or example) and has_open_turns(example) and can_await_turns(system):
        return _ask_each(system, example["turns"])
    reply: Awaitable[Any] = check_awaitable(system.aprocess(example), system, "aprocess")
    return reply


async def _ask_each(system: Any, turns: Sequence[Message]) -> Example:
    return in_one(await check_awaitable(system.aprocess_conversation(turns), system, "aprocess_conversation"))


async def answer_turns(reply_to: Callable[[Example], Awaitable[Example]], turns: Sequence[Message]) -> list[Message]:
    """Get a reply for each open user turn, one by one."""
    sent: list[Message] = []
    replies: list[Message] = []
    for turn, after in zip(turns, [*turns[1:], None]):
        sent.append(dict(turn))
        if is_open(turn, after):
            try:
                result = await reply_to({"turns": sent})
            except SystemFailure as error:
                _add_numbers(error.metadata, replies)
                raise
            reply = {"role": "assistant", "content": result["response"]}
            sent.append(reply)
            seen = {"tapped": result["tapped"]} if "tapped" in result else {}
            replies.append({**reply, "metadata": result["metadata"], **seen})
    return replies


def list_turn_prompts(turns: Sequence[Message], replies: Sequence[str]) -> list[Example]:
    """List the prompts of `answer_turns` for each open turn, given the replies; a missing reply is empty."""
    left = iter(replies)
    sent: list[Message] = []
    prompts: list[Example] = []
    for turn, after in zip(turns, [*turns[1:], None]):
        sent.append(turn)
        if is_open(turn, after):
            prompts.append({"turns": list(sent)})
            sent.append({"role": "assistant", "content": next(left, "")})
    return prompts


def _add_numbers(total: dict[str, Any], replies: Sequence[Mapping[str, Any]]) -> None:
    """Add the costs of the turns before a failed turn, which were paid for."""
    if replies:
        total["turn_usage"] = [*map(_list_billed, (reply["metadata"] for reply in replies))]
        if own := _list_billed(total):
            total["turn_usage"].append(own)
    for reply in replies:
        for key, value in reply["metadata"].items():
            if key in _SUMS:
                total[key] = total.get(key, 0) + value


def in_one(replies: Sequence[Mapping[str, Any]]) -> Example:
    """Join the replies for all turns into one result: the last reply is the response, and numbers are added up."""
    if not isinstance(replies, list | tuple) or not replies or not all(isinstance(each, Mapping) for each in replies):
        raise BadOutput("process_conversation() must return a list with a message for each user turn")
    metadata: dict[str, Any] = {}
    for reply in replies:
        for key, value in (reply.get("metadata") or {}).items():
            metadata[key] = metadata[key] + value if key in metadata and key in _SUMS else value
    if len(replies) > 1:  # a separate request, whose prompt alone determines its price
        metadata["turn_usage"] = [_list_billed(reply.get("metadata") or {}) for reply in replies]
    contents = [str(reply.get("content") or "") for reply in replies]
    tapped = [exchange for reply in replies for exchange in reply.get("tapped") or ()]
    seen = {"tapped": tapped} if tapped else {}
    return {"response": contents[-1], "turn_responses": contents, "metadata": metadata, **seen}


def _list_billed(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the token counts that determine the price of one turn."""
    return {key: metadata[key] for key in _BILLED if key in metadata}
