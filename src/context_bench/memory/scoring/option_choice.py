"""Multiple choice about a conversation, as MemBench has it: the letter that a reply chooses against the right one."""

from __future__ import annotations

from typing import Any

from context_bench.evaluators.multiple_choice import MultipleChoiceAccuracy
from context_bench.memory.scoring.question_record import read_question
from context_bench.results import Scores
from context_bench.text.golds import response_text

__all__ = ["MemoryChoice"]


class MemoryChoice:
    """Scores `memory_choice`: 1.0 when the reply chooses the right letter, and no other.

    The options stand in the text of the question, and the right letter in its record: a memory is asked with them, and
    no other field of the example gives them away.

    A reply that gives the text of exactly one option chooses it, as with `MultipleChoiceAccuracy`, which reads the
    reply. MemBench's own code takes the letter alone.
    """

    name = "memory-choice"
    version = 2
    needs_answer = True
    score_fields = ("memory_choice",)

    def __init__(self) -> None:
        self._reader = MultipleChoiceAccuracy()

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Read the chosen letter and compare."""
        record = read_question(original)
        if record is None or not record.get("correct_letter"):
            return Scores(reason="not a multiple-choice question")
        if not response_text(processed).strip():
            return Scores({"memory_choice": 0.0})
        asked = {key: record[key] for key in ("correct_letter", "choices") if key in record}
        return Scores({"memory_choice": self._reader.score({**original, **asked}, processed)["mc_accuracy"]})
