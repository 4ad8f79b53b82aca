"""Reference systems that need no model: Passthrough, ClosedBook and Oracle as bounds, and four compressors.

RandomDrop and BM25 keep or drop whole pieces: sentences of prose, lines of anything else. All pieces joined are the
context again, so kept pieces are unchanged. BM25 reads the question and is hard to beat on look-up questions; a learned
compressor should show that it beats BM25.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable

from context_bench.errors import UsageError
from context_bench.options import is_number
from context_bench.systems.prompts import join_documents
from context_bench.text.golds import evidence_texts
from context_bench.text.words import split_words
from context_bench.traits import SystemTraits, find_parts
from context_bench.types import Example
from context_bench.utils.tokens import count_tokens, current_tokenizer, get_tokenizer


class Passthrough:
    """Changes nothing."""

    reads_gold = False

    def __init__(self) -> None:
        self.name = "passthrough"
        self.fingerprint = "passthrough/1"

    def process(self, example: Example) -> Example:
        return example


class ClosedBook:
    """Drops the whole context, to show what the model knows by itself. Keeps the last question of a conversation."""

    reads_gold = False

    def __init__(self) -> None:
        self.name = "closed-book"
        self.fingerprint = "closed-book/2"

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(is_bound=True)

    def process(self, example: Example) -> Example:
        """Return an empty context and no documents; for a conversation, only the last user turn."""
        result: Example = {"context": "", **({"documents": []} if "documents" in example else {})}
        if example.get("turns") and not example.get("context"):
            result["turns"] = [turn for turn in example["turns"] if turn.get("role") == "user"][-1:]
        return result


def reads_no_context(system: object) -> bool:
    """Whether a system is the floor, with or without a model behind it."""
    return isinstance(system, ClosedBook) or any(isinstance(part, ClosedBook) for part in find_parts(system))


class Oracle:
    """Keeps the evidence and nothing else. It reads the gold, so it is a bound, not a competitor.

    Without evidence the context is unchanged, and the row has the reason in `not_applied`. If no example of a run has
    evidence, it is not ranked.
    """

    reads_gold = True

    def __init__(self) -> None:
        self.name = "oracle"
        self.fingerprint = "oracle/1"

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(is_bound=True)

    def process(self, example: Example) -> Example:
        """Return the evidence in its order, or the relevant documents."""
        texts = evidence_texts(example)
        result: Example = {"context": "\n".join(texts) if texts else example["context"]}
        chooses = "documents" in example and "relevant_ids" in example
        if chooses:
            relevant = set(example["relevant_ids"])
            result["documents"] = [item for item in example["documents"] if item["id"] in relevant]
        if not texts and not chooses:
            result["metadata"] = {"not_applied": "the example has no evidence, so the context was not changed"}
        return result


# After a sentence, a line, or a member of a JSON structure on one long line. Line ends stay with what they
# end and spaces with what they precede, as in tokenizers, so that the pieces have as many tokens as the text.
_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*(?=[ \t]+\S)|(?<=[。！？])(?![。！？])[”’」』）]*\n*|\n+|(?<=[}\]\"]),\n*")


def split(text: str) -> list[str]:
    """Cut a text into pieces, which joined again are the text."""
    pieces, start = [], 0
    for match in _END.finditer(text):
        if match.end() > start:
            pieces.append(text[start : match.end()])
            start = match.end()
    if start < len(text):
        pieces.append(text[start:])
    return pieces


def pick(pieces: list[str], order: Iterable[int], tokens: int) -> str:
    """Pick the preferred pieces while they fit, and return the picked pieces in their original order."""
    count = get_tokenizer()
    whole = "".join(pieces)
    if count(whole) <= tokens:
        return whole
    kept, left = [], tokens
    for index in order:
        cost = count(pieces[index])
        if cost <= left:
            kept.append(index)
            left -= cost
    # Joined pieces may have more tokens than the sum: drop the last one picked.
    while count(text := "".join(pieces[index] for index in sorted(kept))) > tokens:
        kept.pop()
    return text


def shuffle_indices(count: int, seed: str) -> list[int]:
    """Return the numbers below `count` in an order that depends only on the seed."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


