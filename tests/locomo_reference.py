"""BM25 on LoCoMo by session, written from the formula alone: it imports nothing of the package that it is held against.

`python tests/locomo_reference.py` prints the share of questions with any, and with all, of their evidence sessions
among the first k, for plain words with one document for each session, and for stems with one for each turn.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nltk.stem import PorterStemmer

_WORDS = """a about after all also am an and any are as at be because been before being between both but by can could
did do does doing during each few for from further had has have having he her here hers him his how i if
in into is it its just me more most my no nor not now of off on once only or other our out over own same
she should so some such than that the their them then there these they this those through to too under
until up very was we were what when where which while who whom why will with would you your"""
STOP_WORDS = frozenset(_WORDS.split())
_STEMMER = PorterStemmer(mode=PorterStemmer.ORIGINAL_ALGORITHM)
_STEMS: dict[str, str] = {}

Split = Callable[[str], list[str]]


def split_plain(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def split_stems(text: str) -> list[str]:
    words = [word for word in split_plain(text) if word not in STOP_WORDS]
    return [_STEMS.get(word) or _STEMS.setdefault(word, _STEMMER.stem(word)) for word in words]


def rank(documents: Sequence[list[str]], question: list[str], k1: float = 1.5, b: float = 0.75) -> list[int]:
    """Rank documents by Okapi BM25, best first; those without a word in common are left out."""
    mean = sum(map(len, documents)) / len(documents)
    counts = [Counter(document) for document in documents]
    scores = [0.0] * len(documents)
    for word in set(question):
        holding = [place for place, count in enumerate(counts) if word in count]
        weight = math.log(1 + (len(documents) - len(holding) + 0.5) / (len(holding) + 0.5))
        for place in holding:
            often, size = counts[place][word], len(documents[place])
            scores[place] += weight * often * (k1 + 1) / (often + k1 * (1 - b + b * size / mean))
    return sorted((place for place, each in enumerate(scores) if each > 0), key=lambda place: (-scores[place], place))


def measure(samples: list[dict[str, Any]], split: Split, *, by_turn: bool) -> tuple[int, dict[str, float]]:
    """Count the questions with evidence, and measure any@k and all@k of the evidence sessions."""
    hits: Counter[str] = Counter()
    asked = 0
    for sample in samples:
        names: list[int] = []  # the session of each document
        turns: list[str] = []  # its text
        ids: set[str] = set()
        for number in sorted(int(key[8:]) for key in sample["conversation"] if re.fullmatch(r"session_\d+", key)):
            texts = []
            for turn in sample["conversation"][f"session_{number}"]:
                caption = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                texts.append(f"{turn['speaker']}: {turn['text']}{caption}")
                ids.add(turn["dia_id"])
            documents = texts if by_turn else ["\n".join(texts)]
            turns += documents
            names += [number] * len(documents)
        words = [split(text) for text in turns]
        for question in sample["qa"]:
            found = [f"D{int(a)}:{int(b)}" for a, b in re.findall(r"D:?(\d+):(\d+)", " ".join(question["evidence"]))]
            evidence = {int(each[1:].split(":")[0]) for each in found if each in ids}
            if not evidence:
                continue
            asked += 1
            ranking = list(dict.fromkeys(names[place] for place in rank(words, split(question["question"]))))
            for k in (1, 5, 10):
                met = evidence.intersection(ranking[:k])
                hits[f"any@{k}"] += bool(met)
                hits[f"all@{k}"] += met == evidence
    return asked, {key: count / asked for key, count in sorted(hits.items())}


def read_samples() -> list[dict[str, Any]]:
    return json.loads(Path(os.environ["CONTEXT_BENCH_DATA"], "locomo", "locomo10.json").read_text())  # type: ignore[no-any-return]


if __name__ == "__main__":
    for title, split, by_turn in (("plain, by session", split_plain, False), ("stems, by turn", split_stems, True)):
        asked, shares = measure(read_samples(), split, by_turn=by_turn)
        print(title, asked, {key: round(share, 3) for key, share in shares.items()})
