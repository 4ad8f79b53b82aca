"""The wordings of the three verdicts, from plain labels to hints.

The wordings are separate from the code, so that adding one takes one more line here.
"""

from __future__ import annotations

import re
from enum import Enum


class NliVerdict(Enum):
    """The three classes that both label families name."""

    ENTAILMENT = "entailment"
    CONTRADICTION = "contradiction"
    NEUTRAL = "neutral"


ALIASES = {
    alias: verdict
    for verdict, aliases in {
        NliVerdict.ENTAILMENT: (
            "entailment entail entails entailed entailing support supports supported supporting supportive"
            " true yes correct"
        ),
        NliVerdict.CONTRADICTION: (
            "contradiction contradict contradicts contradicted contradictory contradicting contradictions refute"
            " refutes refuted refutation false no incorrect"
        ),
        NliVerdict.NEUTRAL: (
            "notmentioned neutral notenoughinfo notenoughinformation noinfo noinformation nei neither unknown"
            " unverifiable notenoughevidence insufficientinformation insufficientevidence insufficientinfo noevidence"
            " maybe notstated notaddressed notspecified undetermined notprovided notdiscussed nomention inconclusive"
            " cannotbedetermined neitherentailsnorcontradicts neitherentailmentnorcontradiction"
            " neithersupportsnorcontradicts neithersupportsnorrefutes"
            " neithersupportednorrefuted neithersupportednorcontradicted"
        ),
    }.items()
    for alias in aliases.split()
}
"""Whole labels in lower case, with nothing between their words."""


def _compile_words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_MATTER = r"(?:info|information|evidence|data|details?|context|basis|support)\b"

LABELS = {
    NliVerdict.NEUTRAL: _compile_words(
        r"\bnot[\s_-]*mentioned\b",
        r"\bnot[\s_-]*enough[\s_-]*(?:\w+\s+)?(?:info|information|evidence|data)\b",
        r"\b(?:insufficient|inadequate)\s+(?:\w+\s+)?" + _MATTER,
        r"(?<!stay )(?<!staying )(?<!remain )(?<!remaining )(?<!keep )\bneutral\b"
        r"(?!\s+(?:observer|part(?:y|ies)|third|ground)\b)|\bNEI\b|\bno[_-]?info\b",
    ),
    NliVerdict.ENTAILMENT: _compile_words(
        r"\bentail(?:s|ed|ment|ing)?\b",
        r"\bsupport(?:s|ed|ing|ive)?\b(?!\s+(?:group|team|service|staff|system|network|program|vector|worker|care)s?\b)",
    ),
    NliVerdict.CONTRADICTION: _compile_words(
        r"\bcontradict(?:s|ed|ion|ions|ory|ing)?\b", r"\brefut(?:e|es|ed|ation|ing)\b"
    ),
}
"""The labels themselves, inflected."""

