"""A compressor followed by a model: what the model is sent, what is counted, what is timed, what is cached."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.errors import BadOutput, UsageError
from context_bench.pricing import Price, Prices
from context_bench.systems import (
    BM25,
    AnthropicProxy,
    ClosedBook,
    OpenAIProxy,
    Oracle,
    Passthrough,
    Truncate,
    WithReader,
)
from servers import Server, completion, free_port, message, reply
from timing import depends_on_time

EXAMPLE = {
    "id": 1,
    "context": "Paris is in France. Rome is in Italy.",
    "question": "Where is Paris?",
    "answer": "France",
}


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def words(text: str) -> int:
    return len(text.split())


def first_sentence(example: dict[str, Any]) -> str:
    return str(example["context"]).partition(" Rome")[0]


def reader(server: Server, **options: Any) -> OpenAIProxy:
    return OpenAIProxy(server.url, **{"retry_base_delay": 0.01, "timeout": 10.0, **options})


def row_of(system: WithReader, example: dict[str, Any] = EXAMPLE, **options: Any) -> Any:
    (row,) = evaluate(system, [example], tokenizer=words, **options).rows
    return row


# What the model is sent


def test_the_model_reads_what_the_compressor_made() -> None:
    with Server(completion("France")) as server:
        result = WithReader(first_sentence, reader(server, model="m-1")).process(EXAMPLE)
    assert server.last["model"] == "m-1"
    assert server.last["messages"] == [
        {"role": "system", "content": "Paris is in France."},
        {"role": "user", "content": "Where is Paris?"},
    ]
    assert result["response"] == "France"
    assert result["context"] == "Paris is in France."


def test_a_row_has_an_answer_and_a_compression() -> None:
    usage = {"prompt_tokens": 99, "completion_tokens": 2, "total_tokens": 101}
    with Server(completion("France", usage)) as server:
        system = WithReader(first_sentence, reader(server))
        result = evaluate(system, [EXAMPLE], tokenizer=words)
    (row,) = result.rows
    assert row.system == "first_sentence"
    assert row.scores["f1"] == 1.0
    assert (row.input_tokens, row.output_tokens) == (8 + 3, 4 + 3)
    assert row.upstream_tokens == 7
    assert row.metadata["response_tokens"] == 1
    assert row.metadata["prompt_tokens"] == 99
    assert "upstream" not in row.metadata
    assert result.summary["first_sentence"]["compression_ratio"] == pytest.approx(4 / 11)
    assert result.config["returns"] == {"first_sentence": "context"}


def test_the_dataset_s_instruction_reaches_the_model() -> None:
    with Server(completion()) as server:
        evaluate(WithReader(Passthrough(), reader(server)), [{**EXAMPLE, "dataset": "needle"}])
    assert server.last["messages"][1]["content"].endswith("Answer with the value only.")


def request_tokens(body: dict[str, Any]) -> int:
    """The tokens of a request's texts and of the calls in it, counted by hand."""
    total = 0
    for sent in body["messages"]:
        total += words(sent["content"] or "")
        total += sum(words(json.dumps(call, separators=(",", ":"))) for call in sent.get("tool_calls", ()))
    return total


