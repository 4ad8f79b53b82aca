"""One module is all that a new API takes: a made-up one runs through a proxy with a tap, streams, and is checked.

Nothing else in the package knows of it: it is put into `FORMS`, as the module of a third API would be.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web

from context_bench import EvalResult, evaluate
from context_bench.conformance import CHECKS, Findings, examine
from context_bench.conformance.bench import Upstream
from context_bench.core.call import measure_request
from context_bench.datasets.recordings import read_examples
from context_bench.evaluators import AnswerQuality, EvidenceSurvival
from context_bench.systems.chat import build_proxy
from context_bench.tap.answering import Incoming
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap
from context_bench.tap.system import Tapped
from context_bench.utils.tokens import count_tokens
from context_bench.wire.form import (
    ApiForm,
    Completion,
    Demand,
    ModelReply,
    NotAReply,
    Recorded,
    Reply,
    Samples,
    StreamedReply,
    check_usage,
    cut_arguments,
    cut_text,
)
from context_bench.wire.forms import FORMS
from context_bench.wire.prompts import Message, Prompt, choose_tool, dump_body
from servers import free_port
from toy_proxies import Toy, toy_proxy


class Dialogue:
    """`/v1/dialogue`: `rules` and a list of `lines`; the reply is one `says`, with `acts` for tool calls."""

    name = "dialogue"
    title = "Dialogue Inc."
    route = "/dialogue"
    count_route: str | None = None
    key_variable = "DIALOGUE_KEY"
    key_header = ("x-dialogue-key", "{key}")
    headers: Mapping[str, str] = {"x-dialogue": "1"}
    default_model = "parley-1"
    default_max_tokens: int | None = None
    limit_fields: tuple[str, ...] = ("longest",)
    prompt_fields: tuple[str, ...] = ("lines", "rules", "abilities")
    samples = Samples(
        model="parley-1",
        headers={"x-dialogue": "1"},
        settings={"temperature": 0.37, "longest": 321},
        caller={"speaker": "user-conformance"},
        usage={"heard": 12345, "said": 678},
        finish="length",
        end='"kind": "curtain"',
    )

    def build_request(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        limit_field: str | None = None,
        stream: bool = False,
    ) -> dict[str, Any]:
        rules = [str(each["content"]) for each in messages if each["role"] == "system"]
        body = {
            "model": model,
            "rules": "\n".join(rules) or None,
            "lines": [self._write_line(each) for each in messages if each["role"] != "system"],
            "abilities": [tool["function"] for tool in tools] or None,
            "temperature": temperature,
            limit_field or "longest": max_tokens,
            "stream": stream or None,
        }
        return {key: value for key, value in body.items() if value is not None}

    def _write_line(self, message: Message) -> dict[str, Any]:
        line = {"who": message["role"], "says": message["content"] or ""}
        if message.get("tool_calls"):
            calls = [(call["id"], call["function"]) for call in message["tool_calls"]]
            line["acts"] = [{"no": no, "does": each["name"], "with": each["arguments"]} for no, each in calls]
        return {**line, "no": message["tool_call_id"]} if "tool_call_id" in message else line

    def build_image(self, text: str, kind: str, data: str) -> Message:
        return {"role": "user", "content": [{"text": text}, {"shows": f"{kind},{data}"}]}

    def mark_request(self, body: Mapping[str, Any], mark: str) -> dict[str, Any]:
        return {"speaker": mark, **body}

    def read_prompt(self, document: Mapping[str, Any]) -> Prompt | None:
        lines = document.get("lines")
        if not isinstance(lines, list):
            return None
        messages = [
            {
                "role": line.get("who"),
                "content": line.get("says"),
                **{key: line[key] for key in ("acts", "no") if key in line},
            }
            for line in lines
        ]
        return Prompt(document.get("rules"), messages, document.get("abilities") or [])

    def expand(
        self, document: Mapping[str, Any], find_exchange: Callable[[str], Recorded | None]
    ) -> Mapping[str, Any] | None:
        return document

    def find_demand(self, document: Mapping[str, Any]) -> Demand | None:
        found = choose_tool(document.get("abilities"), document.get("must"), any_tool=False)
        return Demand(*found, is_tool=True) if found else None

    def read_schema(self, tool: Mapping[str, Any]) -> Any:
        return tool["parameters"]

    def read_tool_ids(self, messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        called = [act["no"] for message in messages for act in message.get("acts") or ()]
        return called, [message["no"] for message in messages if "no" in message]

    def read_reply(self, document: Any) -> ModelReply:
        usage = self.read_usage(document.get("usage")) if isinstance(document, dict) else {}
        try:
            calls = [
                {"id": act["no"], "type": "function", "function": {"name": act["does"], "arguments": act["with"]}}
                for act in document["acts"]
            ]
            text = document["says"]
            timings = dict(document.get("timings_of_stream", {}))
            return ModelReply(text, calls, document.get("ended"), check_usage(usage, text or calls), timings)
        except (KeyError, TypeError):
            raise NotAReply("line of a dialogue", document, usage, "says") from None

    def read_completion(self, document: Mapping[str, Any]) -> Completion | None:
        if not isinstance(document.get("says"), str):
            return None
        return Completion(str(document.get("no", "")), [document["says"]])

    def list_edits(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:
        return []

    def add_event(self, stream: StreamedReply, event: Mapping[str, Any]) -> bool:
        kind = event.get("kind")
        if kind == "words":
            stream.add_id(event.get("no"))
            stream.add_text(event["text"])
        elif kind == "act":
            stream.add_call(event["place"], event.get("no"), event.get("does"), event.get("with"))
        elif kind == "curtain":
            stream.finish, stream.usage, stream.ended = event["ended"], event["usage"], True
        return kind in ("words", "act", "curtain")

    def join_stream(self, stream: StreamedReply) -> dict[str, Any]:
        acts = [{"no": call.id, "does": call.name, "with": call.arguments} for call in stream.list_calls()]
        return {"says": stream.text, "acts": acts, "ended": stream.finish, "usage": stream.usage}

    def find_usage(self, document: Mapping[str, Any]) -> Any:
        return document.get("usage")

    def read_usage(self, usage: Any) -> dict[str, Any]:
        if not isinstance(usage, Mapping) or "heard" not in usage:
            return {}
        heard, said = usage["heard"], usage["said"]
        return {"prompt_tokens": heard, "completion_tokens": said, "total_tokens": heard + said}

    def write_reply(self, reply: Reply) -> dict[str, Any]:
        answer, (heard, said) = reply.answer, reply.usage
        acts = [{"no": call.id, "does": call.name, "with": call.arguments} for call in answer.tool_calls]
        document = {"no": reply.id, "says": answer.text, "acts": acts, "ended": reply.finish}
        return {**document, "usage": {"heard": heard, "said": said}, **answer.extra}

    def write_events(self, reply: Reply) -> Iterator[bytes]:
        for document in self._list_events(reply):
            yield b"data: %s\n\n" % dump_body(document)

    def _list_events(self, reply: Reply) -> Iterator[dict[str, Any]]:
        for piece in cut_text(reply, 0, reply.answer.text):
            yield {"kind": "words", "no": reply.id, "text": piece}
        for place, call in enumerate(reply.answer.tool_calls):
            yield {"kind": "act", "place": place, "no": call.id, "does": call.name}
            for piece in cut_arguments(call):
                yield {"kind": "act", "place": place, "with": piece}
        heard, said = reply.usage
        yield {"kind": "curtain", "ended": reply.finish, "usage": {"heard": heard, "said": said}}

    def write_error(self, kind: str, message: str) -> dict[str, Any]:
        return {"refused": kind, "because": message}


DIALOGUE: ApiForm = Dialogue()


@pytest.fixture(autouse=True)
def _third_form() -> Iterator[None]:
    FORMS.append(DIALOGUE)
    yield
    FORMS.remove(DIALOGUE)


class Halves(Toy):
    """Keeps the first half of the rules, which hold the context."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        document = json.loads(body)
        document["rules"] = document["rules"][: len(document["rules"]) // 2]
        return await super().exchange(request, headers, json.dumps(document).encode())


NEEDLE = "The harbour of Osmo opened in 1871."
FILLER = " ".join(f"Note {number}: hall {number} was counted before noon." for number in range(60))
ASKED = {"question": "When did the harbour of Osmo open?", "answer": "1871", "evidence": [NEEDLE]}
DATA: list[dict[str, Any]] = [
    {"id": "early", "context": f"{NEEDLE} {FILLER}", **ASKED},
    {"id": "late", "context": f"{FILLER} {NEEDLE}", **ASKED},
]


def run(kind: type[Toy], **settings: Any) -> EvalResult:
    port = free_port()
    with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
        proxy = build_proxy("dialogue", url, name="toy", **settings)
        system = Tapped(proxy, Scripted.from_text("extract"), port=port)
        return evaluate(system, DATA, [AnswerQuality(), EvidenceSurvival()], progress=False)


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_through_a_proxy_with_a_tap(stream: bool) -> None:
    passed, halved = run(Toy, stream=stream), run(Halves, stream=stream)
    assert [row.error for row in (*passed.rows, *halved.rows)] == [None] * 4
    for row, example in zip(passed.rows, DATA):
        facts = row.metadata
        assert "1871" in row.response
        assert facts["finish_reason"] == "stop"
        # The client, the tap and the API's own usage count the same prompt.
        read = sum(map(count_tokens, (example["context"], example["question"])))
        assert row.upstream_tokens == facts["sent_tokens"] == facts["prompt_tokens"] == facts["billed_prompt_tokens"]
        assert row.upstream_tokens is not None
        assert abs(row.upstream_tokens - read) < 30
        assert (facts["untouched"], facts["written_tokens"]) == (True, count_tokens(row.response))
        assert ("time_to_first_token" in facts, "first_token_overhead" in facts) == (stream, stream)
    assert passed.summary["toy"]["prompt_savings"] == pytest.approx(0.0)
    assert 0.4 < halved.summary["toy"]["prompt_savings"] < 0.6
    assert [row.scores["evidence_survived"] for row in halved.rows] == [1.0, 0.0]
    assert [row.metadata["untouched"] for row in halved.rows] == [False, False]


@pytest.mark.parametrize("kind", ["passes", "buffers"])
def test_the_conformance_checks(kind: str) -> None:
    async def check() -> Findings:
        upstream = Upstream()
        tap = Tap(upstream)
        await tap.start()
        try:
            with toy_proxy(kind, tap.url) as url:
                return await examine(url, upstream, tap=tap.url, api="dialogue", timeout=6.0)
        finally:
            await tap.stop()

    findings = asyncio.run(check())
    failed = {outcome.name: outcome.reason for outcome in findings.outcomes if outcome.status == "fail"}
    assert failed.keys() == ({"streaming stays streaming"} if kind == "buffers" else set()), failed
    assert (findings.count("skip"), len(findings.outcomes)) == (3, len(CHECKS))


def test_a_request_is_measured_before_it_is_sent() -> None:
    system = build_proxy("dialogue", "http://127.0.0.1:9", max_tokens=40)
    size = measure_request(system, DATA[0], count_tokens)
    lines = DIALOGUE.read_prompt(system.request_body(DATA[0]))
    assert lines is not None
    assert (size.prompt, size.reply) == (sum(map(count_tokens, lines.texts())), 40)
    assert size.prompt > count_tokens(DATA[0]["context"]), "the context is part of it"


def test_recorded_traffic_is_a_dataset(tmp_path: Any) -> None:
    body = DIALOGUE.build_request(
        "m", [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello?"}]
    )
    line = {"request": body, "response": {"no": "1", "says": "Good day."}}
    (tmp_path / "log.jsonl").write_text(json.dumps(line) + "\n")
    ((_, example),) = read_examples([tmp_path / "log.jsonl"], answers=True)
    assert (example["context"], example["question"], example["answer"]) == ("Be kind.", "Hello?", "Good day.")


def test_a_demanded_tool_is_called() -> None:
    reply = Scripted.from_text("text:Oslo")
    tool = {"name": "find", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    body = {"lines": [{"who": "user", "says": "Where?"}], "abilities": [tool], "must": "find"}

    async def ask() -> Any:
        return (await reply.answer(Incoming("POST", "/v1/dialogue", "", {}, dump_body(body)))).body

    document = json.loads(asyncio.run(ask()))
    assert document["acts"] == [{"no": "call_1", "does": "find", "with": '{"city": "Oslo"}'}]
    assert DIALOGUE.read_reply(document).tool_calls[0]["function"]["name"] == "find"
