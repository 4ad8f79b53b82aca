"""Properties of every diff: both texts can be read off it, and a system that only selects adds nothing."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from banks import each_case
from context_bench.datasets.catalog import catalog
from context_bench.output.page.examples import compare_context
from context_bench.refs import call_with, parse, resolve
from context_bench.registry import load_dataset
from context_bench.systems.prompts import with_context
from context_bench.traffic.passed_on import compare_passed_on
from context_bench.traffic.text_diff import Segment, diff_texts

SELECTORS = (
    *("passthrough", "closed-book", "truncate:ratio=0.4", "truncate:ratio=0.4,keep=tail"),
    *("truncate:ratio=0.4,keep=middle", "random-drop:ratio=0.3", "random-drop:ratio=0.7", "bm25:ratio=0.1"),
    *("bm25:ratio=0.3", "bm25:ratio=0.7", "minify"),
)
MAX_SECONDS = 4.0  # the docs promise one on a quiet processor; a busy one counts up to three; not linear takes minutes
GENERATED = sorted(
    card.name for card in catalog().values() if not card.adapter and card.name != "agent-trace"
)  # whose examples are turns, with no context


def _read_added(segments: Sequence[Segment], before: str, after: str) -> str:
    """Check that a diff adds up to both texts, and return what it shows as added."""
    assert "".join(each.text for each in segments) == before
    assert "".join(each.new for each in segments) == after
    for kind, old, new, _ in segments:
        if kind == "moved":
            assert bool(old) != bool(new)
        else:
            assert kind == ("kept" if old == new else "changed" if old and new else "dropped" if old else "added")
    moved = [each for each in segments if each.kind == "moved"]
    gone, arrived = "".join(each.text for each in moved), "".join(each.new for each in moved)
    assert sorted("".join(gone.split())) == sorted("".join(arrived.split())), "what moved away arrives elsewhere"
    return "".join(each.new for each in segments if each.kind in ("added", "changed"))


@cache
def _load(name: str) -> list[dict[str, Any]]:
    return list(load_dataset(name, n=2, length=1500))


@each_case("name", GENERATED)
@each_case("reference", [*SELECTORS, "oracle"])
def test_reference_systems_on_generated_data(name: str, reference: str) -> None:
    (ref,) = parse("system", reference)
    system = call_with(resolve("system", ref), ref)
    for example in _load(name):
        processed = with_context(system.process(dict(example)), example)
        ((_, (part,)),) = compare_passed_on(example, processed)
        added = _read_added(part.segments, example["context"], processed["context"])
        assert (added.strip() if reference == "oracle" else added) == "", "it selects, and adds nothing"


Pieces = list[str]


def _drop(pieces: Pieces, rng: random.Random) -> Pieces:
    return [piece for piece in pieces if rng.random() < 0.6]


def _shuffle(pieces: Pieces, rng: random.Random) -> Pieces:
    return rng.sample(pieces, len(pieces))


def _insert(pieces: Pieces, rng: random.Random) -> Pieces:
    return [new for piece in pieces for new in (piece, *(["the added one"] if rng.random() < 0.2 else []))]


def _double(pieces: Pieces, rng: random.Random) -> Pieces:
    return [new for piece in pieces for new in [piece] * rng.choice([0, 1, 1, 2])]


def _swap_spaces(pieces: Pieces, rng: random.Random) -> Pieces:
    return [rng.choice(["", " ", "\n", "\n\n", "\t "]) if piece.isspace() else piece for piece in pieces]


@each_case("edit", [_drop, _shuffle, _insert, _double, _swap_spaces])
@each_case("unit", [r"(?<=\n\n)", r"(?<=\n)", r"(?<=\.)", r"(?<=\s)(?=\S)", r"(?<=.)"])
def test_random_edits(edit: Callable[[Pieces, random.Random], Pieces], unit: str) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        words = [*"abc", "the", "of", "Bob", "Rome", "東京。", "é", '"id":', "{", "},", "42", "_x"]
        ends = [" ", " ", " ", ". ", ".\n", "\n\n", "\r\n", ", "]
        before = "".join(rng.choice(words) + rng.choice(ends) for _ in range(200))
        after = "".join(edit(re.split(unit, before), rng))
        added = _read_added(diff_texts(before, after), before, after)
        if edit is _drop and unit != r"(?<=.)":
            assert added == "", f"seed {seed}"


def test_words_that_were_picked_one_by_one_add_nothing() -> None:
    rng = random.Random(0)
    words = [rng.choice(["the", "of", "and", "to", f"w{rng.randrange(500)}"]) for _ in range(20_000)]
    after = " ".join(word for word in words if rng.random() < 0.5)
    assert _read_added(diff_texts(" ".join(words), after), " ".join(words), after) == ""


def test_characters_of_a_script_without_spaces_are_compared_one_by_one() -> None:
    segments = diff_texts("東京に住む人は多い。", "東京に人は多い")
    assert _read_added(segments, "東京に住む人は多い。", "東京に人は多い") == ""
    assert [each.text for each in segments if each.kind == "dropped"] == ["住む", "。"]


# --- how long it takes


def _make_prose(rng: random.Random, chars: int) -> Pieces:
    vocabulary = [f"word{number}" for number in range(2_000)] + ["the", "of", "and", "is"] * 300
    sentences: Pieces = []
    size = 0
    while size < chars:
        sentence = " ".join(rng.choice(vocabulary) for _ in range(rng.randrange(5, 20))).capitalize()
        sentences.append(sentence + rng.choice([". ", ". ", ".\n", ".\n\n"]))
        size += len(sentences[-1])
    return sentences


def _pick_sentences(sentences: Pieces, rng: random.Random) -> str:
    return "".join(_drop(sentences, rng))


def _pick_words(sentences: Pieces, rng: random.Random) -> str:
    return " ".join(_drop("".join(sentences).split(), rng))


def _rewrite(sentences: Pieces, rng: random.Random) -> str:
    return " ".join(rng.choice([word, word, "other"]) for word in "".join(sentences).split())


def _reorder(sentences: Pieces, rng: random.Random) -> str:
    return "".join(_shuffle(sentences, rng))


def _write_anew(_: Pieces, rng: random.Random) -> str:
    return "".join(_make_prose(rng, 1_000_000))


@pytest.mark.long
@pytest.mark.parametrize("edit", [_pick_sentences, _pick_words, _rewrite, _reorder, _write_anew])
def test_a_megabyte_takes_a_second_at_most(edit: Callable[[Pieces, random.Random], str]) -> None:
    rng = random.Random(1)
    sentences = _make_prose(rng, 1_000_000)
    before, after = "".join(sentences), edit(sentences, rng)
    started = time.process_time()
    segments = diff_texts(before, after)
    assert time.process_time() - started < MAX_SECONDS
    assert not _read_added(segments, before, after).strip() or edit in (_rewrite, _write_anew)


@pytest.mark.long
@pytest.mark.parametrize("unit", ["yes no\n", "a ", "{}, ", "x", "\n", "東京。"])
def test_a_megabyte_of_the_same_takes_a_second_at_most(unit: str) -> None:
    before = unit * (1_000_000 // len(unit))
    after = "new " + before[: len(before) // 2] + " new " + before[len(before) * 3 // 4 :]
    started = time.process_time()
    segments = diff_texts(before, after)
    assert time.process_time() - started < MAX_SECONDS
    _read_added(segments, before, after)


# --- the page and the viewer


def test_the_page_shows_the_same_pieces() -> None:
    context = "Alice lives in Paris.\nBob lives in Rome.\nCarol lives in Oslo.\n"
    after = "Carol lives in Oslo.\nAlice lives in Paris.\n"
    ((title, pieces),) = compare_context({"context": context}, {"context": after})
    assert title == "context"
    assert "".join(text for kind, text, _ in pieces if kind in "kdl") == context
    assert "".join(text for kind, text, _ in pieces if kind in "kam") == after
    assert sorted(kind for kind, _, _ in pieces) == ["d", "k", "l", "m"]
