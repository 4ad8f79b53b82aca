"""What a store takes on disk: 1,000 contexts of 100 KB, as a share of their text."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.throughput import LONG, examples

EXAMPLES = 1_000


def main() -> None:
    """Print megabytes and the share."""
    from context_bench import evaluate
    from context_bench.evaluators import AnswerQuality

    data = examples(EXAMPLES, LONG)
    text = sum(len(example["context"].encode()) for example in data)
    with tempfile.TemporaryDirectory() as folder:
        evaluate(
            lambda example: {"response": "Paris"},  # noqa: ARG005
            data,
            evaluators=[AnswerQuality()],
            cache_dir=folder,
            progress=False,
        )
        size = sum(file.stat().st_size for file in Path(folder).rglob("*"))
    print(f"store size: {size / 1e6:.0f} MB for {text / 1e6:.0f} MB of contexts, {size / text:.2f} of their text")


if __name__ == "__main__":
    main()
