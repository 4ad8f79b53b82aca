"""Facts hidden in a long text: `needle`, `multi-needle`, `kv`, `tracking`, `aggregate` and `rerank`.

`needle` hides one fact at a given depth, `multi-needle` several. `kv` looks one key up in a JSON object. `tracking`
follows chains of variable assignments to their end. `aggregate` asks for the most frequent words of a list, so no small
part of the context contains the answer. `rerank` has a list of documents: a few answer the question, and the others
only look as if they did.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from context_bench.datasets.synthetic.building import (
    LABELS,
    Assembled,
    Draw,
    Fact,
    Names,
    Stock,
    assemble,
    check_cell,
    check_share,
    check_whole,
    choose_depth,
    make_example,
    phrases,
    secret,
    tokens,
    words,
    write_depth_tag,
)
from context_bench.datasets.synthetic.prose import Prose, prose_stock

MIN_NEEDLE_TOKENS = 60


def needle(*, length: int = 4000, depth: float | None = None, n: int = 20, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for one six-digit value, stated in one sentence of otherwise digit-free prose."""
    check_cell(length, MIN_NEEDLE_TOKENS, n, seed, what="a needle")
    check_share("depth", depth)
    return (_make_needle(length, depth, index, n, seed) for index in range(n))


def _make_needle(length: int, depth: float | None, index: int, n: int, seed: int) -> dict[str, Any]:
    asked = choose_depth(depth, index, n)
    draw = Draw("needle", length, asked, seed, index)
    hidden = secret(draw, Names(draw), draw.pick(LABELS))
    built = assemble(length, [Fact(" " + hidden.sentence, hidden.sentence, asked)], prose_stock(Prose(draw)))
    cell = f"{length}-{write_depth_tag(depth, index, n)}-s{seed}-{index:03d}"
    question = f"What is the {hidden.label} for {hidden.subject}?"
    meta = {"length": length, "depth": built.depths[0], "asked_depth": asked, "seed": seed}
    return make_example("needle", cell, built.context, question, [hidden.value], meta, evidence=built.evidence)


MAX_NEEDLES = 64


