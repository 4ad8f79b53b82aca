"""Punkt parameters for English of our own, for when NLTK's data is not installed.

Whole categories of English (titles, months, states, pronouns, conjunctions), not the lists of a trained
model, so the count of sentences can differ from NLTK's; docs/ifeval.md says how often.
"""

from __future__ import annotations

from string import ascii_lowercase

from context_bench.evaluators.ifeval.parameters import Parameters

__all__ = ["BUILT_IN"]

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
