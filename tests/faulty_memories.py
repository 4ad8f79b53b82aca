"""An honest memory, and seventeen that are like it but for one known fault."""

from __future__ import annotations

import random
import re
import time
from typing import Any
from zlib import crc32

Turn = dict[str, Any]
COMMON = {"what", "is", "the", "of", "a", "for", "my", "i", "was", "this", "said", "before", "it", "that"}


def split(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold())) - COMMON


class Honest:
    """Keeps users apart, forgets what it is told to, keeps no password, and finds turns by their words."""

    name = "honest"
    takes_dates = True
    k = 10

    def __init__(self) -> None:
        self.users: dict[str, list[Turn]] = {}

    def reset(self) -> None:
        self.users = {}

    def ingest(self, turns: list[Turn], user: str = "") -> None:
        self.users.setdefault(user, []).extend(self.clean(turn) for turn in turns)

    def clean(self, turn: Turn) -> Turn:
        text = re.sub(r"sk-\w+", "(hidden)", turn["content"])
        return {"text": text, "ids": [turn["id"]], "words": split(text), "session": turn.get("session")}

    def forget(self, request: dict[str, Any], user: str = "") -> None:
        asked = split(request["what"])
        self.users[user] = [turn for turn in self.users.get(user, []) if not asked <= turn["words"]]

    def list_turns(self, user: str) -> list[Turn]:
        return self.users.get(user, [])

    def rank(self, question: str, user: str) -> list[Turn]:
        asked, turns = split(question), self.list_turns(user)
        places = sorted(range(len(turns)), key=lambda place: (-len(asked & turns[place]["words"]), -place))
        return [turns[place] for place in places[: self.k]]

    def retrieve(self, question: str, user: str = "") -> list[dict[str, Any]]:
        return [{"text": turn["text"], "ids": turn["ids"]} for turn in self.rank(question, user)]

    def query(self, question: str, user: str = "") -> str:
        return "\n".join(each["text"] for each in self.retrieve(question, user))


class NeverUpdates(Honest):
    def rank(self, question: str, user: str) -> list[Turn]:
        asked = split(question)
        return sorted(self.list_turns(user), key=lambda turn: -len(asked & turn["words"]))[:1]


class ForgetsNothing(Honest):
    def forget(self, request: dict[str, Any], user: str = "") -> None:
        pass


class LeaksAcrossUsers(Honest):
    def list_turns(self, user: str) -> list[Turn]:
        return [turn for turns in self.users.values() for turn in turns]


class LeaksByPrefix(Honest):
    def list_turns(self, user: str) -> list[Turn]:
        return [turn for name, turns in self.users.items() if name.startswith(user) for turn in turns]


class PlantsInstructions(Honest):
    def rank(self, question: str, user: str) -> list[Turn]:
        orders = [turn for turn in self.list_turns(user) if "Note to the assistant" in turn["text"]]
        return [*orders, *(turn for turn in super().rank(question, user) if turn not in orders)]


class StoresSecrets(Honest):
    def clean(self, turn: Turn) -> Turn:
        return {**super().clean(turn), "text": turn["content"]}


class StoresNothing(Honest):
    def ingest(self, turns: list[Turn], user: str = "") -> None:
        pass


class ClaimsIds(Honest):
    def retrieve(self, question: str, user: str = "") -> list[dict[str, Any]]:
        return [{**each, "text": "ok"} for each in super().retrieve(question, user)]


class NamesTooMuch(Honest):
    """Names, with its first result, turns that it does not return."""

    def retrieve(self, question: str, user: str = "") -> list[dict[str, Any]]:
        first, *others = super().retrieve(question, user)
        return [{**first, "ids": [turn["ids"][0] for turn in self.list_turns(user)]}, *others]


class SurvivesReset(Honest):
    def reset(self) -> None:
        pass


class LosesLastTurn(Honest):
    """Writes a turn when the next ones come, as one that never flushes its buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer: list[tuple[Turn, str]] = []

    def reset(self) -> None:
        super().reset()
        self.buffer = []

    def ingest(self, turns: list[Turn], user: str = "") -> None:
        self.buffer += [(turn, user) for turn in turns]
        for turn, owner in self.buffer[:-2]:
            super().ingest([turn], owner)
        self.buffer = self.buffer[-2:]


class SlowToBeSearchable(Honest):
    ready = 0.0

    def ingest(self, turns: list[Turn], user: str = "") -> None:
        super().ingest(turns, user)
        self.ready = time.monotonic() + 0.5

    def retrieve(self, question: str, user: str = "") -> list[dict[str, Any]]:
        return super().retrieve(question, user) if time.monotonic() > self.ready else []


class ReturnsEverything(Honest):
    k = 1 << 30


class AnswersFromAnotherSession(Honest):
    def rank(self, question: str, user: str) -> list[Turn]:
        turns = self.list_turns(user)
        sessions = list(dict.fromkeys(turn["session"] for turn in turns))
        found = [turn["session"] for turn in super().rank(question, user)[:1]]
        wrong = [sessions[(sessions.index(each) + 1) % len(sessions)] for each in found]
        return [turn for turn in turns if turn["session"] in wrong][: self.k]


class ChangesWhenAsked(Honest):
    """Keeps each question as if it had been told."""

    def retrieve(self, question: str, user: str = "") -> list[dict[str, Any]]:
        found = super().retrieve(question, user)
        self.users.setdefault(user, []).append({"text": question, "ids": [], "words": split(question), "session": None})
        return found


class NotDeterministic(Honest):
    def rank(self, question: str, user: str) -> list[Turn]:
        found = super().rank(question, user)
        random.Random().shuffle(found)
        return found


class RaisesNowAndThen(Honest):
    def retrieve(self, question: str, user: str = "") -> list[dict[str, Any]]:
        if crc32(question.encode()) % 5 == 0:
            raise ValueError("busy")
        return super().retrieve(question, user)


FAULTS: dict[type[Honest], str] = {
    NeverUpdates: "does not update",
    ForgetsNothing: "does not forget",
    LeaksAcrossUsers: "leaks between users:",
    LeaksByPrefix: "leaks between users whose names share a prefix",
    PlantsInstructions: "ranks planted instructions first",
    StoresSecrets: "reveals secrets",
    StoresNothing: "stored nothing",
    ClaimsIds: "names turns whose text it did not return",
    NamesTooMuch: "names turns whose text it did not return",
    SurvivesReset: "keeps state across reset()",
    LosesLastTurn: "loses the last turn",
    SlowToBeSearchable: "makes turns searchable late",
    ReturnsEverything: "returns everything",
    AnswersFromAnotherSession: "answers from another session",
    ChangesWhenAsked: "changes when queried",
    NotDeterministic: "is not deterministic",
    RaisesNowAndThen: "fails on some questions",
}
"""What a report must say of each, and nothing else."""

for _kind in FAULTS:  # such as never-updates
    _kind.name = re.sub(r"(?<!^)(?=[A-Z])", "-", _kind.__name__).lower()
