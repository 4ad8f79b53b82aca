"""Wordings around a letter that choose an option or rule it out.

Each pattern looks at the text just before a letter (and ends there) or just after it (and starts there). The wordings
are separate from the code, so that adding one takes one more line here.
"""

from __future__ import annotations

import re


def _join_patterns(*patterns: str) -> str:
    return "(?:" + "|".join(patterns) + ")"


_OPENING = r"[\s:\"'(\[{«<,>=*-]*"
_FILL = (
    r"(?:\s*\b(?:the|letter|option|choice|answer|number|statement|response|most|more|likely|probably|clearly|definitely"
    r"|certainly|indeed|actually|really|simply|just|only|therefore|thus|hence|then|obviously|either|both|is|in|fact"
    r"|given|by|labell?ed|marked|as|follows|best|correct|right|final|one|be|to|surely|plainly)\b[:,]?)*"
)
_IS = r"(?:is|was|are|were|be|being|becomes|remains|seems|appears|would\s+be|should\s+be|must\s+be|will\s+be)"
_LEAD = _OPENING + _FILL + _OPENING + "$"
_ADVERBS = r"(?:(?:also|both|all|indeed|thus|therefore|then|still|now|clearly|\w+ly|in\s+fact|of\s+course)\s+)*"

STATED_BEFORE = re.compile(
    _join_patterns(
        # "the correct answer to this question is", "Answer:", "final choice -", '"answer": '
        r"\b(?:answers?|ans|choice|option|selection|pick|verdict|guess|letter|conclusion)\b[\"']?\.?"
        r"(?:[ \t]+(?!choices\b|options\b|not\b)(?-i:(?![A-Z]\b))[\w'/-]+){0,12}?[ \t]*(?:\([^()\n]{0,40}\)[ \t]*)?"
        rf"(?:\s*(?::|=>?|->|→|⇒|–|—|-)|[ \t]+{_IS}\b)",
        r"(?:^|\n)\W*(?:(?:the|my|final|correct|best)\s+)*answer\W*\n",
        r"\b(?:correct|final|best|right|my|chosen|selected)\s+(?:answer|choice|option)(?:\s+here)?",
        r"\b(?:choos(?:e|es|ing)|chose|pick(?:s|ed|ing)?|select(?:s|ed|ing)?|go(?:es|ing)?\s+(?:with|for)|went\s+with"
        r"|opt(?:s|ed|ing)?\s+for|settl(?:e|es|ed|ing)\s+(?:on|for)|vot(?:e|ing)\s+for|stick(?:ing)?\s+with"
        r"|commit(?:ting)?\s+to|lean(?:ing)?\s+towards?|answer(?:ing)?\s+with|circle|tick"
        r"|(?<!question )(?<!check )mark)\b",
        r"\b(?:I|we)(?:'d|'ll|'m)?(?:\s+\w+){0,3}?\s+(?:answer|say|guess|bet(?:\s+on)?|conclude)\b(?:\s+that)?",
        r"\b(?:correct|right)\s+one\s+is",
        r"\bfinal[ \t]*(?::|–|—|->|→)",
        r"\b(?:respuesta|réponse|antwort|resposta|risposta|correcta|correcte|correta|ответ)\b(?:[ \t]+\w+){0,4}?"
        r"\s*(?::|[–—-]|\b(?:es|est|ist|é|è|is)\b)\s*"
        r"(?:(?:la|le|el|die|der|das|a|o|opción|opção|opzione|option|lettre|letra|lettera|buchstabe)\b\s*)*",
        r"(?:答案|正确选项|正解|答え|정답)(?:应该)?[是为选は은는:]*|选择?",
    )
    + _LEAD,
    re.IGNORECASE,
)
"""The letter that follows is stated as the answer."""

