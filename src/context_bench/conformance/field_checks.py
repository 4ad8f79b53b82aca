"""Checks of everything around the text: settings, fields that a proxy need not know, images, headers, usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_bench.conformance.bench import Bench, Exchange, user_message
from context_bench.conformance.check_definition import check, require
from context_bench.wire.replies import Answer

__all__ = [
    "api_headers",
    "caller",
    "choices",
    "images",
    "key",
    "model",
    "settings",
    "unknown_reply",
    "unknown_request",
    "usage",
]

_UNKNOWN: dict[str, Any] = {"x_context_bench": {"list": [1, 2.5, None, True, "é"], "empty": {}}, "x_flag": False}
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel


def _require_fields(what: str, exchange: Exchange, fields: Mapping[str, Any]) -> None:
    """Fail unless these fields reached the upstream, and the request got its reply."""
    upstream = exchange.upstream
    arrived = {name: upstream[name] for name in fields if name in upstream}
    wrong = [name for name in fields if name not in arrived or arrived[name] != fields[name]]
    require(not wrong, f"{what} lost or changed: {', '.join(wrong)}", dict(fields), arrived)
    exchange.read_reply()


@check("model name passed", "Is the model asked for the one that is asked upstream?")
async def model(bench: Bench) -> None:
    _require_fields("model name", await bench.ask(Answer("ok")), {"model": bench.form.model})


@check("settings passed", "Do temperature, limits, stop words and the form of the answer reach the model?")
async def settings(bench: Bench) -> None:
    sent = bench.form.settings
    exchange = await bench.ask(Answer("ok"), **sent)
    upstream = exchange.upstream
    if "max_tokens" not in upstream and upstream.get("max_completion_tokens") == sent["max_tokens"]:
        bench.note("sends max_tokens on as max_completion_tokens")  # OpenAI's own new name for it
        sent = {name: value for name, value in sent.items() if name != "max_tokens"}
    _require_fields("settings", exchange, sent)


@check("unknown request fields passed", "Do fields that the proxy does not know reach the model?")
async def unknown_request(bench: Bench) -> None:
    _require_fields("fields", await bench.ask(Answer("ok"), **_UNKNOWN), _UNKNOWN)


@check("user and metadata passed", "Do the fields that name the caller reach the model's provider?")
async def caller(bench: Bench) -> None:
    _require_fields("fields", await bench.ask(Answer("ok"), **bench.form.caller), bench.form.caller)


@check("unknown reply fields passed", "Do fields of a reply that the proxy does not know come back?")
async def unknown_reply(bench: Bench) -> None:
    exchange = await bench.ask(Answer("ok", extra=_UNKNOWN))
    exchange.read_reply()
    document = exchange.arrived.document()
    arrived = {name: document[name] for name in _UNKNOWN if name in document}
    require(arrived == _UNKNOWN, "fields of the reply were lost or changed", _UNKNOWN, arrived)


@check("usage passed on", "Does the usage that the model's provider bills come back?")
async def usage(bench: Bench) -> None:
    expected = dict(bench.form.usage)
    said = (await bench.ask(Answer("ok", extra={"usage": expected}))).read_reply()
    arrived = {name: said.usage.get(name) for name in expected}
    require(arrived == expected, "the usage was lost or changed", expected, said.usage or None)


@check("images passed", "Does an image in a message reach the model, byte for byte?")
async def images(bench: Bench) -> None:
    message = bench.form.build_image("What is in the picture?", "image/png", _PNG)
    exchange = await bench.ask(Answer("A dot."), message)
    (part,) = [part for part in message["content"] if part["type"] != "text"]
    received = exchange.prompt.messages
    require(_holds(received, part), "the image did not reach the upstream as it was", part, received)
    exchange.read_reply()


def _holds(value: Any, part: Any) -> bool:
    """Whether a part is somewhere in a document."""
    if value == part:
        return True
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return any(_holds(each, part) for each in inner)


@check("key passed", "Is the client's key the one that the model's provider is shown?")
async def key(bench: Bench) -> None:
    name, sent = bench.form.key
    arrived = (await bench.ask(Answer("ok"))).call.headers.get(name)
    # Whose key it is instead is nobody's business: it may be a real one.
    shown = "nothing" if arrived is None else f"another {name}, which is not shown"
    require(arrived == sent, "the upstream was not shown the client's key", f"{name}: {sent}", shown)


@check("API headers passed", "Do the headers that the API defines reach the model's provider?")
async def api_headers(bench: Bench) -> None:
    call = (await bench.ask(Answer("ok"))).call
    arrived = {name: call.headers[name] for name in bench.form.headers if name in call.headers}
    wrong = [name for name, value in bench.form.headers.items() if arrived.get(name) != value]
    require(not wrong, f"headers lost or changed: {', '.join(wrong)}", dict(bench.form.headers), arrived)


@check("several choices relayed", "Do all answers come back when a request asks for two?", apis=("openai",))
async def choices(bench: Bench) -> None:
    exchange = await bench.ask(Answer("heads", choices=["tails"]), user_message("Toss a coin."), n=2)
    exchange.read_reply()
    document = exchange.arrived.document()
    texts = [choice["message"].get("content") for choice in document["choices"]]
    require(exchange.upstream.get("n") == 2, "the model was not asked for two", 2, exchange.upstream.get("n"))
    require(texts == ["heads", "tails"], "choices were lost or changed", ["heads", "tails"], texts)
