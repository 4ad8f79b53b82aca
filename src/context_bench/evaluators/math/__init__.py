"""Mathematical equivalence of answers."""

from context_bench.evaluators.math.equivalence import MathEquivalence

__all__ = ["MathEquivalence"]
