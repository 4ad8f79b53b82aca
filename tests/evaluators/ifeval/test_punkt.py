"""Sentences and tokens by NLTK with parameters that we found or made, and with its own loader where its data is."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators.ifeval import word_counts
from context_bench.evaluators.ifeval import word_counts as words
from context_bench.evaluators.ifeval.word_counts import BUILT_IN, make_sentence_splitter

DATA = os.environ.get("CONTEXT_BENCH_DATA")

BY_HAND: list[tuple[str, list[str]]] = [
    ("", []),
    ("   ", []),
    ("No mark at the end", ["No mark at the end"]),
    ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
    ("Mr. Smith met Dr. Jones at 5 p.m. today.", ["Mr. Smith met Dr. Jones at 5 p.m. today."]),
    ("We left at 5 p.m. The train was late.", ["We left at 5 p.m.", "The train was late."]),
    ("It costs 3.50 dollars. Fine.", ["It costs 3.50 dollars.", "Fine."]),
    ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
    ("He said “Stop.” Then he left.", ["He said “Stop.”", "Then he left."]),
    ("(It rained.) We stayed.", ["(It rained.)", "We stayed."]),
    ("What?! Really... yes.", ["What?!", "Really... yes."]),
    ("J. Smith wrote it.", ["J. Smith wrote it."]),
    ("1. First item\n2. Second item", ["1.", "First item\n2.", "Second item"]),
    ("Visit www.example.com today. Thanks!", ["Visit www.example.com today.", "Thanks!"]),
    ("A line\nand another.\n\nA paragraph.", ["A line\nand another.", "A paragraph."]),
]


@each_case(("text", "sentences"), BY_HAND, ids=range(len(BY_HAND)))
def test_sentences_by_hand_with_our_own_parameters(text: str, sentences: list[str]) -> None:
    assert make_sentence_splitter(BUILT_IN).tokenize(text) == sentences


def test_tokens_by_hand() -> None:
    text = "DON'T go (NOW), it's U.S. policy... \"GIMME $5,000\" he can't!"
    assert words.split_tokens(text) == [
        "DO", "N'T", "go", "(", "NOW", ")", ",", "it", "'s", "U.S.", "policy", "...", "``", "GIM", "ME", "$",
        "5,000", "''", "he", "ca", "n't", "!",
    ]  # fmt: skip
    assert words.count_capitals(text) == 6


def test_data_is_found_where_nltk_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True)
    (folder / "abbrev_types.txt").write_text("approx\nzz", encoding="utf-8")
    (folder / "collocations.tab").write_text("zz\tfoo\n", encoding="utf-8")
    (folder / "sent_starters.txt").write_text("the\n", encoding="utf-8")
    (folder / "ortho_context.tab").write_text("foo\t36\nbar\t32", encoding="utf-8")
    monkeypatch.setenv("NLTK_DATA", f"/no/such/folder{os.pathsep}{tmp_path}")
    found = word_counts.find_data()
    assert found == folder
    parameters = word_counts.read_data(found)
    assert parameters.abbreviations == {"approx", "zz"}
    assert parameters.collocations == {("zz", "foo")}
    assert parameters.spelling == {"foo": 36, "bar": 32}
    assert make_sentence_splitter(parameters).tokenize("It is approx. ten. Yes.") == ["It is approx. ten.", "Yes."]
    assert make_sentence_splitter(parameters).tokenize("It is approx. Bar. Yes.") == ["It is approx.", "Bar.", "Yes."]


# --- against NLTK


PIECES = (
    "Mr. ", "Dr. Who ", "the U.S. ", "e.g. ", "i.e. this ", "etc. ", "p.m. ", "J. K. ", "No. 5 ",
    "3.14 ", "$5. ", "it ended. ", "The ", "Then ", "he left", "! ", "?! ", "... ", ". . . ", '." ',
    ".) ", "“yes.” ", "‘no’ ", "(so) ", "; ", ": ", ", ", "\n", "\n\n", "- x ", "-- ", "* a\n",
    "1. ", "2) ", "Ph.D. ", "Inc. ", "www.a.com ", "A.B.C. ", "don't ", "CAN'T ", "it's ", "IT'S ",
    "GIMME ", "'tis ", '"Q" ', "``x'' ", "[n] ", "{m} ", "<t> ", "50% ", "a@b.c ", "#1 ", "É. ",
    "日本。 ", "\t", "WANNA ", "cannot ", "…", "–", "*b* ", "x.y ",
)  # fmt: skip


def made_up(count: int) -> list[str]:
    draw = random.Random(11)
    return ["".join(draw.choice(PIECES) for _ in range(draw.randint(1, 60))) for _ in range(count)]


def real() -> list[str]:
    if not DATA:
        return []
    texts: list[str] = []
    for name, fields in (("ifeval/input_data.jsonl", ("prompt",)), ("gsm8k/test.jsonl", ("question", "answer"))):
        with (Path(DATA) / name).open(encoding="utf-8") as lines:
            texts += [record[field] for record in map(json.loads, lines) for field in fields]
    with (Path(DATA) / "mt-bench" / "reference_gpt-4.jsonl").open(encoding="utf-8") as lines:
        texts += [turn for line in lines for choice in json.loads(line)["choices"] for turn in choice["turns"]]
    return texts[::5]


@pytest.fixture
def nltk() -> Any:
    module = pytest.importorskip("nltk")
    folder = word_counts.find_data()
    if folder is None:
        pytest.skip("the punkt_tab data of NLTK is not installed: set NLTK_DATA")
    module.data.path.insert(0, str(folder.parents[2]))
    return module


def test_equal_to_nltk_with_its_data(nltk: Any) -> None:
    reference = nltk.tokenize.PunktTokenizer("english")
    ours = make_sentence_splitter(word_counts.parameters())
    texts = [text for text, _ in BY_HAND] + made_up(600) + real()
    assert len(texts) >= 300
    for text in texts:
        assert ours.tokenize(text) == reference.tokenize(text), text
        assert words.split_tokens(text) == nltk.tokenize.word_tokenize(text), text


@pytest.mark.skipif(not DATA, reason="CONTEXT_BENCH_DATA is not set")
def test_our_own_parameters_are_close_to_nltk(nltk: Any) -> None:
    reference = nltk.tokenize.PunktTokenizer("english")
    ours = make_sentence_splitter(BUILT_IN)
    texts = real()
    different = sum(len(ours.tokenize(text)) != len(reference.tokenize(text)) for text in texts)
    assert different / len(texts) < 0.02  # measured: 0.8% over all texts at hand
