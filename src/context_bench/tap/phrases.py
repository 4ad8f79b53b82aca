"""Words in a row, by which a text is recognised after it was changed, and an index of who has said what.

Texts may have tens of megabytes: they are worked on a piece at a time, so that it can be done in a thread while the
event loop goes on, and what is remembered of them is small against the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from itertools import compress
from typing import Generic, TypeVar
from zlib import crc32

from context_bench.text.words import split_in_pieces, split_words

__all__ = ["OwnerIndex", "find_phrases"]

Key = TypeVar("Key", bound=Hashable)
Owner = TypeVar("Owner", bound=Hashable)

_WORDS = 4
"""Words in a row that make two texts related."""

_LONG, _SAMPLED = 400, 8
"""Of a text with so many words the phrases that begin with one word in so many are taken, the same in every text."""

_KNOWN_WORDS = 200_000

_VERY_LONG = 131_072
"""Characters from which a text is worked on in pieces."""


def find_phrases(texts: Iterable[str]) -> set[str]:
    """Find every few words in a row of the texts; a text with fewer is one phrase, and of a long one some are enough.

    Which ones are taken of a long text depends on their first word alone, so that two texts that share a passage
    share the phrases that are taken of it.
    """
    found: set[str] = set()
    for text in texts:
        if len(text) >= _VERY_LONG:
            found |= _find_sampled(partial(split_in_pieces, text))
            continue
        words = split_words(text)
        if 0 < len(words) < _WORDS:
            found.add(" ".join(words))
        found |= set(_join_all(words)) if len(words) < _LONG else _find_sampled(partial(iter, (words,)))
    return found


def _find_sampled(split: Callable[[], Iterator[list[str]]]) -> set[str]:
    """Take the rows that begin with certain words; all of them in a text that has none of these words."""
    found: set[str] = set()
    sample = _Sample()
    for words in _overlap(split()):
        found.update(_join_sampled(words, sample))
    if not found:
        for words in _overlap(split()):
            found.update(_join_all(words))
    return found


def _overlap(pieces: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the words of each piece behind the last ones of the piece before, so that no row is cut in two."""
    rest: list[str] = []
    for piece in pieces:
        words = rest + piece
        yield words
        rest = words[1 - _WORDS :]


def _join_all(words: list[str]) -> Iterator[str]:
    return map(" ".join, zip(*(words[place:] for place in range(_WORDS))))


def _join_sampled(words: list[str], sample: _Sample) -> Iterator[str]:
    starts = compress(range(len(words) - _WORDS + 1), map(sample.__getitem__, words))
    return (" ".join(words[start : start + _WORDS]) for start in starts)


class _Sample(dict[str, bool]):
    """Whether the phrases that begin with a word are taken; known words are not worked out again."""

    def __missing__(self, word: str) -> bool:
        if len(self) >= _KNOWN_WORDS:
            self.clear()
        self[word] = taken = crc32(word.encode("utf-8", "replace")) % _SAMPLED == 0
        return taken


class OwnerIndex(Generic[Owner, Key]):
    """Maps keys to those who have them, so that a text is not compared with everybody's.

    Args:
        read: Finds the keys of an owner, each once.
    """

    def __init__(self, read: Callable[[Owner], Iterable[Key]]) -> None:
        self._read = read
        self._owners: dict[Key, tuple[Owner, ...]] = {}
        self._known: dict[Owner, Iterable[Key]] = {}

    def update(self, owners: Iterable[Owner]) -> None:
        """Add the owners that are new, and remove those that are no longer among them."""
        wanted = set(owners)
        for owner in self._known.keys() - wanted:
            self._remove(owner)
        for owner in wanted - self._known.keys():
            self._add(owner)

    def _add(self, owner: Owner) -> None:
        self._known[owner] = keys = self._read(owner)
        alone = (owner,)  # one for all of its keys: most keys have one owner, and there may be a million of them
        for key in keys:
            others = self._owners.get(key)
            self._owners[key] = alone if others is None else others + alone

    def _remove(self, owner: Owner) -> None:
        for key in self._known.pop(owner):
            others = tuple(other for other in self._owners[key] if other is not owner)
            if others:
                self._owners[key] = others
            else:
                del self._owners[key]

    def find_owners(self, key: Key) -> tuple[Owner, ...]:
        """Find those who have a key."""
        return self._owners.get(key, ())

    def count_owners(self, keys: Iterable[Key]) -> Counter[tuple[Owner, ...]]:
        """Count how many of the keys belong to the same owners."""
        return Counter(self._owners.get(key, ()) for key in keys)
