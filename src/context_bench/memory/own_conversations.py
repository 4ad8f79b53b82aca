"""Conversations from the user's own files, and synthetic facts planted into them.

A file has conversations in our layout, records of a public dataset (recognised by their fields), or recorded traffic in
a format of the traffic readers: then each thread is a conversation of its user and assistant messages, without
questions. Questions about planted facts have exact gold, as in `synthetic-memory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from context_bench.datasets.synthetic.building import Draw
from context_bench.errors import DataError, UsageError, suggest_file, warn
from context_bench.memory.conversations import Turn
from context_bench.memory.datasets import plants as kinds
from context_bench.memory.datasets import read_records
from context_bench.text.masking import Placeholders
from context_bench.traffic.parts import list_parts
from context_bench.traffic.readers import find_reader, read_threads
from context_bench.traffic.sessions import Request, Thread
from context_bench.wire.forms import read_document_completion

FILE_SUFFIXES = (".jsonl", ".json")

_LAYOUTS = {
    "locomo": {"sample_id", "conversation", "qa"},
    "longmemeval": {"question_id", "haystack_sessions"},
    "halumem": {"uuid", "sessions"},
}
"""The fields that identify records of a public dataset."""


def recognise(path: Path) -> str:
    """Identify the content of a file: the name of a public dataset, `conversations` in our layout, or `traffic`."""
    if not path.exists():
        raise UsageError(f"{path}: no such file{suggest_file(path)}")
    if path.is_dir():
        return "traffic"
    first: Any = None
    with suppress(DataError):  # a recording need not be a list of records
        first = next((record for _, record in read_records(path)), None)
    fields = set(first) if isinstance(first, Mapping) else set[str]()
    for name, needed in _LAYOUTS.items():
        if needed <= fields:
            return name
    if not fields & {"id", "turns"} and find_reader(path, lambda _: False) is not None:
        return "traffic"
    if fields and not fields & {"id", "turns", "questions"}:
        known = ", ".join(sorted(map(str, fields))[:8])
        raise DataError(
            f"{path}: unknown fields {known}: neither conversations ('id', 'turns', 'questions') nor records of "
            f"{', '.join(_LAYOUTS)} nor recorded traffic. Files of beam, convomem and membench are read by name: "
            "--dataset beam --data-dir DIR, with the files in DIR/beam"
        )
    return "conversations"


def read_conversations(path: Path) -> Iterator[Mapping[str, Any]]:
    """Read conversations in our layout: one per line of a .jsonl file, or a list in a .json file."""
    for _, record in read_records(path):
        yield record


def read_recorded(path: Path) -> Iterator[Mapping[str, Any]]:
    """Read each thread of recorded traffic that has text as a conversation, with secrets masked."""
    masked = Placeholders()
    seen: dict[str, int] = {}
    for thread in read_threads([path]):
        turns = list(_read_turns(thread))
        if turns:
            seen[thread.id] = seen.get(thread.id, 0) + 1
            name = thread.id if seen[thread.id] == 1 else f"{thread.id}-{seen[thread.id]}"
            yield masked.mask_all({"id": name, "turns": turns, "questions": [], "meta": {"format": thread.format}})


def _read_turns(thread: Thread) -> Iterator[Turn]:
    """Yield the texts of users and of the assistant, each message once."""
    before: list[Any] = []
    for request in thread.requests:
        messages = request.messages
        known = next((place for place, pair in enumerate(zip(before, messages)) if pair[0] != pair[1]), None)
        known = min(len(before), len(messages)) if known is None else known
        moment = None
        if request.started is not None:
            moment = datetime.fromtimestamp(request.started, timezone.utc).isoformat(timespec="seconds")
        for message in messages[known:]:
            for part in list_parts(message, {}):
                if part.kind in ("user", "assistant") and part.text.strip():
                    yield Turn(role=part.kind, content=part.text, timestamp=moment, session=thread.session)
        before = messages
    if thread.requests and (said := _read_reply(thread.requests[-1])):
        yield Turn(role="assistant", content=said, timestamp=None, session=thread.session)


def _read_reply(request: Request) -> str:
    found = read_document_completion(request.reply) if request.reply else None
    return found.texts[0] if found is not None and found.texts else ""


_PLANTS = (
    *(kinds.plant_fact, kinds.plant_update, kinds.plant_deletion, kinds.plant_secret),
    *(kinds.plant_contradiction, kinds.plant_list, kinds.plant_chain, kinds.plant_instruction),
)
_ROUNDS = 8  # times that each kind can be planted before names run out
MOST_PLANTS = _ROUNDS * len(_PLANTS)
_MIN_TURNS = 4  # a planted list needs this many places
_MAX_PLACES = 40  # evenly spread places for plants in a conversation
_DATED = ("as_of",)  # questions that need dates, which the user's sessions may lack


@dataclass(frozen=True)
class Planted:
    """Conversations with `count` planted facts each, and questions about them."""

    conversations: Iterable[Mapping[str, Any]]
    count: int
    seed: int

    def __post_init__(self) -> None:
        if self.count > MOST_PLANTS:
            raise UsageError(f"--plant takes at most {MOST_PLANTS} (got {self.count})")

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for conversation in self.conversations:
            turns = len(conversation.get("turns") or ()) if isinstance(conversation, Mapping) else _MIN_TURNS
            if turns < _MIN_TURNS:
                name = conversation.get("id")
                warn(f"no facts planted into conversation {name!r}: it has {turns} of the {_MIN_TURNS} turns needed")
            yield conversation if turns < _MIN_TURNS else plant(conversation, self.count, self.seed)


def plant(conversation: Mapping[str, Any], count: int, seed: int) -> Mapping[str, Any]:
    """Plant facts between the turns of a conversation, as its first user, and add questions about them."""
    turns = list(conversation.get("turns") or ())
    name = str(conversation.get("id"))
    places = min(len(turns), _MAX_PLACES)
    garden = kinds.Garden(Draw("planted", seed, name), {kinds.OWNER: places})
    for number in range(count):
        _PLANTS[number % len(_PLANTS)](garden, number // len(_PLANTS))
    said = next((turn for turn in turns if turn.get("role", "user") == "user"), turns[0])
    user = {"user": said["user"]} if said.get("user") else {}
    layout, after = kinds.Layout(), dict[int, list[dict[str, Any]]]()
    for number, mention in enumerate(garden.mentions):
        place = (mention.session + 1) * len(turns) // places - 1
        beside = turns[place]
        kept = {key: beside[key] for key in ("timestamp", "session") if beside.get(key)}
        speaker = {"speaker": said["speaker"]} if said.get("speaker") else {}
        forget = {"forget": {"what": mention.forget}} if mention.forget else {}
        layout.ids[number], layout.sessions[number] = f"plant-{number + 1}", str(kept.get("session") or "")
        made = {"id": layout.ids[number], "role": "user", **speaker, **user, "content": mention.text, **kept, **forget}
        after.setdefault(place, []).append(made)
    numbered = [{**turn, "id": str(turn.get("id", f"t{place}"))} for place, turn in enumerate(turns, 1)]
    grown = [each for place, turn in enumerate(numbered) for each in (turn, *after.get(place, ()))]
    questions: list[Any] = list(conversation.get("questions") or ())
    for number, probe in enumerate((each for each in garden.probes if each.kind not in _DATED), 1):
        made = {**probe.finish(layout), "id": f"plant-q{number}", **user}
        dropped = ("date", *(() if user else ("user",)))
        questions.append({key: value for key, value in made.items() if key not in dropped})
    return {**conversation, "turns": grown, "questions": questions}
