"""Does a memory know what it does not know? Refusals, over matched answerable and unanswerable questions."""

from __future__ import annotations

import re
from typing import Any

from context_bench.memory.scoring.question_record import read_question
from context_bench.memory.scoring.reasons import READ_BY_SCRIPT
from context_bench.results import Scores
from context_bench.text.golds import response_text

__all__ = ["Abstention", "is_refusal"]

_SOURCES = "conversations?|history|dialogue|chats?|context|memory|memories|summary|messages?|you|user"
_REFUSALS = re.compile(
    rf"""no\ information\ (?:is\ )?(?:available|provided|found|given)|not\ mentioned|
    (?:is|was|are|were|has|have)\ not\ (?:been\ )?(?:stated|specified|provided|known|told|said|given|come\ up|
    in\ (?:the|my)\ (?:{_SOURCES}))|
    (?:isn't|wasn't|aren't|weren't)\ (?:mentioned|stated|specified|provided|known)|
    \b(?:i|we)\ (?:do|did)(?:n't|\ not)\ (?:know|recall|remember|
    have\ (?:any|that|this|the|enough|information|a\ record))|
    \b(?:{_SOURCES})\ (?:do|does|did)(?:n't|\ not)\ (?:mention|say|state|specify|tell|contain)|
    \b(?:i|it|this|that)\ (?:cannot|can't|can\ not|could\ not|couldn't|am\ unable\ to)\ (?:be\ )?
    (?:answer|determine|find|recall|tell|say|know)|
    \b(?:there\ is|there's|i\ have|i've|have)\ no\ (?:record|mention|memory|memories|answer|information|data)|
    \bno\ (?:record|mention)\ of\b|unanswerable|^\W*(?:unknown|none|n/a|no\ answer|not\ known)\W*$|^\W*not\ known\b|
    (?:not\ enough|insufficient)\ information|\byou\ (?:have\ )?never\ (?:mentioned|told|said|stated)|
    \bnever\ (?:mentioned|came\ up|been\ mentioned|said\ (?:how|when|where|what|who|which))""",
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
    version = 3
    score_fields = ("abstention", "refused")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Read the answer for a refusal."""
        record = read_question(original)
        if record is None:
            return Scores(reason="not a question about a conversation")
        if not isinstance(processed.get("response"), str):
            return Scores(reason="the system gave no answer")
        if processed.get("read_by_script"):
            return Scores(reason=READ_BY_SCRIPT)
        refused = is_refusal(response_text(processed))
        scores = {"refused": float(refused)}
        if record.get("pair"):
            scores["abstention"] = float(refused == bool(record.get("unanswerable")))
        return Scores(scores)
