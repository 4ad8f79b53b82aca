"""Words and sentences as IFEval counts them: with NLTK's own splitters (extra `ifeval`).

Words are runs of word characters. Punkt splits the sentences, and words in capitals are counted among NLTK's tokens of
each sentence.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from context_bench.errors import MissingExtra


@dataclass(frozen=True)
class Parameters:
    """The parameters of Punkt, the sentence splitter of NLTK, for one language.

    Abbreviations without their last period, pairs of words that a period does not separate, words that often start a
    sentence, and the observed spellings of each word (with the flags of NLTK's data files).
    """

    abbreviations: frozenset[str]
    collocations: frozenset[tuple[str, str]] = frozenset()
    starters: frozenset[str] = frozenset()
    spelling: Mapping[str, int] = field(default_factory=dict)


# Our own parameters for English, for when NLTK's data is not installed: whole categories of words, not the lists of
# a trained model, so the count of sentences can differ from NLTK's; docs/ifeval.md says how often.
# Abbreviations that are also words (sun, sat, mar, miss, mass, ill, no) are left out: a period after those
# mostly ends a sentence. So are e.g, i.e and etc, after which NLTK is known to split.
_TITLES = """
mr mrs ms mx dr prof rev hon fr sr jr st esq gen col maj capt cpt cmdr lt sgt cpl pvt adm gov sen rep pres supt
messrs mme mlle
"""
_FIRMS = "inc ltd corp co llc plc bros dept assn univ"
_CALENDAR = "jan feb apr jun jul aug sept sep oct nov dec tue tues wed thu thur thurs fri a.m p.m a.d b.c"
_PLACES = """
ala ariz ark calif colo conn fla ga ind kan ky md mich minn mo mont neb nev okla pa penn tenn tex va vt wis wyo
n.c n.d n.h n.j n.m n.y r.i s.c s.d w.va d.c u.s u.s.a u.k u.n e.u ave blvd rd ft mt
"""
_OTHER = "vs ph.d m.d b.a m.a b.s m.s m.b.a j.d r.n mg kg cm mm km lb oz yr hr"

_PRONOUNS = "i you he she it we they this that these those there"
_POSSESSIVES = "my your his her its our their"
_ARTICLES = "a an the some any each every both many most several all another"
_CONJUNCTIONS = "and but or nor so yet if when while since because although though unless until whether once"
_ADVERBS = """
however therefore thus hence moreover furthermore additionally meanwhile nevertheless nonetheless instead otherwise
consequently finally then later now also indeed likewise similarly still perhaps maybe sometimes
"""
_PREPOSITIONS = "in on at by for with from to of after before during despite under over among between without as about"
_QUESTIONS = "what who whom whose which where why how"
_VERBS = """
is are was were am be been do does did have has had can could will would shall should may might must let please
make take give get go come keep look see think know try use find tell ask start stop write read remember
imagine consider
"""

# How often a word is capitalised inside a sentence: in titles of works and offices most short words are.
_START_UPPER, _MIDDLE_UPPER, _MIDDLE_LOWER = 2, 4, 32


def _split_lists(*lists: str) -> list[str]:
    return " ".join(lists).split()


def _read_spelling() -> dict[str, int]:
    seen = dict.fromkeys(_split_lists(_ADVERBS, _QUESTIONS, _VERBS), _START_UPPER + _MIDDLE_LOWER)
    in_titles = _split_lists(_PRONOUNS, _POSSESSIVES, _ARTICLES, _CONJUNCTIONS, _PREPOSITIONS)
    return seen | dict.fromkeys(in_titles, _START_UPPER + _MIDDLE_UPPER + _MIDDLE_LOWER)


BUILT_IN = Parameters(
    abbreviations=frozenset(
        [*_split_lists(_TITLES, _FIRMS, _CALENDAR, _PLACES, _OTHER), *(set(ascii_lowercase) - {"a", "i"})]
    ),
    starters=frozenset(_split_lists(_PRONOUNS, _POSSESSIVES, _ARTICLES, _CONJUNCTIONS, _ADVERBS, _PREPOSITIONS)),
    spelling=_read_spelling(),
)


# NLTK's data has no clear licence, so it is not shipped here. It is looked for where NLTK looks (`NLTK_DATA` first)
# and in an installed `llama-index-core`, which carries it; nothing is downloaded.
_ENGLISH = Path("tokenizers", "punkt_tab", "english")
_FILES = ("abbrev_types.txt", "collocations.tab", "sent_starters.txt", "ortho_context.tab")


def _list_roots() -> Iterator[Path]:
    yield from (Path(each) for each in os.environ.get("NLTK_DATA", "").split(os.pathsep) if each)
    yield Path.home() / "nltk_data"
    yield from (Path(sys.prefix, *parts, "nltk_data") for parts in ((), ("share",), ("lib",)))
    if os.name == "nt":
        yield Path(os.environ.get("APPDATA", "C:\\"), "nltk_data")
        yield from (Path(f"{drive}:\\nltk_data") for drive in "CDE")
    else:
        yield from (Path(top, "nltk_data") for top in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"))
    yield from (Path(entry, "llama_index", "core", "_static", "nltk_cache") for entry in sys.path if entry)


def find_data() -> Path | None:
    """Return the folder of the English data (`punkt_tab/english`), or None."""
    for root in _list_roots():
        folder = root / _ENGLISH
        if all((folder / name).is_file() for name in _FILES):
            return folder
    return None


def read_data(folder: Path) -> Parameters:
    """Read the parameters in a `punkt_tab` folder."""
    texts = ((folder / name).read_text(encoding="utf-8").split("\n") for name in _FILES)
    abbreviations, collocations, starters, spelling = texts
    pairs = (tuple(line.split("\t")) for line in collocations if line)
    return Parameters(
        frozenset(filter(None, abbreviations)),
        frozenset((first, second) for first, second in pairs),
        frozenset(filter(None, starters)),
        {word: int(flags) for word, _, flags in (line.partition("\t") for line in spelling) if flags},
    )


@cache
def parameters() -> Parameters:
    folder = find_data()
    return read_data(folder) if folder else BUILT_IN


def name_data_source() -> str:
    """Return `nltk-data` or `built-in`; stored with the scores, since the two may differ by a sentence."""
    return "built-in" if parameters() is BUILT_IN else "nltk-data"


_WORD = re.compile(r"\w+")


def make_sentence_splitter(known: Parameters) -> Any:
    """Make NLTK's Punkt with these parameters."""
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
    return len(_WORD.findall(text))


def count_sentences(text: str) -> int:
    return len(_split_sentences(text))


def count_capitals(text: str) -> int:
    """Count the tokens whose letters are all capitals; a single letter (`I`, `A`) counts too."""
    sentences = (each for each in _split_sentences(text) if any(map(str.isupper, each)))
    return sum(token.isupper() for sentence in sentences for token in _get_tokenizer().tokenize(sentence))


def split_tokens(text: str) -> list[str]:
    return [token for sentence in _split_sentences(text) for token in _get_tokenizer().tokenize(sentence)]


_lock = threading.Lock()
_factories: list[Any] = []


def is_language(text: str, code: str) -> bool:
    """Whether langdetect finds that language; by the benchmark's own rule, a text without a recognised language passes.
    Without a seed langdetect draws its trials at random, so verdicts on short texts would change from run to run.
    """
    try:
        from langdetect import LangDetectException
    except ImportError as error:
        raise MissingExtra("checking the language of a reply", "ifeval") from error
    detector = _make_factory().create()
    try:
        detector.append(text)
        return bool(detector.detect() == code)
    except LangDetectException:
        return True


def _make_factory() -> Any:
    """Make our own factory, because the seed of langdetect's shared factory belongs to the user's program."""
    from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

    with _lock:
        if not _factories:
            factory = DetectorFactory()
            factory.seed = 0
            factory.load_profile(PROFILES_DIRECTORY)
            _factories.append(factory)
        return _factories[0]
