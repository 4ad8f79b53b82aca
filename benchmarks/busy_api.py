"""How long 120 requests take against a paid API on a busy day: 1 s ± 30% an answer, 5% of them refused with 429.

The server says Retry-After 2. Nearly all of the time is sleep, so that other work on the machine hardly counts.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.mock_server import serving
from benchmarks.throughput import examples

EXAMPLES, ROUNDS = 120, 3


def main() -> None:
    """Print the seconds without refusals and with them, for few and for many workers."""
    from context_bench import OpenAIProxy, evaluate
    from context_bench.evaluators import AnswerQuality

    data = examples(EXAMPLES)
    for workers in (8, 40):
        for refused in (0.0, 0.05):
            taken = []
            for _ in range(ROUNDS):
                with serving(delay=1.0, spread=0.3, refused=refused) as url:
                    proxy = OpenAIProxy(url, model="mock")
                    began = time.perf_counter()
                    result = evaluate(proxy, data, evaluators=[AnswerQuality()], max_workers=workers, progress=False)
                    taken.append(time.perf_counter() - began)
                assert not result.summary[proxy.name]["num_errors"]
            print(
                f"busy API: {statistics.median(taken):.1f} s (most {max(taken):.1f}) for {EXAMPLES} requests of 1 s "
                f"± 30% with {workers} workers, {refused:.0%} refused with 429",
                flush=True,
            )


if __name__ == "__main__":
    main()
