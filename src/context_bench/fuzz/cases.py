"""Inputs of the fuzzer: items of one kind, one with the evidence. Items can be moved, added and removed."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unicodedata import normalize

from context_bench.systems.reference import split
from context_bench.text.golds import evidence_texts, gold_answers
from context_bench.types import Example

_APPS = ("billing", "catalog", "checkout", "gateway", "ledger", "mailer", "profile", "search", "shipping", "tickets")
_PEOPLE = ("Amara", "Bruno", "Chidi", "Daria", "Emeka", "Farah", "Goran", "Hana", "Ivo", "Jun", "Kaia", "Lior")
_CITIES = ("Lisbon", "Kraków", "Bogotá", "Tunis", "Málaga", "Perth", "Zürich", "Dakar", "Lima", "Riga", "Sofia", "Baku")


def _render_json(items: Sequence[str]) -> str:
    return "[\n" + ",\n".join(f"  {item}" for item in items) + "\n]"


def _render_table(items: Sequence[str]) -> str:
    return "\n".join(("| name | city | order | total |", "| --- | --- | --- | --- |", *items)) + "\n"


OWN_DATA = "own data"  # kind of inputs from the user's data: pieces of one text

_RENDER: dict[str, Callable[[Sequence[str]], str]] = {
    "prose": " ".join,
    "logs": lambda items: "\n".join(items) + "\n",
    "json": _render_json,
    "table": _render_table,
    "code": lambda items: "\n\n".join(items) + "\n",
    "documents": lambda items: "\n\n".join(items),
    OWN_DATA: "".join,
}
CONVERSATION = "conversation"  # kind of inputs whose items are messages

KINDS = tuple(kind for kind in _RENDER if kind != OWN_DATA)  # kinds of generated inputs


@dataclass(frozen=True)
class Case:
    """One input of the fuzzer."""

    kind: str  # how the items are joined: one of `KINDS`, or `OWN_DATA`
    items: tuple[str, ...]
    evidence: tuple[int, ...]  # places of the items that the answer needs
    question: str
    answer: str  # gold answer
    id: str = "case"  # id of the example
    text_change: str = ""  # change of the whole text: a name in `CHANGES`
    more: Mapping[str, Any] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()  # needed texts, if they are less than whole items

    @property
    def spans(self) -> list[str]:
        """Texts that the answer needs."""
        return list(self.wanted) or [self.items[place].strip() for place in self.evidence]

    @property
    def text(self) -> str:
        """Whole context."""
        text = _RENDER.get(self.kind, "\n".join)(self.items)
        return CHANGES[self.text_change](text) if self.text_change else text

    def to_example(self) -> Example:
        """Return the input as an example of a run."""
        example: Example = {**self.more, "id": self.id, "context": self.text, "question": self.question}
        example |= {"answer": self.answer, "evidence": self.spans}
        if self.kind == "documents":
            example["documents"] = [{"id": f"d{place}", "text": item} for place, item in enumerate(self.items)]
        return example

    def reorder(self, order: Sequence[int]) -> Case:
        """Return a copy with the items at these places, in this order."""
        places = tuple(place for place, old in enumerate(order) if old in self.evidence)
        return replace(self, items=tuple(self.items[old] for old in order), evidence=places)

    def insert(self, place: int, *items: str) -> Case:
        """Return a copy with further items before a place."""
        moved = tuple(each + len(items) if each >= place else each for each in self.evidence)
        return replace(self, items=(*self.items[:place], *items, *self.items[place:]), evidence=moved)

    def to_dict(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        lists = {name: list(getattr(self, name)) for name in ("items", "evidence", "wanted")}
        return {**vars(self), **lists, "more": dict(self.more)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Case:
        """Read the output of `to_dict`."""
        lists = {name: tuple(stored[name]) for name in ("items", "evidence", "wanted")}
        return cls(**{**stored, **lists})


CHANGES: dict[str, Callable[[str], str]] = {
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "trailing spaces": lambda text: text.replace("\n", "  \n"),
    "decomposed accents": lambda text: normalize("NFD", text),
}
"""Changes to a whole text that make no difference to a reader."""


def make_item(kind: str, source: random.Random) -> str:
    """Make one item of a kind, without evidence."""
    service, person, city = source.choice(_APPS), source.choice(_PEOPLE), source.choice(_CITIES)
    number, small = source.randrange(10_000, 99_999), source.randrange(2, 99)
    if kind == "logs":
        return f"2026-03-{source.randrange(1, 29):02} INFO {service} served request {number} in {small} ms"
    if kind == "json":
        return json.dumps({"service": service, "request": number, "status": "ok", "ms": small})
    if kind == "table":
        return f"| {person} | {city} | {number} | {small}.50 |"
    if kind == "code":
        return f"def {service}_{number}(x):\n    return x + {small}"
    return f"{person} moved the {service} office no. {number} to {city} in {small} days."


def _make_evidence(kind: str, source: random.Random) -> tuple[str, str, str]:
    """Make an item with evidence; return it with its question and answer."""
    person, city, service = source.choice(_PEOPLE), source.choice(_CITIES), source.choice(_APPS)
    code = f"{source.choice('ABCDEFGH')}{source.randrange(1000, 9999)}-{source.randrange(10, 99)}"
    path = f"/srv/{service}/run-{source.randrange(100, 999)}.log"
    if kind == "logs":
        item = f'2026-03-30 ERROR {service} rejected card "{code}" after 3 tries, see {path}'
        return item, f"Which card did {service} reject?", code
    if kind == "json":
        item = json.dumps({"service": service, "status": "rejected", "card": code, "log": path})
        return item, f"Which card did {service} reject?", code
    if kind == "table":
        return f"| Zelda | {city} | {code} | 71.25 |", "Which order did Zelda place?", code
    if kind == "code":
        item = f'def find_vault_code():\n    """See https://vault.example/{service}"""\n    return "{code}"'
        return item, "What does find_vault_code return?", code
    text = f'{person} keeps the vault of {city} closed with the code "{code}", see https://vault.example/{service}.'
    return text, f"What is the code of the vault of {city}?", code


