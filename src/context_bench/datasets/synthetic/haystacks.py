"""Facts hidden in a long text: `needle`, `multi-needle`, `kv`, `tracking` and `aggregate`.

`needle` hides one fact at a given depth, `multi-needle` several. `kv` looks one key up in a JSON object. `tracking`
follows chains of variable assignments to their end. `aggregate` asks for the most frequent words of a list, so that
no small part of the context holds the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_bench.datasets.synthetic.building import (
    LABELS,
    Draw,
    Fact,
    Names,
    Stock,
    assemble,
    check_cell,
    check_share,
    check_whole,
    choose_depth,
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
    return {
        "id": f"needle-{length}-{write_depth_tag(depth, index, n)}-s{seed}-{index:03d}",
        "context": built.context,
        "question": f"What is the {hidden.label} for {hidden.subject}?",
        "answer": hidden.value,
        "answers": [hidden.value],
        "evidence": built.evidence,
        "dataset": "needle",
        "meta": {"length": length, "depth": built.depths[0], "asked_depth": asked, "seed": seed},
    }


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
    return {
        "id": f"multi-needle-{length}-k{needles}-s{seed}-{index:03d}",
        "context": built.context,
        "question": f"What is the {label} for {'each of these: ' if needles > 1 else ''}{subjects}?",
        "answer": ", ".join(values),
        "answers": [values],
        "evidence": [built.evidence[place] for place in order],
        "dataset": "multi-needle",
        "meta": {"length": length, "depths": depths, "needles": needles, "seed": seed},
    }


MIN_OBJECT_TOKENS = 90
ENTRY_TOKENS = 51  # tokens of an entry: the mean


def kv(*, length: int = 4000, depth: float | None = None, n: int = 20, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for the value of one key; keys and values look like UUIDs.

    Where the length leaves a gap that no such entry fills, an entry has a shorter key and value.
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
    return {
        "id": f"kv-{length}-{write_depth_tag(depth, index, n)}-s{seed}-{index:03d}",
        "context": built.context,
        "question": f'What is the value of the key "{key}" in the JSON object?',
        "answer": value,
        "answers": [value],
        "evidence": built.evidence,
        "dataset": "kv",
        "meta": {"length": length, "depth": built.depths[0], "asked_depth": asked, "seed": seed},
    }


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
    """Yield examples that ask for all variables that hold a value, directly or through other variables.

    A chain sets one variable to a number of its own and copies it `hops` times, always forwards in the text. One of the
    `chains` is asked for, the others distract. The gold answer has `hops + 1` parts: the variables, in the order of
    assignment. `evidence` is every assignment of the asked chain.
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
    depths = [built.depths[place] for place in asked]
    return {
        "id": f"tracking-{length}-h{hops}-c{chains}-s{seed}-{index:03d}",
        "context": built.context,
        "question": f"Which variables hold the value {values[0]}, directly or through other variables? Name them all.",
        "answer": ", ".join(members[0]),
        "answers": [members[0]],
        "evidence": [built.evidence[place] for place in asked],
        "dataset": "tracking",
        "meta": {"length": length, "depths": depths, "hops": hops, "chains": chains, "seed": seed},
    }


def _write_assignment(members: list[str], step: int, value: str) -> str:
    if step == 0:
        return f"The variable {members[0]} is set to {value}."
    return f"The variable {members[step]} is set to the value of {members[step - 1]}."


def _make_variables(draw: Draw, count: int) -> list[str]:
    """Make `count` different five-letter names, none of which is a word of the prose: those are lower case."""
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

    Each of them occurs at least twice as often as any other word. The gold answer has parts, which may be given in any
    order. There is no `evidence`: no small part of the context holds the answer.
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
    answer = ranked[:top]
    lines = (" ".join(dealt[start : start + WORDS_PER_LINE]) for start in range(0, size, WORDS_PER_LINE))
    most = f"{top} words occur" if top > 1 else "word occurs"
    meta = {"length": length, "top": top, "seed": seed, "words": size}
    return {
        "id": f"aggregate-{length}-top{top}-s{seed}-{index:03d}",
        "context": "\n".join(lines),
        "question": f"Which {most} most often in the list?",
        "answer": ", ".join(answer),
        "answers": [answer],
        "dataset": "aggregate",
        "meta": {**meta, "counts": counts[:top], "next_count": counts[top]},
    }


def _count_words_in(length: int) -> int:
    """Return how many words fill `length` tokens: one token each, and one for each line break."""
    lines, rest = divmod(length + 1, WORDS_PER_LINE + 1)  # a line takes WORDS_PER_LINE tokens and a break, but the last
    return lines * WORDS_PER_LINE + max(rest - 1, 0)


def _share_out(size: int, top: int) -> list[int]:
    """Share `size` words out: two fifths to the top, one to as many runners-up, the rest evenly to the others."""
    average = 2 * size // (5 * top)
    step = average // (2 * top)
    leaders = [average + step * (top - 1 - 2 * rank) // 2 for rank in range(top)]
    runners = [leaders[-1] // 2] * top
    left = size - sum(leaders) - sum(runners)
    even, extra = divmod(left, len(WORDS) - 2 * top)
    others = [even + (rank < extra) for rank in range(len(WORDS) - 2 * top)]
    return leaders + runners + others