_NOT = r"(?:(?:does|do|did|is|are|was|were|has|have|had)(?:n't|\s+not)|never|cannot|can't)\s+(?:\w+\s+){0,3}?"
_GIVEN = r"(?![^.;\n]{0,60}\bwithout\s+(?:seeing|reading|being\s+(?:given|shown)|access)\b)"
"""Excludes replies that lack the text: "I cannot determine the label without seeing the document"."""
UNDECIDED = _compile_words(
    _NOT + r"(?:mention|address|stat|specif|discuss|cover|say|provid|contain|includ|describ|indicat|clarif|speak|touch"
    r"|report|investigat|examin|study|studied|assess|test|measur|evaluat|explor|giv|discern|refer|comment|guarantee|establish|tell|talk|com(?:e|es)\s+up|aris)\w*"
    + _GIVEN,
    r"\bthere\s+(?:is|are|was|were)(?:n't|\s+not)\s+any\w*\b(?!\s+(?:\w+\s+)?(?:contradict|conflict|doubt|question|inconsisten|entail|support))",
    r"\b(?:we|you|one)\s+(?:\w+\s+)?(?:don't|do\s+not|doesn't|does\s+not)\s+(?:\w+\s+)?know\b",
    r"\bnot\s+necessarily\b|\b(?:may|might)\s+or\s+(?:may|might)\s+not\b|(?:\bnot|\bcannot|n't)\s+be\s+(?:entirely\s+)?ruled\s+out\b",
    _NOT + r"(?:enough|sufficient|clear|possible\s+to\s+(?:determine|say|tell))\b",
    r"\bnot\s+(?:\w+\s+)?(?:addressed|stated|specified|discussed|covered|provided|determinable|verifiable)\b",
    r"\bno\s+(?:\w+\s+){0,2}?(?:info|information|mention|evidence|data|reference|indication|provision|clause|statement)\b",
    r"\b(?:lacks?|lacking|lack\s+of|without|limited)\s+(?:\w+\s+){0,2}?" + _MATTER,
    r"\bun(?:determined|known|verifiable|related|clear|decided|specified|mentioned|addressed)\b|\bindeterminate\b"
    r"|\binconclusive\b|\birrelevant\b|\bsilent\s+(?:on|about|as)\b|\bneither\s+true\s+nor\s+false\b",
    r"\b(?:cannot|can't|can\s+not|could\s+not|couldn't|unable\s+to|impossible\s+to)\s+(?:\w+\s+){0,2}?"
    r"(?:determin|verif|conclud|tell|assess|judg|establish|infer|confirm|say|know)\w*" + _GIVEN,
    r"\bno\s+way\s+(?:to|of)\s+(?:tell|know|say|determin|verif|be\s+sure)\w*",
    r"\bneither\s+(?:\w+\s+){0,3}?(?:confirm|affirm|support|prov|verif|establish|accept|endors|back)\w*\s+(?:\w+\s+){0,3}?nor\b",
    r"\b(?:cannot|can't|can\s+not|no\s+(?:grounds|reason|basis))\b[^.;]{0,30}\b(?:confirm|affirm|prov|accept)\w*\s+(?:\w+\s+)?or\s+"
    r"(?:den|refut|disprov|reject|rul)\w*",
    r"\b(?:nothing|none\s+of|nowhere|no\s+(?:clause|section|provision|part|sentence|passage|language|term)s?)\b[^.;]{0,50}?"
    r"\b(?:deals?|talks?|address\w*|speaks?|says?|mentions?|covers?|touch\w*|concerns?|relates?|refers?|discuss\w*|states?)\b"
    r"(?!\s+(?:otherwise|to\s+the\s+contrary|the\s+(?:opposite|contrary)|against))",
    r"\bnothing\s+(?:on|about|regarding|concerning|to\s+do\s+with)\b",
    r"\bleaves?\s+(?:this|that|it|the\s+\w+)\s+open\b",
)
"""Wordings, other than labels, which say that the text does not settle the question."""

UNSUPPORTED = _compile_words(r"\bunsupported\b|\bnon-?entailment\b|\bnot\s+(?:\w+\s+)?(?:implied|follow)\w*")
"""Wordings that deny entailment and say nothing about contradiction."""

HINTS = {
    NliVerdict.ENTAILMENT: _compile_words(
        r"\bimpl(?:y|ies|ied)\b|\bfollows\b|\bconfirm(?:s|ed)?\b|\bcorroborat(?:e|es|ed)\b|\bverified\b"
        r"|\bconsistent\s+with\b|\bagrees?\s+with\b|\bin\s+line\s+with\b|\bin\s+agreement\b|\baligns?\s+with\b"
        r"|\b(?:inferred|deduced|derived|concluded|determined|established|seen)\s+(?:directly\s+)?from\b"
        r"|\bbacks?(?:ed)?\s+(?:up\b|(?:it|this|that)\s+up\b|the\s+(?:claim|hypothesis|statement|assertion)\b)"
        r"|\b(?:bears?|bore)\s+(?:(?:it|this|that|the\s+\w+)\s+)?out\b"
        r"|\b(?:ample|strong|clear|good|solid|direct|sufficient|compelling)\s+(?:\w+\s+)?evidence\b[^.;]{0,40}\bfor\b"
        r"|\b(?:guarantees|proves|demonstrates|establishes)\s+(?:the|this)\s+(?:claim|hypothesis|statement|assertion)\b"
        r"|\bsays?\s+(?:so|as\s+much|(?:exactly|precisely|just)\s+(?:that|this|so))\b"
    ),
    NliVerdict.CONTRADICTION: _compile_words(
        r"\bdisprov(?:e|es|ed|en)\b|\bconflict(?:s|ing)?\b|\binconsistent\b|\bcontrary\b|\bincompatible\b|\bopposite\b"
        r"|\bnegat(?:e|es|ed)\b|\bviolat(?:e|es|ed)\b|\bdisput(?:e|es|ed)\b|\bdisagrees?\b|\bcounter(?:s|ed)\b|\brule[sd]\s+out\b"
        r"|\bcounter\s+to\b|\bat\s+odds\s+with\b|\bclash(?:es|ed)?\s+with\b|\b(?:excluded|precluded)\s+by\b"
        r"|\bevidence\s+against\b"
    ),
}
"""Words that lean towards a verdict."""

