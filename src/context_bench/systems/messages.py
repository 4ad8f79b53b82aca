"""Systems that edit the messages of a request: your own functions, and the history policies of agents.

A policy is a plain function `f(messages)` that returns the messages to send and does not change its argument. The
policies here read messages of OpenAI's chat completions and of Anthropic, and items of OpenAI's Responses API, so that
recorded requests need no conversion. They keep each tool call with its result.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from context_bench.errors import BadOutput, MissingExtra, UsageError
from context_bench.refs import call_with, check_arguments, check_parameters, check_plain, parse, resolve
from context_bench.systems.adapt import settings_fingerprint
from context_bench.systems.prompts import Message, build_messages
from context_bench.systems.reference import longest
from context_bench.text import dump_json
from context_bench.traits import ReferenceTraits
from context_bench.types import Example
from context_bench.utils.tokens import asks_beside_turns, current_tokenizer, get_tokenizer
from context_bench.wire.prompts import Prompt

Policy = Callable[..., Any]


class MessagesSystem:
    """Applies a function to all messages before they are sent to a model.

    The function gets the messages in the form of OpenAI's chat completions, including the system message, and the tools
    if it has a parameter `tools`. It returns the messages to send, or a dict or object with `messages` and, if changed,
    `tools`.

    Args:
        function: The function, or a reference to one, such as `my_file.py:edit`.
        name: The function's name by default.
        framing: Where the context goes if the example has no `framing` and is not a conversation: "system" (the
            default), "user" or "tool".
    """

    __context_bench_reference__: ReferenceTraits | None = ReferenceTraits(argument="function", verbatim=True)
    reads_gold = False
    reads_any_api = False
    """Whether the function reads messages of all APIs, not only of chat completions."""

    def __init__(self, function: Policy | str, name: str | None = None, framing: str | None = None) -> None:
        self.function = _resolve_function(function) if isinstance(function, str) else function
        if not callable(self.function) or isinstance(self.function, type):
            raise UsageError(f"a messages system needs a function of messages (got a {type(self.function).__name__})")
        check_plain(self.function, "__call__")
        self._takes_tools = _takes_tools(self.function)
        called = partial(self.function, tools=()) if self._takes_tools else self.function
        check_arguments(called, 1, "it must take one argument, the messages, and optionally `tools`")
        self.name = name or str(getattr(self.function, "__name__", type(self.function).__name__))
        self.framing = framing

    @property
    def fingerprint(self) -> str | None:
        """The function, the framing, and the tokenizer for policies."""
        tokenizer = current_tokenizer()
        counted_by = tokenizer if isinstance(tokenizer, str) else id(tokenizer)
        return settings_fingerprint("messages/1", self.function, framing=self.framing, tokenizer=counted_by)

    def edit(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> tuple[list[Message], list[Any]]:
        """Return the edited messages and tools, without changing the given messages and tools."""
        more = {"tools": copy.deepcopy(list(tools))} if self._takes_tools else {}
        made = self.function(copy.deepcopy(list(messages)), **more)
        edited, left = (made, None) if isinstance(made, list) else (_read(made, "messages"), _read(made, "tools"))
        if not isinstance(edited, list | tuple) or not all(map(_is_message, edited)):
            given = "a list with other items" if isinstance(made, list) else f"a {type(made).__name__}"
            raise BadOutput(f"{self.name} returned {given}: return a list of messages, or a dict that has `messages`")
        return [dict(each) for each in edited], list(tools if left is None else left)

    def process(self, example: Example) -> Example:
        """Return the edited conversation, with its text as the context."""
        framed = {"framing": self.framing, **example} if self.framing else example
        sent, tools = build_messages(framed), list(example.get("tools") or ())
        messages, left = self.edit(sent, tools)
        same = messages == sent and "context" in example
        made: Example = {"context": example["context"] if same else "\n\n".join(Prompt(messages=messages).texts())}
        if left != tools:
            made["tools"] = left
        if messages == sent:
            return made
        made["turns"] = messages
        # The messages contain the question already, unless it was never one of them.
        if "question" in example and not (example.get("turns") and asks_beside_turns(example)):
            made["question"] = ""
        if "choices" in example and not example.get("turns"):
            made["choices"] = []
        return made


def _resolve_function(text: str) -> Any:
    """Return the function of a reference; a class is instantiated with the reference's parameters."""
    refs = parse("system", text)
    if len(refs) > 1:
        raise UsageError(f"'messages:{text}': a sweep is not supported here: pass one --system for each value")
    found = resolve("system", refs[0])
    if isinstance(found, type):
        return call_with(found, refs[0])
    parameters = check_parameters(found, refs[0], given=1) if callable(found) else {}
    return partial(found, **parameters) if parameters else found


def _takes_tools(function: Any) -> bool:
    try:
        return "tools" in inspect.signature(function).parameters
    except ValueError:  # a builtin without a signature
        return False


def _read(made: Any, key: str) -> Any:
    return made.get(key) if isinstance(made, Mapping) else getattr(made, key, None)


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and ("role" in value or "type" in value)