SUGGESTED_BEFORE = re.compile(
    _join_patterns(
        r"\b(?:it|that|this|which|there|he|she)(?:'s|\s+is|\s+was|\s+would\s+be|\s+must\s+be|\s+has\s+to\s+be)",
        r"\b(?:is|must\s+be|has\s+to\s+be|should\s+be|would\s+be|'s)",
        r"\bonly(?:\s+(?:option|choice))?",
        r"\b(?:so|therefore|thus|hence|consequently|definitely|certainly|clearly|probably|obviously)\b",
        r"\b(?:leaving|leaves|left\s+with|remaining|remains|narrow\w*\s+(?:\w+\s+){0,3}to)(?:\s+(?:us|me|only|with))*",
        r"\b(?:match(?:es|ing)?|correspond(?:s|ing)?\s+to|points?\s+to|supports|favou?rs?|prefer|equals?|we\s+get"
        r"|gives(?:\s+us)?|believe|think|suggests|indicates|means|makes|making|yes)\b(?:\s+(?:that|it's|it\s+is))*",
        r"\b(?:odd\s+(?:one|man)\s+out|exception|outlier|odd\s+one)\b[^.;\n]{0,30}?(?::|\bis\b|\bwould\s+be\b)",
        r"\b(?:text|passage|article|story|author|evidence|context|document)\b(?:\s+\w+){0,2}?\s+"
        r"(?:states?|says?|identif(?:y|ies)|specif(?:y|ies)|indicates?|shows?)(?:\s+that)?(?:\s+it(?:'s|\s+is|\s+was))?",
        r"\bnot\b[^.;\n]{0,60}\bbut(?:\s+rather)?|而是",
        r"\b(?:no[,.!]|actually,?|sorry,?|mean|meant|make\s+(?:that|it)|correction:?)",
        r"[→⇒✓✅✔☑]\ufe0f?(?!\s*\n)",
    )
    + _LEAD,
    re.IGNORECASE,
)
"""The letter that follows is the conclusion of an argument."""

ALL_BUT = re.compile(
    r"(?i)\b(?:all|every\w*|each)\b[^.,;:\n]{0,50}?\b(?:except(?:\s+for)?|but|apart\s+from|other\s+than"
    r"|save(?:\s+for)?)" + _LEAD
)
"""The letter that follows is the exception: "all of these but C are mammals", "every option except C is wrong"."""

REJECTED_BEFORE = re.compile(
    _join_patterns(
        r"\b(?:not|isn't|wasn't|aren't|never|neither|nor|cannot\s+be|can't\s+be|can\s+not\s+be|couldn't\s+be"
        r"|wouldn't\s+be|won't\s+be|not\s+be|unlikely\s+to\s+be|without|except(?:\s+for)?|unlike|excluding)",
        r"\b(?:eliminat|exclud|discard|reject|dismiss|remov|disregard|ignor)(?:e|es|ed|s|ing)?",
        r"\b(?:rul(?:e|es|ed|ing)|cross(?:es|ed|ing)?|strik(?:e|es|ing)|throw(?:ing)?)\s+out",
        r"\b(?:rather\s+than|instead\s+of|other\s+than|as\s+opposed\s+to|over|than)",
        r"\b(?:incorrect|wrong|eliminated)\s+(?:options|choices|answers|ones)(?:\s+(?:are|include))?",
        r"\b(?:don't|do\s+not|doesn't|didn't|can't|cannot|won't|wouldn't)\s+(?:\w+\s+)?(?:think|believe|choose|pick"
        r"|select|go\s+with|agree\s+with|support)(?:\s+(?:that|it's|it\s+is|the\s+answer\s+is))*",
        r"不是|并非|不选|排除|ではなく|\bno\s+es(?:\s+la)?|\bn'est\s+pas(?:\s+la)?|\bist\s+nicht|\bdescart\w+",
        r"\bdoubt(?:\s+(?:that|it's|it\s+is|the\s+answer\s+is))*",
        r"\b(?:lured|fooled|tempted|misled|tricked|distracted|confused|caught\s+out|put\s+off)\s+(?:by|into)"
        r"(?:\s+(?:choosing|picking|selecting|answering))?",
        r"\bany\w*(?:\s+\w+)?\s+but",
        r"\bwhy\s+not\b[\s:,–—-]*",
        r"\b(?:incorrect|wrong|eliminated?|rejected|ruled\s+out|distractors?|traps?)\s*:"
        r"(?!\s+(?:the|my)\s+(?:\w+\s+)?(?:answer|choice|option)\s+is\b)",
        r"(?:^|\n)[^\w\n❌✗✘✖]*[❌✗✘✖]\ufe0f?[^\w\n✓✅✔☑]*",
    )
    + r"(?:\s+(?:the|option|options|choice|choices|answer|answers|letter|statement|either|both|be|necessarily|is|are"
    r"|really|actually|quite))*[\s:\"'(\[«]*$",
    re.IGNORECASE,
)
"""The letter after this wording is ruled out."""

