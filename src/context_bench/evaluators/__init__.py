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
    from context_bench.evaluators.official.bbh import BBHScore
    from context_bench.evaluators.official.drop import DropScore
    from context_bench.evaluators.official.hotpot import HotpotScore
    from context_bench.evaluators.official.infinitebench import InfiniteBenchScore
    from context_bench.evaluators.official.longbench import LongBenchScore
    from context_bench.evaluators.official.mrcr import MRCRScore
    from context_bench.evaluators.official.nolima import NoLiMaScore
    from context_bench.evaluators.official.truthfulqa import TruthfulQAScore
    from context_bench.evaluators.patch_files import PatchFiles
    from context_bench.evaluators.reference_overlap import ReferenceOverlap
    from context_bench.evaluators.rouge_suite import RougeSuite
    from context_bench.evaluators.summarization_quality import SummarizationQuality
    from context_bench.evaluators.tool_call import ToolCallMatch

_HOMES = {
    "answer_quality": ("AnswerQuality",),
    "official.bbh": ("BBHScore",),
    "code_execution": ("CodeExecution",),
    "context_recall": ("ContextRecall",),
    "official.drop": ("DropScore",),
    "evidence_survival": ("EvidenceSurvival",),
    "official.hotpot": ("HotpotScore",),
    "ifeval": (
        "IFEvalChecker",
        "IFEvalOfficial",
    ),
    "official.infinitebench": ("InfiniteBenchScore",),
    "llm_judge": ("LLMJudge",),
    "official.longbench": ("LongBenchScore",),
    "math": ("MathEquivalence",),
    "official.mrcr": ("MRCRScore",),
    "multiple_choice": ("MultipleChoiceAccuracy",),
    "nli_label": ("NLILabelMatch",),
    "official.nolima": ("NoLiMaScore",),
    "patch_files": ("PatchFiles",),
    "reference_overlap": ("ReferenceOverlap",),
    "rouge_suite": ("RougeSuite",),
    "summarization_quality": ("SummarizationQuality",),
    "tool_call": ("ToolCallMatch",),
    "official.truthfulqa": ("TruthfulQAScore",),
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
