"""The wordings of the three verdicts, from plain labels to what only hints at one.

They are kept apart from the code that applies them, so that a new wording is one more line here.
"""

from __future__ import annotations

import re
from enum import Enum

__all__ = [
    "ALIASES",
    "ALTERNATIVES",
    "CLAIM",
    "CLAUSE_BREAK",
    "CONCLUDES",
    "FIRST_WORD",
    "HINTS",
    "LABELS",
    "LABEL_NOUN",
    "LACKING",
    "NEGATOR",
    "REVISION",
    "SET_ASIDE",
    "UNDECIDED",
    "UNSUPPORTED",
    "WORDS",
    "Verdict",
]


class Verdict(Enum):
    """The three classes that both label families name."""

    ENTAILMENT = "entailment"
    CONTRADICTION = "contradiction"
    NEUTRAL = "neutral"


ALIASES = {
    alias: verdict
    for verdict, aliases in {
        Verdict.ENTAILMENT: (
            "entailment entail entails entailed entailing support supports supported supporting supportive"
            " true yes correct"
        ),
        Verdict.CONTRADICTION: (
            "contradiction contradict contradicts contradicted contradictory contradicting contradictions refute"
            " refutes refuted refutation false no incorrect"
        ),
        Verdict.NEUTRAL: (
            "notmentioned neutral notenoughinfo notenoughinformation noinfo noinformation nei neither unknown"
            " unverifiable notenoughevidence insufficientinformation insufficientevidence insufficientinfo noevidence"
            " notstated notaddressed notspecified undetermined notprovided notdiscussed nomention inconclusive"
            " cannotbedetermined neitherentailsnorcontradicts neitherentailmentnorcontradiction"
            " neithersupportsnorcontradicts neithersupportsnorrefutes"
            " neithersupportednorrefuted neithersupportednorcontradicted"
        ),
    }.items()
    for alias in aliases.split()
}
"""Whole labels, in small letters with nothing between them."""


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_MATTER = r"(?:info|information|evidence|data|details?|context|basis|support)\b"

LABELS = {
    Verdict.NEUTRAL: _words(
        r"\bnot[\s_-]*mentioned\b",
        r"\bnot[\s_-]*enough[\s_-]*(?:\w+\s+)?(?:info|information|evidence|data)\b",
        r"\b(?:insufficient|inadequate)\s+(?:\w+\s+)?" + _MATTER,
        r"\bneutral\b|\bNEI\b|\bno[_-]?info\b",
    ),
    Verdict.ENTAILMENT: _words(
        r"\bentail(?:s|ed|ment|ing)?\b",
        r"\bsupport(?:s|ed|ing|ive)?\b(?!\s+(?:group|team|service|staff|system|network|program|vector|worker|care)s?\b)",
    ),
    Verdict.CONTRADICTION: _words(r"\bcontradict(?:s|ed|ion|ions|ory|ing)?\b", r"\brefut(?:e|es|ed|ation|ing)\b"),
}
"""The labels themselves, inflected."""

_NOT = r"(?:(?:does|do|did|is|are|was|were|has|have|had)(?:n't|\s+not)|never|cannot|can't)\s+(?:\w+\s+){0,3}?"
UNDECIDED = _words(
    _NOT + r"(?:mention|address|stat|specif|discuss|cover|say|provid|contain|includ|describ|indicat|clarif|speak|touch"
    r"|report|investigat|examin|study|studied|assess|test|measur|evaluat|explor|giv|discern|refer|comment)\w*",
    _NOT + r"(?:enough|sufficient|clear|possible\s+to\s+(?:determine|say|tell))\b",
    r"\bnot\s+(?:\w+\s+)?(?:addressed|stated|specified|discussed|covered|provided|determinable|verifiable)\b",
    r"\bno\s+(?:\w+\s+){0,2}?(?:info|information|mention|evidence|data|reference|indication|provision|clause|statement)\b",
    r"\b(?:lacks?|lacking|lack\s+of|without|limited)\s+(?:\w+\s+){0,2}?" + _MATTER,
    r"\bun(?:determined|known|verifiable|related|clear|decided|specified|mentioned|addressed)\b|\bindeterminate\b"
    r"|\binconclusive\b|\birrelevant\b|\bsilent\s+(?:on|about|as)\b|\bneither\s+true\s+nor\s+false\b",
    r"\b(?:cannot|can't|can\s+not|could\s+not|couldn't|unable\s+to|impossible\s+to)\s+(?:\w+\s+){0,2}?"
    r"(?:determin|verif|conclud|tell|assess|judg|establish|infer|confirm|say)\w*",
)
"""The text does not settle the question, said in other words than a label."""

UNSUPPORTED = _words(r"\bunsupported\b|\bnon-?entailment\b|\bnot\s+(?:\w+\s+)?(?:implied|follow)\w*")
"""Not entailment, without a word on contradiction."""