NAMED_BEFORE = re.compile(r"\b(?:option|choice|answer|letter|alternative|statement)s?[\s:\"'(\[«]*$", re.IGNORECASE)
"""The letter that follows is the name of an option."""

_CLOSE = r"[)\]}\"'».:]*[ \t]*(?:\([^()\n]{0,80}\)[ \t]*)?[,:–—-]?[ \t]*"
_BAD = (
    r"(?:wrong|incorrect|invalid|inaccurate|irrelevant|unlikely|impossible|implausible|inconsistent|incompatible"
    r"|unsupported|unrelated|eliminated|excluded|ruled\s+out|rejected|dismissed|discarded|out\b|off\b|less\s+\w+|too\s+\w+"
    r"|(?:a|the)\s+(?:wrong|incorrect|worse|distractor)|contradicted|not\b(?!\s+(?:only|just|wrong|incorrect|bad)))"
)
REJECTED_AFTER = re.compile(
    _CLOSE
    + _join_patterns(
        rf"(?:is|are|was|were|seems?|looks?|sounds?|appears?(?:\s+to\s+be)?|would\s+be|must\s+be|can\s+be)\s+{_ADVERBS}{_BAD}",
        r"(?:is|are|was|were|do|does|did|ca|wo|would|could|should|must|has|have)n't\b",
        r"(?:can\s?not|does\s+not|do\s+not|did\s+not|will\s+not|would\s+not|could\s+not|fails?|contradicts?|misses|ignores)\b",
        r"(?:has|have|had)\s+none\b",
        r"(?:incorrect|wrong|no|not)\b(?=\s*(?:[.,;:!)–—-]|because|since|$))",
        r"(?:❌|✗|✘|✖)",
        r"why\s+(?:not\b|(?:it|this|that)(?:'s|\s+is|\s+isn't)?\s+(?:wrong|incorrect|out|not)|it\s+fails)",
    ),
    re.IGNORECASE,
)
"""The letter before this wording is ruled out."""

ASKED_YES = re.compile(r"[)\]\"'»]*\?\s*(?:yes|correct|right|exactly)\b", re.IGNORECASE)
ASKED_NO = re.compile(r"[)\]\"'»]*\?\s*no\b(?=\s*[.,;:!–—-])", re.IGNORECASE)
"""The letter before this wording is part of a question that is answered at once: "Is it B? No."."""

_GOOD = (
    r"(?:correct|right|best|accurate|valid|appropriate|supported|suitable|better|likely|probable|plausible|consistent"
    r"|more\s+(?:accurate|appropriate|likely|consistent|plausible|suitable|precise|specific|complete|correct|reasonable)"
    r"|(?:the\s+)?most\s+\w+|the\s+(?:best|closest|only|correct|right|one)\b)"
)
STATED_AFTER = re.compile(
    _CLOSE + _join_patterns(rf"{_IS}(?:\s+to\s+be)?", r"looks\s+like", "as") + rf"\s+{_ADVERBS}(?:the|my|our)\s+"
    r"(?:(?:most|correct|right|best|only|final|likely|appropriate|accurate|suitable|logical|reasonable|probable"
    r"|plausible|valid|proper|true|closest|better|clear|single|possible|remaining)\s+){0,3}"
    r"(?:answer|choice|option|pick|selection|exception|odd\s+(?:one|man)\s+out|outlier)\b",
    re.IGNORECASE,
)
"""The letter before is stated as the answer."""

SUGGESTED_AFTER = re.compile(
    _CLOSE
    + _join_patterns(
        rf"{_IS}(?:\s+to\s+be)?\s+{_ADVERBS}(?:not\s+(?:wrong|incorrect)|{_GOOD})",
        r"(?:looks|sounds|feels)\s+(?:like\s+)?" + _GOOD,
        r"(?:best\s+|better\s+|correctly\s+|accurately\s+|exactly\s+)?(?:fits?|match(?:es)?|works?|remains?|wins?|holds?|stands?)\b",
        r"(?:best|correctly|accurately)\s+\w+",
        r"[a-z]+s(?:\s+\w+){1,4}?\s+best\b",
        r"makes?\s+(?:the\s+)?(?:most\s+|more\s+)?sense",
        r"(?:is|does|are)\s*(?:[.,;!]|$)",
        r"(?:correct|right|yes)\b",
        r"it\s+is\b(?=\s*(?:[.,;!–—-]|then|$))",
        r"the\s+(?:one|only\s+one|odd\s+one|exception|outlier)\b",
        r"why\s+(?:yes|(?:it|this|that)(?:'s|\s+is)?\s+(?:right|correct|works|fits))\b",
        r"(?:✓|✅|✔|☑)",
    ),
    re.IGNORECASE,
)
"""The letter before is the conclusion of an argument."""

