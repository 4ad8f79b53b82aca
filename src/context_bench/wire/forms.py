"""List of all API forms, and readers of traffic in an unknown form.

To add an API, write a module that implements `ApiForm`, and add it to `FORMS`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import orjson

from context_bench.errors import UnknownName
from context_bench.utils.tokens import get_tokenizer, read_token_count
from context_bench.wire.anthropic_messages import ANTHROPIC_MESSAGES
from context_bench.wire.events import DONE, read_events, scan_events
from context_bench.wire.form import Answer, ApiForm, Completion, Demand, Recorded, Reply, StreamedReply
from context_bench.wire.openai_chat import OPENAI_CHAT
from context_bench.wire.openai_responses import OPENAI_RESPONSES
from context_bench.wire.prompts import Prompt, dump_body, normalize, normalize_json, read_document

FORMS: list[ApiForm] = [OPENAI_CHAT, ANTHROPIC_MESSAGES, OPENAI_RESPONSES]
"""The forms in the order of `--api`'s choices. If several forms can read a document, the last of them is used."""

_T = TypeVar("_T")

Bill = dict[str, Any]
"""The counts that determine the price of a request, and `model` if it differs from the requested one."""

_BILLED = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_creation_tokens", "cache_creation_1h_tokens")
_COUNTING = ("/count_tokens", "/input_tokens")
_OTHER_SERVICES = (*_COUNTING, "/embeddings", "/moderations", "/files", "/tokenize", "/rerank", "/cancel")
"""Path endings of requests that do not ask a model for an answer."""

_IGNORED_FIELDS = {"stream", "stream_options", "user", "metadata", "store", "prompt_cache_key", "safety_identifier"}
_IGNORED_FIELDS |= {"include", "prompt_cache_retention", "prompt_cache_options"}
"""Request fields that do not change the model's output."""

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


# --- which form


def get_form(name: str) -> ApiForm:
    """Return the form with this name."""
    for form in FORMS:
        if form.name == name:
            return form
    raise UnknownName("API", name, (form.name for form in FORMS))


def find_form(path: str) -> ApiForm | None:
    """Return the API of a path; None if the path is not for model requests."""
    return next((form for form in FORMS if path == f"/v1{form.route}"), None)


def form_of_route(path: str) -> ApiForm:
    """Return the API of our own request by the end of its path; chat completions by default."""
    return next((form for form in FORMS if path.endswith(form.route)), OPENAI_CHAT)


def asks_model(path: str) -> bool:
    """Whether requests to a path ask a model for an answer, rather than for token counts or embeddings."""
    return not path.endswith(_OTHER_SERVICES)


# --- requests


def holds_prompt(path: str) -> bool:
    """Whether requests to a path may contain a prompt, to be answered or counted."""
    return path.endswith(_COUNTING) or (asks_model(path) and not path.endswith(("/images/generations", "/speech")))


def read_prompt(body: str | bytes | Mapping[str, Any]) -> Prompt | None:
    """Read the prompt in a request's body; None if it has none."""
    document = body if isinstance(body, Mapping) else read_document(body)
    return _ask_each(lambda form: form.read_prompt(document))


def expand_request(
    document: Mapping[str, Any], find_exchange: Callable[[str], Recorded | None]
) -> Mapping[str, Any] | None:
    """Add the server-stored conversation that a request continues; None if it is unknown.

    Args:
        document: The request.
        find_exchange: Finds an earlier request and its reply by the id of the reply.
    """
    expanded: Mapping[str, Any] | None = document
    for form in FORMS:
        expanded = form.expand(expanded, find_exchange) if expanded is not None else None
    return expanded


def find_demand(document: Mapping[str, Any]) -> Demand | None:
    """Return the structure that a request demands of its reply; None without a demand."""
    return _ask_each(lambda form: form.find_demand(document))


def read_settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normalized settings of a request: model, limit, temperature and everything else except the prompt.

    Null equals absent, and all names of the reply limit become `max_tokens`. A provider before a model's name
    (`openai/gpt-4o`) is addressed to a gateway, and is removed.
    """
    left_out = _IGNORED_FIELDS.union(*(form.prompt_fields for form in FORMS))
    settings = {key: value for key, value in document.items() if value is not None and key not in left_out}
    for name in sorted(_list_limit_fields() - {"max_tokens"}):
        if name in settings:
            settings["max_tokens"] = settings.pop(name)
    if isinstance(settings.get("model"), str):
        settings["model"] = settings["model"].rpartition("/")[2]
    normalized: dict[str, Any] = normalize(settings)
    return normalized


def read_longest_reply(document: Mapping[str, Any]) -> int | None:
    """Return the reply limit of a request in tokens, the largest if it has several; None without a limit."""
    told = [read_token_count(document.get(name)) for name in _list_limit_fields()]
    return max((limit for limit in told if limit is not None), default=None)


def _list_limit_fields() -> set[str]:
    return {name for form in FORMS for name in form.limit_fields}


def _ask_each(read: Callable[[ApiForm], _T | None]) -> _T | None:
    return next((found for form in reversed(FORMS) if (found := read(form)) is not None), None)


# --- recorded replies, which may be cut off


def read_completion(reply: str) -> Completion | None:
    """Read the completion in the body of a reply, plain or streamed; None without a completion."""
    if reply.lstrip().startswith("{"):
        return read_document_completion(read_document(reply))
    stream = _scan_stream(reply)
    if not stream.texts and not stream.calls:
        return None
    calls = [(call.name, normalize_json(call.arguments or "{}")) for call in stream.calls.values()]
    return Completion(stream.id, ["".join(parts) for parts in stream.texts.values()], calls)


def read_recorded_reply(reply: str) -> Mapping[str, Any]:
    """Read the document of a recorded reply, or the one that ends its stream; empty if there is none."""
    return read_document(reply) if reply.lstrip().startswith("{") else _scan_stream(reply).whole or {}


def read_edits(reply: str) -> list[dict[str, Any]]:
    """List the API's own edits of the conversation before the model read it, as reported in the reply."""
    documents = [read_document(reply)] if reply.lstrip().startswith("{") else scan_events(reply)
    return [edit for document in documents for form in FORMS for edit in form.list_edits(document)]