def test_doing_nothing_is_the_reader_alone() -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    documents = [{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]
    for fields in ({}, {"framing": "tool"}, {"framing": "user"}, {"turns": turns}, {"documents": documents}):
        with Server(completion("one"), completion("two")) as server:
            direct, through = reader(server, name="direct"), WithReader(Passthrough(), reader(server), "through")
            alone = row_of(direct, {**EXAMPLE, **fields})  # type: ignore[arg-type]
            bodies = [chat.json for chat in server.chats]
        with Server(completion("one"), completion("two")) as server:
            through = WithReader(Passthrough(), reader(server), "through")
            row = row_of(through, {**EXAMPLE, **fields})
        assert [chat.json for chat in server.chats] == bodies
        assert row.response == alone.response
        assert row.input_tokens == row.output_tokens == alone.input_tokens
        sent = sum(request_tokens(chat.json) for chat in server.chats)
        assert row.upstream_tokens == row.metadata["sent_tokens"] == sent


def test_a_new_context_stands_for_the_conversation() -> None:
    turns = [{"role": "user", "content": "a long story"}, {"role": "assistant", "content": "I see."}]
    with Server(completion("x")) as server:
        row = row_of(WithReader(first_sentence, reader(server)), {**EXAMPLE, "turns": turns})
    assert [each["role"] for each in server.last["messages"]] == ["system", "user"]
    assert row.upstream_tokens == 4 + 3


def test_a_conversation_that_the_compressor_shortened() -> None:
    turns = [
        {"role": "user", "content": "one two"},
        {"role": "assistant", "content": "no"},
        {"role": "user", "content": "so"},
    ]

    def last_turn(example: dict[str, Any]) -> dict[str, Any]:
        return {"context": example["context"], "turns": example["turns"][-1:]}

    with Server(completion("x")) as server:
        row = row_of(WithReader(last_turn, reader(server)), {**EXAMPLE, "turns": turns})
    assert server.last["messages"] == [{"role": "user", "content": "so"}]
    assert row.upstream_tokens == 1  # the question is not sent beside turns
    assert row.metadata["sent_tokens"] == 2 + 1 + 1


DOCUMENTS = [{"id": "a", "text": "Rome is in Italy."}, {"id": "b", "text": "Paris is in France."}]
RANKED = {
    **EXAMPLE,
    "context": "Rome is in Italy.\n\nParis is in France.",
    "documents": DOCUMENTS,
    "relevant_ids": ["b"],
}


@pytest.mark.parametrize("whole", [False, True])
def test_documents_are_the_context(whole: bool) -> None:
    def best(example: dict[str, Any]) -> dict[str, Any]:
        kept = [item for item in example["documents"] if "Paris" in item["text"]]
        return {**(example if whole else {}), "documents": kept}

    with Server(completion("France")) as server:
        row = row_of(WithReader(best, reader(server)), RANKED)
    assert server.last["messages"][0]["content"] == "Paris is in France."
    assert (row.input_tokens, row.upstream_tokens, row.output_tokens) == (8 + 3, 4 + 3, 4 + 3)
    assert row.scores["mrr"] == 1.0


def test_a_compressor_that_spoils_its_copy_spoils_nothing_else() -> None:
    def spoils(example: dict[str, Any]) -> str:
        example["choices"].clear()
        example["question"] = "?"
        return "short"

    with Server(completion("x")) as server:
        row = row_of(WithReader(spoils, reader(server)), {**EXAMPLE, "choices": ["Spain", "France"]})
    assert row.error is None
    assert server.last["messages"][1]["content"] == "Where is Paris?\n\nA. Spain\nB. France"


def test_an_answer_of_the_compressor_s_own_is_not_the_reader_s() -> None:
    def both(example: dict[str, Any]) -> dict[str, Any]:
        return {"context": "short", "response": "Spain", "metadata": {"own": 7, "prompt_tokens": 5}}

    with Server(completion("France", {"prompt_tokens": 21})) as server:
        row = row_of(WithReader(both, reader(server)))
    assert row.response == "France"
    assert (row.metadata["own"], row.metadata["prompt_tokens"]) == (7, 21)


def test_anthropic_s_api_as_the_reader() -> None:
    with Server(message("France")) as server:
        row = row_of(WithReader(first_sentence, AnthropicProxy(server.url)))
    assert server.last["system"] == "Paris is in France."
    assert row.scores["f1"] == 1.0


def test_a_price_is_the_reader_s() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
    with Server(completion("France", usage)) as server:
        system = WithReader(first_sentence, reader(server, model="m-1"))
        row = row_of(system, prices=Prices({"m-1": Price(1.0, 2.0)}))
    assert row.metadata["cost_usd"] == pytest.approx((1000 * 1.0 + 10 * 2.0) / 1e6)


# Time


@depends_on_time("latency is what the clock on the wall says")
def test_the_compressor_s_time_and_the_whole() -> None:
    def slow(example: dict[str, Any]) -> str:
        time.sleep(0.2)
        return "short"

    with Server(completion("x", delay=0.1)) as server:
        row = row_of(WithReader(slow, reader(server)))
    assert 0.2 <= row.metadata["compressor_seconds"] < 0.28
    assert 0.3 <= row.latency < 0.6


@depends_on_time("latency is what the clock on the wall says")
def test_waiting_for_the_compressor_s_turn_is_no_latency() -> None:
    running: list[int] = [0, 0]

    def slow(example: dict[str, Any]) -> str:
        running[0] += 1
        running[1] = max(running)
        time.sleep(0.3)
        running[0] -= 1
        return "short"

    with Server(completion("x")) as server:
        examples = [{**EXAMPLE, "id": n} for n in range(6)]
        rows = evaluate(WithReader(slow, reader(server)), examples, max_workers=6).rows
    assert running[1] == 1
    assert all(0.3 <= row.metadata["compressor_seconds"] < 1.2 for row in rows)
    assert max(row.latency for row in rows) < 1.2  # the last one waited for 1.5 s
    assert max(row.metadata["waited"] for row in rows) > 1.0


@depends_on_time("latency is what the clock on the wall says")
def test_back_off_is_no_latency_either() -> None:
    with Server(reply(500), completion("x")) as server:
        row = row_of(WithReader(first_sentence, reader(server, retry_base_delay=2.0)))
    assert row.metadata["attempts"] == 2
    assert row.metadata["waited"] >= 1.0
    assert row.latency < 0.9


# What goes wrong


def _raises(error: BaseException) -> Callable[[dict[str, Any]], str]:
    def compress(example: dict[str, Any]) -> str:
        raise error

    return compress


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("too long"), "SystemFailure: compress failed: ValueError: too long"),
        (StopIteration(), "SystemFailure: compress failed: StopIteration"),
        (SystemExit(3), "SystemFailure: compress failed: SystemExit: 3"),
        (BadOutput("own words"), "BadOutput: own words"),
    ],
)
def test_a_compressor_that_raises(error: BaseException, said: str) -> None:
    with Server() as server:
        row = row_of(WithReader(_raises(error), reader(server)))
    assert row.error == said
    assert server.chats == []


