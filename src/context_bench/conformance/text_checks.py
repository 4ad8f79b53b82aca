"""Checks of text: what is said arrives as it was said, in both directions, in any script and at any length."""

from __future__ import annotations

from typing import Any

from context_bench.conformance.bench import Bench, Exchange, user_message
from context_bench.conformance.check_definition import check, require
from context_bench.wire.replies import Answer
from context_bench.wire.requests import Prompt

__all__ = ["conversation", "long_input", "long_output", "plain_reply", "surrogates", "unicode_reply", "unicode_request"]

_PLAIN = 'The answer is 42.\n\n  - *first*\n  - `second`\twith a tab, "quotes" and a \\ backslash.\r\nTrailing space: '

UNICODE = (
    "emoji 👩‍👩‍👧‍👦🏽🇳🇴, CJK 漢字かな한국어, right to left שלום مرحبا, combining Z̷̛a\u0301\u0323, astral 𝕏𐍈, "
    "line \u2028 and paragraph \u2029 separators, no-break\u00a0space, zero\u200bwidth, bom \ufeff, "
    "controls \x01\x1b[31m\x7f\x85, <|endoftext|>, ￿"
)
_HALVES = "one half \ud83d of a pair, and the other \ude00 alone"

_LONG_INPUT = 200_000
_LONG_OUTPUT = 1_000_000


@check("plain reply text intact", "Is the text of a reply exactly what the model said?")
async def plain_reply(bench: Bench) -> None:
    said = (await bench.ask(Answer(_PLAIN))).read_reply()
    require(said.text == _PLAIN, "the text of the reply was changed", _PLAIN, said.text)


@check("short conversation reaches upstream", "Do the messages of a short conversation all reach the model, in order?")
async def conversation(bench: Bench) -> None:
    turns = [
        {"role": "system", "content": "You are a patient librarian."},
        user_message("Which book did I borrow?"),
        {"role": "assistant", "content": "You borrowed the atlas of clouds."},
        user_message("And when is it due? Please give the weekday."),
    ]
    exchange = await bench.ask(Answer("On Friday."), *turns)
    received = _list_turns(exchange.prompt)
    waiting = iter(received)
    for role, text in ((turn["role"], turn["content"]) for turn in turns):
        found = next((each for each, said in waiting if text in said), None)
        require(found is not None, f"the {role} message {text!r} is not there as it was sent", turns, received)
        require(found == role, f"a {role} message became one of the role {found!r}", turns, received)
    if [text for _, text in received] != [turn["content"] for turn in turns]:
        bench.note("adds text of its own to a short conversation")
    require(exchange.read_reply().text == "On Friday.", "the reply was changed", "On Friday.", exchange.arrived.text())


def _list_turns(prompt: Prompt) -> list[tuple[Any, str]]:
    """List who says what upstream."""
    turns = [("system", "".join(Prompt(system=prompt.system).texts()))] if prompt.system is not None else []
    messages = [message for message in prompt.messages if isinstance(message, dict)]
    return turns + [(message.get("role"), "".join(Prompt(messages=[message]).texts())) for message in messages]


@check("unicode in requests intact", "Do emoji, CJK, right-to-left and combining characters reach the model?")
async def unicode_request(bench: Bench) -> None:
    _require_upstream(await bench.ask(Answer("ok"), user_message(UNICODE)), UNICODE)


@check("unicode in replies intact", "Do emoji, CJK, right-to-left and combining characters come back?")
async def unicode_reply(bench: Bench) -> None:
    said = (await bench.ask(Answer(UNICODE))).read_reply()
    require(said.text == UNICODE, "the text of the reply was changed", UNICODE, said.text)


@check("lone surrogates survive", "Does JSON with an escaped half of a surrogate pair pass, in both directions?")
async def surrogates(bench: Bench) -> None:
    exchange = await bench.ask(Answer(_HALVES), user_message(_HALVES))
    _require_upstream(exchange, _HALVES)
    said = exchange.read_reply()
    require(said.text == _HALVES, "the text of the reply was changed", ascii(_HALVES), ascii(said.text))


def _require_upstream(exchange: Exchange, text: str) -> None:
    """Fail unless the text reached the upstream, and the request got its reply."""
    received = exchange.prompt.texts()
    require(any(text in each for each in received), "the text did not reach the upstream intact", text, received)
    exchange.read_reply()


@check("very long input keeps its question", "Does the question after 200,000 characters still reach the model?")
async def long_input(bench: Bench) -> None:
    lines = (
        f"Entry {number:05d}: shelf {number * 7919 % 977}, box {number * 104729 % 613}.\n" for number in range(9999)
    )
    question = "Which shelf holds the lighthouse keeper's diary?"
    exchange = await bench.ask(Answer("Shelf 9."), user_message(f"{''.join(lines)[:_LONG_INPUT]}\n\n{question}"))
    received = exchange.prompt.texts()
    found = any(question in text for text in received)
    require(found, "the question is not in what the model was given", question, [text[-200:] for text in received])
    said = exchange.read_reply()
    require(said.text == "Shelf 9.", "the reply was changed", "Shelf 9.", said.text)


@check("long output intact", "Does a reply of a million characters come back whole?")
async def long_output(bench: Bench) -> None:
    text = "".join(f"{number}, " for number in range(150_000))[:_LONG_OUTPUT]
    said = (await bench.ask(Answer(text))).read_reply()
    arrived = f"{len(said.text):,} characters, ending in {said.text[-40:]!r}"
    require(said.text == text, "the reply was changed", f"{len(text):,} characters, ending in {text[-40:]!r}", arrived)
