"""The examples of a report, packed: columns that are loaded at once, and details in blocks that are loaded when opened.

Everything is JSON, compressed. A block that grows over its share of the page is made again with less of each context,
so that a page has a bounded size for each row, whatever the contexts are; what was cut says so.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from context_bench.report.context_view import Stretch, compare_context, shorten
from context_bench.report.elements import clean_text
from context_bench.results import EvalRow, dump_json
from context_bench.text.golds import gold_answers

__all__ = ["ExamplePack", "Source", "name_error_kind", "pack_json"]

BLOCK = 100
"""Rows whose details are loaded together."""
_PAGE, _MOST, _LEAST = 20_000_000, 1_300, 200
"""Bytes of all details together, and the most and the least of them that a row may take."""
_ROOMS = ((24_000, 8_000), (8_000, 4_000), (3_000, 1_500), (1_000, 600), (300, 250), (100, 100), (0, 40))
"""Characters for the context of a row, and for each other text of it: the first that fit are taken."""
_SNIPPET, _ID = 140, 120
_FACTS = (
    *("output", "sent_tokens", "response_tokens", "written_tokens", "upstream_calls", "extra_upstream_calls"),
    *("lost_upstream_calls", "failed_upstream_calls", "untouched", "cached_answer", "prompt_savings"),
    *("claimed_tokens_saved", "billed_prompt_tokens", "proxy_overhead", "first_token_overhead", "injected_tools"),
    *("answer_unknown", "prefix_stability", "first_message_changed", "rewritten_history", "not_applied"),
)


class Source(NamedTuple):
    """A row with the example and the answer that it came from, where they are known."""

    row: EvalRow
    example: Mapping[str, Any] | None = None
    processed: Mapping[str, Any] | None = None


def pack_json(value: Any) -> str:
    """Write a value as JSON, compressed and as text that HTML leaves alone; the same value gives the same text."""
    return base64.b64encode(gzip.compress(dump_json(value).encode(), 6, mtime=0)).decode("ascii")


def name_error_kind(error: str) -> str:
    """Name the kind of an error: the type before its message."""
    return clean_text(error.partition(":")[0].strip()[:80]) or "error"


class ExamplePack:
    """Takes rows in, one after another, and gives what the page embeds.

    Args:
        rows: About how many there will be: the more, the less room each has.
    """

    def __init__(self, rows: int) -> None:
        self.blocks: list[str] = []
        self._share = max(_LEAST, min(_MOST, _PAGE // max(1, rows)))
        self._room = 0
        self._waiting: list[tuple[dict[str, Any], list[Stretch]]] = []
        self._names: dict[str, dict[str, int]] = {"run": {}, "system": {}, "dataset": {}, "error": {}, "question": {}}
        self._columns: dict[str, list[Any]] = {
            name: []
            for name in (
                *("run", "system", "dataset", "id", "repeat", "score", "outcome", "evidence", "flip", "error"),
                *("input", "output", "latency", "question", "response"),
            )
        }

    def __len__(self) -> int:
        return len(self._columns["id"])

    def add(self, source: Source, run: str, score: float | None, threshold: float) -> None:
        """Take in one row of a run; a score of at least `threshold` is right."""
        row, example = source.row, source.example or {}
        survived = row.scores.get("evidence_survived")
        passed_on = row.upstream_tokens
        if passed_on is None and row.metadata.get("output") == "context":
            passed_on = row.output_tokens
        values = {
            "run": self._number("run", run),
            "system": self._number("system", clean_text(row.system)),
            "dataset": self._number("dataset", clean_text(row.dataset)),
            "id": clean_text(row.example_id)[:_ID],
            "repeat": row.repeat,
            "score": None if score is None else round(score, 4),
            "outcome": _name_outcome(row, score, threshold),
            "evidence": None if survived is None else int(survived >= 1),
            "flip": 0,
            "error": None if row.error is None else self._number("error", name_error_kind(row.error)),
            "input": row.input_tokens,
            "output": passed_on,
            "latency": round(row.latency, 6),
            "question": self._number("question", clean_text(_read_question(example))[:_SNIPPET]),
            "response": " ".join(clean_text(row.response[: 2 * _SNIPPET]).split())[:_SNIPPET],
        }
        for name, column in self._columns.items():
            column.append(values[name])
        self._waiting.append(_describe(source))
        if len(self._waiting) >= BLOCK:
            self._close_block()

    def mark_flips(self, run: str, baseline: str) -> None:
        """Mark the rows of a run that are right where the baseline is wrong (1), or wrong where it is right (-1)."""
        columns, mine = self._columns, self._names["run"].get(run)
        base = self._names["system"].get(clean_text(baseline))
        keys = list(zip(columns["dataset"], columns["id"], columns["repeat"]))
        places = [place for place, number in enumerate(columns["run"]) if number == mine]
        right = {keys[place]: columns["outcome"][place] for place in places if columns["system"][place] == base}
        for place in places:
            before, after = right.get(keys[place]), columns["outcome"][place]
            if columns["system"][place] != base and before is not None and "unscored" not in (before, after):
                columns["flip"][place] = int(after == "right") - int(before == "right")

    def pack_index(self, about: Mapping[str, Any]) -> str:
        """Return the columns of all rows, with what else the page's script has to know."""
        if self._waiting:
            self._close_block()
        names = {kind: list(found) for kind, found in self._names.items()}
        return pack_json({**about, "block": BLOCK, "names": names, "columns": self._columns, "rows": len(self)})

    def _number(self, kind: str, name: str) -> int:
        known = self._names[kind]
        return known.setdefault(name, len(known))

    def _close_block(self) -> None:
        most = self._share * len(self._waiting)
        for level in range(max(0, self._room - 1), len(_ROOMS)):
            room, length = _ROOMS[level]
            block = [_cut_row(details, stretches, room, length) for details, stretches in self._waiting]
            packed = pack_json(block)
            self._room = level
            if len(packed) <= most:
                break
        self.blocks.append(packed)
        self._waiting = []


