"""A bank of answers that are known to be right or wrong, and how often a judge of memory is mistaken about them.

Questions about invented people, so that no model can know the answers, for each rule; six kinds of answers: right,
paraphrased, vague and wrong, specific and wrong, outdated, refusing. A question has no answer of a kind that makes no
sense for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import orjson

from context_bench.engine.limits import Limits
from context_bench.memory.judge import MemoryJudge
from context_bench.pricing import Prices
from context_bench.results import EvalRow
from context_bench.stats.interval import Interval
from context_bench.stats.means import share_interval

__all__ = ["KINDS", "MistakeRate", "check_memory_judge", "read_bank", "sum_up_mistakes"]

KINDS = {
    **dict.fromkeys(("right", "paraphrased"), True),
    **dict.fromkeys(("vague-wrong", "specific-wrong", "outdated", "refusing"), False),
}
"""The kinds of answers, and whether a good judge accepts them."""


@dataclass(frozen=True)
class MistakeRate:
    """How often a judge was mistaken about answers of some kinds; without verdicts there is no rate."""

    kinds: tuple[str, ...]
    mistake: str  # "false reject" or "false accept"
    n: int
    mistakes: int
    unscored: int

    @property
    def interval(self) -> Interval | None:
        """The rate with its 95% interval."""
        return share_interval(self.mistakes, self.n) if self.n else None


def read_bank() -> Iterator[dict[str, Any]]:
    """Yield an example for each question and kind of answer; the kind is the dataset."""
    source = files("context_bench.memory") / "data" / "judge_bank.jsonl"
    for line in source.read_text(encoding="utf-8").splitlines():
        item = orjson.loads(line)
        record = {"rule": item["rule"], "unanswerable": item["rule"] == "abstention"}
        asked = {"context": "", "question": item["question"], "answer": item["answer"], "memory": record}
        for kind in KINDS:
            if item[kind] is not None:
                yield {"id": item["id"], "dataset": kind, **asked, "meta": {"given": item[kind], "group": item["id"]}}


def check_memory_judge(
    judge: MemoryJudge, *, max_workers: int = 8, limits: Limits | None = None, prices: Prices | None = None
) -> list[MistakeRate]:
    """Let a judge decide about the whole bank, and count its mistakes.

    Args:
        judge: The judge.
        max_workers: Requests in flight.
        limits: The most dollars and tokens; what they leave unjudged is unscored.
        prices: What the judge costs; None takes the table that ships with the package.

    Returns:
        A rate for each kind of answer, then for all false rejects and all false accepts.
    """
    from context_bench.runner import evaluate

    result = evaluate(
        _answer_from_bank,
        list(read_bank()),
        evaluators=[judge],
        metrics=[],
        max_workers=max_workers,
        limits=limits,
        prices=prices,
    )
    if result.config["stopped"]:
        warnings.warn(f"stopped early: {result.config['stopped']}", stacklevel=2)
    return sum_up_mistakes(result.rows)


def _answer_from_bank(example: dict[str, Any]) -> dict[str, Any]:
    """Answer as the bank says: this is the system that is judged."""
    return {"response": example["meta"]["given"]}


def sum_up_mistakes(rows: Sequence[EvalRow]) -> list[MistakeRate]:
    """Count the mistakes by kind, then over all that should be accepted and all that should not."""
    groups: list[tuple[str, ...]] = [(kind,) for kind in KINDS]
    groups += [tuple(kind for kind in KINDS if KINDS[kind] is good) for good in (True, False)]
    return [_count_mistakes(group, rows) for group in groups]


def _count_mistakes(kinds: tuple[str, ...], rows: Sequence[EvalRow]) -> MistakeRate:
    good = KINDS[kinds[0]]
    own = [row for row in rows if row.dataset in kinds]
    scored = [row for row in own if "memory_judge" in row.scores]
    mistakes = sum((row.scores["memory_judge"] == 1.0) is not good for row in scored)
    return MistakeRate(kinds, "false reject" if good else "false accept", len(scored), mistakes, len(own) - len(scored))