def multi_needle(*, length: int = 4000, needles: int = 4, n: int = 20, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for `needles` values (1 to 64), scattered over the whole of the text.

    The gold answer has parts: `answers` is `[[value, ...]]`, and a right reply gives all of them. `evidence` and
    `meta["depths"]` are in the order of the question, which is not the order of the text.
    """
    check_whole("needles", needles, 1, MAX_NEEDLES)
    check_cell(length, 30 + 30 * needles, n, seed, what=f"needles={needles}")
    return (_make_needles(length, needles, index, seed) for index in range(n))


def _make_needles(length: int, needles: int, index: int, seed: int) -> dict[str, Any]:
    draw = Draw("multi-needle", length, needles, seed, index)
    names, label = Names(draw), draw.pick(LABELS)
    secrets = [secret(draw, names, label) for _ in range(needles)]
    facts = [
        Fact(" " + hidden.sentence, hidden.sentence, (place + draw.fraction()) / needles)
        for place, hidden in enumerate(secrets)
    ]
    built = assemble(length, facts, prose_stock(Prose(draw)))
    order = draw.shuffle(range(needles))
    values = [secrets[place].value for place in order]
    subjects = "; ".join(secrets[place].subject for place in order)
    depths = [built.depths[place] for place in order]
    cell = f"{length}-k{needles}-s{seed}-{index:03d}"
    question = f"What is the {label} for {'each of these: ' if needles > 1 else ''}{subjects}?"
    meta = {"length": length, "depths": depths, "needles": needles, "seed": seed}
    evidence = [built.evidence[place] for place in order]
    return make_example("multi-needle", cell, built.context, question, [values], meta, evidence=evidence)


MIN_OBJECT_TOKENS = 90
ENTRY_TOKENS = 51  # tokens of an entry: the mean


def kv(*, length: int = 4000, depth: float | None = None, n: int = 20, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for the value of one key; keys and values look like UUIDs.

    If the length leaves a gap that no such entry fills, one entry has a shorter key and value.
    """
    check_cell(length, MIN_OBJECT_TOKENS, n, seed, what="a JSON object")
    check_share("depth", depth)
    return (_make_lookup(length, depth, index, n, seed) for index in range(n))


def _make_lookup(length: int, depth: float | None, index: int, n: int, seed: int) -> dict[str, Any]:
    asked = choose_depth(depth, index, n)
    draw = Draw("kv", length, asked, seed, index)
    key, value = draw.uuid(), draw.uuid()
    entry = f'"{key}": "{value}"'
    stock = Stock(
        unit=lambda: _make_entry(draw),
        scrap=lambda: f'\n  "{draw.hexadecimal(8)}": "{draw.hexadecimal(draw.between(2, 12))}",',
        glue='",',
        render=lambda units: "{" + "".join(units).removesuffix(",") + "\n}",
    )
    built = assemble(length, [Fact(f"\n  {entry},", entry, asked)], stock)
    cell = f"{length}-{write_depth_tag(depth, index, n)}-s{seed}-{index:03d}"
    question = f'What is the value of the key "{key}" in the JSON object?'
    meta = {"length": length, "depth": built.depths[0], "asked_depth": asked, "seed": seed}
    return make_example("kv", cell, built.context, question, [value], meta, evidence=built.evidence)


def _make_entry(draw: Draw) -> str:
    """Make an entry of about the usual size, so that depth by tokens and depth by characters agree."""
    while True:
        entry = f'\n  "{draw.uuid()}": "{draw.uuid()}",'
        if abs(tokens(entry) - ENTRY_TOKENS) <= 3:
            return entry


CONSONANTS, VOWELS = "BDFGKLMNPRSTVZ", "AEIOU"


def tracking(
    *, length: int = 4000, hops: int = 4, chains: int = 2, n: int = 20, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for all variables with a given value, directly or through other variables.

    A chain sets one variable to its own number and copies it `hops` times, always forwards in the text. The question is
    about one of the `chains`; the other chains distract. The gold answer has `hops + 1` parts: the variables, in the
    order of assignment. `evidence` is every assignment of the asked chain.
    """
    check_whole("hops", hops, 0, 30)
    check_whole("chains", chains, 1, 30)
    floor = 50 + 18 * (hops + 1) * chains
    check_cell(length, floor, n, seed, what=f"hops={hops} in chains={chains}")
    return (_make_chains(length, hops, chains, index, seed) for index in range(n))


def _make_chains(length: int, hops: int, chains: int, index: int, seed: int) -> dict[str, Any]:
    draw = Draw("tracking", length, hops, chains, seed, index)
    numbers = Names(draw)
    values = [numbers.value() for _ in range(chains)]
    variables = _make_variables(draw, chains * (hops + 1))
    members = [variables[chain * (hops + 1) : (chain + 1) * (hops + 1)] for chain in range(chains)]
    steps = [0] * chains
    facts: list[Fact] = []
    asked: list[int] = []
    turns = draw.shuffle([chain for chain in range(chains) for _ in range(hops + 1)])
    for place, chain in enumerate(turns):
        text = _write_assignment(members[chain], steps[chain], values[chain])
        steps[chain] += 1
        if chain == 0:
            asked.append(place)
        facts.append(Fact(" " + text, text, (place + draw.fraction()) / len(turns)))
    built = assemble(length, facts, prose_stock(Prose(draw)))
    cell = f"{length}-h{hops}-c{chains}-s{seed}-{index:03d}"
    question = f"Which variables hold the value {values[0]}, directly or through other variables? Name them all."
    depths = [built.depths[place] for place in asked]
    meta = {"length": length, "depths": depths, "hops": hops, "chains": chains, "seed": seed}
    evidence = [built.evidence[place] for place in asked]
    return make_example("tracking", cell, built.context, question, [members[0]], meta, evidence=evidence)


def _write_assignment(members: list[str], step: int, value: str) -> str:
    if step == 0:
        return f"The variable {members[0]} is set to {value}."
    return f"The variable {members[step]} is set to the value of {members[step - 1]}."


def _make_variables(draw: Draw, count: int) -> list[str]:
    """Make `count` different five-letter names; no name is a word of the prose, where words are in lower case."""
    names: dict[str, None] = {}
    while len(names) < count:
        c, v = CONSONANTS, VOWELS
        names["".join(draw.pick(letters) for letters in (c, v, c, v, c))] = None
    return list(names)


WORDS_PER_LINE = 16

# Each of these is one cl100k_base token, both at the start of a line and after a space.
WORDS = words(
    """apple arm baby bag ball band bank bar bear bed bell belt bird block blood board boat body bone book boot
    border box boy brain branch bread bridge brush bucket building bus button cake camera camp card castle cat
    cell chain chair chalk channel chart chest child circle city class clock cloth cloud club coal coat coffee
    column corn corner country cow cream crew cross cup curve dance daughter deer desk diamond dish doctor dog
    door dream dress ear earth edge egg engine eye face factory family farm father field finger fire fish flag
    floor flower food foot forest fork frame friend frog fruit fuel game gate ghost gift girl glass goal gold
    grass ground guard guest guide hair hall hammer hand hat head heart hill hole home hook horn horse hospital
    hotel house ice image ink iron jar judge key king knife lab lake lamp land language law leaf leg letter
    library light lion lip lock machine map market mask meal memory metal mill mirror money moon mother motor
    mouse mouth movie music neck needle net night noise nut office oil orange oven page paint pan paper park party
    path pen phone photo picture pig pin pipe plane plant plate pool port pot price queen rabbit race radio rail
    rain rice ring river road rock roof room root rose route salt sand scale school sea seat seed shadow sheet
    shell ship shirt shop silver skin sky snake snow soap son song soup spring square stage stamp star station
    steam steel stick stone store storm story street string student suit summer sun table tail team tent thread
    throat ticket tin tool tower town toy track train tree truck tube voice wall water wave wheel window wine wing
    winter wire wolf wood worm yard"""
)


def aggregate(*, length: int = 4000, top: int = 3, n: int = 20, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for the `top` (1 to 20) most frequent words of a shuffled list.

    Each of these words occurs at least twice as often as any other word. The gold answer has parts, which may be given
    in any order. There is no `evidence`, because no small part of the context contains the answer.
    """
    check_whole("top", top, 1, 20)
    check_cell(length, 30 + 30 * top, n, seed, what=f"a list with top={top}")
    return (_make_list(length, top, index, seed) for index in range(n))


def _make_list(length: int, top: int, index: int, seed: int) -> dict[str, Any]:
    draw = Draw("aggregate", length, top, seed, index)
    ranked = draw.shuffle(WORDS)
    size = _count_words_in(length)
    counts = _share_out(size, top)
    dealt = draw.shuffle([word for word, count in zip(ranked, counts) for _ in range(count)])
    lines = (" ".join(dealt[start : start + WORDS_PER_LINE]) for start in range(0, size, WORDS_PER_LINE))
    most = f"{top} words occur" if top > 1 else "word occurs"
    meta: dict[str, Any] = {"length": length, "top": top, "seed": seed, "words": size}
    meta |= {"counts": counts[:top], "next_count": counts[top]}
    cell, question = f"{length}-top{top}-s{seed}-{index:03d}", f"Which {most} most often in the list?"
    return make_example("aggregate", cell, "\n".join(lines), question, [ranked[:top]], meta)


def _count_words_in(length: int) -> int:
    """Return how many words fill `length` tokens; each word is one token, and so is each line break."""
    lines, rest = divmod(length + 1, WORDS_PER_LINE + 1)  # a line takes WORDS_PER_LINE tokens and a break, but the last
    return lines * WORDS_PER_LINE + max(rest - 1, 0)


def _share_out(size: int, top: int) -> list[int]:
    """Divide `size` words: two fifths for the top words, one fifth for as many next words, the rest evenly for all
    others."""
    average = 2 * size // (5 * top)
    step = average // (2 * top)
    leaders = [average + step * (top - 1 - 2 * rank) // 2 for rank in range(top)]
    runners = [leaders[-1] // 2] * top
    left = size - sum(leaders) - sum(runners)
    even, extra = divmod(left, len(WORDS) - 2 * top)
    others = [even + (rank < extra) for rank in range(len(WORDS) - 2 * top)]
    return leaders + runners + others


DOCUMENT_TOKENS, MIN_DOCUMENT_TOKENS = 100, 75  # tokens of a document

TOWN_STARTS = words("Ash Brem Cald Dor Ell Fen Gal Hol Ish Kel Lor Mar Nor Orm Pel Quar Ren Sel Tarn Ulm")
TOWN_ENDS = words("bury combe dale ford gate ham holt ley mere minster moor port stead thorpe ton wick")
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

    The other documents are about another building of the same place, the same building elsewhere, or neither, and each
    states another number. With several relevant documents, the gold answer has one part from each; `relevant_ids` and
    `evidence` are in the same order. `context` is the texts joined by blank lines; without `length` it has 100 tokens
    for each document.
    """
    check_whole("documents", documents, 1, 2000)
    check_whole("relevant", relevant, 1, min(20, documents))
    total = DOCUMENT_TOKENS * documents if length is None else length
    check_cell(total, MIN_DOCUMENT_TOKENS * documents, n, seed, what=f"documents={documents}")
    return (_make_documents(documents, relevant, index, seed, total) for index in range(n))


def _make_documents(documents: int, relevant: int, index: int, seed: int, length: int) -> dict[str, Any]:
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
    """Choose a unique subject for each document, relevant or not."""
    names = Names(draw)
    towns = [start + ending for start in TOWN_STARTS for ending in TOWN_ENDS]
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
    """Write a document for each entry: an opening, and the entry's statement with prose before and after it."""
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
