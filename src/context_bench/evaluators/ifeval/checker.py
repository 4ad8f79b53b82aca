"""IFEval (Zhou et al., 2023): which instructions of an example a reply follows.

A rule gets the arguments that it takes and no others; a table pads the arguments of every instruction to
all names with nulls, so null means absent. An unknown instruction is an error, never a pass.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from context_bench.errors import DataError
from context_bench.evaluators.ifeval.rules import RULES
from context_bench.evaluators.ifeval.word_counts import name_data_source
from context_bench.results import Scores
from context_bench.text.golds import response_text

Check = Callable[[str], bool]

_ARGUMENTS = {name: list(inspect.signature(rule).parameters)[1:] for name, rule in RULES.items()}
_BY_SENTENCES = {"length_constraints:number_sentences", "change_case:capital_word_frequency"}


def list_checks(example: Mapping[str, Any]) -> list[tuple[str, Check]]:
    """The instructions of an example with their checks; none when it has none."""
    names = example.get("instruction_id_list") or []
    arguments = example.get("kwargs")
    if arguments is None:
        arguments = [{}] * len(names)
    if len(arguments) != len(names):
        raise DataError(f"{len(names)} IFEval instructions, but {len(arguments)} kwargs: one is needed for each")
    return [(name, _check(name, given or {})) for name, given in zip(names, arguments)]


def _check(name: str, given: Mapping[str, Any]) -> Check:
    if name not in RULES:
        raise DataError(f"unknown IFEval instruction {name!r}")
    chosen = {key: given.get(key) for key in _ARGUMENTS[name]}
    for key, value in chosen.items():
        if value is None or value == "" or value == []:
            raise DataError(f"the IFEval instruction {name!r} needs {key!r} in its kwargs")

    def follows(reply: str) -> bool:
        if not reply.strip():
            return False
        try:
            return RULES[name](reply, **chosen)
        except (TypeError, AttributeError) as error:
            raise DataError(f"the IFEval instruction {name!r} has kwargs of a wrong type: {chosen}") from error

    return follows


def describe_provenance(names: Iterable[str]) -> dict[str, str]:
    """Name the sentence parameters that were used, where any were: a reader needs them to repeat the counts."""
    return {"sentences_by": name_data_source()} if _BY_SENTENCES.intersection(names) else {}


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


class IFEvalOfficial:
    """Scores `ifeval_prompt_strict`, `ifeval_prompt_loose`, `ifeval_inst_strict`, `ifeval_inst_loose`, as published.

    Loose forgives what a chat model puts around its answer: an instruction holds when any of eight readings
    of the reply follows it, with and without the first line, the last line, both, and the asterisks.

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
