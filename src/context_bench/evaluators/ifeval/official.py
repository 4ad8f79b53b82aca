"""IFEval as published (Zhou et al., 2023): prompt-level and instruction-level accuracy, strict and loose.

Loose forgives what a chat model puts around its answer: an instruction holds when any of eight readings
of the reply follows it, with and without the first line, the last line, both, and the asterisks.
"""

from __future__ import annotations

from typing import Any

from context_bench.evaluators.ifeval.checks import describe_provenance, list_checks
from context_bench.results import Scores
from context_bench.text.golds import response_text

__all__ = ["IFEvalOfficial", "list_relaxed"]


class IFEvalOfficial:
    """Scores `ifeval_prompt_strict`, `ifeval_prompt_loose`, `ifeval_inst_strict`, `ifeval_inst_loose`.

    The instruction-level accuracy of a benchmark is a ratio of sums over all prompts, which a mean of
    the rows' ratios is not: `details` keep `followed` and `total` under `strict` and `loose`.
    """

    name = "ifeval-official"
    version = 2
    needs_answer = True
    score_fields = ("ifeval_prompt_strict", "ifeval_prompt_loose", "ifeval_inst_strict", "ifeval_inst_loose")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Check the reply, and its relaxed readings, against each instruction of the example."""
        checks = list_checks(original)
        if not checks:
            return Scores(reason="no instruction_id_list")
        reply = response_text(processed)
        readings = list_relaxed(reply)
        total = len(checks)
        strict = [check(reply) for _, check in checks]
        # A reply that follows as it stands is its own first reading.
        loose = [holds or any(map(check, readings)) for holds, (_, check) in zip(strict, checks)]
        return Scores(
            {
                "ifeval_prompt_strict": float(all(strict)),
                "ifeval_prompt_loose": float(all(loose)),
                "ifeval_inst_strict": sum(strict) / total,
                "ifeval_inst_loose": sum(loose) / total,
            },
            details={
                "strict": {"followed": sum(strict), "total": total},
                "loose": {"followed": sum(loose), "total": total},
                "failed": [name for (name, _), holds in zip(checks, strict) if not holds],
                **describe_provenance(name for name, _ in checks),
            },
        )


def list_relaxed(reply: str) -> list[str]:
    """The seven readings of a reply besides the reply itself."""
    lines = reply.split("\n")
    cut = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    return [reply.replace("*", ""), *cut, *(text.replace("*", "") for text in cut)]
