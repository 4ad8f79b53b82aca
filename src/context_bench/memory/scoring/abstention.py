"""Does a memory know what it does not know? Refusals, over matched answerable and unanswerable questions."""

from __future__ import annotations

import re
from typing import Any

from context_bench.memory.scoring.question_record import read_question
from context_bench.results import Scores
from context_bench.text.golds import response_text

__all__ = ["Abstention", "is_refusal"]

_REFUSALS = re.compile(
    r"""no\ information\ (?:is\ )?(?:available|provided|found|given)|not\ mentioned|(?:is|was|are|were)\ not\ (?:stated|
    specified|provided|given|in\ (?:the|my)\ (?:memory|memories|conversation|history|context))|
    (?:isn't|wasn't|aren't|weren't)\ (?:mentioned|stated|specified|provided|given)|
    (?:do|does|did)(?:n't|\ not)\ (?:know|have\ (?:any\ |that\ |this\ |enough\ )?(?:information|record|memory|data)|
    mention|say|state|recall|remember|specify)|
    (?:cannot|can't|can\ not|could\ not|couldn't|unable\ to)\ (?:be\ )?(?:answer|determine|find|recall|tell|say|know)|
    (?:no|without)\ (?:record|mention|memory|memories|answer|relevant)|unanswerable|^\W*unknown\W*$|^\W*none\W*$|
    ^\W*n/a\W*$|not\ enough\ information|insufficient\ information|never\ (?:mentioned|told|said|stated)""",
    re.IGNORECASE | re.VERBOSE,
)


def is_refusal(answer: str) -> bool:
    """Tell whether an answer says that it cannot be given; an empty one says so too."""
    return not answer.strip() or _REFUSALS.search(answer.replace("\u2019", "'")) is not None


class Abstention:
    """Scores `abstention` on questions that have a partner: an unanswerable one is right when it is refused.

    Each answerable question with the same `pair` is right when it is not refused, so that over matched pairs the mean
    is the balanced accuracy: to refuse always, or never, earns 0.5. `refused` tells it for every question.
    """

    name = "abstention"
    version = 1
    score_fields = ("abstention", "refused")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Read the answer for a refusal."""
        record = read_question(original)
        if record is None:
            return Scores(reason="not a question about a conversation")
        if not isinstance(processed.get("response"), str):
            return Scores(reason="the system gave no answer")
        refused = is_refusal(response_text(processed))
        scores = {"refused": float(refused)}
        if record.get("pair"):
            scores["abstention"] = float(refused == bool(record.get("unanswerable")))
        return Scores(scores)
