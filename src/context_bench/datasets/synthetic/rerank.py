"""`rerank`: a list of documents, few of which answer the question while the others look as if they did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from context_bench.datasets.synthetic.building import (
    Assembled,
    Draw,
    Fact,
    Names,
    Stock,
    assemble,
    check_cell,
    check_whole,
    phrases,
    words,
)
from context_bench.datasets.synthetic.prose import Prose, prose_stock

DOCUMENT_TOKENS, MIN_DOCUMENT_TOKENS = 100, 75  # tokens of a document

STARTS = words("Ash Brem Cald Dor Ell Fen Gal Hol Ish Kel Lor Mar Nor Orm Pel Quar Ren Sel Tarn Ulm")
ENDINGS = words("bury combe dale ford gate ham holt ley mere minster moor port stead thorpe ton wick")
SIGHTS = phrases(
    """stone bridge; corn exchange; water mill; market cross; bell tower; town hall; guildhall; toll house; windmill;
    tithe barn; drinking fountain; old granary; clock tower; almshouse; customs house; rope works"""
)
OPENINGS = (
    "The {sight} of {place} is known well beyond the county.",
    "Most people who come to {place} want to see the {sight}.",
    "Few buildings have been drawn as often as the {sight} of {place}.",
    "In {place}, the {sight} has been in use for longer than anyone can say.",
)


class Entry(NamedTuple):
    """The subject of one document, and the number that it states."""

    place: str
    sight: str
    number: str

    @property
    def subject(self) -> str:
        return f"the {self.sight} of {self.place}"

    @property
    def statement(self) -> str:
        return f"In the county register, {self.subject} is entered under number {self.number}."


def rerank(
    *, documents: int = 20, relevant: int = 1, n: int = 20, seed: int = 0, length: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield examples with a list of `documents`, `relevant` of which (at most 20) are needed to answer the question.

    The others are about another building of the same place, the same building elsewhere, or neither, and each states a
    number of its own. With several relevant documents the gold answer has parts, one from each; `relevant_ids` and
    `evidence` are in the same order. `context` is the texts joined by blank lines; without `length` it has 100 tokens
    for each document.
    """
    check_whole("documents", documents, 1, 2000)
    check_whole("relevant", relevant, 1, min(20, documents))
    total = DOCUMENT_TOKENS * documents if length is None else length
    check_cell(total, MIN_DOCUMENT_TOKENS * documents, n, seed, what=f"documents={documents}")
    return (_make_example(documents, relevant, index, seed, total) for index in range(n))


def _make_example(documents: int, relevant: int, index: int, seed: int, length: int) -> dict[str, Any]:
    draw = Draw("rerank", documents, relevant, length, seed, index)
    wanted, others = _choose_entries(draw, documents, relevant)
    entries = draw.shuffle(wanted + others)
    built = _build_documents(draw, entries, length)
    texts = built.context.split("\n\n")
    places = [entries.index(entry) for entry in wanted]
    numbers = [entry.number for entry in wanted]
    subjects = "; ".join(entry.subject for entry in wanted)
    asked = f"is {subjects} entered" if relevant == 1 else f"do we find each of these: {subjects}"
    depths = [built.depths[2 * place + 1] for place in places]
    return {
        "id": f"rerank-{documents}x{relevant}-{length}-s{seed}-{index:03d}",
        "context": built.context,
        "question": f"Under which number in the county register {asked}?",
        "answer": ", ".join(numbers),
        "answers": [numbers] if relevant > 1 else numbers,
        "evidence": [built.evidence[2 * place + 1] for place in places],
        "documents": [
            {"id": f"d{place}", "text": text, "title": f"{entry.sight.capitalize()}, {entry.place}"}
            for place, (entry, text) in enumerate(zip(entries, texts))
        ],
        "relevant_ids": [f"d{place}" for place in places],
        "dataset": "rerank",
        "meta": {"length": length, "depths": depths, "documents": documents, "relevant": relevant, "seed": seed},
    }


def _choose_entries(draw: Draw, documents: int, relevant: int) -> tuple[list[Entry], list[Entry]]:
    """Choose what the documents are about: the relevant ones, and the others; no two are the same."""
    names = Names(draw)
    towns = [start + ending for start in STARTS for ending in ENDINGS]
    sight = draw.pick(SIGHTS)
    wanted = [Entry(place, sight, names.value()) for place in draw.sample(towns, relevant)]
    taken = {(entry.place, entry.sight) for entry in wanted}
    others: list[Entry] = []
    while len(others) < documents - relevant:
        place, other = draw.pick(towns), draw.pick(SIGHTS)
        near = draw.pick(((draw.pick(wanted).place, other), (place, sight), (place, other)))
        if near not in taken:
            taken.add(near)
            others.append(Entry(*near, names.value()))
    return wanted, others


def _build_documents(draw: Draw, entries: list[Entry], length: int) -> Assembled:
    """Write a document for each entry: an opening, its statement, and prose before and after the latter."""
    prose = Prose(draw)
    count = len(entries)
    facts: list[Fact] = []
    for place, entry in enumerate(entries):
        start = place + 0.3 * draw.fraction() if place else 0.0  # documents differ in length
        opening = draw.pick(OPENINGS).format(sight=entry.sight, place=entry.place)
        facts.append(Fact("\n\n" + opening, opening, start / count))
        facts.append(Fact(" " + entry.statement, entry.statement, (place + 0.3 + 0.7 * draw.fraction()) / count))

    def sentence() -> str:
        if draw.chance(0.3):
            prose.turn()
        return " " + prose.sentence()

    stock = prose_stock(prose)
    return assemble(length, facts, Stock(sentence, stock.scrap, stock.glue, stock.render))