# --- the parts of a conversation, in the form of any API


def _list_parts(messages: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """List the messages, each followed by its content blocks."""
    for message in messages:
        yield message
        content = message.get("content")
        yield from (block for block in content if isinstance(block, Mapping)) if isinstance(content, list) else ()


def _list_calls(messages: Iterable[Any]) -> dict[Any, str]:
    """Map the ids of tool calls to texts with their names and arguments."""
    calls: dict[Any, str] = {}
    for part in _list_parts(messages):
        for call in part.get("tool_calls") or ():
            calls[call.get("id")] = _describe_call(call.get("function") or call.get("custom") or {})
        kind = str(part.get("type") or "")
        if kind == "tool_use" or (kind.endswith("_call") and "call_id" in part):
            calls[part.get("call_id", part.get("id"))] = _describe_call(part)
    return calls


def _describe_call(call: Mapping[str, Any]) -> str:
    given = call.get("arguments", call.get("input"))
    return f"{call.get('name')} {given if isinstance(given, str) else dump_json(given)}"


def _find_result_fields(part: Any) -> tuple[str, str] | None:
    """Return the names of the two fields with a tool result's text and call id; None for other parts."""
    if not isinstance(part, Mapping):
        return None
    if part.get("role") == "tool":
        return "content", "tool_call_id"
    kind = str(part.get("type") or "")
    if kind == "tool_result":
        return "content", "tool_use_id"
    return ("output", "call_id") if kind.endswith("call_output") else None


def _list_results(messages: Iterable[Any]) -> list[Any]:
    """List the ids of the calls whose results are in the messages."""
    found = [(part, fields) for part in _list_parts(messages) if (fields := _find_result_fields(part))]
    return [part.get(identity) for part, (_, identity) in found]


def _edit_results(messages: Iterable[Any], edit: Callable[[Any, Any], Any]) -> list[Any]:
    """Edit tool results: `edit(content, id)` returns the new content, or None to keep the old one."""
    return [_edit_part(message, edit) for message in messages]


def _edit_part(part: Any, edit: Callable[[Any, Any], Any]) -> Any:
    fields = _find_result_fields(part)
    if fields is not None:
        new = edit(part.get(fields[0]), part.get(fields[1]))
        return part if new is None else {**part, fields[0]: new}
    content = part.get("content") if isinstance(part, Mapping) else None
    if isinstance(content, list) and any(map(_find_result_fields, content)):
        return {**part, "content": [_edit_part(block, edit) for block in content]}
    return part


def _read_content(content: Any) -> str | None:
    """Return the text of a tool result; None if it contains anything else, such as an image."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [None]
    texts = [block.get("text") if isinstance(block, Mapping) else None for block in blocks]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if len(known) == len(texts) else None


# --- policies

CLEARED = "[tool result cleared]"


def clear_tool_results(messages: Sequence[Message], last: int = 3) -> list[Message]:
    """Replace all tool results except the newest `last` by a note."""
    left = len(_list_results(messages)) - last

    def clear(_content: Any, _identity: Any) -> str | None:
        nonlocal left
        left -= 1
        return CLEARED if left >= 0 else None

    return _edit_results(messages, clear)


def dedupe_reads(messages: Sequence[Message]) -> list[Message]:
    """Replace a tool result that repeats an earlier result, word for word, by a reference to that result."""
    calls, seen = _list_calls(messages), dict[str, Any]()

    def refer(content: Any, identity: Any) -> str | None:
        text = content if isinstance(content, str) else dump_json(content)
        first = seen.setdefault(text, identity)
        note = f"[same result as above: {calls.get(first, 'an earlier call')}]"
        return note if first != identity and len(note) < len(text) else None

    return _edit_results(messages, refer)


def truncate_tool_results(messages: Sequence[Message], tokens: int = 500) -> list[Message]:
    """Keep the first `tokens` tokens of each tool result, and add a note with the number of tokens cut."""
    count = get_tokenizer()

    def cut(content: Any, _identity: Any) -> str | None:
        text = _read_content(content)
        size = 0 if text is None else count(text)
        if text is None or size <= tokens:
            return None
        kept = longest(text, tokens, lambda text, length: text[:length])
        shorter = f"{kept}\n[{size - count(kept)} tokens cut]"
        return shorter if count(shorter) < size else None

    return _edit_results(messages, cut)


def keep_last_turns(messages: Sequence[Message], turns: int = 8) -> list[Message]:
    """Keep the newest turns, all system messages, and the task: all messages before the first turn.

    A turn is an assistant message with its tool calls, their results, and the user message that it answers. Messages
    after the newest turn are kept. If a cut would separate a call from its result, older turns are kept too, back to
    the call.
    """
    kinds = [_find_kind(message) for message in messages]
    first = kinds.index("assistant") if "assistant" in kinds else len(kinds)
    starts = []
    for place in range(first, len(kinds)):
        if kinds[place] == "assistant" and (place == first or kinds[place - 1] != "assistant"):
            start = place
            while start > first and kinds[start - 1] == "user":
                start -= 1
            starts.append(start)
    index = len(starts) - turns
    while index > 0 and _is_pair_cut(messages, starts[index]):
        index -= 1
    if index <= 0:
        return list(messages)
    dropped = zip(messages[first : starts[index]], kinds[first : starts[index]])
    kept = [message for message, kind in dropped if kind == "system"]
    before = messages[starts[index] - 1]
    if before.get("role") == "user" and isinstance(before.get("content"), list):  # Anthropic: text after results
        said = [block for block in before["content"] if _find_result_fields(block) is None]
        kept += [{**before, "content": said}] if said else []
    return [*messages[:first], *kept, *messages[starts[index] :]]


def _find_kind(message: Mapping[str, Any]) -> str:
    """Return the kind of a message: "system", "user", "result" (of a tool) or "assistant"."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if any(map(_find_result_fields, [message, *blocks])):
        return "result"
    role = message.get("role")
    return "system" if role in ("system", "developer") else "user" if role == "user" else "assistant"


def _is_pair_cut(messages: Sequence[Message], place: int) -> bool:
    """Whether a cut at this index would separate a tool's result from its call."""
    return not {*_list_results(messages[place:])}.isdisjoint(_list_calls(messages[:place]))


class _BuiltIn(MessagesSystem):
    """A policy of the package; a reference to such a policy has only parameters."""

    __context_bench_reference__ = None
    reads_any_api = True


class ClearToolResults(_BuiltIn):
    """Replaces all tool results except the newest `last` by a note."""

    def __init__(self, last: int = 3) -> None:
        _check_whole(least=0, last=last)
        super().__init__(partial(clear_tool_results, last=last), "clear-tool-results")


class KeepLast(_BuiltIn):
    """Keeps the task and the newest turns; calls stay with their results."""

    def __init__(self, turns: int = 8) -> None:
        _check_whole(least=1, turns=turns)
        super().__init__(partial(keep_last_turns, turns=turns), "keep-last")


class DedupeReads(_BuiltIn):
    """Replaces a tool result that repeats an earlier result by a reference to that result."""

    def __init__(self) -> None:
        super().__init__(dedupe_reads, "dedupe-reads")


class TruncateToolResults(_BuiltIn):
    """Keeps the first `tokens` tokens of each tool result."""

    def __init__(self, tokens: int = 500) -> None:
        _check_whole(least=0, tokens=tokens)
        super().__init__(partial(truncate_tool_results, tokens=tokens), "truncate-tool-results")


def _check_whole(least: int, **values: int) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name} must be a whole number of at least {least} (got {value!r})")


