"""One system on one example: the size of the request, the call, its time, and its output in a common form.

Every failure becomes an `Outcome` with an error: a failed example is data, not the end of a run.
"""

from __future__ import annotations

import asyncio
import inspect
import sysconfig
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from types import CoroutineType, TracebackType
from typing import Any

from context_bench.core.threads import is_given_up
from context_bench.datasets.example_check import MAX_DEPTH, PLAIN_TYPES, copy_example, find_deep_fields
from context_bench.errors import BadOutput, ContextBenchError, SystemFailure, describe, printable
from context_bench.refs import check_awaitable
from context_bench.systems.prompts import Echo, has_open_turns, in_one, open_turns, with_context
from context_bench.traits import can_answer_turns, can_await_turns, find_judge_request, is_endpoint, system_traits
from context_bench.types import Evaluator, Example, System
from context_bench.utils.tokens import Tokenizer, count_prompt, read_token_count
from context_bench.wire.forms import read_longest_reply, read_prompt, read_usage

_BATCH_SECONDS = 0.001  # seconds of calls in this process after which outcomes are collected

_RESERVED_METADATA = frozenset(
    {"waited", "upstream", "upstream_tokens", "sent_tokens", "cost_usd", "cost_is_estimate", "judge_cost_usd"}
    | {"billed_usage", "embedding_usage", "embedding_cost_usd", "timed_out_attempts", "timed_out_cost_usd"}
    | {"turn_usage", "card_threshold", "group", "weight", "weight_field"}
    | {"downstream_tokens", "untouched", "prompt_savings", "upstream_calls", "extra_upstream_calls", "injected_tools"}
    | {"failed_upstream_calls", "earlier_upstream_calls", "exchanges_without_call", "unmatched_calls"}
    | {"proxy_overhead", "first_token_overhead", "upstream_seconds", "claimed_tokens_saved", "billed_prompt_tokens"}
    | {"prefix_stability", "first_message_changed", "rewritten_history", "sent_tokens", "written_tokens", "alone"}
    | {"lost_upstream_calls", "lost_upstream_tokens", "least_upstream_tokens", "most_upstream_tokens"}
    | {"answered", "cached_answer", "answer_unknown", "answered_without_call", "saved_by_repeating", "changed_settings"}
    | {"counted_usage", "least_usage", "most_usage", "untouched_at_best", "most_extra_upstream_calls"}
    | {"cost_as_asked_usd", "least_cost_usd", "most_cost_usd", "uncached_cost_usd", "cache_adjusted_cost_usd"}
    | {"prefix_tokens", "uncounted_calls", "opaque_items", "applied_edits"}
)
"""Row metadata that only our own systems and the engine may set, not a system under test."""


_RESERVED_FIELDS = ("tapped", "unscorable", "keep_reasoning")
"""Fields of an answer that users' systems cannot set: calls at the tap, why nothing is judged, how it is read."""


@dataclass(slots=True)
class Outcome:
    """The result of a call: the processed dict, or an error.

    `latency` excludes the time that our own client waited. `returns` is "context" if the system returned the text to
    send to a model, "response" if it answered. `known` means that an earlier run stored it. `cause` is the exception
    behind `error`.
    """

    processed: Example = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    latency: float = 0.0
    error: str | None = None
    returns: str = "response"
    started: float = 0.0
    ended: float = 0.0
    known: bool = False
    cause: BaseException | None = None


class Stopped(SystemFailure):
    """A limit or Ctrl-C stopped the run in the middle of an example, which therefore gets no row."""