@pytest.mark.parametrize("made", [None, 5, [], {}, {"response": "x"}, {"context": None}, {"context": 5}])
def test_a_compressor_that_returns_no_context(made: Any) -> None:
    with Server() as server:
        row = row_of(WithReader(lambda example: made, reader(server)))
    assert row.error is not None
    assert row.error.startswith("BadOutput")
    assert server.chats == []


def test_a_reader_that_is_down() -> None:
    dead = WithReader(first_sentence, OpenAIProxy(f"http://127.0.0.1:{free_port()}"))
    before = time.monotonic()
    result = evaluate(dead, [{**EXAMPLE, "id": n} for n in range(30)], preflight=False)
    assert time.monotonic() - before < 30
    assert all(row.error and "is down" in row.error for row in result.rows)


def test_a_reader_that_refuses() -> None:
    told = pytest.warns(UserWarning, match="answered 401: no key: no key was sent, so set OPENAI_API_KEY")
    with Server(reply(401, {"error": {"message": "no key"}})) as server, told:
        row = row_of(WithReader(first_sentence, reader(server)))
    assert row.error is not None
    assert "401: no key" in row.error
    assert row.scores == {}


@pytest.mark.parametrize("wrong", [Passthrough(), first_sentence, None])
def test_what_is_no_reader(wrong: Any) -> None:
    with pytest.raises(UsageError, match="is not a reader"):
        WithReader(Passthrough(), wrong)


def test_a_compressor_that_has_something_to_end() -> None:
    class Opened:
        name, ended = "opened", 0

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {"context": "x"}

        def finish(self) -> None:
            self.ended += 1

    compressor = Opened()
    with Server() as server:
        evaluate(WithReader(compressor, reader(server)), [EXAMPLE])
    assert compressor.ended == 1


# The cache


def asked(server: Server, system: Callable[[], WithReader], folder: Path, example: dict[str, Any]) -> int:
    before = len(server.chats)
    evaluate(system(), [example], cache_dir=folder, tokenizer="cl100k_base")
    return len(server.chats) - before


def test_answers_depend_on_both_parts(tmp_path: Path) -> None:
    with Server(completion("France")) as server:

        def made(compressor: Any, **options: Any) -> Callable[[], WithReader]:
            return lambda: WithReader(compressor, reader(server, **options), "same name")

        assert asked(server, made(Truncate(ratio=0.5)), tmp_path, EXAMPLE) == 1
        assert asked(server, made(Truncate(ratio=0.5)), tmp_path, EXAMPLE) == 0
        assert asked(server, made(Truncate(ratio=0.25)), tmp_path, EXAMPLE) == 1
        assert asked(server, made(Truncate(ratio=0.5), model="other"), tmp_path, EXAMPLE) == 1
        assert asked(server, made(Truncate(ratio=0.5), headers={"X-Mode": "b"}), tmp_path, EXAMPLE) == 1
        assert asked(server, made(BM25(ratio=0.5)), tmp_path, EXAMPLE) == 1
        assert asked(server, made(Truncate(ratio=0.5)), tmp_path, {**EXAMPLE, "answer": "Gaul"}) == 0


def test_an_oracle_is_asked_again_when_the_gold_changes(tmp_path: Path) -> None:
    evidence = {**EXAMPLE, "evidence": ["Paris is in France."]}
    with Server(completion("France")) as server:

        def made() -> WithReader:
            return WithReader(Oracle(), reader(server))

        assert made().reads_gold
        assert not WithReader(ClosedBook(), reader(server)).reads_gold
        assert asked(server, made, tmp_path, evidence) == 1
        assert asked(server, made, tmp_path, evidence) == 0
        assert asked(server, made, tmp_path, {**evidence, "evidence": ["Rome is in Italy."]}) == 1
    assert server.last["messages"][0]["content"] == "Rome is in Italy."


def test_another_tokenizer_counts_a_known_answer_anew(tmp_path: Path) -> None:
    with Server(completion("France")) as server:
        system = WithReader(Truncate(ratio=0.5), reader(server))
        (first,) = evaluate(system, [EXAMPLE], cache_dir=tmp_path, tokenizer="cl100k_base").rows
        (second,) = evaluate(system, [EXAMPLE], cache_dir=tmp_path, tokenizer=len).rows
    assert len(server.chats) == 1
    assert first.upstream_tokens == first.output_tokens
    assert second.upstream_tokens == second.output_tokens > 2 * (first.upstream_tokens or 0)
