"""Evaluators: each compares an example before and after a system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from context_bench._lazy import add_module, lazy_names

if TYPE_CHECKING:
    from context_bench.evaluators.answer_quality import AnswerQuality
    from context_bench.evaluators.choice import MultipleChoiceAccuracy
    from context_bench.evaluators.code import CodeExecution, PatchFiles
    from context_bench.evaluators.evidence import ContextRecall, EvidenceSurvival
    from context_bench.evaluators.ifeval import IFEvalChecker, IFEvalOfficial
    from context_bench.evaluators.llm_judge import LLMJudge
    from context_bench.evaluators.math import MathEquivalence
    from context_bench.evaluators.next_action import NextAction
    from context_bench.evaluators.nli_label import NLILabelMatch
    from context_bench.evaluators.official_long_context import (
        InfiniteBenchScore,
        LongBenchScore,
        MRCRScore,
        NoLiMaScore,
    )
    from context_bench.evaluators.official_short_context import BBHScore, DropScore, HotpotScore, TruthfulQAScore
    from context_bench.evaluators.rouge import ReferenceOverlap, RougeSuite, SummarizationQuality
    from context_bench.evaluators.tool_call import ToolCallMatch

_HOMES = {
    "answer_quality": ("AnswerQuality",),
    "choice": ("MultipleChoiceAccuracy",),
    "code": ("CodeExecution", "PatchFiles"),
    "evidence": ("ContextRecall", "EvidenceSurvival"),
    "ifeval": ("IFEvalChecker", "IFEvalOfficial"),
    "llm_judge": ("LLMJudge",),
    "math": ("MathEquivalence",),
    "next_action": ("NextAction",),
    "nli_label": ("NLILabelMatch",),
    "official_long_context": ("InfiniteBenchScore", "LongBenchScore", "MRCRScore", "NoLiMaScore"),
    "official_short_context": ("BBHScore", "DropScore", "HotpotScore", "TruthfulQAScore"),
    "rouge": ("ReferenceOverlap", "RougeSuite", "SummarizationQuality"),
    "tool_call": ("ToolCallMatch",),
}

__all__ = [
    "AnswerQuality", "BBHScore", "CodeExecution", "ContextRecall", "DropScore", "EvidenceSurvival", "HotpotScore",
    "IFEvalChecker", "IFEvalOfficial", "InfiniteBenchScore", "LLMJudge", "LongBenchScore", "MRCRScore",
    "MathEquivalence", "MultipleChoiceAccuracy", "NLILabelMatch", "NextAction", "NoLiMaScore", "PatchFiles",
    "ReferenceOverlap", "RougeSuite", "SummarizationQuality", "ToolCallMatch", "TruthfulQAScore",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

for _module, _name in (
    ("ifeval_checker", "IFEvalChecker"),
    ("math_equivalence", "MathEquivalence"),
    ("nli_label_match", "NLILabelMatch"),
):
    add_module(f"{__name__}.{_module}", f"The evaluator {_name}.", (_name,), __getattr__)