class LangChainContextEditing(_BuiltIn):
    """Runs LangChain's ContextEditingMiddleware, with one ClearToolUsesEdit.

    Args:
        trigger: Clear results above this number of tokens, by LangChain's estimate without system messages.
        keep: The number of newest results to keep.
        clear_at_least: The number of tokens to clear.
        clear_tool_inputs: Also clear the arguments of those calls.
        placeholder: The text that replaces a result.
    """

    reads_any_api = False

    def __init__(
        self,
        trigger: int = 100_000,
        keep: int = 3,
        clear_at_least: int = 0,
        clear_tool_inputs: bool = False,
        placeholder: str = "[cleared]",
    ) -> None:
        try:
            from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
        except ImportError as error:
            raise MissingExtra("langchain-context-editing", "langchain") from error
        _check_whole(least=0, trigger=trigger, keep=keep, clear_at_least=clear_at_least)
        self._settings: dict[str, Any] = {
            "trigger": trigger,
            "keep": keep,
            "clear_at_least": clear_at_least,
            "clear_tool_inputs": clear_tool_inputs,
            "placeholder": placeholder,
        }
        middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(**self._settings)])
        super().__init__(partial(apply_middleware, middleware=middleware), "langchain-context-editing")

    @property
    def fingerprint(self) -> str | None:
        """The version of LangChain, and the settings."""
        from importlib.metadata import version

        return settings_fingerprint("langchain-context-editing/1", None, version=version("langchain"), **self._settings)


def apply_middleware(messages: Sequence[Message], middleware: Any) -> list[Message]:
    """Return the messages that a LangChain middleware passes to its model.

    A middleware may change contents and calls, but must not add or remove messages.
    """
    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, convert_to_messages, convert_to_openai_messages

    places = [place for place, message in enumerate(messages) if _find_kind(message) != "system"]
    given = convert_to_messages([messages[place] for place in places])
    handed: list[Any] = []

    def model(request: Any) -> Any:
        handed.extend(request.messages)
        return ModelResponse(result=[AIMessage("")])

    middleware.wrap_model_call(ModelRequest(model=None, messages=list(given)), model)
    if len(handed) != len(given):
        raise BadOutput(f"{type(middleware).__name__} passed on {len(handed)} messages instead of {len(given)}")
    edited = list(messages)
    for place, before, after in zip(places, convert_to_openai_messages(given), convert_to_openai_messages(handed)):
        if after != before:
            edited[place] = {
                **messages[place],
                **{key: after[key] for key in ("content", "tool_calls") if key in after},
            }
    return edited
