"""Self-test of the decisions: claims that are true or false by construction, and error rates on simulated effects.

Each simulated claim is at the edge of its tolerance: the true value is the last one that the claim allows. If
the value counts as just outside, it is an error to support the claim; if it counts as just inside, to refute it.
Neither error may happen in more than 6.5% of 2,000 claims (5%, plus a margin for chance).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

from context_bench.claims.claim import Claim
from context_bench.claims.judging import ALPHA, Measured, compute_p, decide
from context_bench.stats import PairedSums, mean_interval, paired_difference, share_interval
from context_bench.stats.means import Moments

SIMULATED = 2_000
MOST_WRONG = 0.065

_CLAIM = Claim("self-test", "A claim.", "number", "here", "today", "today", number=0.9, digits=2, tolerance=0.03)


def run_self_test(seed: int = 0) -> tuple[list[str], Counter[str]]:
    """Return one sentence for each fault, and the numbers of wrong decisions on simulated claims."""
    faults = [f"{what}: {word}, must be {wanted}" for what, word, wanted in _check_known() if word != wanted]
    wrong = Counter(supported=0, refuted=0)
    for claim, found in _simulate(random.Random(seed)):
        at = found.interval
        assert at is not None
        low, high = claim.region
        outside = (at(1 - ALPHA).low > high) or (at(1 - ALPHA).high < low)
        word = decide(claim, found, 0.0 if outside else 1.0).word
        wrong[word] += 1
    faults += [
        f"{wrong[word] / SIMULATED:.1%} of the borderline claims are {word} (limit {MOST_WRONG:.1%})"
        for word in ("supported", "refuted")
        if wrong[word] > MOST_WRONG * SIMULATED
    ]
    return faults, wrong


def _check_known() -> Iterator[tuple[str, str, str]]:
    """Decide a true and a false claim of each kind."""
    exact = replace(_CLAIM, tolerance=0.005)
    yield "a right number", decide(exact, Measured(0.904)).word, "reproduced"
    yield "a wrong number", decide(exact, Measured(0.906)).word, "differs"
    effect = replace(_CLAIM, kind="effect")
    for what, passed, word in (("a true effect", 1_800, "supported"), ("a false effect", 1_600, "refuted")):
        found = Measured(passed / 2_000, 2_000, partial(share_interval, passed, 2_000))
        assert found.interval is not None
        yield what, decide(effect, found, compute_p(effect.region, found.interval)).word, word
    always = replace(_CLAIM, kind="always")
    yield "no counterexample", decide(always, Measured(n=100)).word, "not refuted"
    yield "a counterexample", decide(always, Measured(n=100, failed=["17"])).word, "refuted"


def _simulate(source: random.Random) -> Iterator[tuple[Claim, Measured]]:
    """Yield claims with a true value at the edge: shares, graded scores, and paired differences."""
    effect = replace(_CLAIM, kind="effect")

    share = cache(share_interval)
    for number in range(SIMULATED):
        n, upper = (300, 1_000)[number % 2], bool(number % 4 // 2)
        edge = 1.0 if upper else -1.0
        if number % 3 == 0:
            true = 0.8 + 0.1 * edge
            claim = replace(effect, number=0.8, tolerance=0.1)
            passed = sum(source.random() < true for _ in range(n))
            yield claim, Measured(passed / n, n, partial(share, passed, n))
        elif number % 3 == 1:
            claim = replace(effect, number=0.75 - 0.05 * edge, tolerance=0.05)
            moments = Moments()
            moments.extend([source.betavariate(6, 2) for _ in range(n)])
            yield claim, Measured(moments.mean, n, partial(mean_interval, moments))
        else:
            claim = replace(effect, number=-0.02 - 0.02 * edge, tolerance=0.02)
            sums = PairedSums()
            for _ in range(n):
                drawn = source.random()
                sums.add(float(drawn < 0.05), float(drawn > 0.93))
            difference = paired_difference(sums)
            yield claim, Measured(difference.value, n, difference.interval)
