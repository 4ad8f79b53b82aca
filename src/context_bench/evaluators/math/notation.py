"""One notation for the many ways to write mathematics: digits of any script, Unicode signs, LaTeX variants.

`unify` works on a whole reply and changes no meaning; `canonical` works on an answer and drops what does
not matter to it (spacing, sizes of brackets, degree signs, the box around it).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from context_bench.evaluators.math.numerals import read_cjk_numerals

__all__ = ["canonical", "is_words", "unify"]

_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
_VULGAR = re.compile(r"[¼-¾⅐-⅞]")
_SIGNS = str.maketrans({"，": ",", "．": ".", "：": ":", "％": "%", "٪": "%", "−": "-", "－": "-", "﹣": "-", "＝": "=",
                        "＋": "+", "（": "(", "）": ")", "＄": "$", "￥": "¥", "٫": ".", "٬": ",", "\u00a0": " ",
                        "\u202f": " ", "\u2009": " ", "\u200b": "", "\u2060": "", "\ufeff": ""})  # fmt: skip
_DASH_AS_SIGN = re.compile(r"(?<![\w)])[–‒](?=[$€£]?\d)")
# Where the euro is, a comma before two digits is a decimal one and a point before three parts thousands.
_EURO = re.compile(r"(?<![\d.,])(\d{1,3}(?:\.\d{3})+|\d+)(?:,(\d{1,2}))?(?=\s?(?:€|Euro\b|EUR\b))")
_POINTS_AS_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.])")
_MYRIADS = re.compile(r"(?<![\d.,])(\d[\d,]*(?:\.\d+)?)万(\d{1,4}(?!\d))?")

_SYMBOLS = {
    "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "÷": "/", "⁄": "/", "π": r"\pi ", "∞": r"\infty ",
    "≤": r"\leq ", "≥": r"\geq ", "≠": r"\neq ", "≈": r"\approx ", "±": r"\pm ", "∪": r"\cup ", "∩": r"\cap ",
    "∈": r"\in ", "∅": r"\emptyset ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "°": r"^\circ ",
}  # fmt: skip
_SYMBOL = re.compile("|".join(_SYMBOLS))
_SUPERSCRIPT = re.compile("[⁻⁺]?[⁰¹²³⁴-⁹]+")
_RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_ROOT_SIGN = re.compile(r"√\s*(?:\(([^()]*)\)|(\w+))")
_ROOT_CALL = re.compile(r"(?<![\\A-Za-z])sqrt\s?\(([^()]*)\)")
_REPEATED = re.compile(r"(?<![\d.,])(\d+)\.(\d{2,15})\s?(?:\.{3}|…|\\[lc]?dots(?![a-zA-Z]))")
# After "is" or a colon, minus is a sign; after a number it subtracts.
_SIGN_WORD = re.compile(
    r"(?im)(?:\bnegative|(?:(?<=\bis\s)|(?<=\bbe\s)|(?<=\bto\s)|(?<=\bof\s)|(?<=\bat\s)|(?<=\bnow\s)|(?<=\bequals\s)"
    r"|(?<=[:=(]\s)|(?<=[*(])|^)minus)\s+(?=[$€£]?\d)"
)
# Texts that write a comma where English has a decimal point are told by their commonest words.
_COMMA_LANGUAGE = re.compile(
    r"(?i)(?<!\\)\b(?:der|das|und|ist|sind|ein|eine|jede[rsn]?|für|wir|insgesamt|antwort|le|les|du|des|une|est|donc|soit"
    r"|vaut|pour|réponse|el|los|las|una|es|entonces|para|respuesta|uma|são|portanto|resposta)\b|[а-яё]{2}"
)
_ENGLISH = re.compile(r"(?i)\b(?:the|and|of|are|is|so|we|with|answer)\b")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2}|\d{4,})(?![\d,.]*\d)")

# Units that follow a symbol, where a word could as well be a product of variables: 25\pi cm^2.
_UNIT_NAME = (
    r"(?:(?:square|cubic|sq\.?|cu\.?)\s*)?(?:[ckm]?m|in(?:ch(?:es)?)?|f(?:ee|oo)?t|y(?:ar)?ds?|mi(?:les?)?|(?:centi|kilo|"
    r"milli)?met(?:er|re)s?|units?|degrees?|radians?|rad|hours?|h|hrs?|min(?:ute)?s?|s|sec(?:ond)?s?|days?|weeks?|months?|"
    r"years?|[km]?g|lbs?|oz|[mc]?[lL]|lit(?:er|re)s?|gallons?|dollars?|cents?|mph|km/h|m/s|[NJWV]|Hz)"
)
_TEXT = r"\\(?:text(?:rm|normal)?|mathrm|mbox|operatorname)\s*\{"
_SYMBOL_UNIT = re.compile(
    rf"(?<=[\w)}}])(?:\\[,;:! ]|\s|~)*(?:{_TEXT}\s*{_UNIT_NAME}\s*\.?\s*(?:\^\{{?[23]\}}?\s*)?\}}"
    rf"|(?<=\s)(?:[ckm]m|square\s\w+|cubic\s\w+|units?|inches|feet|met(?:er|re)s))(?:\s*\^\s*\{{?[23]\}}?)?\s*$"
)

_REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=\d),\\!\s*(?=\d{3})", ","),
        (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![a-zA-Z])\s*\.?", ""),
        (r"(?<=\d)(?:\\[,!; ]|\{,\}|\\thinspace)\s*(?=\d{3}(?!\d))", ","),
        (r"(?<!\\)\\(?:[,!;: ]|quad\b|qquad\b)|~", " "),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\(?:text(?:bf|it|rm|normal)?|math(?:rm|bf|it|sf)|mbox|operatorname|boldsymbol)\s*\{([^{}]*)\}", r" \1 "),
        (r"\^\s*\{?\s*\\(?:circ|degree)\s*\}?|\\degree\b", ""),
        (r"\\([%$#&])", r"\1"),
        (r"\\varnothing(?![a-zA-Z])", r"\\emptyset"),
        (r"(?<![\w)}])\+\s*\\infty", r"\\infty"),
        (r"\\lbrace\b", r"\\{"),
        (r"\\rbrace\b", r"\\}"),
        (r"\\(l|g|n)e(?![a-zA-Z])", r"\\\1eq"),
        (r"\\(?:cdot|times|ast)(?![a-zA-Z])", "*"),
        (r"(?<=\d)\s*x\s*(?=10\s?\^)", "*"),
        (r"\\div(?![a-zA-Z])", "/"),
        (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
        (r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{"),
        (r"(\\frac\s*\{[^{}]*\})\s*(\w)", r"\1{\2}"),
        (r"\\sqrt\s*(\w)", r"\\sqrt{\1}"),
        (r"^\s*=\s*", ""),
        (r"\s+", " "),
    )
)

_WRAPPINGS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("`", "`"), ('"', '"'))
_NO_WORDS = {
    "sin",
    "cos",
    "tan",
    "cot",
    "sec",
    "csc",
    "log",
    "ln",
    "exp",
    "sqrt",
    "pi",
    "max",
    "min",
    "gcd",
    "and",
    "or",
}
_LATIN_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")


def unify(text: str) -> str:
    """The text with ASCII digits and signs, mathematical symbols as LaTeX, and numbers grouped the English way."""
    if not text.isascii():
        text = _SUPERSCRIPT.sub(_write_exponent, _VULGAR.sub(_write_fraction, text))
        text = _FOREIGN_DIGIT.sub(lambda found: str(unicodedata.decimal(found.group())), text)
        text = _DASH_AS_SIGN.sub("-", text.translate(_SIGNS))
        text = read_cjk_numerals(_MYRIADS.sub(_write_myriads, text))
        text = _ROOT_SIGN.sub(lambda found: rf"\sqrt{{{found[1] or found[2]}}}", text)
        text = _SYMBOL.sub(lambda found: _SYMBOLS[found.group()], text)
    text = _EURO.sub(lambda found: found[1].replace(".", "") + (f".{found[2]}" if found[2] else ""), text)
    text = _POINTS_AS_GROUPS.sub(lambda found: found.group().replace(".", ""), text)
    # Long replies are mostly plain: a look for the bare words is much faster than the patterns are.
    if "," in text and _DECIMAL_COMMA.search(text) and not _ENGLISH.search(text) and _COMMA_LANGUAGE.search(text):
        text = _DECIMAL_COMMA.sub(r"\1.\2", text)
    if "inus" in text or "egative" in text:
        text = _SIGN_WORD.sub("-", text)
    if "..." in text or "…" in text or "dots" in text:
        text = _REPEATED.sub(_write_period, text)
    return _ROOT_CALL.sub(r"\\sqrt{\1}", text) if "sqrt" in text else text


def _write_period(found: re.Match[str]) -> str:
    """`0.8333...` as a repeating decimal, where its last digits repeat; else as it was."""
    digits = found[2]
    for length in range(1, len(digits) // 2 + 1):
        period, start = digits[-length:], len(digits) - length
        while digits[:start].endswith(period):
            start -= length
        if len(digits) - start >= max(2 * length, 3 if start else 2):
            return rf"{found[1]}.{digits[:start]}\overline{{{period}}}"
    return found.group()


def _write_exponent(found: re.Match[str]) -> str:
    exponent = found.group().translate(_RAISED)
    return f"^{exponent}" if len(exponent) == 1 else f"^{{{exponent}}}"


def _write_fraction(found: re.Match[str]) -> str:
    return " " + unicodedata.normalize("NFKD", found.group()).replace("⁄", "/")


def _write_myriads(found: re.Match[str]) -> str:
    whole, _, part = found[1].replace(",", "").partition(".")
    if len(part) > 4:
        return found.group()
    return str(int(whole + part.ljust(4, "0")) + int(found[2] or 0)) if len(whole) < 20 else found.group()


@lru_cache(maxsize=4096)
def canonical(answer: str, *, keep_units: bool = False) -> str:
    """An answer in one notation, in single-spaced LaTeX; units after a symbol are dropped unless they are kept."""
    text = unwrap(unify(answer))
    text = text if keep_units else _SYMBOL_UNIT.sub("", text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return unwrap(text)


def unwrap(text: str) -> str:
    """Remove the dollars, asterisks and quotes around a text, and the mark that ends the sentence."""
    previous = None
    while text != previous:
        previous = text
        text = text.strip().strip("*_").rstrip(".,;:").strip()
        for opening, closing in _WRAPPINGS:
            inner = text[len(opening) : len(text) - len(closing)]
            if text.startswith(opening) and text.endswith(closing) and inner and closing not in inner:
                text = inner
    return text


def is_words(text: str) -> bool:
    """Whether a canonical answer has words in it, other than names of functions and what joins a list."""
    return any(word.lower() not in _NO_WORDS for word in _LATIN_WORD.findall(text))
