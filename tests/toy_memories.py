"""Memory systems for tests, each with one way of behaving, and conversations with exact answers for them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

__all__ = [
    "Broken",
    "BrokenAsync",
    "Claiming",
    "Clinging",
    "Counted",
    "Delayed",
    "Dropping",
    "Empty",
    "Filed",
    "Forgetful",
    "Leaking",
    "Persistent",
    "Picky",
    "Remembering",
    "Rewording",
    "Secretive",
    "Separate",
    "Stale",
    "Writing",
    "make_conversations",
]

Turn = dict[str, Any]


def split(text: str) -> set[str]:
    """The words of a text."""
    return {word.strip(".,?!:[]").casefold() for word in text.split()} - {"what", "is", "the", "of", "a"}


class Remembering:
    """Finds the turns that share the most words with the question, the newest first among equals."""

    name = "remembering"

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def reset(self) -> None:
        self.turns = []

    def ingest(self, turns: list[Turn]) -> None:
        self.turns += turns

    def query(self, question: str) -> str:
        found = self.retrieve(question, k=1)
        return str(found[0]["text"]) if found else ""

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        asked = split(question)
        shared = [len(asked & split(turn["content"])) for turn in self.turns]
        ranked = sorted(range(len(shared)), key=lambda place: (-shared[place], -place))
        return [
            {"text": self.turns[place]["content"], "ids": [self.turns[place]["id"]], "score": float(shared[place])}
            for place in ranked[: k or 3]
        ]


class Forgetful(Remembering):
    """Keeps the last turn alone."""

    name = "forgetful"

    def ingest(self, turns: list[Turn]) -> None:
        self.turns = list(turns[-1:])


class Leaking(Remembering):
    """Says that it keeps users apart, and does not."""

    name = "leaking"

    def ingest(self, turns: list[Turn], user: str | None = None) -> None:
        super().ingest(turns)

    def query(self, question: str, user: str | None = None) -> str:
        return super().query(question)

    def retrieve(self, question: str, k: int | None = None, user: str | None = None) -> list[dict[str, Any]]:
        return super().retrieve(question, k)


class Separate(Leaking):
    """Keeps users apart."""

    name = "separate"

    def __init__(self) -> None:
        super().__init__()
        self._by_user: dict[str | None, list[Turn]] = {}

    def reset(self) -> None:
        self._by_user = {}

    def ingest(self, turns: list[Turn], user: str | None = None) -> None:
        self._by_user.setdefault(user, []).extend(turns)

    def retrieve(self, question: str, k: int | None = None, user: str | None = None) -> list[dict[str, Any]]:
        self.turns = self._by_user.get(user, [])
        return super().retrieve(question, k)

    def query(self, question: str, user: str | None = None) -> str:
        found = self.retrieve(question, 1, user)
        return str(found[0]["text"]) if found else ""


class Filed(Separate):
    """Keeps users apart, and lists the memories of one user at a time, as vendors do."""

    name = "filed"

    def memories(self, user: str | None = None) -> list[str]:
        return [turn["content"] for turn in self._by_user.get(user, [])]


class Secretive(Separate):
    """Finds what it was told, and lists nothing.

    Args:
        how: `nothing` for an empty list, `none` for no list at all, `raise` for an error.
    """

    name = "secretive"

    def __init__(self, how: str = "nothing") -> None:
        super().__init__()
        self.how = how

    def memories(self) -> list[str] | None:
        if self.how == "raise":
            raise NotImplementedError("no listing")
        return None if self.how == "none" else []


class Empty(Remembering):
    """Keeps nothing, and lists nothing.

    Args:
        folder: Where it has a file that says nothing.
    """

    name = "empty"

    def __init__(self, folder: str = "") -> None:
        super().__init__()
        if folder:
            self.storage = Path(folder)
            (self.storage / "index.bin").write_bytes(bytes(4096))

    def ingest(self, turns: list[Turn]) -> None:
        pass

    def memories(self) -> list[str]:
        return []


class Delayed(Remembering):
    """Can find what it was told only some seconds after the last `ingest`, and notes when that was.

    Args:
        seconds: How long it takes.
    """

    name = "delayed"

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.took: list[float] = []
        self._began = self._ready = 0.0

    def reset(self) -> None:
        super().reset()
        self._began = 0.0

    def ingest(self, turns: list[Turn]) -> None:
        super().ingest(turns)
        now = time.monotonic()
        self._began = self._began or now
        self._ready = now + self.seconds

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        if time.monotonic() < self._ready:
            return []
        if self._began:
            self.took.append(self._ready - self._began)
            self._began = 0.0
        return super().retrieve(question, k)


class Dropping(Remembering):
    """Loses every second turn."""

    name = "dropping"

    def ingest(self, turns: list[Turn]) -> None:
        super().ingest([turn for turn in turns if int(turn["id"].strip("t")) % 2])


class Clinging(Remembering):
    """Keeps everything when it is told to forget it."""

    name = "clinging"

    def reset(self) -> None:
        pass


class Rewording(Remembering):
    """Keeps what it was told in words of its own: the number of a room and its code.

    Args:
        names: Whether it says which turn each memory comes from.
    """

    name = "rewording"

    def __init__(self, names: bool = True) -> None:
        super().__init__()
        self.names = names

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        found = super().retrieve(question, k)
        for item in found:
            *_, room, _, code = item["text"].split()
            item["text"] = f"Ana told me {code.strip('.')} opens {room}"
            if not self.names:
                del item["ids"]
        return found


class Claiming(Remembering):
    """Says that it found every turn, and shows none of them.

    Args:
        text: What it returns instead.
    """

    name = "claiming"

    def __init__(self, text: str = "ok") -> None:
        super().__init__()
        self.text = text

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        return [{"text": self.text, "ids": [turn["id"] for turn in self.turns], "score": 1.0}]


class Picky(Remembering):
    """Finds things for one question of three, and does something else for the others.

    Args:
        how: `raise`, or `unnamed` for texts without ids, or `unscored` for a list without scores.
    """

    name = "picky"

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        found = super().retrieve(question, k)
        if int(question.rpartition("room")[2][0]) % 3 == 0:
            return found
        if self.how == "raise":
            raise ValueError("too hard")
        if self.how == "unnamed":
            return [{"text": "I do not know."}]
        return [{"text": "I do not know.", "ids": ["t0"]}]


class Stale(Remembering):
    """Never lets go of the first thing that it heard: the oldest first among equals, and one alone."""

    name = "stale"

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        asked = split(question)
        ranked = sorted(self.turns, key=lambda turn: -len(asked & split(turn["content"])))
        return [{"text": turn["content"], "ids": [turn["id"]]} for turn in ranked[:1]]


class Broken(Remembering):
    """Does one thing wrong, once or always.

    Args:
        where: `ingest`, `query` or `retrieve`.
        how: `raise`, `hang`, `none`, `number`, `exit` or `interrupt`.
        word: Only where this word is in the question, or in a turn.
    """

    name = "broken"

    def __init__(self, where: str = "query", how: str = "raise", word: str = "") -> None:
        super().__init__()
        self.where, self.how, self.word = where, how, word

    def _break(self, where: str, text: str) -> tuple[bool, Any]:
        if where != self.where or self.word not in text:
            return False, None
        if self.how == "raise":
            raise ValueError("something broke")
        if self.how == "exit":
            raise SystemExit(3)
        if self.how == "interrupt":
            raise KeyboardInterrupt
        if self.how == "hang":
            time.sleep(3600)
        return True, 17 if self.how == "number" else None

    def ingest(self, turns: list[Turn]) -> None:
        self._break("ingest", " ".join(turn["content"] for turn in turns))
        super().ingest(turns)

    def query(self, question: str) -> Any:
        broken, answer = self._break("query", question)
        return answer if broken else super().query(question)

    def retrieve(self, question: str, k: int | None = None) -> Any:
        broken, answer = self._break("retrieve", question)
        return answer if broken else super().retrieve(question, k)


class BrokenAsync(Broken):
    """Does the same in coroutines."""

    async def aingest(self, turns: list[Turn]) -> None:
        self.ingest(turns)

    async def aretrieve(self, question: str, k: int | None = None) -> Any:
        return self.retrieve(question, k)


class Persistent(Remembering):
    """Keeps its memory in files, and writes down every call.

    Args:
        folder: Where.
        sleep_at: Sleeps in the query or ingest with this word in it, so that somebody can kill it there.
    """

    name = "persistent"

    def __init__(self, folder: str, sleep_at: str = "") -> None:
        super().__init__()
        self.folder, self.sleep_at = Path(folder), sleep_at
        self.folder.mkdir(parents=True, exist_ok=True)
        self.fingerprint = "persistent/1"
        self._key = ""

    def _log(self, what: str, text: str) -> None:
        with (self.folder / "log.txt").open("a") as log:
            log.write(f"{what} {text}\n")
        if self.sleep_at and self.sleep_at in f"{what} {text}":
            time.sleep(3600)

    def restore(self, key: str) -> int:
        self._key = key
        path = self.folder / f"{key}.json"
        if not path.is_file():
            return False
        self.turns = json.loads(path.read_text())
        return True

    def reset(self) -> None:
        super().reset()
        (self.folder / f"{self._key}.json").unlink(missing_ok=True)

    def ingest(self, turns: list[Turn]) -> None:
        super().ingest(turns)
        (self.folder / f"{self._key}.json").write_text(json.dumps(self.turns))
        self._log("ingest", turns[0]["content"])

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        self._log("retrieve", question)
        return super().retrieve(question, k)


class Counted(Persistent):
    """Says how many turns it holds of a conversation, so that it can be continued in the middle."""

    name = "counted"

    def restore(self, key: str) -> int:
        return len(self.turns) if super().restore(key) else 0


class Writing(Remembering):
    """Asks a model and embeds for every turn that it writes, and embeds every question.

    Args:
        base_url: Of an OpenAI-compatible server.
        model: Which is asked.
        embedding_model: Which embeds.
        late: Seconds after `ingest` at which one more call is made, in a thread.
    """

    name = "writing"

    def __init__(
        self, base_url: str, model: str = "m", embedding_model: str = "e", late: float = 0.0, api_key: str = ""
    ) -> None:
        super().__init__()
        self.base_url, self.model, self.embedding_model, self.late = base_url, model, embedding_model, late
        self.api_key = api_key

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = Request(
            f"{self.base_url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        with urlopen(request, timeout=60) as reply:
            document: dict[str, Any] = json.load(reply)
        return document

    def _chat(self, text: str) -> None:
        self._post("/chat/completions", {"model": self.model, "messages": [{"role": "user", "content": text}]})

    def _embed(self, text: str) -> None:
        self._post("/embeddings", {"model": self.embedding_model, "input": text})

    def ingest(self, turns: list[Turn]) -> None:
        super().ingest(turns)
        for turn in turns:
            self._chat(turn["content"])
            self._embed(turn["content"])
        if self.late:
            import threading

            threading.Timer(self.late, self._chat, ("consolidate",)).start()

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        self._embed(question)
        return super().retrieve(question, k)


def make_conversations(count: int = 3, rooms: int = 6, sessions: int = 2) -> list[dict[str, Any]]:
    """Conversations about the codes of rooms; every question has one right answer, and it is in one turn."""
    size = rooms // sessions
    return [
        {
            "id": f"c{number}",
            "turns": [
                {
                    "id": f"t{room}",
                    "role": "user",
                    "speaker": "Ana",
                    "content": f"The code of room{room} is {number}{room}{room}.",
                    "session": f"s{room // size}",
                    "timestamp": f"2023-05-{room // size + 1:02d}T10:00:00",
                }
                for room in range(rooms)
            ],
            "questions": [
                {
                    "id": f"q{room}",
                    "question": f"What is the code of room{room}?",
                    "answer": f"{number}{room}{room}",
                    "type": "early" if room < size else "late",
                    "evidence_ids": [f"t{room}"],
                }
                for room in range(rooms)
            ],
        }
        for number in range(count)
    ]
