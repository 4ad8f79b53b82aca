"""Turn conversations into the examples of a run: one example for each question.

Examples do not contain the history, so that a conversation of a million tokens with a hundred questions is held and
stored once. They contain the history's digest, so that a changed turn makes another example. They also contain its
length in tokens, which is the input length of every system.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import orjson

from context_bench.errors import DataError, UsageError
from context_bench.evaluators.evidence_map import EvidenceMap, join_pieces
from context_bench.memory.conversations import Placed, Question, Turn, index_turns, render_history
from context_bench.memory.own_conversations import FILE_SUFFIXES, Planted, read_conversations, read_recorded, recognise
from context_bench.memory.probes import list_changed_texts, list_hidden_texts, list_kept_texts, list_orders
from context_bench.refs import Ref, call_with, parse, resolve
from context_bench.registry import registry
from context_bench.store.origin import digest
from context_bench.traits import DatasetTraits
from context_bench.types import Example
from context_bench.utils.tokens import Tokenizer

UNNAMED = "conversations"  # the tag of conversations without a dataset name

KEPT_EXAMPLES = 256
"""Keep a conversation until this many examples after its last question, because the engine reads ahead."""


_GOLD_FIELDS = ("answer", "answers", "instruction")


@dataclass(frozen=True)
class _Pieces:
    """The history of a user as one text."""

    places: dict[str, tuple[int, int]]  # the range of each turn, in characters
    ends: list[int]  # the end of each piece, in characters
    tokens: list[int]  # the tokens up to each end


@dataclass
class History:
    name: str  # the id of the conversation
    turns: list[Turn]  # in order, with unique ids
    number: int  # its number in the dataset
    hidden: list[str]  # texts that must not be stored: deleted information and secrets
    kept: list[str]  # texts that may be stored; they show whether a search of the store works
    orders: list[str] = field(default_factory=list)  # words that occur only in planted instructions
    changed: list[str] = field(default_factory=list)  # values that were corrected, or that replaced others
    place: int = 0  # its index among the open conversations
    asked: int = 0  # its questions in this run
    _tokens: dict[str | None, int] = field(default_factory=dict)
    _pieces: dict[str | None, _Pieces] = field(default_factory=dict)

    def count_tokens(self, user: str | None, count: Tokenizer) -> int:
        """Count the tokens of a user's whole history as a reader gets it; None stands for all users."""
        if user not in self._tokens:
            self._tokens[user] = count(render_history(self._list_turns(user)))
        return self._tokens[user]

    def count_turns(self, user: str | None) -> int:
        return len(self._list_turns(user))

    def _list_turns(self, user: str | None) -> list[Turn]:
        return [turn for turn in self.turns if user is None or turn.get("user", user) == user]

    def place_evidence(self, example: Example, count: Tokenizer) -> EvidenceMap | None:
        """Locate the evidence of a question in the history of its user; None if a turn is unknown."""
        user = example["memory"].get("user")
        if user not in self._pieces:
            lines = [f"{render_history([turn])}\n" for turn in self._list_turns(user)]
            ends = list(accumulate(map(len, lines)))
            places = {str(turn["id"]): place for turn, place in zip(self._list_turns(user), zip([0, *ends], ends))}
            pieces = join_pieces(lines)
            tokens = list(accumulate(map(count, pieces)))
            self._pieces[user] = _Pieces(places, list(accumulate(map(len, pieces))), tokens)
        known = self._pieces[user]
        named = dict.fromkeys(map(str, example["memory"].get("evidence_ids") or ()))
        spans = [[known.places[name]] for name in named if name in known.places]
        if not spans or len(spans) < len(named):
            return None
        return EvidenceMap([spans], known.ends, known.tokens, repr(example["id"]), self.count_tokens(user, count))

    @cached_property
    def by_id(self) -> dict[str, Placed]:
        return index_turns(self.turns)

    @cached_property
    def digest(self) -> str:
        return digest(orjson.dumps(self.turns, default=str)).hex()


@dataclass(frozen=True)
class _Asked:
    """A conversation with questions to ask; the first question has the index `first` in the run."""

    history: History
    questions: list[Question]
    conversation: Mapping[str, Any]
    first: int


