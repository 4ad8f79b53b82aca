"""How long the comparison of two texts of a megabyte takes: processor time, by the kind of change."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from context_bench.registry import registry
from context_bench.systems.reference import split
from context_bench.traffic.text_diff import diff_texts

LENGTH = 1_000_000


def _drop(pieces: list[str], rng: random.Random) -> list[str]:
    return [piece for piece in pieces if rng.random() < 0.3]


def _drop_words(pieces: list[str], rng: random.Random) -> list[str]:
    return [" ".join(word for word in piece.split(" ") if rng.random() < 0.7) for piece in pieces]


def _shuffle(pieces: list[str], rng: random.Random) -> list[str]:
    return rng.sample(pieces, len(pieces))


def main() -> None:
    """Print the seconds for each kind of change."""
    example = next(iter(registry.get("dataset", "needle")(length=LENGTH // 4, n=1)))
    pieces = split(str(example["context"])[:LENGTH])
    changes: dict[str, Callable[[list[str], random.Random], list[str]]] = {
        "sentences dropped": _drop,
        "words dropped": _drop_words,
        "sentences in another order": _shuffle,
    }
    before = "".join(pieces)
    for name, change in changes.items():
        after = "".join(change(pieces, random.Random(1)))
        began = time.process_time()
        diff_texts(before, after)
        print(f"diff: {time.process_time() - began:.2f} s for {len(before):,} characters, {name}")


if __name__ == "__main__":
    main()