class Caller:
    """Calls one system; reads the traits that cannot change within a run only once."""

    def __init__(self, system: Any, threads: Executor, clock: Callable[[], float] = time.perf_counter) -> None:
        self._system, self._threads, self._clock = system, threads, clock
        # whether it only waits for a server, so our own work does not compete with it
        self.works_elsewhere = is_endpoint(system)
        self._own = system_traits(system).own_client
        self._answers_turns = can_await_turns(system) if self.works_elsewhere else can_answer_turns(system)

    def call(self, example: Example) -> Awaitable[Outcome]:
        """Call the system on a copy of the example; its exceptions are never raised."""
        if self.works_elsewhere:
            return self._await_system(example)
        return asyncio.get_running_loop().run_in_executor(self._threads, self.call_here, example)

    async def _await_system(self, example: Example) -> Outcome:
        system, outcome = self._system, Outcome({}, {})
        try:
            given = _copy_for_system(example)
            outcome.started = self._clock()
            if self._answers_turns and "turns" in given and has_open_turns(given):
                made = system.aprocess_conversation(given["turns"])
                raw = in_one(await check_awaitable(made, system, "aprocess_conversation"))
            else:
                made = system.aprocess(given)
                raw = await (made if type(made) is CoroutineType else check_awaitable(made, system, "aprocess"))
            outcome.ended = self._clock()
            _take(raw, system, self._own, example, outcome)
        # The only boundary: every exception of a system becomes its row's error.
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_given_up():
                raise
            self._fail(outcome, error)
        outcome.latency = _read_latency(outcome)
        return outcome

    def call_here(self, example: Example) -> Outcome:
        """Call a synchronous system in this thread."""
        system, outcome = self._system, Outcome()
        try:
            given = _copy_for_system(example)
            outcome.started = self._clock()
            try:
                if self._answers_turns and "turns" in given and has_open_turns(given):
                    raw = in_one(system.process_conversation(given["turns"]))
                else:
                    raw = system.process(given)
            finally:
                outcome.ended = self._clock()
            _take(raw, system, self._own, example, outcome)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - also what would be taken for the end of this thread
            self._fail(outcome, error)
        outcome.latency = _read_latency(outcome)
        return outcome

    def _fail(self, outcome: Outcome, error: BaseException) -> None:
        """Write an exception into the outcome: its text, times and metadata."""
        outcome.ended = outcome.ended or self._clock()
        outcome.started = outcome.started or outcome.ended
        outcome.error, outcome.cause = describe(error), error
        if isinstance(error, SystemFailure):
            outcome.metadata.update(error.metadata)
        if frames := list_frames(error):
            outcome.metadata["traceback"] = frames
        if self._own and getattr(error, "tapped", None):
            outcome.processed = {"tapped": error.tapped}  # type: ignore[attr-defined]


def call_several(
    calls: Sequence[tuple[Caller, Example]], outcomes: list[Outcome], seconds: float = _BATCH_SECONDS
) -> None:
    """Make at least one call, and more while the time allows; append their outcomes."""
    end = time.perf_counter() + seconds
    for caller, example in calls:
        outcomes.append(caller.call_here(example))
        if time.perf_counter() > end:
            break


def _copy_for_system(example: Example) -> Example:
    given = copy_example(example)
    given.pop("response", None)  # a response in the result must be the system's, not the dataset's
    return given


def _read_latency(outcome: Outcome) -> float:
    """Return the system's seconds, without the waits of our own client."""
    seconds = outcome.ended - outcome.started
    waited = outcome.metadata.get("waited")
    if waited and isinstance(waited, (int, float)) and waited > 0:
        seconds -= waited
    return seconds if seconds > 0 else 0.0


def _take(raw: Any, system: System, own: bool, example: Example, outcome: Outcome) -> None:
    """Convert a system's result to the common form and put it into the outcome; raise BadOutput if it is invalid."""
    metadata = raw.get("metadata") if own and type(raw) is dict and len(raw) == 2 else None
    if (
        type(metadata) is dict
        and type(raw.get("response")) is str
        and PLAIN_TYPES.issuperset(map(type, metadata.values()))
    ):  # like most replies of our own client
        del raw["metadata"]
        outcome.processed, outcome.metadata = raw, metadata
        return
    processed = _read_dict(raw, system)
    if "documents" in processed:
        processed = _resolve_documents(processed, system, example)
    context, response = processed.get("context"), processed.get("response")
    if context is not None or type(response) is not str:
        _check_texts(context, response, system)
    metadata = processed.pop("metadata", None)
    if not own:
        for key in _RESERVED_FIELDS:
            processed.pop(key, None)
    outcome.metadata = metadata if own and type(metadata) is dict else _read_metadata(metadata, processed, own)
    outcome.processed = processed
    if context is not None:
        outcome.returns = "context"
        if response is None:
            processed["response"] = context
        else:
            outcome.metadata["answered"] = True  # the answer may be empty, like the context


def _read_dict(raw: Any, system: System) -> Example:
    """Return a system's result as a new dict; a text becomes `{"context": text}`."""
    if isinstance(raw, str):
        raw = {"context": raw}
    elif isinstance(raw, Echo):
        raw = raw.answer()
    if not isinstance(raw, Mapping):
        if inspect.iscoroutine(raw):
            raw.close()  # prevents Python's later warning that it was never awaited
        given = "None" if raw is None else f"a {type(raw).__name__}"
        raise BadOutput(f"{system.name} returned {given}: return a dict, or a text that is the new context")
    if deep := find_deep_fields(raw):
        problem = f"{deep[0]!r} is nested more than {MAX_DEPTH} levels deep"
        raise BadOutput(f"{system.name}: its result cannot be stored ({problem})")
    return dict(raw)


def _resolve_documents(processed: Example, system: System, example: Example) -> Example:
    """Return a system's result; if it has `documents`, with the context built from them."""
    documents = processed.get("documents")
    if documents is None:
        return processed
    if not isinstance(documents, list | tuple) or not all(isinstance(each, Mapping) for each in documents):
        raise BadOutput(f"{system.name}: 'documents' must be a list of objects with 'id' and 'text'")
    return with_context(processed, example)


