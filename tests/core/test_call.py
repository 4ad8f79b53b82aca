"""One system on one example: whatever it does becomes an outcome, and nothing that it does ends a run."""

from __future__ import annotations

import asyncio
import concurrent.futures
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from banks import each_case
from context_bench import evaluate
from context_bench.core.call import Caller, Outcome
from context_bench.errors import RequestFailed
from context_bench.systems.adapt import adapt
from context_bench.traits import SystemTraits, is_endpoint

EXAMPLE = {"id": 1, "context": "one two", "question": "which?"}


class Async:
    """A function as an endpoint."""

    name = "async"

    def __init__(self, function: Any) -> None:
        self.function = function

    def process(self, example: dict[str, Any]) -> Any:
        raise AssertionError("aprocess is there")

    async def aprocess(self, example: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return self.function(example)


def call(system: Any, example: dict[str, Any] | None = None) -> Outcome:
    async def main() -> Outcome:
        with ThreadPoolExecutor(1) as threads:
            return await asyncio.wait_for(Caller(adapt(system), threads).call(example or EXAMPLE), 10)

    return asyncio.run(main())


def raising(error: BaseException) -> Any:
    def system(example: dict[str, Any]) -> Any:
        raise error

    return system


class Rude(Exception):
    """An exception that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


ERRORS = [
    ValueError("no"),
    KeyError("missing"),
    StopIteration(),
    StopAsyncIteration(),
    SystemExit(3),
    concurrent.futures.CancelledError(),
    asyncio.CancelledError(),
    TimeoutError(),
    MemoryError(),
    RecursionError("deep"),
    AssertionError(),
    Rude(),
]
# Awaited, these cannot be told from the end of the run itself.
ERRORS_IN_THREADS = [GeneratorExit(), BaseException("root")]


@each_case("error", [*ERRORS, *ERRORS_IN_THREADS], ids=lambda error: type(error).__name__)
def test_every_exception_is_an_error_of_that_example(error: BaseException) -> None:
    outcome = call(raising(error))
    assert outcome.error is not None
    assert outcome.error.startswith(type(error).__name__)
    assert outcome.processed == {}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_so_is_every_exception_of_an_endpoint(error: BaseException) -> None:
    outcome = call(Async(raising(error)))
    assert outcome.error is not None
    assert outcome.error.startswith(("RuntimeError", type(error).__name__))  # a coroutine turns StopIteration into it
    assert outcome.processed == {}


def test_an_interrupt_of_the_user_is_none_of_those() -> None:
    with pytest.raises(KeyboardInterrupt):
        call(raising(KeyboardInterrupt()))


@each_case(
    ("returned", "said"),
    [
        (None, "returned None: return a dict, or a text that is the new context"),
        (42, "int"),
        (["x"], "list"),
        (b"bytes", "bytes"),
        ({}, "neither"),
        ({"answer": "x"}, "neither"),
        ({"response": None}, "neither"),
        ({"response": 42}, "'response' must be a text"),
        ({"response": ["x"]}, "'response' must be a text"),
        ({"context": {"text": "x"}}, "'context' must be a text"),
        ({"documents": ["just text"]}, "documents"),
        ({"documents": [None]}, "documents"),
        ({"documents": "text"}, "documents"),
    ],
)
@each_case("way", ["in a thread", "awaited"])
def test_a_wrong_return_value_is_said_in_one_sentence(returned: Any, said: str, way: str) -> None:
    outcome = call((lambda item: returned) if way == "in a thread" else Async(lambda item: returned))
    assert outcome.error is not None
    assert outcome.error.startswith("BadOutput")
    assert said in outcome.error


@pytest.mark.parametrize(
    ("returned", "response", "kind"),
    [
        ("new context", "new context", "context"),
        ("", "", "context"),
        ({"context": "c"}, "c", "context"),
        ({"response": "r"}, "r", "response"),
        ({"response": ""}, "", "response"),
        ({"context": "c", "response": "r"}, "r", "context"),
        ({"context": "c", "response": None}, "c", "context"),
        ({"context": None, "response": "r"}, "r", "response"),
        ({"documents": [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]}, "a\n\nb", "context"),
        ({"documents": []}, "", "context"),
        ({"documents": [{"id": 1, "text": "a"}], "context": "own"}, "own", "context"),
    ],
)
def test_what_may_be_returned(returned: Any, response: str, kind: str) -> None:
    outcome = call(lambda item: returned)
    assert outcome.error is None
    assert (outcome.processed["response"], outcome.returns) == (response, kind)


def test_a_reranker_that_returns_the_whole_example_gets_the_context_of_its_documents() -> None:
    given = {"id": 1, "context": "a\n\nb", "documents": [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]}
    outcome = call(lambda item: {**item, "documents": item["documents"][::-1]}, given)
    assert outcome.processed["context"] == "b\n\na"
    assert call(lambda item: item, given).processed["context"] == "a\n\nb"


def test_metadata_is_kept_apart() -> None:
    outcome = call(lambda item: {"response": "r", "metadata": {"cached": True}})
    assert outcome.metadata == {"cached": True}
    assert "metadata" not in outcome.processed


USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


@pytest.mark.parametrize(
    ("usage", "numbers"),
    [
        (USAGE, USAGE),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}, {**USAGE, "cached_tokens": 4}),
        ({"prompt_tokens": 9}, {"prompt_tokens": 9}),
        (
            {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 2},
            {**USAGE, "cached_tokens": 4, "cache_creation_tokens": 0},
        ),
        ({"prompt_tokens": "many"}, {"ignored_usage": {"prompt_tokens": "'many'"}}),
        ("text", {}),
        (None, {}),
    ],
)
def test_usage_that_a_system_tells_is_kept(usage: Any, numbers: dict[str, Any]) -> None:
    outcome = call(lambda item: {"response": "r", "api_usage": usage})
    assert outcome.metadata == numbers
    assert outcome.processed["api_usage"] == usage  # an evaluator may want it


def test_metadata_says_more_than_usage() -> None:
    outcome = call(lambda item: {"response": "r", "api_usage": USAGE, "metadata": {"prompt_tokens": 1, "x": 2}})
    assert outcome.metadata == {**USAGE, "prompt_tokens": 1, "x": 2}


def test_the_reply_to_each_turn_of_a_system_of_ones_own_counts() -> None:
    def talk(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": "c", "turn_responses": ["a b", {"role": "assistant", "content": "c"}, None]}

    turns = [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]
    (row,) = evaluate(
        talk, [{"id": 1, "turns": turns}], [lambda original, processed: 1.0], progress=False, tokenizer=lambda text: 5
    ).rows
    assert row.error is None
    assert row.output_tokens == 10  # two replies of five tokens by this tokenizer; the third is empty


@pytest.mark.parametrize("metadata", ["text", ["list"], None, {"waited": "long"}, {"waited": None}, {"waited": -5}])
def test_strange_metadata_does_no_harm(metadata: Any) -> None:
    outcome = call(lambda item: {"response": "r", "metadata": metadata})
    assert outcome.error is None
    assert 0 <= outcome.latency < 2


class Ours(Async):
    """One whose requests our own client makes."""

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(own_client=True)


def test_what_our_own_client_waited_is_no_latency() -> None:
    ticks = iter([10.0, 15.0])

    async def main() -> Outcome:
        with ThreadPoolExecutor(1) as threads:
            system = Ours(lambda item: {"response": "r", "metadata": {"waited": 3.5}})
            return await Caller(system, threads, clock=lambda: next(ticks)).call(EXAMPLE)

    outcome = asyncio.run(main())
    assert outcome.latency == pytest.approx(1.5)
    assert (outcome.started, outcome.ended) == (10.0, 15.0)


def test_the_facts_of_a_failed_request_are_kept() -> None:
    outcome = call(Async(raising(RequestFailed("no", status=500, metadata={"attempts": 4, "waited": 7.0}))))
    assert outcome.error == "RequestFailed: no"
    assert outcome.metadata == {"attempts": 4, "waited": 7.0}
    assert outcome.latency == 0.0


@pytest.mark.parametrize("metadata", ["text", [("a", 1)], 5, {1, 2}])
def test_metadata_of_somebody_elses_error_does_no_harm(metadata: Any) -> None:
    error = ValueError("no")
    error.metadata = metadata  # type: ignore[attr-defined]
    assert call(raising(error)).error == "ValueError: no"


def test_error_text_is_one_line_that_says_nothing_to_a_terminal() -> None:
    outcome = call(raising(ValueError("a\x1b[31mred\r\nb\u2028c\u202edesrever\x00")))
    assert outcome.error is not None
    assert outcome.error.isprintable()
    assert "red" in outcome.error


TALK = [
    {"role": "user", "content": "first"},
    {"role": "user", "content": "second"},
]


class Talker:
    """A system that can answer several turns."""

    name = "talker"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": "one answer"}

    def process_conversation(self, turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"role": "assistant", "content": turn["content"].upper()} for turn in turns]


def test_a_conversation_goes_to_a_system_that_can_hold_one() -> None:
    outcome = call(Talker(), {**EXAMPLE, "turns": TALK})
    assert outcome.processed["response"] == "SECOND"
    assert outcome.processed["turn_responses"] == ["FIRST", "SECOND"]


def test_a_conversation_with_one_open_turn_is_an_ordinary_example() -> None:
    turns = [*TALK[:1], {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]
    assert call(Talker(), {**EXAMPLE, "turns": turns}).processed["response"] == "one answer"
    assert call(lambda item: {"response": "f"}, {**EXAMPLE, "turns": TALK}).processed["response"] == "f"


@pytest.mark.parametrize("replies", [[], None, "text", [None], ["text"]])
def test_a_conversation_answered_by_nonsense_is_an_error(replies: Any) -> None:
    class Mute(Talker):
        def process_conversation(self, turns: list[dict[str, Any]]) -> Any:
            return replies

    outcome = call(Mute(), {**EXAMPLE, "turns": TALK})
    assert outcome.error is not None
    assert outcome.error.startswith("BadOutput")


def test_the_numbers_of_a_conversation_add_up() -> None:
    class Counted(Talker):
        def process_conversation(self, turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [{"content": "x", "metadata": {"prompt_tokens": n, "model": "m"}} for n in (5, 7)]

    assert call(Counted(), {**EXAMPLE, "turns": TALK}).metadata == {"prompt_tokens": 12, "model": "m"}


def test_an_endpoint_is_a_system_that_can_be_awaited() -> None:
    assert is_endpoint(Async(None))
    assert not is_endpoint(adapt(lambda item: item))