WORDS = {
    NliVerdict.ENTAILMENT: _compile_words(r"\byes\b|\btrue\b|\bcorrect\b|\baccurate\b|\bvalid\b|\bright\b"),
    NliVerdict.CONTRADICTION: _compile_words(
        r"\bno\b(?=\s*(?:[,.!;:–—-]|$))|\bfalse\b|\bincorrect\b|\binaccurate\b|\binvalid\b|\bwrong\b|\buntrue\b"
    ),
}
"""Words such as yes and no, by the verdict that they give."""

_MARKS = r"(?:(?P<yes>✓|✅|✔)|(?P<cross>❌|✗|✘|✖))\ufe0f?"
_NO_MARK = r"[^\w✓✅✔❌✗✘✖\n]*"
_LABEL = r"(?P<label>\w[\w \t]{1,40}?)[*_\"'` \t]*"
_REMARK = r"[*_\"'` \t]*(?:[:,.;(–—|-][^\n]*)?"
TICKS = tuple(
    re.compile(pattern + _REMARK, re.IGNORECASE)
    for pattern in (
        rf"[^\w\n]*(?:\d[.)][ \t]+)?{_LABEL}(?:[:|=–—-]+|\?){_NO_MARK}"
        r"(?:(?P<yes>yes|true|fits|✓|✅|✔)|no|false|(?P<cross>❌|✗|✘|✖))\ufe0f?",
        _NO_MARK + _MARKS + _NO_MARK + _LABEL,
        _NO_MARK + _LABEL + _MARKS,
    )
)
"""A line that answers a label with yes or no, or with a mark before or after the label."""

JSON_LABEL = re.compile(
    r"(?i)[\"'](?:\w+[_ ])?(?:label|verdict|answer|classification|prediction|result|relation(?:ship)?|judge?ment"
    r"|decision|conclusion|category|class|stance|output|inference)[\"']\s*:\s*[\"'](?P<label>[^\"'\n]{1,60})[\"']"
)
"""The field of a JSON object that holds the verdict; other fields only explain it."""

SHARE = re.compile(
    r"(?i)(?P<label>[A-Za-z][\w -]{1,40}?)[\"'*_]*\s*[:=|(–—-]+\s*(?P<share>\d{1,3}(?:\.\d+)?)\s*(?P<percent>%)?"
)
"""A label followed by its probability."""

HEDGE = re.compile(
    r"(?i)[,;(–—]?\s*\b(?:al)?though\b(?=[^.;\n]*\b(?:could|might|may|argu\w*|possib\w+|perhaps|some|another|others?)\b)[^.;\n]*"
    r"|[,;(–—]\s*(?:leaning|tending|verging|bordering)\b[^.;\n]*|[,;(–—]\s*(?:but|however)\b(?=[^.;\n]*\b(?:could|might|may|arguabl[ey]|perhaps)\b)[^.;\n]*"
)
"""A clause that doubts the verdict before it and gives no other."""

FIRST_WORD = re.compile(r"(?i)\W*(yes|no|true|false|correct|incorrect)\b(?!\s+(?:evidence|info\w*|mention|doubt))")

NEGATOR = re.compile(
    r"(?i)\b(?:not|never|neither|nor|no|none|nothing|nowhere|without|cannot|fails?|failed|unable|insufficient|lacks?"
    r"|lack|hardly|non|far\s+from|rather\s+than|instead\s+of|as\s+opposed\s+to)\b(?!\s+(?:only|just|merely|doubt|question|surprising))|n't\b"
)
LACKING = re.compile(
    r"(?i)(?:\s+\w+){0,6}\s+(?:is|are|was|seems)\s+(?:lacking|absent|missing|insufficient|weak|ruled\s+out)\b"
)
"""Words after "support for the claim" which say that there is none."""

