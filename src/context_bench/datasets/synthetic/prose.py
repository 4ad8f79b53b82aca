"""Filler prose: an endless, varied and grammatical stream of sentences without a single digit.

A paragraph stays with one topic. No sentence occurs twice in one stream until the stream is far longer
than any context, and two consecutive ones never share their form.
"""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.datasets.synthetic.draw import Draw
from context_bench.datasets.synthetic.fit import Stock
from context_bench.datasets.synthetic.topics import ASIDES, TOPICS, Topic

FORMS: tuple[str, ...] = (
    "{who} {did} {where} {when}",
    "{when}, {who} {did}",
    "{who} {did}, {why}",
    "{who} {did} while {other} {also}",
    "{state}, so {who} {did} {where}",
    "{where}, {who} {did} and {also}",
    "{state}, and {who} {did}",
    "{who} {did} {when}, {why}",
    "{when}, {state}",
    "although {state}, {who} {did} {where}",
    "{who} and {other} {did}",
    "{why}, {who} {did} {when}",
    "it was {where} that {who} {did}",
    "{who} {did} first and then {also}",
    "{other} remembered later how {who} {did} {where}",
    "{state} when {who} {did}",
)


class Prose:
    """A stream of sentences, drawn from `draw`."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._seen: set[str] = set()
        self._topic: Topic = draw.pick(TOPICS)
        self._form = -1
        self._left = 0

    def sentence(self) -> str:
        """Return the next sentence, with its capital and its full stop."""
        for _ in range(8):  # a repeated sentence is rare: the phrases combine in millions of ways
            form = (self._form + self._draw.between(1, len(FORMS) - 1)) % len(FORMS)
            text = self._compose(FORMS[form])
            if text not in self._seen:
                break
        self._form = form
        self._seen.add(text)
        return text

    def unit(self) -> str:
        """Return the next sentence with what stands before it: a space, or a paragraph break."""
        if self._left == 0:
            self._left = self._draw.between(3, 7)
            self.turn()
            return "\n\n" + self.sentence()
        self._left -= 1
        return " " + self.sentence()

    def turn(self) -> None:
        """Turn to another topic."""
        self._topic = self._draw.pick([topic for topic in TOPICS if topic is not self._topic])

    def aside(self) -> str:
        """Return a short sentence after a space."""
        return " " + self._draw.pick(ASIDES)

    def _compose(self, form: str) -> str:
        draw, topic = self._draw, self._topic
        who, other = draw.sample(topic.who, 2)
        did, also = draw.sample(topic.did, 2)
        text = form.format(
            who=who,
            other=other,
            did=did,
            also=also,
            where=draw.pick(topic.where),
            when=draw.pick(topic.when),
            why=draw.pick(topic.why),
            state=draw.pick(topic.state),
        )
        return text[0].upper() + text[1:] + "."


def prose_stock(prose: Prose) -> Stock:
    """Return `prose` as a stock of filler, for contexts that are nothing but prose."""
    return Stock(prose.unit, prose.aside, ".", _render)


def _render(units: Sequence[str]) -> str:
    return "".join(units).strip()
