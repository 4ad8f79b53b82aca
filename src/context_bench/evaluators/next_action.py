"""The next action of an agent: the call that its history asks for, or the value in words."""

from __future__ import annotations

from typing import Any

from context_bench.evaluators.tool_call import ToolCallMatch
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text
from context_bench.text.words import normalise


class NextAction:
    """Scores `next_action`: 1.0 when the reply makes exactly the wanted call, or calls nothing and states the answer.

    The answer in words counts because a model, or a scripted reader without tools, that states it knows the value for
    the next call. Calls are compared as in `tool_call_match`.
    """

    name = "next-action"
    version = 1
    needs_answer = True
    score_fields = ("next_action",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        found = ToolCallMatch().score(original, processed)
        if not isinstance(found, Scores) or "tool_call_match" not in found:
            return found
        right, golds = found["tool_call_match"], gold_answers(original)
        if golds and not found.details["calls"]:
            said = normalise(response_text(processed))
            right = float(bool(said.strip()) and any(all(normalise(part) in said for part in gold) for gold in golds))
        return Scores({"next_action": right}, details=found.details)
