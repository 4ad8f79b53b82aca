"""Did what the answer needs reach the model?

A span may be there word for word, or in another form: layout, case, punctuation and escapes changed (see
`text_search.py`), or a JSON record with its fields in another order or as a row of a table. Anything else is lost.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from context_bench.evaluators.text_search import TextSearch, read_sent_texts
from context_bench.results import Scores
from context_bench.text.golds import evidence_texts
from context_bench.text.words import normalise
from context_bench.traffic.exchanges import find_answers, read_exchanges

__all__ = ["EvidenceSurvival", "read_texts"]

_SHOWN, _LENGTH = 3, 80


class EvidenceSurvival:
    """Scores `evidence_survived`: 1.0 when every span of the evidence was in what the model got to read.

    What it read are the texts of the request that gave the answer, or else what the system put out: its conversation,
    or its context; what only a side call read, such as one that sums up, did not reach the answer. A span counts
    wherever it stands in one of those texts, but not where the question itself repeats it. The details count the
    spans as `verbatim`, `normalised` or `lost`.
    """

    name = "evidence-survival"
    version = 3
    score_fields = ("evidence_survived",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Look for every span of the evidence."""
        spans = evidence_texts(original)
        if not spans:
            return Scores(reason="no evidence")
        sent = read_sent_texts(original, processed) if processed.get("tapped") is None else None
        texts = sent or read_texts(processed)
        if isinstance(texts, str):
            return Scores(reason=texts)
        search = TextSearch(texts, original)
        found = [search.find_span(span) or _find_record(span, search) for span in spans]
        lost = [span for span, how in zip(spans, found) if how == "lost"]
        details: dict[str, Any] = {how: found.count(how) for how in ("verbatim", "normalised", "lost")}
        if lost:
            details["lost_spans"] = [_shorten(span) for span in lost[:_SHOWN]]
        return Scores({"evidence_survived": float(not lost)}, details=details)


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


# --- records


class _Field(NamedTuple):
    """The words of a key and of its value; without a value, as null is, it may be an empty cell."""

    key: str
    value: str
    nested: bool


def _find_record(span: str, search: TextSearch) -> str:
    return "normalised" if any(_has_record(span, form) for form in search.list_forms(span)) else "lost"


def _has_record(span: str, form: str) -> bool:
    """Whether all fields of a JSON record stand together, in any order, with nothing else between them.

    With their keys, or as the row of a table, which has none. Where the values alone could stand together by
    chance (fewer than three words, or numbers only) a table's row is not recognised.
    """
    record = _read_record(span)
    if record is None:
        return False
    fields = list(_list_fields(record))
    keyed = [f"{field.key} {field.value}" for field in fields if field.value]
    empty = [field.key for field in fields if not field.value]
    if _stand_together(keyed, [*empty, *(f"{key} null" for key in empty)], form):
        return True
    values = [field.value for field in fields if field.value]
    together = " ".join(values)
    if len(values) < 2 or len(together.split()) < 3 or not re.search(r"[^\W\d_]", together):
        return False
    return _stand_together(values, [*(field.key for field in fields if field.nested), "null", "none"], form)


def _read_record(span: str) -> dict[str, Any] | None:
    try:
        record = json.loads(span.rstrip(", \n"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _list_fields(value: Any, key: str = "", depth: int = 0) -> Iterator[_Field]:
    """The fields of a record, and of the records in it; a list of plain values is one value."""
    if isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(each, Mapping) for each in value)):
        items = value.items() if isinstance(value, Mapping) else ((key, each) for each in value)
        if depth:
            yield _Field(key, "", depth > 1)
        for name, item in items:
            yield from _list_fields(item, normalise(name).strip(), depth + 1)
    else:
        yield _Field(key, " ".join(_list_plain_words(value)), depth > 1)


def _list_plain_words(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _list_plain_words(each)
    elif value is not None:
        yield from normalise(value if isinstance(value, str) else json.dumps(value)).split()


def _stand_together(pieces: Sequence[str], between: Sequence[str], form: str) -> bool:
    """Whether a stretch of words is made of all the pieces, and of nothing else but what may stand between."""
    if not pieces or not all(f" {piece} " in form for piece in pieces):
        return False
    needed, seen, end = Counter(pieces), Counter[str](), -1
    may = sorted({*pieces, *between} - {""}, key=len, reverse=True)
    for match in re.finditer(f"(?<= )({'|'.join(map(re.escape, may))}) ", form):
        if match.start() != end:
            seen.clear()
        end = match.end()
        seen[match[1]] += 1
        if needed <= seen:
            return True
    return False


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LENGTH else line[: _LENGTH - 1] + "…"
