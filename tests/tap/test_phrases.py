"""Words in a row, by which a changed text is recognised, and who has said them."""

from __future__ import annotations

import os
import random
import subprocess
import sys

from context_bench.tap.matching import OwnerIndex, find_phrases


def test_phrases() -> None:
    assert find_phrases(["One two, three FOUR five"]) == {
        "one two three four",
        "two three four five",
    }
    assert find_phrases(["only three words", ""]) == {"only three words"}


def test_what_a_long_text_is_recognised_by_is_the_same_in_every_process() -> None:
    code = (
        "from context_bench.tap.matching import find_phrases\n"
        "text = ' '.join(f'word{place * 31 % 5003}' for place in range(3000))\n"
        "print(sorted(find_phrases([text]))[:20], len(find_phrases([text])))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] != b""


def test_a_text_of_few_words_has_phrases_whatever_they_are() -> None:
    for word in ("a", "b", "c", "d", "e", "f"):
        assert find_phrases([f"{word} " * 1000]) == {" ".join([word] * 4)}


def test_a_text_in_pieces_has_the_phrases_of_the_whole() -> None:
    """Those that begin with a sampled word, also where they lie across the border of two pieces."""
    draw = random.Random(1)
    words = [f"word{draw.randrange(100_000)}" for _ in range(60_000)]
    found = find_phrases([" ".join(words)])
    rows = [" ".join(words[place : place + 4]) for place in range(len(words) - 3)]
    first_words = {row.split()[0] for row in found}
    assert found == {row for row in rows if row.split()[0] in first_words}
    assert 0.1 < len(found) / len(set(rows)) < 0.15  # one word in eight
    assert found >= find_phrases([" ".join(words[30_000:31_000])])  # and what is cut out of it has the same


def test_a_long_text_of_few_words_has_phrases_whatever_they_are() -> None:
    for word in ("a", "b", "c", "d", "e", "f"):
        assert find_phrases([f"{word} " * 100_000]) == {" ".join([word] * 4)}


def test_the_index_knows_who_has_what_as_owners_come_and_go() -> None:
    said = {"ann": {"a", "b"}, "bob": {"b", "c"}, "eve": {"b"}}
    index: OwnerIndex[str, str] = OwnerIndex(said.__getitem__)
    index.update(["ann", "bob"])
    assert index.find_owners("a") == ("ann",)
    assert set(index.find_owners("b")) == {"ann", "bob"}
    assert index.find_owners("z") == ()
    assert index.count_owners(["a", "c", "x", "y"]) == {("ann",): 1, ("bob",): 1, (): 2}
    index.update(["bob", "eve"])
    assert index.find_owners("a") == ()
    assert set(index.find_owners("b")) == {"bob", "eve"}
    index.update([])
    assert index.count_owners("abc") == {(): 3}
