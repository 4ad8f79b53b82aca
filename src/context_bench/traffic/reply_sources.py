"""Which of several answers of a model came back to the client, told by what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from context_bench.wire.completions import Completion

__all__ = ["find_sources"]


def find_sources(returned: Completion, replies: Sequence[Completion | None]) -> tuple[list[int], bool]:
    """Tell which replies of a model make up what came back to the client.

    A reply that says the same, with the same id if any has it; else replies whose texts or calls stand side by side
    in what came back, which was joined from them; else the reply with its id; else the one that holds all of it.

    Returns:
        The places of the replies, and whether they are parts of one answer. Several that are not are alike: what
        came back may be any one of them. None where nothing tells.
    """
    known = [(place, reply) for place, reply in enumerate(replies) if reply is not None]
    named = [place for place, reply in known if returned.id and reply.id == returned.id]
    same = [place for place, reply in known if reply.text == returned.text and reply.calls == returned.calls]
    if same:
        return [place for place in same if place in named] or same, False
    parts = _find_parts(returned, known)
    if len(parts) > 1:
        return parts, True
    if named or parts:
        return named or parts, False
    return [place for place, reply in known if returned.text and _find_whole(returned.text, reply.text) >= 0], False


def _find_parts(returned: Completion, known: Sequence[tuple[int, Completion]]) -> list[int]:
    """Find those whose whole answer stands in what came back, none of them within another one."""
    rest, calls, found = returned.text, Counter(returned.calls), []
    for place, reply in sorted(known, key=lambda each: -len(each[1].text)):
        at, own = _find_whole(reply.text, rest), Counter(reply.calls)
        if (reply.text and at < 0) or not own <= calls or not (reply.text or own):
            continue
        found.append(place)
        calls -= own
        if reply.text:
            rest = rest[:at] + "\0" + rest[at + len(reply.text) :]
    return sorted(found)


def _find_whole(part: str, whole: str) -> int:
    """Find where a text stands in another so that no word goes on beyond it; -1 where it does not."""
    at = whole.find(part)
    while at >= 0:
        before, after = whole[at - 1 : at + 1] if at else "", whole[at + len(part) - 1 : at + len(part) + 1]
        if not _is_one_word(before) and not _is_one_word(after):
            return at
        at = whole.find(part, at + 1)
    return -1


def _is_one_word(pair: str) -> bool:
    return len(pair) == 2 and all(sign.isalnum() or sign == "_" for sign in pair)
