"""IFEval: verifiable instructions, checked by the published rules."""

from context_bench.evaluators.ifeval.checker import IFEvalChecker, IFEvalOfficial

__all__ = ["IFEvalChecker", "IFEvalOfficial"]