ALTERNATIVES = re.compile(r"\b(?:either|between)\b[^.;]{0,60}$|\b(?:whether|if)\b[^,;]{0,60}$", re.IGNORECASE)
"""Words before a label that is only one of several considered."""

WHETHER = re.compile(r"\bwhether\b", re.IGNORECASE)
"""A word that makes the clause of a hint a question, not an answer."""

POSSIBLE = re.compile(r"\b(?:could|might|may|perhaps|possibly|torn)\b[^.;,]{0,40}$", re.IGNORECASE)
"""Words before two labels joined by "or", so that neither is the verdict."""

OR = re.compile(r"(?i)[\s,\"'/]*\bor\b(?:\s+(?:it|is|are|be|even|also|just|merely|perhaps|maybe|an?|by)\b)*[\s\"']*")
LISTED = re.compile(
    r"(?i)[\s,\"'/]*(?:\b(?:or|and|nor|is|are|it|its|be|being|that|just|simply|merely|rather|by|an?)\b[\s,\"'/]*)*"
)
"""Words between two labels that are items of one list."""

REFUSAL = _compile_words(
    r"\bas\s+an?\s+(?:\w+\s+)?(?:AI|assistant|model)\b|\bI(?:'m|\s+am)\s+(?:just|only|merely|simply)?\s*an?\s+"
    r"(?:\w+\s+)?(?:AI|chatbot|bot|assistant|(?:language\s+)?model|machine)\b",
    r"\bI(?:'m|\s+am)\s+(?:not\s+an?|no)\s+(?:\w+\s+)?(?:lawyer|attorney|doctor|physician|expert|professional|scientist)\b",
    r"\bI(?:'m|\s+am)\s+not\s+(?:\w+\s+)?(?:qualified|licensed|permitted|allowed|authori[sz]ed|comfortable|trained"
    r"|equipped|going\s+to|in\s+a\s+position)\b|\bnot\s+(?:feel\s+)?comfortable\b",
    r"\b(?:legal|medical|financial|health|clinical|professional)\s+(?:\w+\s+)?(?:advice|opinions?|guidance)\b",
    r"\b(?:consult|ask|see|contact|seek|talk\s+(?:to|with)|speak\s+(?:to|with)|check\s+with|refer\s+to)\b[^.;\n]{0,40}\b"
    r"(?:lawyer|attorney|solicitor|counsel|doctor|physician|professional|expert|pharmacist|specialist|clinician)s?\b",
    r"(?:\bnot|n't)\s+something\s+(?:that\s+)?I\b|\bnot\s+my\s+(?:place|role)\b|(?:\bnot|n't)\s+appropriate\s+for\s+me\b",
    r"\b(?:only|leave|matter\s+for|question\s+for|up\s+to)\b[^.;\n]{0,30}\b(?:lawyer|attorney|solicitor|court|judge|doctor|physician|professional|expert)s?\b",
    r"\bI(?:'d|\s+would|'ll|\s+will|\s+must|\s+have\s+to|\s+need\s+to)?\s+(?:respectfully\s+|rather\s+|prefer\s+)?(?:not\b|to\s+(?:stay|remain|be)"
    r"|decline|refuse|pass|abstain|refrain)\b|\bI\s+won't\b",
    r"\b(?:my|our)\s+(?:\w+\s+)?(?:knowledge|training|cut-?off|guidelines|polic(?:y|ies)|programming|capabilit\w+)\b"
    r"|\b(?:don't|do\s+not|without)\s+(?:have\s+)?(?:access|the\s+ability)\b"
    r"|\boutside\s+(?:of\s+)?(?:what\s+I|my)\b|\bbeyond\s+(?:what\s+I|my)\b",
    r"\bI(?:'m|\s+am)?\s+(?:can't|cannot|can\s+not|unable\s+to|not\s+able\s+to)\s+(?:\w+\s+)?"
    r"(?:help|assist|comment|provide|offer|access|open|browse|answer|discuss|engage|fulfil+|process|interpret|look\s+up)\b",
    r"\bI(?:'m|\s+am)?\s+(?:can't|cannot|can\s+not|unable\s+to|not\s+able\s+to)\s+\w+(?:\s+(?:or|and)\s+\w+)?\s+(?:\w+\s+)?"
    r"(?:claims|contracts|matters|questions|documents|topics|agreements|clauses)\b",
    r"\b(?:stay|remain|be|keep)(?:ing)?\s+neutral\b",
    r"\b(?:please|could\s+you|can\s+you)\s+(?:provide|share|paste|upload|send|attach|supply)\b",
)
"""The writer will not or cannot do the task, for reasons that are not in the text."""

