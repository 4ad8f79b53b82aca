"""What it costs to find out that nothing is left to do: a finished run of 50,000 rows, resumed."""

from __future__ import annotations

import tempfile
import time

from benchmarks.mock_server import serving
from benchmarks.throughput import CONCURRENCY, examples

EXAMPLES = 50_000


def main() -> None:
    """Print CPU seconds and requests of the second run."""
    from context_bench import OpenAIProxy, evaluate
    from context_bench.evaluators import AnswerQuality

    data = examples(EXAMPLES)
    with tempfile.TemporaryDirectory() as folder:

        def run(url: str) -> float:
            started = time.process_time()
            result = evaluate(
                OpenAIProxy(url, model="mock", name="mock"),
                data,
                evaluators=[AnswerQuality()],
                max_workers=CONCURRENCY,
                cache_dir=folder,
                progress=False,
            )
            assert len(result.rows) == EXAMPLES
            assert not result.summary["mock"]["num_errors"]
            return time.process_time() - started

        with serving() as url:
            first = run(url)
        # The server is gone: any request would fail the run.
        second = run(url)
    print(f"resume: {second:.2f} s of CPU for {EXAMPLES:,} finished rows, no request ({first / second:.1f} times less)")


if __name__ == "__main__":
    main()
