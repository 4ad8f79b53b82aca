"""Ten systems by 10,000 rows take less than a second of one core; nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys
import time

from context_bench.stats import Contrast, PairedSums, judge_family, paired_difference


def test_ten_systems_by_ten_thousand_rows() -> None:
    scores = [[float((place * 7 + system * place) % 10 < 7) for place in range(10_000)] for system in range(10)]
    start = time.process_time()
    contrasts = []
    for number, system in enumerate(scores[1:]):
        pairs = PairedSums()
        for first, second in zip(system, scores[0]):
            pairs.add(first, second)
        contrasts.append(Contrast(str(number), paired_difference(pairs)))
    assert len(judge_family(contrasts)) == 9
    assert time.process_time() - start < 1


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, context_bench.stats\n"
        "print([name for name in ('numpy', 'scipy', 'random', 'statistics', 'asyncio') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
