"""Evaluators: each compares an example before and after a system. One file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from context_bench._lazy import add_module, lazy_names

if TYPE_CHECKING:
    from context_bench.evaluators.answer_quality import AnswerQuality
    from context_bench.evaluators.code_execution import CodeExecution
    from context_bench.evaluators.context_recall import ContextRecall
    from context_bench.evaluators.evidence_survival import EvidenceSurvival
    from context_bench.evaluators.ifeval import IFEvalChecker, IFEvalOfficial
    from context_bench.evaluators.llm_judge import LLMJudge
    from context_bench.evaluators.math import MathEquivalence
    from context_bench.evaluators.multiple_choice import MultipleChoiceAccuracy
    from context_bench.evaluators.nli_label import NLILabelMatch
    from context_bench.evaluators.official.long_context import (
        InfiniteBenchScore,
        LongBenchScore,
        MRCRScore,
        NoLiMaScore,
    )
    from context_bench.evaluators.official.short_context import BBHScore, DropScore, HotpotScore, TruthfulQAScore
    from context_bench.evaluators.patch_files import PatchFiles
    from context_bench.evaluators.rouge import ReferenceOverlap, RougeSuite, SummarizationQuality
    from context_bench.evaluators.tool_call import ToolCallMatch

_HOMES = {
    "answer_quality": ("AnswerQuality",),
    "code_execution": ("CodeExecution",),
    "context_recall": ("ContextRecall",),
    "evidence_survival": ("EvidenceSurvival",),
    "ifeval": ("IFEvalChecker", "IFEvalOfficial"),
    "llm_judge": ("LLMJudge",),
    "math": ("MathEquivalence",),
    "multiple_choice": ("MultipleChoiceAccuracy",),
    "nli_label": ("NLILabelMatch",),
    "official.long_context": ("InfiniteBenchScore", "LongBenchScore", "MRCRScore", "NoLiMaScore"),
    "official.short_context": ("BBHScore", "DropScore", "HotpotScore", "TruthfulQAScore"),
    "patch_files": ("PatchFiles",),
    "rouge": ("ReferenceOverlap", "RougeSuite", "SummarizationQuality"),
    "tool_call": ("ToolCallMatch",),
}

__all__ = [
    "AnswerQuality",
    "BBHScore",
    "CodeExecution",
    "ContextRecall",
    "DropScore",
    "EvidenceSurvival",
    "HotpotScore",
    "IFEvalChecker",
    "IFEvalOfficial",
    "InfiniteBenchScore",
    "LLMJudge",
    "LongBenchScore",
    "MRCRScore",
    "MathEquivalence",
    "MultipleChoiceAccuracy",
    "NLILabelMatch",
    "NoLiMaScore",
    "PatchFiles",
    "ReferenceOverlap",
    "RougeSuite",
    "SummarizationQuality",
    "ToolCallMatch",
    "TruthfulQAScore",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

for _module, _name in (
    ("ifeval_checker", "IFEvalChecker"),
    ("math_equivalence", "MathEquivalence"),
    ("nli_label_match", "NLILabelMatch"),
):
    add_module(f"{__name__}.{_module}", f"The evaluator {_name}.", (_name,), __getattr__)
