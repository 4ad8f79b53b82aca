"""Adapters: from one record of a public dataset to examples, one file for each family, one function for each dataset.

    def hotpotqa(record: Mapping[str, Any], where: Where) -> Iterator[Example]

An adapter is pure: the same record gives the same examples. It leaves `dataset` and (unless it differs by task)
`instruction` to the loader, and lets `KeyError` rise for a column that is not there: the loader says where.
A dataset whose files are not one record after another also has a reader, `(paths: list[Path]) -> Iterator[record]`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_bench.types import Example

__all__ = ["Adapter", "Reader", "Where", "permutation"]


@dataclass(frozen=True)
class Where:
    """The place of a record in its dataset.

    Attributes:
        config: The configuration that it belongs to; for one that stands for several, the one of them.
        split: The split.
        index: The number of the record in its configuration, from 0.
        name: The dataset, for adapters that serve several.
    """

    config: str
    split: str
    index: int
    name: str = ""


Adapter = Callable[[Mapping[str, Any], Where], Iterator[Example]]
Reader = Callable[[list[Path]], Iterator[Any]]


def permutation(seed_text: str, n: int) -> list[int]:
    """The numbers 0 to n-1 in an order that depends on the text alone, the same on every machine."""
    order = list(range(n))
    random.Random(hashlib.sha256(seed_text.encode("utf-8", "surrogatepass")).hexdigest()).shuffle(order)
    return order
