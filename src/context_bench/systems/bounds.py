"""The floor and the ceiling that every other system lies between."""

from __future__ import annotations

from context_bench.text.golds import evidence_texts
from context_bench.traits import SystemTraits, find_parts
from context_bench.types import Example

__all__ = ["ClosedBook", "Oracle", "Passthrough", "reads_no_context"]


class Passthrough:
    """Changes nothing."""

    reads_gold = False

    def __init__(self) -> None:
        self.name = "passthrough"
        self.fingerprint = "passthrough/1"

    def process(self, example: Example) -> Example:
        """Return the example as it came."""
        return example


class ClosedBook:
    """Drops the whole context: what can be answered from memory alone. Of a conversation the last question is left."""

    reads_gold = False

    def __init__(self) -> None:
        self.name = "closed-book"
        self.fingerprint = "closed-book/2"

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(is_bound=True)

    def process(self, example: Example) -> Example:
        """Return an empty context, and no documents; without a context to drop, the last turn of the user alone."""
        result: Example = {"context": "", **({"documents": []} if "documents" in example else {})}
        if example.get("turns") and not example.get("context"):
            result["turns"] = [turn for turn in example["turns"] if turn.get("role") == "user"][-1:]
        return result


def reads_no_context(system: object) -> bool:
    """Whether a system is the floor, alone or with a model behind it."""
    return isinstance(system, ClosedBook) or any(isinstance(part, ClosedBook) for part in find_parts(system))


class Oracle:
    """Keeps the evidence and nothing else. It looks at the gold, so it is a bound, not a competitor.

    Without evidence nothing can be left out safely: the context stays whole, and the row says so in `not_applied`. A
    run in which no example has evidence does not rank it.
    """

    reads_gold = True

    def __init__(self) -> None:
        self.name = "oracle"
        self.fingerprint = "oracle/1"

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(is_bound=True)

    def process(self, example: Example) -> Example:
        """Return the evidence, in its order; of documents the relevant ones."""
        texts = evidence_texts(example)
        result: Example = {"context": "\n".join(texts) if texts else example["context"]}
        chooses = "documents" in example and "relevant_ids" in example
        if chooses:
            relevant = set(example["relevant_ids"])
            result["documents"] = [item for item in example["documents"] if item["id"] in relevant]
        if not texts and not chooses:
            result["metadata"] = {"not_applied": "the example has no evidence, so that the context stayed whole"}
        return result
