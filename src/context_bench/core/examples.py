"""The examples of a run: read one by one, checked, and counted in advance where that can be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice

from context_bench.datasets.catalog import card_for
from context_bench.datasets.example_check import ExampleCheck
from context_bench.monitors.progress import StatusLine
from context_bench.traits import dataset_traits
from context_bench.types import Example

__all__ = ["count_examples", "read_examples"]


def read_examples(
    dataset: Iterable[Example], max_examples: int | None, see: Callable[[Example], None] = lambda _: None
) -> Iterator[Example]:
    """Yield each example after it was checked and shown to `see`, with the instruction of its dataset added."""
    check = ExampleCheck()
    instruction_of = cache(_find_instruction)
    for number, example in enumerate(islice(dataset, max_examples), 1):
        check(example, f"example {number}")
        if "context" not in example:  # a conversation that has none beside its turns
            example = {**example, "context": ""}
        see(example)
        instruction = instruction_of(str(example.get("dataset") or ""))
        yield {"instruction": instruction, **example} if instruction else example


def _find_instruction(tag: str) -> str:
    """Find the instruction about the form of an answer on a dataset's card."""
    card = card_for(tag)
    return card.instruction if card else ""


def count_examples(dataset: Iterable[Example], max_examples: int | None, progress: bool) -> int | None:
    """Count the examples that there will be, if that can be told; a dataset that can check itself does so first."""
    traits = dataset_traits(dataset)
    if traits.check is not None:
        with StatusLine(lambda _: f"checking the data: {traits.count_checked():,} examples so far", enabled=progress):
            traits.check()
    try:
        total = len(dataset)  # type: ignore[arg-type]
    except TypeError:
        return max_examples
    return total if max_examples is None else min(total, max_examples)
