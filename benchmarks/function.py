"""What a run costs beside a system that does nothing: a function in this process, as a ratio to a plain loop.

The plain loop calls the function, counts tokens, scores and keeps a dict. Ours also checks each example, gives the
function a copy of it, survives whatever it raises, times it in a thread of its own, and adds up the metrics.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.throughput import timed
from context_bench import evaluate
from context_bench.evaluators import AnswerQuality
from context_bench.utils.tokens import count_tokens

EXAMPLES = 5_000
ROUNDS = 5


def answer(example: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """Answer at once."""
    return {"response": "Paris"}


def loop(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Do the least that gives a score and token counts for each example."""
    evaluator, rows = AnswerQuality(), []
    for example in data:
        processed = answer(example)
        rows.append(
            {
                "id": example["id"],
                "scores": evaluator.score(example, processed),
                "input_tokens": count_tokens(example["context"]) + count_tokens(example["question"]),
                "output_tokens": count_tokens(processed["response"]),
            }
        )
    return rows


def ours(data: list[dict[str, Any]]) -> None:
    """Run the whole pipeline, without a store."""
    evaluate(answer, data, evaluators=[AnswerQuality()], progress=False)


def main() -> None:
    """Print microseconds an example, and the ratio."""
    data = [
        {"id": i, "context": "The capital of France is Paris", "question": "Which?", "answer": "Paris"}
        for i in range(EXAMPLES)
    ]
    for work in (loop, ours):
        work(data[:500])
    rounds = [(timed(lambda: loop(data)), timed(lambda: ours(data))) for _ in range(ROUNDS)]
    for place, what in ((0, "wall"), (1, "CPU")):
        plain, own = (statistics.median(each[k][place] for each in rounds) / EXAMPLES * 1e6 for k in (0, 1))
        print(f"function: {own:.0f} µs of {what} an example, {own / plain:.1f} times a plain loop ({plain:.0f} µs)")


if __name__ == "__main__":
    main()
