"""IFEval in two numbers: are all instructions followed, and is a majority of them?"""

from __future__ import annotations

from typing import Any

from context_bench.evaluators.ifeval.checks import describe_provenance, list_checks
from context_bench.results import Scores
from context_bench.text.golds import response_text

__all__ = ["IFEvalChecker"]


class IFEvalChecker:
    """Scores `ifeval_strict`, all instructions hold, and `ifeval_loose`, more than half of them do.

    `ifeval_strict` is the published prompt-level strict accuracy. The published loose accuracy is another
    thing than this `ifeval_loose`: it comes from `IFEvalOfficial`. An empty reply follows nothing.
    """

    name = "ifeval-checker"
    version = 2
    needs_answer = True
    score_fields = ("ifeval_strict", "ifeval_loose")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Check the reply against each instruction of the example."""
        checks = list_checks(original)
        if not checks:
            return Scores(reason="no instruction_id_list")
        reply = response_text(processed)
        followed = [(name, check(reply)) for name, check in checks]
        count = sum(holds for _, holds in followed)
        return Scores(
            {"ifeval_strict": float(count == len(followed)), "ifeval_loose": float(2 * count > len(followed))},
            details={
                "followed": count,
                "total": len(followed),
                "failed": [name for name, holds in followed if not holds],
                **describe_provenance(name for name, _ in checks),
            },
        )
