"""How long the statistics take, on one core.

    python -m benchmarks.stats_speed

Ten systems by 10,000 rows with every pair against the baseline (under 1 s); what 1,000 rows of one system against
another cost (under 0.1 s, import included); two runs of 50,000 rows compared as they stream past (under 5 s), with the
memory it takes.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator

SYSTEMS, ROWS = 10, 10_000

SMALL = """
import random, time
source = random.Random(0)
scores = [[float(source.random() < 0.8) for _ in range(1000)] for _ in range(2)]
start = time.process_time()
from context_bench.stats import Contrast, Moments, PairedSums, Values, RatioSums
from context_bench.stats import judge_family, mean_interval, paired_difference, quantile_interval, ratio_interval
pairs = PairedSums()
for first, second in zip(*scores):
    pairs.add(first, second)
for side in scores:
    moments, values, ratios = Moments(), Values(), RatioSums()
    for score in side:
        moments.add(score)
        values.add(score + 0.5)
        ratios.add(100, 200)
    mean_interval(moments), ratio_interval(ratios), [quantile_interval(values, share) for share in (0.5, 0.95, 0.99)]
judge_family([Contrast("mine", paired_difference(pairs))])
print(time.process_time() - start)
"""


def time_families() -> float:
    """Seconds for means, pairs, verdicts of ten systems, from scores in lists."""
    from context_bench.stats import Contrast, Moments, PairedSums, judge_family, mean_interval, paired_difference

    source = random.Random(0)
    scores = [[source.choice((0.0, 0.25, 0.5, 1.0)) for _ in range(ROWS)] for _ in range(SYSTEMS)]
    start = time.process_time()
    contrasts = []
    for system in scores:
        moments = Moments()
        for score in system:
            moments.add(score)
        mean_interval(moments)
    for place, system in enumerate(scores[1:]):
        pairs = PairedSums()
        for first, second in zip(system, scores[0]):
            pairs.add(first, second)
        contrasts.append(Contrast(f"system {place}", paired_difference(pairs)))
    judge_family(contrasts)
    return time.process_time() - start


def time_small_run() -> float:
    """Seconds in a new process, with the import."""
    done = subprocess.run([sys.executable, "-c", SMALL], capture_output=True, text=True, check=True)
    return float(done.stdout)


def time_comparison(rows: int = 50_000) -> tuple[float, float]:
    """Seconds, and megabytes at most, for two streams."""
    from context_bench.compare.pairing import Pairing, Pairs, ScoredAnswer

    def stream(seed: int) -> Iterator[ScoredAnswer]:
        source = random.Random(seed)
        for place in range(rows):
            yield ScoredAnswer(str(place), "data", float(source.random() < 0.8), group=f"c{place // 10}")

    def compare() -> None:
        pairs = Pairs()
        pairing = Pairing(["system"], "baseline", lambda _, own, baseline: pairs.add(own, baseline))
        for own, baseline in zip(stream(0), stream(1)):
            pairing.add("system", own)
            pairing.add("baseline", baseline)
        pairs.contrast()

    start = time.process_time()
    compare()
    seconds = time.process_time() - start
    tracemalloc.start()
    compare()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak / 1e6


def main() -> None:
    """Print the three."""
    print(f"{SYSTEMS} systems by {ROWS:,} rows, all against the baseline: {time_families():.2f} s of CPU (bar: 1)")
    print(f"1,000 rows, import included: {min(time_small_run() for _ in range(5)):.3f} s of CPU (bar: 0.1)")
    seconds, megabytes = time_comparison()
    print(f"two runs of 50,000 rows in clusters of ten: {seconds:.2f} s of CPU (bar: 5), {megabytes:.1f} MB at most")


if __name__ == "__main__":
    main()