HINTS = {
    Verdict.ENTAILMENT: _words(
        r"\bimpl(?:y|ies|ied)\b|\bfollows\b|\bconfirm(?:s|ed)?\b|\bcorroborat(?:e|es|ed)\b|\bverified\b"
        r"|\bconsistent\s+with\b|\bagrees?\s+with\b|\bin\s+line\s+with\b|\bin\s+agreement\b|\baligns?\s+with\b"
        r"|\b(?:inferred|deduced|derived|concluded)\s+from\b"
    ),
    Verdict.CONTRADICTION: _words(
        r"\bdisprov(?:e|es|ed|en)\b|\bconflict(?:s|ing)?\b|\binconsistent\b|\bcontrary\b|\bincompatible\b|\bopposite\b"
        r"|\bnegat(?:e|es|ed)\b|\bviolat(?:e|es|ed)\b|\bdisput(?:e|es|ed)\b|\bdisagrees?\b|\bcounter(?:s|ed)\b|\brules\s+out\b"
        r"|\bevidence\s+against\b"
    ),
}
"""Words that lean towards a verdict."""

WORDS = {
    Verdict.ENTAILMENT: _words(r"\byes\b|\btrue\b|\bcorrect\b|\baccurate\b|\bvalid\b|\bright\b"),
    Verdict.CONTRADICTION: _words(
        r"\bno\b(?=\s*(?:[,.!;:–—-]|$))|\bfalse\b|\bincorrect\b|\binaccurate\b|\binvalid\b|\bwrong\b|\buntrue\b"
    ),
}
"""Yes and no."""

FIRST_WORD = re.compile(
    r"\W*(yes|no|true|false|correct|incorrect)\b(?!\s+(?:evidence|info\w*|mention|doubt))", re.IGNORECASE
)

NEGATOR = re.compile(
    r"\b(?:not|never|neither|nor|no|none|nothing|nowhere|without|cannot|fails?|failed|unable|insufficient|lacks?|lack"
    r"|hardly|non|rather\s+than|instead\s+of|as\s+opposed\s+to)\b(?!\s+(?:only|just|merely|doubt|question|surprising))|n't\b",
    re.IGNORECASE,
)
LACKING = re.compile(
    r"(?:\s+\w+){0,6}\s+(?:is|are|was|seems)\s+(?:lacking|absent|missing|insufficient|weak)\b", re.IGNORECASE
)
"""After "support for the claim": there is none."""

ALTERNATIVES = re.compile(r"\b(?:either|between)\b[^.;]{0,60}$|\b(?:whether|if)\b[^,;]{0,60}$", re.IGNORECASE)
"""Before a label: it is one of those that are weighed."""

SET_ASIDE = re.compile(r"\b(?:rather\s+than|instead\s+of|as\s+opposed\s+to|not|isn't)[\s\"']*$", re.IGNORECASE)
"""Before "not mentioned": that is not the verdict."""

REVISION = re.compile(
    r"\b(?:wait|hold\s+on|correction|scratch\s+that|on\s+second\s+thought|oops|my\s+mistake|i\s+made\s+an?\s+\w+)\b",
    re.IGNORECASE,
)
"""The writer takes something back."""

CLAUSE_BREAK = re.compile(
    r"[,;:()–—]|\b(?:but|and|however|although|though|while|whereas|instead|because|since|so|therefore|thus|hence)\b",
    re.IGNORECASE,
)
CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|so|overall|in\s+conclusion|in\s+summary|conclude|consequently|accordingly|finally)\b",
    re.IGNORECASE,
)
CLAIM = re.compile(r"\b(?:claim|hypothesis|statement|assertion|premise)\b", re.IGNORECASE)

LABEL_NOUN = re.compile(
    r"(?:\b(?:answer|label|verdict|classification|class|relationship|relation|conclusion|judge?ment|prediction|result"
    r"|category|determination|decision|output|assessment|stance|inference)\b[\"']?(?:[ \t]+[\w'/-]+){0,8}?"
    r"(?:[ \t]*(?::|=>?|->|→|–|—|-)|[ \t]+(?:is|was|would\s+be|should\s+be|must\s+be|will\s+be)\b)"
    r"|\b(?:classif(?:y|ied)|label(?:l?ed)?|categori[sz]ed?|marked|rated?|judged?)\b(?:[ \t]+[\w'/-]+){0,6}?"
    r"[ \t]+(?:as|to\s+be)\b"
    r"|\b(?:falls?|fits)\s+(?:under|into)\b"
    r"|(?:^|\n)[^\w\n]*(?:final\s+)?(?:answer|label|verdict|classification|conclusion)\W*\n)",
    re.IGNORECASE,
)
"""A verdict follows."""