class Questions:
    """The examples of a memory dataset, read lazily; `tag` applies to conversations that do not name their dataset.

    Up to `width` conversations are open at the same time, and their questions alternate. When all questions of a
    conversation are asked, the next one replaces it.
    """

    def __init__(
        self,
        conversations: Iterable[Mapping[str, Any]],
        tag: str,
        count: Tokenizer,
        limit: int | None = None,
        types: Collection[str] | None = None,
    ) -> None:
        self._conversations, self._tag, self._count, self._limit = conversations, tag, count, limit
        self._types = None if types is None else frozenset(types)
        self._histories: dict[str, tuple[History, int]] = {}
        self._places: dict[str, int] = {}
        self.width = 1

    def find(self, name: str) -> History:
        return self._histories[name][0]

    def __iter__(self) -> Iterator[Example]:
        unread: Iterator[_Asked] | None = self._read()
        opened: dict[int, Iterator[Example]] = {}
        asked, failure = 0, None
        while True:
            for place in [each for each in range(self.width) if each not in opened and unread is not None]:
                try:
                    found = next(unread, None) if unread is not None else None
                except DataError as error:  # raised after the conversations before it are finished
                    found, failure = None, error
                if found is None:
                    unread = None
                else:
                    found.history.place = place
                    opened[place] = self._ask(found)
            if not opened:
                break
            for place, examples in list(opened.items()):
                example = next(examples, None)
                if example is None:
                    del opened[place]
                    continue
                asked += 1
                name = example["memory"]["conversation"]
                self._histories[name] = self._histories[name][0], asked
                yield example
            for old in [each for each, (_, last) in self._histories.items() if 0 < last < asked - KEPT_EXAMPLES]:
                del self._histories[old]
        if failure is not None:
            raise failure

    def _read(self) -> Iterator[_Asked]:
        """Read the conversations that have questions to ask."""
        asked, seen_types = 0, set()
        seen: set[str] = set()
        for number, conversation in enumerate(islice(self._conversations, self._limit), 1):
            where = f"conversation {number}{'' if self._tag == UNNAMED else f' of {self._tag}'}"
            name, turns, questions = _read_conversation(conversation, where)
            if name in seen:
                raise DataError(f"{where}: duplicate id {name!r}; ids must be unique within a dataset")
            seen.add(name)
            seen_types |= {question.get("type") for question in questions}
            questions = [each for each in questions if self._types is None or each.get("type") in self._types]
            if not questions:
                continue
            history = History(name, turns, number, list_hidden_texts(questions), list_kept_texts(questions))
            history.asked = len(questions)
            history.orders, history.changed = list_orders(questions), list_changed_texts(questions)
            yield _Asked(history, questions, conversation, asked)
            asked += len(questions)
        if not seen:
            raise DataError(f"{self._tag}: no conversation found")
        if not asked and not seen_types and self._types is None:
            planted = isinstance(self._conversations, Planted)
            hint = "they are too short for --plant" if planted else "--plant N plants synthetic facts and asks for them"
            raise DataError(f"no conversation has a question; {hint}")
        if not asked and self._types is not None and seen_types:
            known = ", ".join(sorted(str(each) for each in seen_types if each))
            raise DataError(f"no question is of type {', '.join(sorted(self._types))}; types: {known or 'none'}")

    def _ask(self, found: _Asked) -> Iterator[Example]:
        self._histories[found.history.name] = found.history, 0
        for number, question in enumerate(found.questions, found.first):
            example = self._make_example(found.history, question, found.conversation)
            self._places[example["id"]] = number
            yield example

    def __context_bench_traits__(self) -> DatasetTraits:
        whole = isinstance(self._conversations, Sized) and len(self._conversations) <= (self._limit or 0)
        sample = "first" if self._limit is not None and not whole else "all"
        return DatasetTraits(
            name_samples=lambda counts: dict.fromkeys(counts, sample),
            find_place=lambda example: self._places.pop(example["id"]),
        )

    def _make_example(self, history: History, question: Question, conversation: Mapping[str, Any]) -> Example:
        gold: dict[str, Any] = {key: question[key] for key in _GOLD_FIELDS if key in question}  # type: ignore[literal-required]
        about = {key: value for key, value in question.items() if key not in ("question", *_GOLD_FIELDS)}
        listed = map(str, (*(question.get("evidence_ids") or ()), *(question.get("user_evidence") or ())))
        named = [each for each in dict.fromkeys(listed) if each in history.by_id]
        secrets = list_hidden_texts([question])
        evidence = [
            history.by_id[each][1] for each in map(str, question.get("evidence_ids") or ()) if each in history.by_id
        ]
        sessions = [str(turn["session"]) for turn in evidence if turn.get("session")]
        facts = {
            "conversation": history.name,
            "evidence_sessions": question.get("evidence_sessions") or list(dict.fromkeys(sessions)),
            "evidence_turns": {each: _mask(history.by_id[each][1]["content"], secrets) for each in named},
            "history_digest": history.digest,
            "history_tokens": history.count_tokens(question.get("user"), self._count),
            "history_turns": len(history.turns),
        }
        return {
            "id": f"{history.name}/{question['id']}",
            "context": "",
            "question": question["question"],
            **gold,
            "dataset": str(conversation.get("dataset") or self._tag),
            "meta": {**(conversation.get("meta") or {}), "group": history.name, "type": question.get("type", "")},
            "memory": {**about, **facts},
        }


