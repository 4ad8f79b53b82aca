"""NoLiMa, built from its parts: needles that share no words with their question, put into shuffled books.

A record is one book with all needles. Each needle, question and test gives 26 examples, the needle at
depths from the start to the end of a window of the book. The window is measured in cl100k_base tokens, and
begins where the book begins; who the needle tells of is drawn by a seed from the needle's number and the book's.
"""

from __future__ import annotations

import json
import random
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from context_bench.datasets.public.adapters import Where
from context_bench.types import Example
from context_bench.utils.tokens import DEFAULT_ENCODING, get_tokenizer

__all__ = ["nolima", "nolima_books"]

DEPTHS = 26
_SEED = 42
_COT = "Think step by step, then give the final answer alone on the last line."
_CHARACTER = "{CHAR}"


def nolima_books(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """Each book with the needles of the one set among the files."""
    sets = [path for path in paths if path.suffix == ".json"]
    if len(sets) != 1:
        raise ValueError(f"there must be one set of needles (got {len(sets)})")
    needles = json.loads(sets[0].read_text(encoding="utf-8"))
    for path in paths:
        if path.suffix == ".txt":
            yield {"book": path.stem, "text": path.read_text(encoding="utf-8"), "needles": needles}


class _Window(NamedTuple):
    """The lines at the start of a book, with the number of tokens up to the end of each."""

    lines: tuple[str, ...]
    ends: tuple[int, ...]

    def boundary(self, depth: float) -> int:
        """The line before which a needle at this depth stands."""
        return bisect_left((0, *self.ends), depth * self.ends[-1]) if self.ends else 0


@lru_cache(maxsize=4)
def _cut_window(text: str, tokens: int) -> _Window:
    """Cut as many whole lines as fit."""
    count = get_tokenizer(DEFAULT_ENCODING)
    lines: list[str] = []
    total = 0
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        total += count(line)
        if total > tokens:
            break
        lines.append(line)
    if not lines:
        raise ValueError(f"the first line of the book is longer than {tokens} tokens")
    return _Window(tuple(lines), tuple(accumulate(map(count, lines))))


def nolima(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Every needle, question, test and depth in one book."""
    needle_set, _, length = where.config.rpartition("-")
    window = _cut_window(record["text"], _read_length(length))
    for needle in record["needles"]:
        for kind, question in needle["questions"].items():
            for test, given in needle["tests"].items():
                case = _Case(needle, kind, question, test, given)
                seed = _SEED + int(needle["id"][:4]) + where.index
                names = _draw_characters(needle["character_set"], seed)
                for step, name in enumerate(names):
                    example = case.example(window, step / (DEPTHS - 1), name)
                    example["id"] = f"{where.config}-{record['book']}-{example['id']}-{step}"
                    example["meta"] |= {"length": length, "book": record["book"]}
                    if needle_set == "cot":
                        example["instruction"] = _COT
                        example["meta"]["metric"] = "lastline_contains"
                    yield example


def _read_length(length: str) -> int:
    return int(length[:-1]) * 1000 if length.endswith("k") else int(length)


def _draw_characters(names: Sequence[str], seed: int) -> list[str]:
    """Draw the character that the needle tells of, one for each depth."""
    draw = random.Random(seed).random  # the sequence of random() is the same on every version of Python
    return [names[int(draw() * len(names))] if names else "" for _ in range(DEPTHS)]


class _Case(NamedTuple):
    """One question on one needle, with what fills the blanks of both."""

    needle: Mapping[str, Any]
    kind: str
    question: str
    test: str
    given: Mapping[str, Any]

    def example(self, window: _Window, depth: float, name: str) -> Example:
        sentence = self._fill_template(self.needle["needle"], name).strip()
        place = window.boundary(depth)
        before = "".join(window.lines[:place])
        before += "\n" if before and not before.endswith("\n") else ""
        answers = [name] if _CHARACTER in self.needle["needle"] else list(self.given["gold_answers"])
        return {
            "id": f"{self.needle['id']}-{self.kind}-{self.test}",
            "context": f"{before}{sentence}\n{''.join(window.lines[place:])}",
            "question": self._fill_template(self.question, name),
            "answer": answers[0],
            "answers": answers,
            "evidence": [{"start": len(before), "end": len(before) + len(sentence), "text": sentence}],
            "meta": {"kind": self.kind, "depth": depth},
        }

    def _fill_template(self, template: str, name: str) -> str:
        for number, argument in enumerate(self.given["input_args"], 1):
            template = template.replace(f"{{{number}}}", argument)
        return template.replace(_CHARACTER, name)
