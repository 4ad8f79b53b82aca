"""RandomDrop: chance, but the same chance everywhere."""

from __future__ import annotations

import subprocess
import sys

from context_bench import count_tokens
from context_bench.systems import RandomDrop
from context_bench.systems.reference import split

TEXT = " ".join(f"Sentence number {number} says something else." for number in range(60))


def _kept(example_id: str | int = 1, **parameters: object) -> str:
    return RandomDrop(**parameters).process({"id": example_id, "context": TEXT})["context"]  # type: ignore[arg-type]


def test_whole_sentences_stay_in_their_order_within_the_budget() -> None:
    for ratio in (0.1, 0.3, 0.5, 0.9):
        kept = _kept(ratio=ratio)
        places = [split(TEXT).index(piece) for piece in split(kept)]
        assert places == sorted(places)
        assert count_tokens(kept) <= count_tokens(TEXT) * ratio
        assert count_tokens(kept) >= count_tokens(TEXT) * ratio - 10  # less than a sentence is left over


def test_everything_and_nothing() -> None:
    assert _kept(ratio=1.0) == TEXT
    assert _kept(ratio=0.0) == ""
    assert RandomDrop().process({"id": 1, "context": ""}) == {"context": ""}


def test_seed_and_id_decide_what_is_dropped() -> None:
    assert _kept(seed=1) == _kept(seed=1)
    assert _kept(seed=1) != _kept(seed=2)
    assert _kept("a") != _kept("b")
    assert _kept(1) != _kept("1")


def test_another_process_drops_the_same() -> None:
    code = f"""
from context_bench.systems import RandomDrop
print(RandomDrop(ratio=0.3, seed=5).process({{"id": "x", "context": {TEXT!r}}})["context"], end="")
"""
    for hash_seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == _kept("x", ratio=0.3, seed=5)


def test_the_seed_is_in_the_fingerprint() -> None:
    assert RandomDrop(seed=1).fingerprint != RandomDrop(seed=2).fingerprint
