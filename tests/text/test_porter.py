"""Porter's stemmer: the examples of the paper, and NLTK's own code on every word of the tests and the sources."""

from __future__ import annotations

import re

import pytest

from banks import each_case
from context_bench.text.words import stem_word
from pages import ROOT

PAPER = """caresses caress, ponies poni, cats cat, feed feed, agreed agre, plastered plaster, bled bled, motoring motor,
sing sing, conflated conflat, troubled troubl, sized size, hopping hop, falling fall, hissing hiss, failing fail,
filing file, happy happi, relational relat, rational ration, digitizer digit, vileli vile, formaliti formal,
triplicate triplic, electrical electr, goodness good, allowance allow, replacement replac, adoption adopt,
probate probat, cease ceas, controll control, roll roll"""
NLTK_ONLY = "ties tie, died die, enjoy enjoy, skies sky, dying die, news news, us us"
SUFFIXES = "ational tional enci anci izer bli alli entli eli ousli ization fulli logi ied ies eed ing ion y ll"


@each_case(("word", "stem"), [pair.split() for pair in f"{PAPER}, {NLTK_ONLY}".split(",")])
def test_known_words(word: str, stem: str) -> None:
    assert stem_word(word) == stem


def test_it_agrees_with_nltk_on_every_word_of_this_project() -> None:
    porter = pytest.importorskip("nltk.stem.porter", reason="the extra `ifeval` brings NLTK").PorterStemmer()
    texts = [path.read_text(encoding="utf-8") for path in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.toml")]]
    words = {word for text in texts for word in re.findall(r"[A-Za-z0-9']+", text)}
    words |= {
        stem + suffix for stem in ("", "t", "oy", "geo", "hop", "yy", "plant", "controv") for suffix in SUFFIXES.split()
    }
    assert len(words) > 3000
    assert {word: stem_word(word) for word in words} == {word: porter.stem(word) for word in words}
