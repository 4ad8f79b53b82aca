"""The order in which examples are run that may be stopped early: random, by seed, and fixed before the run.

Each dataset is put in an order of its own by drawing its clusters (a document, a conversation; an example that shares
nothing is one by itself), and cut into as many parts as there are looks, at the end of a cluster. A look then has the
same parts of all datasets, so that none of them is judged by the others. The draw depends on the seed and on ids alone:
a run that is resumed takes the same looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from context_bench.errors import UsageError
from context_bench.types import Example

__all__ = ["LOOKS", "LookOrder", "order_for_looks"]

LOOKS = 5


@dataclass(frozen=True)
class LookOrder:
    """Examples in the order in which they are run, and how many of them each look has."""

    examples: list[Example]
    sizes: list[int]
    seed: int

    def describe(self) -> dict[str, Any]:
        """Describe it as JSON can hold it."""
        return {"planned": len(self.examples), "sizes": self.sizes, "seed": self.seed}


def order_for_looks(
    examples: Iterable[Example], seed: int, find_cluster_field: Callable[[str], str | None] = lambda _: "group"
) -> LookOrder:
    """Read all examples and put them in their order.

    Args:
        examples: All that are planned.
        seed: For the draw.
        find_cluster_field: The field of `meta` that names what the examples of a dataset tag share.

    Raises:
        UsageError: There are fewer examples than looks.
    """
    datasets: dict[str, dict[tuple[str, str], list[Example]]] = {}
    for example in examples:
        tag = str(example.get("dataset") or "")
        cluster = _find_cluster(example, find_cluster_field(tag))
        datasets.setdefault(tag, {}).setdefault(cluster, []).append(example)
    planned = sum(len(group) for clusters in datasets.values() for group in clusters.values())
    if planned < LOOKS:
        raise UsageError(
            f"--stop-when-decided takes {LOOKS} looks, and there must be at least as many examples (got {planned})"
        )
    placed: list[tuple[int, float, str, int, Example]] = []
    for tag, clusters in datasets.items():
        ordered = sorted(clusters.items(), key=lambda item: _draw(seed, tag, *item[0]))
        placed += _place([group for _, group in ordered], tag)
    placed.sort(key=lambda item: item[:4])
    sizes = [sum(item[0] <= look for item in placed) for look in range(1, LOOKS + 1)]
    return LookOrder([item[-1] for item in placed], sizes, seed)


def _find_cluster(example: Example, field: str | None) -> tuple[str, str]:
    """Find what an example shares with others, as rows do; else it is one by itself."""
    meta = example.get("meta")
    cluster = meta.get(field) if isinstance(meta, Mapping) else None
    if isinstance(cluster, str | int):
        return "cluster", str(cluster)
    return type(example["id"]).__name__, str(example["id"])


def _place(groups: list[list[Example]], tag: str) -> list[tuple[int, float, str, int, Example]]:
    """Give each example of a dataset its look, and how far in the dataset it comes: datasets are mixed by that."""
    total = sum(map(len, groups))
    placed, before = [], 0
    for group in groups:
        # the first look by whose end the cluster has begun: it then holds at least its part of the dataset
        look = before * LOOKS // total + 1
        placed += [(look, (before + place) / total, tag, before + place, each) for place, each in enumerate(group)]
        before += len(group)
    return placed


def _draw(seed: int, tag: str, kind: str, name: str) -> bytes:
    text = f"{seed}\0{tag}\0{kind}\0{name}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=16).digest()