def _name_outcome(row: EvalRow, score: float | None, threshold: float) -> str:
    if row.error is not None:
        return "error"
    return "unscored" if score is None else "right" if score >= threshold else "wrong"


def _read_question(example: Mapping[str, Any]) -> str:
    return " ".join(str(example.get("question") or example.get("prompt") or "").split())


def _describe(source: Source) -> tuple[dict[str, Any], list[Stretch]]:
    row, example = source.row, source.example
    same = source.processed is not None and bool(row.response) and row.response == source.processed.get("context")
    details = {
        "prompt": [] if example is None else list(_list_prompt(example)),
        "gold": None if example is None else [" + ".join(gold) for gold in gold_answers(example)],
        "response": "" if same else row.response,
        "same": same,
        "scores": row.scores,
        "unscored": row.unscored,
        "error": row.error,
        "traceback": "\n".join(map(str, row.metadata.get("traceback", ()))),
        "facts": {key: row.metadata[key] for key in _FACTS if key in row.metadata},
        "reasons": {
            str(name): " ".join(str(value["rationale"]).split())
            for name, value in row.metadata.items()
            if isinstance(value, dict) and value.get("rationale")
        },
        "upstream": row.upstream_tokens,
    }
    return details, [] if example is None else compare_context(example, source.processed)


def _list_prompt(example: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in ("prompt", "question"):
        if example.get(key):
            yield key, str(example[key])
    choices = example.get("choices")
    if choices:
        yield "choices", "\n".join(map(str, choices)) if isinstance(choices, list | tuple) else str(choices)
    for turn in example.get("turns") or ():
        if isinstance(turn, Mapping):
            content = turn.get("content")
            yield str(turn.get("role")), content if isinstance(content, str) else dump_json(content)
    if example.get("tools"):
        yield "tools", dump_json(example["tools"], indent=True)


def _cut_row(details: Mapping[str, Any], stretches: list[Stretch], room: int, length: int) -> dict[str, Any]:
    shown = {key: _cut(value, length) for key, value in details.items()}
    return {**shown, "context": shorten(stretches, room)}


def _cut(value: Any, length: int) -> Any:
    """Cut the texts in a value; each says how much of it is missing."""
    if isinstance(value, str):
        if len(value) <= length:
            return clean_text(value)
        return f"{clean_text(value[:length])} … ({len(value) - length:,} more characters)"
    if isinstance(value, Mapping):
        return {_cut(str(key), 80): _cut(item, length) for key, item in list(value.items())[:60]}
    if isinstance(value, list | tuple):
        return [_cut(item, length) for item in value[: max(4, length // 20)]]
    return value