def _scan_stream(reply: str) -> StreamedReply:
    stream = StreamedReply()
    for event in scan_events(reply):
        with suppress(AttributeError, TypeError, KeyError):
            any(form.add_event(stream, event) for form in FORMS)
    return stream


def read_document_completion(document: Mapping[str, Any]) -> Completion | None:
    """Read the completion in a document; None without a completion."""
    return _ask_each(lambda form: form.read_completion(document))


def read_usage(usage: Any) -> dict[str, Any]:
    """Return the token counts of a usage in any form; empty for anything else."""
    return next((counts for form in reversed(FORMS) if (counts := form.read_usage(usage))), {})


def read_bill(reply: str) -> Bill:
    """Return the billed counts in a reply; in a stream, they may be spread over several events."""
    reply = reply.removeprefix("\ufeff")  # some servers send a byte order mark first
    documents = [read_document(reply)] if reply.lstrip().startswith("{") else scan_events(reply, '"usage"')
    merged: dict[str, Any] = {}
    for usage in (form.find_usage(document) for document in documents for form in FORMS):
        for name, value in usage.items() if isinstance(usage, Mapping) else ():
            before = merged.get(name)
            grows = isinstance(before, int) and isinstance(value, int)
            if value is not None:
                merged[name] = max(before, value) if grows else value
    told = read_usage(merged)
    return {name: told[name] for name in _BILLED if name in told}


# --- streams that our own client reads


_MAX_TOKEN_BYTES = 256 * 1024  # longer lines contain no first token, and may be whole replies


class FirstToken:
    """Detector of the first token in a passing stream: some APIs open a stream long before it."""

    def __init__(self) -> None:
        self._stream = StreamedReply()
        self._rest = b""

    def came_with(self, chunk: bytes) -> bool:
        """Take the next chunk, and return whether a token has arrived so far."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _MAX_TOKEN_BYTES:
            self._rest = b""
        for line in lines:
            if line.startswith(b"data:") and not self._stream.spoke:
                with suppress(ValueError, AttributeError, TypeError, KeyError):
                    event = orjson.loads(line[5:])
                    any(form.add_event(self._stream, event) for form in FORMS)
        return self._stream.spoke


class StreamedBody(Protocol):
    """The body of a reply, whole and as chunks with their arrival times."""

    body: bytes
    chunks: list[tuple[float, bytes]]


def read_stream(form: ApiForm, reply: StreamedBody) -> Any:
    """Read a stream as one reply of its API; if the server did not stream, return the body's JSON.

    `timings_of_stream` holds the seconds to the first token, and the mean between tokens.

    Raises:
        ValueError: The stream is malformed, ends before the reply does, or reports an error.
    """
    if reply.body.lstrip().startswith(b"{"):
        return orjson.loads(reply.body)
    stream = StreamedReply()
    moments: list[float] = []
    for moment, event in read_events(reply.chunks):
        if event == DONE:
            stream.ended = True
            continue
        stream.spoke = False
        try:
            form.add_event(stream, event)
            if error := event.get("error") or stream.error:
                raise ValueError(f"the server reports an error: {error}")
        except (AttributeError, TypeError, KeyError):
            raise ValueError("an event is not a chunk of a completion") from None
        if stream.spoke:
            moments.append(moment)
    if not stream.finish and not stream.ended:
        raise ValueError("it ends before the reply does")
    timings = {"time_to_first_token": moments[0]} if moments else {}
    if len(moments) > 1:
        timings["inter_token_seconds"] = (moments[-1] - moments[0]) / (len(moments) - 1)
    return {**form.join_stream(stream), "timings_of_stream": timings}


# --- our answers


def make_reply(
    answer: Answer,
    document: Mapping[str, Any],
    *,
    body: bytes | None = None,
    count_prompt: Callable[[], int] | None = None,
) -> Reply:
    """Combine an answer with its request, for a form to write.

    Equal requests and answers give equal bytes: ids are derived from the request, and contain no time.

    Args:
        answer: The answer.
        document: The request.
        body: The received bytes of the request, for the id; None writes the document again.
        count_prompt: Returns the tokens of the request, for callers that have counted them already.
    """
    usage = answer.usage
    if usage is None:
        count, prompt = get_tokenizer(), None if count_prompt else read_prompt(document)
        written = [answer.text, *answer.choices, *(call.arguments for call in answer.tool_calls)]
        read = count_prompt() if count_prompt else prompt.tokens(count) if prompt else 0
        usage = read, sum(count(text) for text in written if text)
    identity = hashlib.blake2b(dump_body(document) if body is None else body, digest_size=12).hexdigest()
    finish = answer.finish or ("tool_calls" if answer.tool_calls else "stop")
    return Reply(answer, document, identity, usage, finish)


def make_error(status: int, message: str, form: ApiForm | None) -> dict[str, Any]:
    """Make the body of an error in the given form, by default OpenAI's."""
    kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return (form or OPENAI_CHAT).write_error(kind, message)