class Budget:
    """Either `ratio` (the share of tokens to keep) or `budget` (the number of tokens to keep)."""

    def __init__(self, ratio: float | None, budget: int | None, default_ratio: float = 0.5) -> None:
        if ratio is not None and budget is not None:
            raise UsageError("pass a ratio or a budget, not both")
        if ratio is not None and not (is_number(ratio) and 0 <= ratio <= 1):
            raise UsageError(f"ratio must be the share of tokens that is kept, from 0 to 1 (got {ratio!r})")
        if budget is not None and not (is_number(budget) and budget >= 0 and float(budget).is_integer()):
            raise UsageError(f"budget must be a number of tokens (got {budget!r})")
        self.ratio = default_ratio if ratio is None and budget is None else ratio
        self.budget = None if budget is None else int(budget)

    def tokens(self, text: str) -> int:
        """Return the number of tokens of this text to keep."""
        if self.budget is not None:
            return self.budget
        assert self.ratio is not None
        return int(count_tokens(text) * self.ratio)

    @property
    def fingerprint(self) -> str:
        """The settings that determine the cuts, including the tokenizer of this process."""
        size = f"budget={self.budget}" if self.budget is not None else f"ratio={self.ratio}"
        tokenizer = current_tokenizer()
        return f"{size} {tokenizer if isinstance(tokenizer, str) else id(tokenizer)}"


_KEEPS = ("head", "tail", "middle")


class Truncate:
    """Keeps one stretch of the context and drops the rest.

    Args:
        ratio: The share of tokens to keep (0.5 by default).
        budget: The number of tokens to keep, instead of a share.
        keep: The stretch to keep: "head", "tail" or "middle".
    """

    reads_gold = False

    def __init__(self, ratio: float | None = None, budget: int | None = None, keep: str = "head") -> None:
        if keep not in _KEEPS:
            raise UsageError(f"keep must be {', '.join(_KEEPS[:-1])} or {_KEEPS[-1]} (got {keep!r})")
        self.budget = Budget(ratio, budget)
        self.keep = keep
        self.name = "truncate"

    @property
    def fingerprint(self) -> str:
        """The settings that affect its output."""
        return f"truncate/1 keep={self.keep} {self.budget.fingerprint}"

    def process(self, example: Example) -> Example:
        text = example["context"]
        return {"context": longest(text, self.budget.tokens(text), _STRETCHES[self.keep])}


def longest(text: str, tokens: int, stretch: Callable[[str, int], str]) -> str:
    """Return the text, or about its longest stretch within a number of tokens.

    The result is not exact: half a word may have more tokens than the whole word, so the bisection may end a few
    characters early.
    """
    count = get_tokenizer()
    if count(text) <= tokens:
        return text
    low, high = 0, len(text)  # lengths in characters: `low` fits
    while low < high:
        middle = (low + high + 1) // 2
        if count(stretch(text, middle)) <= tokens:
            low = middle
        else:
            high = middle - 1
    return stretch(text, low)


def _middle(text: str, length: int) -> str:
    start = (len(text) - length) // 2
    return text[start : start + length]


_STRETCHES: dict[str, Callable[[str, int], str]] = {
    "head": lambda text, length: text[:length],
    "tail": lambda text, length: text[len(text) - length :],
    "middle": _middle,
}


class RandomDrop:
    """Drops random sentences or lines, always the same for the same seed and example.

    Args:
        ratio: The share of tokens to keep (0.5 by default).
        budget: The number of tokens to keep, instead of a share.
        seed: Different seeds drop different sentences.
    """

    reads_gold = False

    def __init__(self, ratio: float | None = None, budget: int | None = None, seed: int = 0) -> None:
        self.budget = Budget(ratio, budget)
        self.seed = seed
        self.name = "random-drop"

    @property
    def fingerprint(self) -> str:
        """The settings that affect its output."""
        return f"random-drop/1 seed={self.seed} {self.budget.fingerprint}"

    def process(self, example: Example) -> Example:
        """Return the remaining pieces in their order."""
        text = example["context"]
        pieces = split(text)
        order = shuffle_indices(len(pieces), f"random-drop {self.seed} {example['id']!r}")
        return {"context": pick(pieces, order, self.budget.tokens(text))}


