"""Who calls `process()` gets the example back with its answer; a run counts the answer alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from context_bench import OpenAIProxy, evaluate
from context_bench.evaluators import AnswerQuality, ContextRecall
from context_bench.systems import AnthropicProxy, WithReader
from context_bench.systems.prompts import Echo, drop_echo
from servers import Server, completion, message

USAGE = {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}
EXAMPLE = {
    "id": 7,
    "context": "The code of the vault is 4711.",
    "question": "Which code?",
    "answer": "4711",
    "evidence": ["The code of the vault is 4711."],
    "mine": {"kept": True},
}


@pytest.fixture
def server() -> Iterator[Server]:
    def answer(request: Any) -> Any:
        if request.path == "/v1/messages":
            return message("4711", {"input_tokens": 11, "output_tokens": 2})
        return completion("4711", usage=USAGE)

    with Server(answer) as running:
        yield running


def make(kind: type[Any], server: Server) -> Any:
    return kind(server.url, model="m", name="proxy", api_key="k", max_retries=0)


@pytest.mark.parametrize("kind", [OpenAIProxy, AnthropicProxy])
def test_a_direct_call_returns_the_fields_of_the_example(kind: type[Any], server: Server) -> None:
    made = make(kind, server).process(EXAMPLE)
    assert {key: made[key] for key in EXAMPLE} == EXAMPLE
    assert made["response"] == "4711"
    assert made["api_usage"] == USAGE
    assert made["metadata"]["prompt_tokens"] == 11


@pytest.mark.parametrize("kind", [OpenAIProxy, AnthropicProxy])
@pytest.mark.parametrize("way", ["itself", "wrapped", "changed"])
def test_a_run_counts_the_answer_alone(kind: type[Any], way: str, server: Server) -> None:
    proxy = make(kind, server)

    class Wrapped:
        name = "wrapped"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            made: dict[str, Any] = proxy.process(example)
            if way == "changed":
                made["response"] = made["response"] + " is it"
            return made

    seen: list[dict[str, Any]] = []

    def look(original: dict[str, Any], processed: dict[str, Any]) -> float:
        seen.append(processed)
        return 1.0

    system = proxy if way == "itself" else Wrapped()
    (row,) = evaluate(system, [EXAMPLE], [AnswerQuality(), ContextRecall(), look], progress=False).rows
    assert row.error is None
    assert row.metadata["output"] == "response"
    assert row.response == ("4711 is it" if way == "changed" else "4711")
    assert row.output_tokens == row.metadata["response_tokens"] < 6
    assert row.metadata["prompt_tokens"] == 11
    assert "evidence_recall" not in row.scores
    assert set(seen[0]) == {"response"}


def test_a_context_that_the_caller_put_in_is_no_echo(server: Server) -> None:
    proxy = make(OpenAIProxy, server)

    def shorten(example: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = proxy.process(example)
        made["context"] = "4711"
        return made

    (row,) = evaluate(shorten, [EXAMPLE], [AnswerQuality()], progress=False).rows
    assert row.metadata["output"] == "context"
    assert 0 < row.output_tokens < row.input_tokens


def test_an_echo_is_no_context_for_a_reader(server: Server) -> None:
    proxy = make(OpenAIProxy, server)
    system = WithReader(lambda example: proxy.process(example), make(OpenAIProxy, server), name="both")
    (row,) = evaluate(system, [EXAMPLE], [AnswerQuality()], progress=False).rows
    assert row.error is not None
    assert "no context for the reader" in row.error


def test_a_copy_is_a_plain_dict_and_what_is_no_echo_stays() -> None:
    echo = Echo(EXAMPLE, {"response": "r"})
    assert drop_echo(echo) == {"response": "r"}
    assert drop_echo(dict(echo)) == {**EXAMPLE, "response": "r"}
    assert drop_echo("text") == "text"
    assert "api_usage" not in echo