def make_case(kind: str, seed: int, items: int = 24) -> Case:
    """Make an input; equal seeds give equal inputs."""
    source = random.Random(f"fuzz {kind} {seed}")
    evidence, question, answer = _make_evidence(kind, source)
    others = [make_item(kind, source) for _ in range(items - 1)]
    place = source.randrange(items)
    return Case(
        kind, (*others[:place], evidence, *others[place:]), (place,), question, answer, id=f"fuzz-{kind}-{seed}"
    )


_MESSAGE_KEYS = ("role", "content", "tool_calls", "tool_call_id")


def read_case(example: Example) -> Case | None:
    """Make an input from a user's example: its conversation, if the user speaks last, else its documents or context.

    Return None if the text used does not contain the evidence or, without evidence, the answer.
    """
    context, turns = example.get("context"), example.get("turns")
    if turns and not context:
        messages = [{key: turn[key] for key in _MESSAGE_KEYS if key in turn} for turn in turns]
        texts = all(isinstance(each.get("content"), str | None) for each in messages)
        return (
            Case(CONVERSATION, tuple(map(json.dumps, messages)), (), "", "", id=str(example["id"]))
            if texts and messages[-1].get("role") == "user"
            else None
        )
    wanted = evidence_texts(example) or [part for gold in gold_answers(example)[:1] for part in gold]
    documents = [str(each.get("text", "")) for each in example.get("documents") or ()]
    kind, items = ("documents", documents) if documents else ("json", _list_records(str(context or ""), wanted))
    if not items:
        kind, items = OWN_DATA, split(str(context or ""))
    if not items or not wanted:
        return None
    places = tuple(place for place, item in enumerate(items) if any(each.strip() in item for each in wanted))
    if not places or not all(any(each.strip() in items[place] for place in places) for each in wanted):
        return None
    answer = next((part for gold in gold_answers(example) for part in gold), wanted[0])
    rest = ("id", "context", "question", "answer", "evidence", "documents")
    more = {key: value for key, value in example.items() if key not in rest}
    asked = (str(example.get("question") or ""), answer, str(example["id"]))
    return Case(kind, tuple(items), places, *asked, more=more, wanted=() if kind == OWN_DATA else tuple(wanted))


def _list_records(text: str, wanted: Sequence[str]) -> list[str]:
    """List the objects of a JSON array, each on one line; empty for other texts, or if a wanted text is in no line."""
    try:
        found = json.loads(text)
    except ValueError:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        return []
    records = [json.dumps(each, ensure_ascii=False) for each in found]
    return records if all(any(each.strip() in record for record in records) for each in wanted) else []


def rename_case(case: Case, source: random.Random) -> Case:
    """Replace people, places, services and numbers consistently."""
    names: dict[str, str] = {}
    for known in (_PEOPLE, _CITIES, _APPS):
        others = list(known)
        source.shuffle(others)
        names |= dict(zip(known, others))
    shift = source.randrange(1, 10)

    def change(found: re.Match[str]) -> str:
        word = found[0]
        return names.get(word) or "".join(str((int(sign) + shift) % 10) if sign.isdigit() else sign for sign in word)

    pattern = re.compile(rf"\b(?:{'|'.join(names)})\b|\d{{3,}}")
    items = tuple(pattern.sub(change, item) for item in case.items)
    question, answer, *wanted = (pattern.sub(change, text) for text in (case.question, case.answer, *case.wanted))
    return replace(case, items=items, question=question, answer=answer, wanted=tuple(wanted))
