"""Did what the answer needs reach the model?

A span may be there word for word (see `text_search.py`), recoverable from what a pruner left of it, or lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from context_bench.evaluators.text_search import TextSearch, list_prompt_texts, read_sent_texts
from context_bench.results import Scores
from context_bench.text.evidence_state import STATE_SCORES, State
from context_bench.text.golds import evidence_texts
from context_bench.traffic.exchanges import find_answers, read_exchanges

_SHOWN, _LENGTH = 3, 80


class EvidenceSurvival:
    """Scores `evidence_survived` and `evidence_verbatim`: whether all evidence was in what the model got to read.

    `evidence_survived` is 1.0 when no span is lost, `evidence_verbatim` when every span is there word for word. What
    the model read are the texts of the request that gave the answer, or else what the system put out: its
    conversation, or its context; what only a side call read, such as one that sums up, did not reach the answer. A
    span counts wherever it stands in one of those texts, but not where the question itself repeats it. One that the
    original context does not hold cannot be lost, and does not count. The details count the spans as `verbatim`,
    `recoverable` or `lost`; `rewritten` says of a row with lost spans whether the text has words that nobody sent: what
    was lost may stand there in other words.
    """

    name = "evidence-survival"
    version = 4
    score_fields = STATE_SCORES

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        spans = evidence_texts(original)
        if not spans:
            return Scores(reason="no evidence")
        sent = read_sent_texts(original, processed) if processed.get("tapped") is None else None
        texts = sent or read_texts(processed)
        if isinstance(texts, str):
            return Scores(reason=texts)
        search = TextSearch(texts, original)
        found = search.find_states(spans)
        if not found:
            return Scores(reason="the original context does not hold the evidence")
        states = [state for _, state in found]
        details: dict[str, Any] = {state: states.count(state) for state in get_args(State)}
        if lost := [span for span, state in found if state == "lost"]:
            details["lost_spans"] = [_shorten(span) for span in lost[:_SHOWN]]
            details["rewritten"] = search.has_new_words(_list_sent(original, processed))
        return Scores(
            {"evidence_survived": float(not lost), "evidence_verbatim": float(details["verbatim"] == len(states))},
            details=details,
        )


def read_texts(processed: Mapping[str, Any]) -> list[str] | str:
    """The texts that a model got to read, or the reason why they are not known."""
    tapped, context = processed.get("tapped"), processed.get("context")
    if tapped is None:
        return [context] if isinstance(context, str) else "what the model got to read was not seen"
    answers = find_answers(read_exchanges(tapped))
    if isinstance(answers, str):
        return answers
    prompts = [call.prompt for calls in answers for call in calls if call.prompt is not None]
    if not prompts:
        return "no request of this example reached the model"
    return list(dict.fromkeys(text for prompt in prompts for text in prompt.texts()))


def _list_sent(original: Mapping[str, Any], processed: Mapping[str, Any]) -> list[str]:
    """List the texts that the system got."""
    if processed.get("tapped") is None:
        return list_prompt_texts(original)
    prompts = [exchange.prompt for exchange in read_exchanges(processed["tapped"])]
    return [text for prompt in prompts if prompt is not None for text in prompt.texts()]


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LENGTH else line[: _LENGTH - 1] + "…"
