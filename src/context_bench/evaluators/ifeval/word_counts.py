"""Words and sentences as IFEval counts them: with NLTK's own splitters (extra `ifeval`).

Words are runs of word characters. Sentences are Punkt's; words in capitals are looked for among the tokens
that NLTK makes of each sentence.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import Any

from context_bench.errors import MissingExtra
from context_bench.evaluators.ifeval.parameters import Parameters
from context_bench.evaluators.ifeval.punkt_data import parameters

__all__ = ["count_capitals", "count_sentences", "count_words", "make_sentence_splitter", "split_tokens"]

_WORD = re.compile(r"\w+")


def make_sentence_splitter(known: Parameters) -> Any:
    """NLTK's Punkt with these parameters."""
    try:
        from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    except ImportError as error:
        raise MissingExtra("counting sentences as IFEval does", "ifeval") from error
    learned = PunktParameters()
    learned.abbrev_types = set(known.abbreviations)
    learned.collocations = set(known.collocations)
    learned.sent_starters = set(known.starters)
    learned.ortho_context = defaultdict(int, known.spelling)
    return PunktSentenceTokenizer(learned)


@cache
def _get_splitter() -> Any:
    return make_sentence_splitter(parameters())


@cache
def _get_tokenizer() -> Any:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


def _split_sentences(text: str) -> list[str]:
    found: list[str] = _get_splitter().tokenize(text)
    return found


def count_words(text: str) -> int:
    """Runs of word characters."""
    return len(_WORD.findall(text))


def count_sentences(text: str) -> int:
    """Sentences by Punkt."""
    return len(_split_sentences(text))


def count_capitals(text: str) -> int:
    """Tokens whose letters are all capitals; a single letter (`I`, `A`) is one too."""
    sentences = (each for each in _split_sentences(text) if any(map(str.isupper, each)))
    return sum(token.isupper() for sentence in sentences for token in _get_tokenizer().tokenize(sentence))


def split_tokens(text: str) -> list[str]:
    """The tokens of all sentences of a text."""
    return [token for sentence in _split_sentences(text) for token in _get_tokenizer().tokenize(sentence)]
