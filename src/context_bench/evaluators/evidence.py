"""Whether the evidence survived in a system's output, and whether it reached the model.

`ContextRecall` looks into the context, or the conversation, that a system returned. It needs no model, so it is the
base of every comparison without a network. Texts are compared word by word: layout, case, punctuation and escapes may
change (a minified JSON keeps its facts). `EvidenceSurvival` looks into the text that the model read: a span may be
there word for word, recoverable after a pruner, or lost (see `text.evidence_state`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from context_bench.evaluators.text_search import TextSearch, list_prompt_texts, read_sent_texts
from context_bench.results import Scores
from context_bench.text.evidence_state import NOT_IN_CONTEXT, STATE_SCORES, State
from context_bench.text.golds import Gold, evidence_texts, gold_answers
from context_bench.text.words import normalise
from context_bench.traffic.exchanges import find_answers, read_exchanges

_CONCLUSIONS = ("yes", "no")  # answers that no context states: where such a word occurs, it does so by chance


class ContextRecall:
    """Scores `evidence_recall` and `answer_in_context`; for rerankers `recall_at_k`, `ndcg` and `mrr`.

    `evidence_recall` is the share of the evidence spans that are not lost; `answer_in_context` is 1.0 when an accepted
    answer is there in whole words (for an answer in parts, it is the share of its parts). If the example has `turns`
    and the system did not turn them into a context, the conversation is searched. Text in a repetition of the question
    does not count. Evidence that the original context lacks cannot be lost and does not count; an example with only
    such answers, or with `yes` or `no`, has no `answer_in_context`. The rank scores compare the returned `documents`
    with `relevant_ids`; `recall_at_k` looks at the first `k`.
    """

    name = "context-recall"
    version = 3
    needs_context = True
    score_fields = ("evidence_recall", "answer_in_context", "recall_at_k", "ndcg", "mrr")

    def __init__(self, k: int = 5) -> None:
        self.k = k

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        texts, documents = read_sent_texts(original, processed), processed.get("documents")
        if texts is None:
            return Scores(reason="the system returned no context")
        scores: dict[str, float] = {}
        if documents is not None and original.get("relevant_ids"):
            ranking = [item.get("id") if isinstance(item, Mapping) else item for item in documents]
            scores |= score_ranking(ranking, original["relevant_ids"], self.k)
        search = TextSearch(texts, original)
        if found := search.find_states(evidence_texts(original)):
            scores["evidence_recall"] = sum(state != "lost" for _, state in found) / len(found)
        golds = gold_answers(original)
        shares = [share for gold in golds if (share := _find_share(gold, search)) is not None]
        if shares:
            scores["answer_in_context"] = max(shares)
        reason = NOT_IN_CONTEXT if golds and not shares else None
        return Scores(scores, reason=reason if scores or reason else "no evidence, no gold answer and no relevant ids")


def _find_share(gold: Gold, search: TextSearch) -> float | None:
    """Return the share of an answer's parts that survived; None if the original context contained none of them."""
    found = [(part, search.has_words(part)) for part in gold if normalise(part).strip() not in _CONCLUSIONS]
    source = search.source
    left = [has for part, has in found if has or source is None or source.has_words(part)]
    return sum(left) / len(left) if left else None


def score_ranking(ranking: Sequence[Any], relevant_ids: Sequence[Any], k: int) -> dict[str, float]:
    """Compute recall among the first k, nDCG over the whole ranking, and the reciprocal rank of the first hit.

    Relevance is binary. A document that is returned twice counts once, at its first place.
    """
    relevant = set(relevant_ids)
    hits = [place for place, item in enumerate(dict.fromkeys(ranking)) if item in relevant]
    ideal = sum(1 / math.log2(place + 2) for place in range(len(relevant)))
    return {
        "recall_at_k": sum(place < k for place in hits) / len(relevant),
        "ndcg": sum(1 / math.log2(place + 2) for place in hits) / ideal,
        "mrr": 1 / (hits[0] + 1) if hits else 0.0,
    }


_MAX_SHOWN_SPANS, _MAX_SPAN_CHARS = 3, 80


class EvidenceSurvival:
    """Scores `evidence_survived` and `evidence_verbatim`: whether all evidence was in the text that the model read.

    `evidence_survived` is 1.0 when no span is lost, `evidence_verbatim` when every span is there word for word. These
    texts are those of the request that gave the answer. Without one, they are the system's output: its conversation, or
    its context. Text that only a side call read, such as a summary, did not reach the answer. A span counts in any of
    those texts, but not where the question itself repeats it. A span that the original context lacks cannot be lost and
    does not count. Nothing is scored if the API edited the conversation, or if a lost span may be in an encrypted or
    stored item that the system added, such as a compaction. The details count the spans as `verbatim`, `recoverable` or
    `lost`; for a row with lost spans, `rewritten` says whether the text has words that were not sent: the lost text may
    be there in other words.
    """

    name = "evidence-survival"
    version = 5
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
            return Scores(reason="the original context does not contain the evidence")
        states = [state for _, state in found]
        details: dict[str, Any] = {state: states.count(state) for state in get_args(State)}
        lost = [span for span, state in found if state == "lost"]
        if reason := _find_hidden(processed, lost=bool(lost)):
            return Scores(reason=reason)
        if lost:
            details["lost_spans"] = [_shorten(span) for span in lost[:_MAX_SHOWN_SPANS]]
            details["rewritten"] = search.has_new_words(_list_sent(original, processed))
        verbatim = float(details["verbatim"] == len(states))
        return Scores({"evidence_survived": float(not lost), "evidence_verbatim": verbatim}, details=details)


def read_texts(processed: Mapping[str, Any]) -> list[str] | str:
    """Return the texts that a model read, or the reason why they are unknown."""
    tapped, context = processed.get("tapped"), processed.get("context")
    if tapped is None:
        return [context] if isinstance(context, str) else "the text that the model read is not known"
    answers = find_answers(read_exchanges(tapped))
    if isinstance(answers, str):
        return answers
    prompts = [call.prompt for calls in answers for call in calls if call.prompt is not None]
    if not prompts:
        return "no request of this example reached the model"
    return list(dict.fromkeys(text for prompt in prompts for text in prompt.texts()))


def _find_hidden(processed: Mapping[str, Any], *, lost: bool) -> str | None:
    """Return why the text that the model read is not fully known; None if it is."""
    for exchange in read_exchanges(processed.get("tapped") or ()):
        sent = exchange.prompt.count_opaque() if exchange.prompt is not None else 0
        for call in exchange.answering_calls or ():
            if call.edits:
                return "the API edited the conversation before the model read it"
            if lost and call.prompt is not None and call.prompt.count_opaque() > sent:
                return "a lost span may be in an encrypted or stored item that the model read"
    return None


def _list_sent(original: Mapping[str, Any], processed: Mapping[str, Any]) -> list[str]:
    if processed.get("tapped") is None:
        return list_prompt_texts(original)
    prompts = [exchange.prompt for exchange in read_exchanges(processed["tapped"])]
    return [text for prompt in prompts if prompt is not None for text in prompt.texts()]


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SPAN_CHARS else line[: _MAX_SPAN_CHARS - 1] + "…"
