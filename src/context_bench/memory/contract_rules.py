"""The rules that every memory system must keep, tried on two small conversations."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

from context_bench.errors import SystemFailure
from context_bench.memory.caller import Worker
from context_bench.memory.members import Members

__all__ = ["find_broken_rules"]

_CANARY = "kestrel"
_FIRST = [
    {"id": "a1", "role": "user", "speaker": "Ana", "content": f"My password is {_CANARY}.", "session": "s1"},
    {"id": "a2", "role": "assistant", "speaker": "Bot", "content": "I see.", "session": "s1"},
]
_SECOND = [
    {"id": "b1", "role": "user", "speaker": "Ana", "content": "My dog is called Rex.", "session": "s1"},
    {"id": "b2", "role": "assistant", "speaker": "Bot", "content": "A good name.", "session": "s1"},
]
for _turn in (*_FIRST, *_SECOND):
    _turn["timestamp"] = "2024-03-04T10:00:00"

_QUESTIONS = ("What is the password?", "What is the dog called?", "", "名前は？")


class _Trial:
    """One memory system, called as a run would."""

    def __init__(self, members: Members, timeout: float) -> None:
        self.members = members
        self._worker = Worker(members.system.name, timeout)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method; SystemFailure when it raises or hangs."""
        return asyncio.run(self._worker.call(f"{name}()", self.members[name], *arguments))

    def close(self) -> None:
        self._worker.close()


def find_broken_rules(members: Members, timeout: float) -> Iterator[str]:
    """Yield a sentence for each rule that a memory system breaks."""
    trial = _Trial(members, timeout)
    try:
        yield from _try_conversations(trial)
    except SystemFailure as failure:
        yield f"must not fail ({failure})"
    finally:
        trial.close()


def _try_conversations(trial: _Trial) -> Iterator[str]:
    members = trial.members
    if "restore" in members and not isinstance(trial.call("restore", "a conversation"), bool):
        yield "must return True or False from restore()"
    for turns in (_FIRST, _SECOND):
        given = copy.deepcopy(turns)
        trial.call("reset")
        trial.call("ingest", given[:1])
        trial.call("ingest", given[1:])
        if given != turns:
            yield "must leave the turns as they were"
        if "flush" in members:
            trial.call("flush")
        yield from _ask(trial, {str(turn["id"]) for turn in turns})
    if "memories" in members and not isinstance(trial.call("memories"), list | tuple):
        yield "must return a list from memories()"
    if "forget" in members:
        trial.call("forget", {"what": "the name of the dog"})
    trial.call("reset")
    trial.call("query", _QUESTIONS[0])  # nothing is there: that is no reason to fail


def _ask(trial: _Trial, known: set[str]) -> Iterator[str]:
    found_text = ""
    for question in _QUESTIONS:
        answer = trial.call("query", question)
        if not isinstance(answer, str):
            yield f"must return a text from query() (it returned {type(answer).__name__})"
        found_text += str(answer)
        if "retrieve" in trial.members:
            found = trial.call("retrieve", question)
            yield from _check_found(found, known)
            if trial.call("retrieve", question) != found:
                yield "must find the same when it is asked the same again"
            found_text += str(found)
    if "b1" in known and _CANARY in found_text:
        yield "must forget the last conversation on reset()"


def _check_found(found: Any, known: set[str]) -> Iterator[str]:
    if not isinstance(found, list | tuple):
        yield f"must return a list from retrieve() (it returned {type(found).__name__})"
        return
    for item in found:
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            yield "must return objects with a 'text' from retrieve()"
        elif not set(map(str, item.get("ids") or ())) <= known:
            yield "must give ids of turns that it was given"
