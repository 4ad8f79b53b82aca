"""What controls at the same size cost: processor time for 1,000 examples of 4,000 tokens, for each further system."""

from __future__ import annotations

import time

from context_bench.evaluators.evidence_map import locate_evidence
from context_bench.registry import registry
from context_bench.utils.tokens import count_tokens

EXAMPLES, LENGTH = 1_000, 4_000


def main() -> None:
    """Print the seconds for locating the evidence once, and for judging the cuts of one system."""
    given = list(registry.get("dataset", "needle")(length=LENGTH, n=EXAMPLES))
    began = time.process_time()
    maps = [locate_evidence(example, count_tokens) for example in given]
    located = time.process_time() - began
    began = time.process_time()
    for place, found in enumerate(maps):
        assert found is not None
        found.score_controls(LENGTH * (place % 9 + 1) // 10)
    judged = time.process_time() - began
    print(f"blind spots: {located:.2f} s to locate the evidence of {EXAMPLES:,} examples of {LENGTH:,} tokens, once")
    print(f"blind spots: {judged:.2f} s for the controls of each system")


if __name__ == "__main__":
    main()
