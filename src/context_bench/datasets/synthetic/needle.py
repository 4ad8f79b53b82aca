"""`needle`: one fact in a long text, at a given length and depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_bench.datasets.synthetic import parameter_check
from context_bench.datasets.synthetic.depth import choose_depth, write_depth_tag
from context_bench.datasets.synthetic.draw import Draw
from context_bench.datasets.synthetic.fit import Fact, assemble
from context_bench.datasets.synthetic.names import LABELS, Names, secret
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
    parameter_check.check_cell(length, FLOOR, n, seed, what="a needle")
    parameter_check.check_share("depth", depth)
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