REVISION = re.compile(
    r"(?i)\b(?:wait|correction|corrected|scratch\s+that|on\s+second\s+thought|reconsider\w*|re-?evaluat\w*"
    r"|double[- ]check\w*|re-?check\w*|oops|my\s+mistake|i\s+made\s+(?:a|an)\s+(?:mistake|error)|sorry|actually|hmm"
    r"|hold\s+on|no,)"
)
"""The writer takes something back."""

HYPOTHETICAL = re.compile(
    r"(?i)\b(?:if|had|were|unless)\b(?!\s+(?:to\s+(?:choose|pick|guess|answer|select)|forced|i\s+(?:had|have)|you))"
    r"(?!\s+(?:i|we)\s+must\b)"
)
ABANDONED = re.compile(r"\bwould(?:\s+have)?\s+(?:be|been)\b", re.IGNORECASE)
"""Two wordings of an unreal case: "if it had asked for the largest, the answer would be A" is no answer."""

EARLIER = re.compile(
    r"(?i)\b(?:was|were)\s+(?:going|tempted|inclined|about|ready)\s+to\b|\b(?:initially|originally|at\s+first(?:\s+glance)?)\b"
    r"|\b(?:might|may|could)\s+(?:be\s+tempted|think|say|pick|choose|guess|seem|look)\b|\btempting\s+to\b"
    r"|\b(?:mistake|error|misconception|pitfall|trap)\s+(?:\w+\s+)?(?:is|would\s+be|to)\b"
    r"|\beveryone\b|\b(?:most|many|some|other)\s+(?:people|students|readers|candidates|textbooks|models|sources)\b"
)
"""A discarded thought, or other people's choices: "initially I was going to say C", "many students pick A"."""

EXCEPTION_ASKED = re.compile(
    r"(?i)\b(?-i:NOT|EXCEPT|LEAST|FALSE|INCORRECT)\b|\b(?:has|have|had|with|is|are|shows?)\s+(?-i:NO)\b"
    r"|\bexcept\b|\bodd\s+(?:one|man)\s+out\b|\b(?:does\s+not|doesn't|do\s+not|don't)\s+(?:belong|fit)\b"
    r"|\bwhich\b[^.?!]{0,80}?\b(?:is|are|was|were|does|do|did|can|could|would|has|have)(?:\s+not|n't)\b"
    r"|\bwhich\b[^.?!]{0,60}?\b(?:is|are)\s+(?:false|incorrect|untrue|wrong)\b"
)
"""A question that asks for the exception."""

CONNECTIVE = re.compile(
    r"(?i)\s+(?:because|since|as|and|or|but|due|given|for|though|while|based|which|where|by|rather\s+than|instead\s+of|not|over|to|through)\b"
)
"""Words that can follow a letter, but not the article `a` or the pronoun `I`."""

_THIRD_PERSON = (
    r"(?!(?:lens|series|species|means|news|always|sometimes|perhaps|process|less)\b)[a-z]+(?<![suia])s\b(?!-)"
)
VERB_AFTER_A = re.compile(
    r"\s+(?:is|are|was|were|isn't|aren't|wasn't|would|wouldn't|must|can|can't|cannot|does|doesn't|did|didn't|should|could"
    rf"|has|will|won't|it\s+is|best\b(?!\s+(?:\w+\s+)?(?:is|practice|way|guess|answer|choice|option))|{_THIRD_PERSON})"
)
VERB_AFTER_I = re.compile(rf"\s+(?:is|isn't|does|doesn't|has|it\s+is|{_THIRD_PERSON})\b")
"""Verbs that can follow the letter A, but not the article, and the letter I, but not the pronoun."""