def _mask(content: str, secrets: Iterable[str]) -> str:
    """Cut out what a memory should not show: a turn that lacks only its password counts as shown."""
    for secret in secrets:
        content = content.replace(secret, "")
    return content


def _read_conversation(conversation: Any, where: str) -> tuple[str, list[Turn], list[Question]]:
    """Check a conversation; DataError names it and the fault."""
    if not isinstance(conversation, Mapping):
        raise DataError(f"{where}: must be an object with 'id', 'turns' and 'questions'")
    for key in ("id", "turns", "questions"):
        if key not in conversation:
            raise DataError(f"{where}: no {key!r}; every conversation needs 'id', 'turns' and 'questions'")
    name = str(conversation["id"])
    turns = [_read_turn(turn, place, where) for place, turn in enumerate(conversation["turns"], 1)]
    questions = [_read_question(each, place, where) for place, each in enumerate(conversation["questions"], 1)]
    for kind, items in (("turn", turns), ("question", questions)):
        ids = [item["id"] for item in items]
        if len(set(ids)) < len(ids):
            twice = next(each for each in ids if ids.count(each) > 1)
            raise DataError(f"{where} ({name}): two {kind}s have the id {twice!r}")
    return name, turns, questions


def _read_turn(turn: Any, place: int, where: str) -> Turn:
    if not isinstance(turn, Mapping) or not isinstance(turn.get("content"), str):
        raise DataError(f"{where}, turn {place}: must be an object with 'role' and 'content'")
    read: Turn = {"role": "user", **turn, "id": str(turn.get("id", f"t{place}"))}  # type: ignore[typeddict-item]
    return read


def _read_question(question: Any, place: int, where: str) -> Question:
    if not isinstance(question, Mapping) or not isinstance(question.get("question"), str):
        raise DataError(f"{where}, question {place}: must be an object with 'question'")
    read: Question = {**question, "id": str(question.get("id", f"q{place}"))}  # type: ignore[typeddict-item]
    return read


def open_conversations(
    given: Any,
    *,
    n: int | None = None,
    seed: int = 0,
    data_dir: str | None = None,
    types: Collection[str] | None = None,
    plant: int | None = None,
) -> tuple[Iterable[Mapping[str, Any]], str]:
    """Open a dataset, with `plant` synthetic facts in each conversation; return it with its tag."""
    opened, tag = _open(given, {"n": n, "seed": seed, "data_dir": data_dir, "types": types})
    return (opened if plant is None else Planted(opened, plant, seed)), tag


def _open(given: Any, said: dict[str, Any]) -> tuple[Iterable[Mapping[str, Any]], str]:
    if not isinstance(given, str | Path):
        if not isinstance(given, Iterable) or isinstance(given, Mapping):
            kind = type(given).__name__
            raise UsageError(f"a memory dataset must be an iterable of conversations, a name or a file (got {kind})")
        return given, UNNAMED
    text = str(given)
    if text.endswith(FILE_SUFFIXES) or (Path(text).is_dir() and text not in registry.list("memory_dataset")):
        path = Path(text)
        kind = recognise(path)
        if kind in ("conversations", "traffic"):
            return (read_conversations if kind == "conversations" else read_recorded)(path), path.stem
        text, said = kind, {**said, "file": text}
    refs = parse("memory_dataset", text)
    if len(refs) > 1:
        raise UsageError(f"{text!r}: a memory dataset takes one value for each parameter")
    (ref,) = refs
    loader = resolve("memory_dataset", ref)
    if not callable(loader):
        return loader, text
    takes = inspect.signature(loader).parameters
    filled = {key: value for key, value in said.items() if value is not None and key in takes}
    first = next(iter(takes), None)
    loaded = call_with(loader, Ref(ref.text, ref.target, ref.argument, {**filled, **ref.parameters}), first)
    if not isinstance(loaded, Iterable):
        raise DataError(f"{text!r}: a loader must return an iterable of conversations (got {type(loaded).__name__})")
    return loaded, text