class BM25:
    """Keeps the sentences or lines that match the question best, in their own order.

    Documents are ranked. With an explicit ratio or budget, only the best that fit are kept.

    Args:
        ratio: The share of tokens to keep (0.5 by default).
        budget: The number of tokens to keep, instead of a share.
        k1: The saturation of repeated words.
        b: The penalty for long sentences, from 0 to 1.
    """

    reads_gold = False

    def __init__(self, ratio: float | None = None, budget: int | None = None, k1: float = 1.5, b: float = 0.75) -> None:
        if not 0 <= b <= 1 or k1 < 0:
            raise UsageError(f"b must be from 0 to 1 and k1 at least 0 (got b={b}, k1={k1})")
        self.budget = Budget(ratio, budget)
        self.k1, self.b = k1, b
        self._cuts_documents = ratio is not None or budget is not None
        self.name = "bm25"

    @property
    def fingerprint(self) -> str:
        """The settings that affect its output."""
        cuts = " cuts documents" if self._cuts_documents else ""
        return f"bm25/1 k1={self.k1} b={self.b} {self.budget.fingerprint}{cuts}"

    def process(self, example: Example) -> Example:
        """Return the best pieces that fit, or the ranked documents (with a given size, only the documents that fit)."""
        query = split_words(_query(example))
        documents = example.get("documents")
        if documents:
            texts = [f"{item.get('title') or ''} {item['text']}" for item in documents]
            ranked = [documents[index] for index in self._order(query, texts)]
            return {"documents": self._pick(ranked) if self._cuts_documents else ranked}
        text = example["context"]
        pieces = split(text)
        return {"context": pick(pieces, self._order(query, pieces), self.budget.tokens(text))}

    def _pick(self, ranked: list[Example]) -> list[Example]:
        """Pick documents, best first, without those that no longer fit."""
        count = get_tokenizer()
        whole = join_documents(ranked)
        left = tokens = self.budget.tokens(whole)
        if count(whole) <= tokens:
            return ranked
        kept: list[Example] = []
        for item in ranked:
            cost = count(join_documents([item]))
            if cost <= left:
                kept.append(item)
                left -= cost
        # Separators have tokens too: drop the last one picked.
        while kept and count(join_documents(kept)) > tokens:
            kept.pop()
        return kept

    def _order(self, query: list[str], texts: list[str]) -> list[int]:
        """Return the indexes of the texts, best first; texts of equal rank keep their original order."""
        bags = [Counter(split_words(text)) for text in texts]
        sizes = [bag.total() for bag in bags]
        mean = sum(sizes) / len(sizes) if sizes else 0.0
        scores = [0.0] * len(texts)
        for term in dict.fromkeys(query):
            found = [index for index, bag in enumerate(bags) if term in bag]
            weight = math.log(1 + (len(bags) - len(found) + 0.5) / (len(found) + 0.5))
            for index in found:
                often = bags[index][term]
                damping = self.k1 * (1 - self.b + self.b * sizes[index] / mean)
                scores[index] += weight * (often * (self.k1 + 1) / (often + damping))
        return sorted(range(len(texts)), key=lambda index: (-scores[index], index))


def _query(example: Example) -> str:
    if example.get("question"):
        return str(example["question"])
    asked = [turn.get("content") for turn in example.get("turns") or () if turn.get("role") == "user"]
    return str(asked[-1]) if asked else ""


_LEADING_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_TRAILING = re.compile(r"(?<![ \t])[ \t]+$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INNER_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")


class Minify:
    """Writes JSON without layout and collapses other white space; keeps indentation, which code needs."""

    reads_gold = False

    def __init__(self) -> None:
        self.name = "minify"
        self.fingerprint = "minify/1"

    def process(self, example: Example) -> Example:
        return {"context": minify(example["context"])}


def minify(text: str) -> str:
    """Rewrite JSON or JSON lines compactly, with keys and numbers unchanged; collapse spaces in other text."""
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        lines = [line for line in stripped.split("\n") if line.strip()]
        for documents in ([stripped], lines):
            try:
                return "\n".join(map(_compact, documents))
            except (ValueError, RecursionError):
                continue
    lined = _TRAILING.sub("", _LEADING_LINES.sub("", text.rstrip()))
    return _INNER_SPACES.sub(" ", _BLANK_LINES.sub("\n\n", lined))


def _compact(text: str) -> str:
    # Keep the spelling of numbers: 1.0 must not become 1, nor a long id lose digits.
    return _encode(
        json.loads(text, object_pairs_hook=_Members, parse_float=_Spelled, parse_int=_Spelled, parse_constant=_Spelled)
    )


class _Spelled(str):
    """A number in its original spelling."""


class _Members(list[tuple[str, object]]):
    """A JSON object as a list of members, so that duplicate keys are kept."""


def _encode(value: object) -> str:
    if isinstance(value, _Spelled):
        return str(value)
    if isinstance(value, _Members):
        return "{" + ",".join(f"{_encode(key)}:{_encode(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_encode, value)) + "]"
    text = json.dumps(value, ensure_ascii=False)
    return text if _SURROGATE.search(text) is None else json.dumps(value)
