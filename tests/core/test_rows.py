"""From a system's answer to a row: what counts as input and as output, and what is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.metrics import CompressionRatio
from context_bench.traits import SystemTraits


def words(text: str) -> int:
    """A tokenizer that can be followed by hand."""
    return len(text.split())


def example(identity: str | int, context: str = "one two three four", **fields: Any) -> dict[str, Any]:
    return {"id": identity, "context": context, **fields}


def compression(system: Any, given: dict[str, Any], **options: Any) -> float:
    result = evaluate(system, [given], metrics=[CompressionRatio()], tokenizer=words, **options)
    (values,) = result.summary.values()
    return values["compression_ratio"]


FULL = {
    "question": "what is it",
    "choices": ["red", "light blue"],
    "answer": "a very long gold answer that never counts",
    "answers": ["another"],
    "dataset": "tag of many words",
    "meta": {"note": "not counted"},
}


def test_prompt_fields_count_and_gold_does_not() -> None:
    (row,) = evaluate(lambda item: item, [example("an id of words", **FULL)], tokenizer=words).rows
    assert row.input_tokens == 4 + 3 + 3  # context, question, choices
    assert row.output_tokens == 10
    assert row.metadata["response_tokens"] == 4


def test_passing_through_compresses_by_exactly_nothing() -> None:
    assert compression(lambda item: item, example(1, **FULL)) == 0.0
    assert compression(lambda item: item["context"], example(1, **FULL)) == 0.0
    assert compression(lambda item: {"context": item["context"]}, example(1, **FULL)) == 0.0
    talk = [{"role": "user", "content": "a b c"}, {"role": "assistant", "content": "d"}]
    assert compression(lambda item: item, example(1, turns=talk, **FULL)) == 0.0


def test_half_a_context_with_its_question() -> None:
    # 4 of 8 words of context go, the 2 of the question stay: 1 - 6/10
    given = example(1, "a b c d e f g h", question="which one")
    assert compression(lambda item: "a b c d", given) == pytest.approx(0.4)
    assert compression(lambda item: "a b c d", example(1, "a b c d e f g h")) == 0.5


def test_an_answer_counts_alone() -> None:
    (row,) = evaluate(lambda item: {"response": "red it is"}, [example(1, **FULL)], tokenizer=words).rows
    assert (row.input_tokens, row.output_tokens, row.metadata["response_tokens"]) == (10, 3, 3)


def test_an_answer_beside_a_new_context_does_not_replace_it() -> None:
    (row,) = evaluate(
        lambda item: {"context": "one two", "response": "an answer of five words"},
        [example(1, question="q")],
        tokenizer=words,
    ).rows
    assert (row.output_tokens, row.metadata["response_tokens"], row.response) == (3, 5, "an answer of five words")


def test_with_turns_the_context_is_not_counted_again() -> None:
    turns = [
        {"role": "system", "content": "one two three four"},
        {"role": "user", "content": [{"type": "text", "text": "five six"}, {"type": "image_url", "image_url": {}}]},
    ]
    tools = [{"type": "function"}]  # one word as compact JSON
    (row,) = evaluate(lambda item: item, [example(1, turns=turns, tools=tools)], tokenizer=words).rows
    assert (row.input_tokens, row.output_tokens) == (4 + 2 + 1, 7)


def test_a_context_in_place_of_turns() -> None:
    turns = [{"role": "user", "content": "one two three four five six"}]
    assert compression(lambda item: "one two three", example(1, "x", turns=turns)) == 0.5


def test_fewer_turns() -> None:
    turns = [{"role": "user", "content": "one two"}, {"role": "user", "content": "three four"}]
    (row,) = evaluate(
        lambda item: {"context": item["context"], "turns": item["turns"][1:]},
        [example(1, turns=turns)],
        tokenizer=words,
    ).rows
    assert (row.input_tokens, row.output_tokens) == (4, 2)


def test_documents_make_the_context() -> None:
    documents = [{"id": n, "text": text} for n, text in enumerate(["a b", "c d", "e f"])]
    given = example(1, "a b\n\nc d\n\ne f", documents=documents)
    (row,) = evaluate(lambda item: {"documents": item["documents"][2:0:-1]}, [given], tokenizer=words).rows
    assert (row.input_tokens, row.output_tokens) == (6, 4)
    assert row.response.split() == ["e", "f", "c", "d"]


def test_text_fields_replace_the_list_on_both_sides() -> None:
    given = example(1, question="which one", notes="n n n")
    (row,) = evaluate(lambda item: "one", [given], tokenizer=words, text_fields=["context"]).rows
    assert (row.input_tokens, row.output_tokens) == (4, 1)
    (row,) = evaluate(lambda item: "one", [given], tokenizer=words, text_fields=["context", "notes"]).rows
    assert (row.input_tokens, row.output_tokens) == (7, 4)


def test_special_tokens_and_lone_surrogates_are_text() -> None:
    hostile = "<|endoftext|> \ud800 \x00 ‮"
    result = evaluate(lambda item: {"response": hostile}, [example(1, hostile)])
    assert result.rows[0].error is None
    json.loads(result.to_json())


@pytest.mark.parametrize(
    "metadata",
    [
        {"cost_usd": "free", "total_tokens": "many", "upstream_tokens": "unknown", "attempts": "two"},
        {"output": "mine", "response_tokens": -1},
        {"waited": "long"},
        {"deep": {"set": {1}, "bytes": b"x"}},
    ],
)
def test_what_a_system_tells_of_itself_does_no_harm(metadata: dict[str, Any]) -> None:
    result = evaluate(lambda item: {"response": "x y", "metadata": dict(metadata)}, [example(1)], tokenizer=words)
    (row,) = result.rows
    assert row.error is None
    assert (row.metadata["output"], row.metadata["response_tokens"]) == ("response", 2)
    assert row.upstream_tokens is None
    json.loads(result.to_json())


def test_upstream_tokens_are_kept_where_we_measured_them() -> None:
    def claims(_item: dict[str, Any]) -> dict[str, Any]:
        return {"response": "x", "metadata": {"upstream_tokens": 7, "waited": 99.0, "seen": 1}}

    class Ours:
        name = "ours"
        process = staticmethod(claims)

        def __context_bench_traits__(self) -> SystemTraits:
            return SystemTraits(own_client=True)

    (row,) = evaluate(Ours(), [example(1)]).rows
    assert row.upstream_tokens == 7
    (row,) = evaluate(claims, [example(1)]).rows  # a system under test does not measure itself
    assert row.upstream_tokens is None
    assert row.metadata["seen"] == 1
    assert "waited" not in row.metadata


def test_an_answer_that_an_example_already_carries_is_not_the_systems() -> None:
    given = example(1, "the blue one", answer="red", response="red")
    (row,) = evaluate(lambda item: item, [given]).rows
    assert row.response == "the blue one"
    assert row.scores["contains"] == 0.0