def _check_texts(context: Any, response: Any, system: System) -> None:
    """Refuse results without an answer or a context, or with one of the wrong type."""
    if context is None and response is None:
        raise BadOutput(f"{system.name}: process() returned neither 'response' nor 'context' nor 'documents'")
    for key, value in (("context", context), ("response", response)):
        if value is not None and not isinstance(value, str):
            raise BadOutput(f"{system.name}: {key!r} must be a text (got a {type(value).__name__})")


def _read_metadata(metadata: Any, processed: Example, own: bool) -> dict[str, Any]:
    """Return an answer's metadata without fields that only the engine may set."""
    given = metadata if isinstance(metadata, Mapping) else {}
    said = {key: value for key, value in given.items() if own or key not in _RESERVED_METADATA}
    return {**read_usage(processed["api_usage"]), **said} if not own and "api_usage" in processed else said


@dataclass(frozen=True)
class RequestSize:
    """Tokens of all requests for an example, and the most tokens that the replies may have; None if that has no
    bound."""

    prompt: int
    reply: int | None = None


def measure_request(system: System, example: Example, count: Tokenizer) -> RequestSize:
    """Count the request that our own system would make; for other systems, count the example's prompt fields.

    A conversation with several open turns takes one request for each of them, with the earlier replies.
    """
    if (measure := system_traits(system).measure) is not None:
        return RequestSize(*measure(example, count))
    body = _request_body(system, example)
    if body is None:
        return RequestSize(count_prompt(example, count))
    one, turns = _measure_body(body, count), max(1, open_turns(example.get("turns") or ()))
    if one.reply is None:
        return RequestSize(turns * one.prompt)
    return RequestSize(turns * one.prompt + one.reply * turns * (turns - 1) // 2, turns * one.reply)


def measure_judge_request(
    evaluator: Evaluator, example: Example, processed: Example, count: Tokenizer
) -> RequestSize | None:
    """Count the request that a judge would make for an answer; None if it makes none.

    For a user's own judge, count the texts that it receives.
    """
    write = find_judge_request(evaluator)
    if write is None:
        return RequestSize(count_prompt(example, count) + count(str(processed.get("response") or "")))
    body = write(example, processed)
    return None if body is None else _measure_body(body, count)


def _request_body(system: Any, example: Example) -> Mapping[str, Any] | None:
    make_body = system_traits(system).request_body
    if make_body is None:
        return None
    try:
        body = make_body(example)
    except Exception:  # noqa: BLE001 - an example that no request can be made of is an error of its row, not of the estimate
        return None
    return body if isinstance(body, Mapping) else None


def _measure_body(body: Mapping[str, Any], count: Tokenizer) -> RequestSize:
    """Count a request of any API: its prompt, and the largest number of tokens in all choices of its reply."""
    prompt, longest = read_prompt(body), read_longest_reply(body)
    choices = read_token_count(body.get("n")) or 1
    return RequestSize(prompt.tokens(count) if prompt else 0, None if longest is None else longest * choices)


_PACKAGE = str(Path(__file__).parent.parent)
_STANDARD = sysconfig.get_path("stdlib")
MAX_FRAMES = 8
MAX_FRAME_CHARS = 200


class RaisedElsewhere(Exception):
    """An exception of a user's code in another process; only its text and frames are known."""

    def __init__(self, text: str, frames: list[str]) -> None:
        super().__init__(text)
        self.frames = frames


def find_bug(error: BaseException | None) -> BaseException | None:
    """Find the exception of user code behind an error; None for errors that we raise on purpose."""
    while isinstance(error, ContextBenchError):
        error = error.__cause__
    return error


def list_frames(error: BaseException | None) -> list[str]:
    """List the frames of user code in a traceback, innermost last: `file:line in function: code`."""
    bug = find_bug(error)
    if bug is None:
        return []
    if isinstance(bug, RaisedElsewhere):
        return bug.frames
    frames = traceback.extract_tb(bug.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((_PACKAGE, "<frozen"))]
    while own and own[0].filename.startswith(_STANDARD) and "site-packages" not in own[0].filename:
        own.pop(0)  # the thread or loop that called it
    return [
        printable(f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line or ''}")[:MAX_FRAME_CHARS]
        for frame in own[-MAX_FRAMES:]
    ]


def rebuild_error(text: str, frames: list[str]) -> RaisedElsewhere:
    """Make an exception for one in another process whose description (type and message) is `text`."""
    name, _, message = text.partition(": ")
    kind: type[RaisedElsewhere] = type(name if name.isidentifier() else "Exception", (RaisedElsewhere,), {})
    return kind(message, frames)


def open_debugger(error: BaseException) -> None:
    """Open the debugger at the innermost frame of user code, like `python -m pdb` after an exception."""
    import pdb

    place: TracebackType | None = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename.startswith(_PACKAGE) and place.tb_next is not None:
        place = place.tb_next
    pdb.post_mortem(place)
