"""Contexts in pieces: nothing is lost in cutting, and what is picked fits."""

from __future__ import annotations

import json
import random
import time

import pytest

from banks import each_case
from context_bench import count_tokens, set_tokenizer
from context_bench.systems.reference import pick, shuffle_indices, split


@each_case(
    ("text", "pieces"),
    [
        ("", []),
        ("one", ["one"]),
        ("One. Two! Three?", ["One.", " Two!", " Three?"]),
        ('He said "no." Then left.', ['He said "no."', " Then left."]),
        ("line\nline\n\nline", ["line\n", "line\n\n", "line"]),
        ("3.14 is pi.", ["3.14 is pi."]),
        ("一つ。二つ！三つ？", ["一つ。", "二つ！", "三つ？"]),
        ("「一つ。」二つ。", ["「一つ。」", "二つ。"]),
        ('[{"a":1},{"b":2}]', ['[{"a":1},', '{"b":2}]']),
        ("\n\n", ["\n\n"]),
        ("One.  \nTwo.", ["One.  \n", "Two."]),
        ("一つ。\n二つ。", ["一つ。\n", "二つ。"]),
    ],
)
def test_cuts_by_hand(text: str, pieces: list[str]) -> None:
    assert split(text) == pieces


ALPHABETS = ("ab .!?\n\"',)}]{:1 2", "。！？文字」 \n.a", ' \n\t.x"],', 'The "x", \n\n 123.6!! ', "\r\n\x85\u2028. a")


def _texts(count: int) -> list[str]:
    rng = random.Random(0)
    return ["".join(rng.choices(rng.choice(ALPHABETS), k=rng.randint(0, 300))) for _ in range(count)]


def test_the_pieces_joined_are_the_text() -> None:
    for text in _texts(1000):
        pieces = split(text)
        assert "".join(pieces) == text
        assert all(pieces)


def test_a_long_line_of_json_is_cut() -> None:
    text = json.dumps([{"id": number, "note": "x"} for number in range(100)])
    assert len(split(text)) >= 100


def test_hostile_texts_are_cut_in_linear_time() -> None:
    started = time.process_time()
    for text in (" " * 300_000 + "x", "." * 300_000, '."' * 150_000, ")" * 300_000 + "x", "。" * 100_000):
        assert "".join(split(text)) == text
    assert time.process_time() - started < 5


def test_pieces_are_picked_by_preference_and_stand_in_their_order() -> None:
    set_tokenizer(len)
    pieces = ["aaa", "bb", "cccc", "d"]
    assert pick(pieces, [2, 0, 1, 3], 7) == "aaacccc"
    assert pick(pieces, [2, 0, 1, 3], 8) == "aaaccccd"  # b does not fit any more, d does
    assert pick(pieces, [3, 1, 2, 0], 10) == "aaabbccccd"
    assert pick(pieces, [0, 1, 2, 3], 0) == ""


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_what_is_picked_never_exceeds_the_budget_once_joined(encoding: str) -> None:
    # Joined pieces can have more tokens than the pieces one by one: the count must be of what is returned.
    set_tokenizer(encoding)
    for number, text in enumerate(_texts(1500)):
        pieces = split(text)
        tokens = count_tokens(text) // 3
        picked = pick(pieces, shuffle_indices(len(pieces), str(number)), tokens)
        assert count_tokens(picked) <= tokens


def test_a_shuffle_depends_on_the_seed_alone() -> None:
    assert sorted(shuffle_indices(50, "a")) == list(range(50))
    assert shuffle_indices(50, "a") == shuffle_indices(50, "a")
    assert shuffle_indices(50, "a") != shuffle_indices(50, "b")
    assert shuffle_indices(0, "a") == []
