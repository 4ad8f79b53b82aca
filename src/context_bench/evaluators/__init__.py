"""Evaluators: each compares an example before and after a system. One file each."""

from context_bench.evaluators.answer_quality import AnswerQuality
from context_bench.evaluators.context_recall import ContextRecall

__all__ = ["AnswerQuality", "ContextRecall"]
