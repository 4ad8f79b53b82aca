"""`tracking`: chains of variable assignments, scattered in prose, that must be followed to the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_bench.datasets.synthetic.draw import Draw, Names, check_cell, check_whole
from context_bench.datasets.synthetic.fit import Fact, assemble
from context_bench.datasets.synthetic.prose import Prose, prose_stock

CONSONANTS, VOWELS = "BDFGKLMNPRSTVZ", "AEIOU"


def tracking(
    *, length: int = 4000, hops: int = 4, chains: int = 2, n: int = 20, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for all variables that hold a value, directly or through other variables.

    A chain sets one variable to a number and copies it `hops` times, always forwards in the text; one chain is
    asked for, the others distract. The gold answer has parts: the variables, in the order of assignment.
    `evidence` is every assignment of the asked chain.

    Args:
        length: tokens (cl100k_base) of each context; never exceeded, and met within 2%.
        hops: how often the value is copied on; there are `hops + 1` variables to name.
        chains: how many chains there are, each with a value of its own.
        n: how many examples.
        seed: the same seed gives the same bytes.
    """
    check_whole("hops", hops, 0, 30)
    check_whole("chains", chains, 1, 30)
    floor = 50 + 18 * (hops + 1) * chains
    check_cell(length, floor, n, seed, what=f"hops={hops} in chains={chains}")
    return (_make_example(length, hops, chains, index, seed) for index in range(n))


def _make_example(length: int, hops: int, chains: int, index: int, seed: int) -> dict[str, Any]:
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
    return {
        "id": f"tracking-{length}-h{hops}-c{chains}-s{seed}-{index:03d}",
        "context": built.context,
        "question": f"Which variables hold the value {values[0]}, directly or through other variables? Name them all.",
        "answer": ", ".join(members[0]),
        "answers": [members[0]],
        "evidence": [built.evidence[place] for place in asked],
        "dataset": "tracking",
        "meta": {
            "length": length,
            "depths": [built.depths[place] for place in asked],
            "hops": hops,
            "chains": chains,
            "seed": seed,
        },
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
