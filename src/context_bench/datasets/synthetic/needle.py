"""`needle` and `multi-needle`: one fact, or several, in a long text, at a given length and depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_bench.datasets.synthetic.draw import (
    LABELS,
    Draw,
    Names,
    check_cell,
    check_share,
    check_whole,
    choose_depth,
    secret,
    write_depth_tag,
)
from context_bench.datasets.synthetic.fit import Fact, assemble
from context_bench.datasets.synthetic.prose import Prose, prose_stock

FLOOR = 60


def needle(*, length: int = 4000, depth: float | None = None, n: int = 20, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for one six-digit value, stated in one sentence of otherwise digit-free prose.

    Args:
        length: tokens (cl100k_base) of each context; never exceeded, and met within 2%.
        depth: where the sentence stands, from 0 (start) to 1 (end); None spreads the examples evenly over 0 to 1.
        n: how many examples.
        seed: the same seed gives the same bytes.
    """
    check_cell(length, FLOOR, n, seed, what="a needle")
    check_share("depth", depth)
    return (_make_example(length, depth, index, n, seed) for index in range(n))


def _make_example(length: int, depth: float | None, index: int, n: int, seed: int) -> dict[str, Any]:
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
    """Yield examples that ask for `needles` values, scattered over the whole of the text.

    The gold answer has parts: `answers` is `[[value, ...]]`, and a right reply gives all of them. `evidence`
    and `meta["depths"]` are in the order of the question, which is not the order of the text.

    Args:
        length: tokens (cl100k_base) of each context; never exceeded, and met within 2%.
        needles: how many facts are hidden and asked for, 1 to 64.
        n: how many examples.
        seed: the same seed gives the same bytes.
    """
    check_whole("needles", needles, 1, MAX_NEEDLES)
    check_cell(length, 30 + 30 * needles, n, seed, what=f"needles={needles}")
    return (_make_multi_example(length, needles, index, seed) for index in range(n))


def _make_multi_example(length: int, needles: int, index: int, seed: int) -> dict[str, Any]:
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
    return {
        "id": f"multi-needle-{length}-k{needles}-s{seed}-{index:03d}",
        "context": built.context,
        "question": f"What is the {label} for {_list_subjects([secrets[place].subject for place in order])}?",
        "answer": ", ".join(values),
        "answers": [values],
        "evidence": [built.evidence[place] for place in order],
        "dataset": "multi-needle",
        "meta": {
            "length": length,
            "depths": [built.depths[place] for place in order],
            "needles": needles,
            "seed": seed,
        },
    }


def _list_subjects(subjects: list[str]) -> str:
    if len(subjects) == 1:
        return subjects[0]
    return "each of these: " + "; ".join(subjects)
