"""`kv`: look one key up in a JSON object of random keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from context_bench.datasets.synthetic.draw import Draw, check_cell, check_share, choose_depth, write_depth_tag
from context_bench.datasets.synthetic.fit import Fact, Stock, assemble, tokens

FLOOR = 90
USUAL = 51  # tokens of an entry: the mean


def kv(*, length: int = 4000, depth: float | None = None, n: int = 20, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for the value of one key; keys and values look like UUIDs.

    Where the length leaves a gap that no such entry fills, an entry has a shorter key and value.

    Args:
        length: tokens (cl100k_base) of each context; never exceeded, and met within 2%.
        depth: where the entry stands, from 0 (start) to 1 (end); None spreads the examples evenly over 0 to 1.
        n: how many examples.
        seed: the same seed gives the same bytes.
    """
    check_cell(length, FLOOR, n, seed, what="a JSON object")
    check_share("depth", depth)
    return (_make_example(length, depth, index, n, seed) for index in range(n))


def _make_example(length: int, depth: float | None, index: int, n: int, seed: int) -> dict[str, Any]:
    asked = choose_depth(depth, index, n)
    draw = Draw("kv", length, asked, seed, index)
    key, value = draw.uuid(), draw.uuid()
    entry = f'"{key}": "{value}"'
    stock = Stock(
        unit=lambda: _make_entry(draw),
        scrap=lambda: f'\n  "{draw.hexadecimal(8)}": "{draw.hexadecimal(draw.between(2, 12))}",',
        glue='",',
        render=_render,
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
        if abs(tokens(entry) - USUAL) <= 3:
            return entry


def _render(units: Sequence[str]) -> str:
    return "{" + "".join(units).removesuffix(",") + "\n}"