_INPUT = r"(?:contract|agreement|document|text|abstract|premise|hypothesis|claim|passage|article|attachment|file)s?\b"
NO_INPUT = _compile_words(
    rf"\b{_INPUT}(?:\s+\w+){{0,2}}?\s+(?:was|is|were|has|have|did|does)(?:n't|\s+not)\s+(?:seem\s+to\s+)?(?:have\s+)?(?:been\s+)?"
    r"(?:provided|attached|included|shared|supplied|uploaded|come\s+through|loaded|visible)\b(?!\s+(?:for|in|by|with|to|as)\b)",
    rf"\bno\s+{_INPUT}\s+(?:was|is|were|has\s+been|have\s+been)\s+(?:provided|attached|included|shared|supplied|given)\b",
)
"""The writer says that there was nothing to judge."""

WRITER_SPEAKS = re.compile(
    r"\b(?:I|I'm|I've|I'd|I'll|my)\b(?:(?!\b(?:document|contract|agreement|abstract|text|passage|premise|article|paper|study"
    r"|trial|authors?|NDA|lease|report|data|findings|clause|section|sentence|evidence|it|they|nothing|none|there|but|yet|however|although)\b)"
    r"[^.;])*$"
)
"""Words before an "unknown" of the writer's own: nothing in between is about the text."""

FROM_THE_TEXT = re.compile(
    r"(?i)\b(?:from|based\s+on|on\s+the\s+basis\s+of|given|according\s+to|with(?:in)?|using)\s+(?:\w+\s+){0,3}?(?:text|document|passage"
    r"|premise|contract|agreement|abstract|article|paper|study|sentence|context|evidence|information|excerpt|clause"
    r"|what)\b"
)
"""Words of an honest "I cannot tell from the text", which is a verdict."""

SET_ASIDE = re.compile(r"\b(?:rather\s+than|instead\s+of|as\s+opposed\s+to|not|isn't)[\s\"']*$", re.IGNORECASE)
"""Words before "not mentioned" which say that it is not the verdict."""

REVISION = re.compile(
    r"(?i)\b(?:wait|hold\s+on|correction|scratch\s+that|on\s+second\s+thought|oops|my\s+mistake|i\s+made\s+an?\s+\w+)\b"
)
"""The writer takes something back."""

CLAUSE_BREAK = re.compile(
    r"(?i)[,;:()–—]|\b(?:but|and|however|although|though|while|whereas|instead|because|since|so|therefore|thus|hence)\b"
)
CONCLUDES = re.compile(
    r"(?i)\b(?:therefore|thus|hence|so|overall|in\s+conclusion|in\s+summary|conclude|consequently|accordingly"
    r"|finally)\b"
)
CLAIM = re.compile(r"\b(?:claim|hypothesis|statement|assertion|premise)\b", re.IGNORECASE)

LABEL_NOUN = re.compile(
    r"(?i)(?:\b(?:answer|label|verdict|classification|class|relationship|relation|conclusion|judge?ment|prediction"
    r"|result|category|determination|decision|output|assessment|stance|inference)\b[\"']?(?:[ \t]+[\w'/-]+){0,8}?"
    r"(?:[ \t]*(?::|=>?|->|→|–|—|-)|[ \t]+(?:is|was|would\s+be|should\s+be|must\s+be|will\s+be)\b)"
    r"|\b(?:classif(?:y|ied)|label(?:l?ed)?|categori[sz]ed?|marked|rated?|judged?)\b(?:[ \t]+[\w'/-]+){0,6}?"
    r"[ \t]+(?:as|to\s+be)\b"
    r"|\b(?:falls?|fits)\s+(?:under|into)\b"
    r"|(?:^|\n)[^\w\n]*(?:final\s+)?(?:answer|label|verdict|classification|conclusion)\W*\n)"
)
"""A noun that a verdict follows."""
