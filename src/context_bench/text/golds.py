r"""Gold answers of an example, replies without markup, and comparison of words.

Every evaluator reads golds and replies the same way. Markup of an answer (`\boxed{B}`, `<answer>B</answer>`) becomes
the words "answer: B", so that one set of rules finds them all. Words are compared after SQuAD v1.1: text is
lower-cased, stripped of punctuation and of the articles a, an and the.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress, filterfalse
from typing import Any

_TAG = r"(?:seed:)?(?:think|thinking|thoughts?|reason|reasoning|analysis|scratchpad)\s*"
_MARK = re.compile(
    rf"(?i)<(?P<angle>/?){_TAG}>|\[(?P<square>/?)think\]|◁(?P<triangle>/?)think▷"
    r"|<\|(?:(?:begin_of_thought|start_thinking|think)|(?P<token>end_of_thought|end_thinking|/think))\|>"
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(?P<name>\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
_TURN_END = re.compile(r"<\|(?:end|return|call|start)\|>")
# The same channels from a server that drops special tokens: "analysisWe need ...assistantfinalParis".
_BARE_CHANNEL = re.compile(r"\s*analysis(?=[A-Z])")
_SPECIAL = re.compile(r"<\|[^|<>\n]{0,40}\|>|\A\s*<s>|</s>\s*\Z")


def remove_reasoning(reply: str) -> str:
    """Return the answer in a reply; empty if the reply is only reasoning."""
    if "<" not in reply and "[" not in reply and "◁" not in reply and "analysis" not in reply:
        return reply  # every mark begins with one of these
    if "<|channel|>" in reply:
        return _SPECIAL.sub("", _read_final_channel(reply))
    if _BARE_CHANNEL.match(reply):
        return reply.rpartition("assistantfinal")[2] if "assistantfinal" in reply else ""
    answer = _drop_blocks(reply) if _MARK.search(reply) else reply
    return _SPECIAL.sub("", answer) if "<" in answer else answer


def opens_with_reasoning(reply: str) -> bool:
    """Whether a reply begins with the mark that opens its reasoning."""
    start = reply.lstrip()
    mark = _MARK.match(start)
    return not any(mark.groups()) if mark else start.startswith(("<|channel|>", "<|start|>assistant<|channel|>"))


def _read_final_channel(reply: str) -> str:
    """Return the text of the last `final` channel of a harmony reply, and the text before its first channel."""
    channels = list(_CHANNEL.finditer(reply))
    finals = [channel for channel in channels if channel["name"] == "final"]
    if finals:
        return _TURN_END.split(reply[finals[-1].end() :], maxsplit=1)[0]
    return _TURN_END.split(reply[: channels[0].start()], maxsplit=1)[0] if channels else ""


def _drop_blocks(reply: str) -> str:
    outside: list[str] = []
    thinking = mentioned = False
    last = 0
    for mark in _MARK.finditer(reply):
        closes = any(mark.groups())
        before, after = reply[mark.start() - 1 : mark.start()], reply[mark.end() : mark.end() + 1]
        if not thinking and (mentioned or before == after == "`" if closes else before in {*"`\"'"}):
            mentioned = not closes
            continue
        if not thinking:
            outside.append(reply[last : mark.start()])
        if closes and not thinking:  # the prompt contained the opening mark: everything before is reasoning
            outside.clear()
        thinking, last = not closes, mark.end()
    if not thinking:
        outside.append(reply[last:])
    # Indentation is kept: the answer may be a line of code.
    return "".join(outside).strip("\n")


Gold = tuple[str, ...]  # one accepted answer: its parts, which must all be given; usually one


def gold_answers(example: Mapping[str, Any]) -> list[Gold]:
    """Return every accepted answer, without repeats; empty without a gold."""
    given, answer = example.get("answers"), example.get("answer")
    if not given and type(answer) is str:  # the usual case
        return [(answer,)] if answer.strip() else []
    if not given or not isinstance(given, (list, tuple)):
        given = [answer]
    golds: dict[Gold, None] = {}
    for answer in given:
        parts = answer if isinstance(answer, (list, tuple)) else [answer]
        gold = tuple(str(part) for part in parts if part is not None and str(part).strip())
        if gold:
            golds[gold] = None
    return list(golds)


_GOLD_FIELDS = (
    *("answer", "answers", "correct_letter", "test", "test_list"),
    *("instruction_id_list", "ground_truth", "reference", "references", "relevant_ids"),
)


def has_gold(example: Mapping[str, Any]) -> bool:
    """Whether an example has a gold to score answers against."""
    given = [example[field] for field in _GOLD_FIELDS if field in example]
    return any(value is not None and (not isinstance(value, (str, list, tuple)) or len(value) > 0) for value in given)


_SCORING_FIELDS = (
    *("evidence", "answer", "answers", "correct_letter", "test", "test_list", "instruction_id_list", "ground_truth"),
)


def list_scoring_fields(example: Mapping[str, Any]) -> tuple[str, ...]:
    """List the fields of an example that decide which score fits it."""
    return tuple(compress(_SCORING_FIELDS, map(example.get, _SCORING_FIELDS)))


def response_text(processed: Mapping[str, Any]) -> str:
    """Return the system's answer without its reasoning; a missing answer is empty.

    With `keep_reasoning` the whole reply is the answer. A context in place of an answer is no reply and stays
    unchanged.
    """
    response = processed.get("response")
    text = "" if response is None else str(response)
    whole = processed.get("keep_reasoning") or response is processed.get("context")
    return text if whole else remove_reasoning(text)


def turn_responses(processed: Mapping[str, Any]) -> list[str]:
    """Return the reply to each turn of a conversation; empty if there was only one reply for all turns."""
    replies = processed.get("turn_responses") or processed.get("responses")  # the latter in older stores
    if not isinstance(replies, (list, tuple)):
        return []
    contents = (reply.get("content") if isinstance(reply, Mapping) else reply for reply in replies)
    return ["" if content is None else str(content) for content in contents]


def turn_answers(processed: Mapping[str, Any]) -> list[str]:
    """Return the answer to each turn, without reasoning unless the reasoning is to be kept."""
    replies = turn_responses(processed)
    return replies if processed.get("keep_reasoning") else [remove_reasoning(reply) for reply in replies]


def is_blank(processed: Mapping[str, Any]) -> bool:
    """Whether a reply has no text and no tool call; such a reply is wrong even if a gold normalises to nothing."""
    return not response_text(processed).strip() and not processed.get("tool_calls")


def evidence_texts(example: Mapping[str, Any]) -> list[str]:
    """Return the passages that an answer needs. A span is a text, a {start, end} of the context, or both."""
    texts, context = [], example.get("context") or ""
    for span in example.get("evidence") or ():
        if isinstance(span, str):
            text = span
        elif isinstance(span, Mapping):
            text = span.get("text") or context[span["start"] : span["end"]]
        else:
            start, end = span
            text = context[start:end]
        if text.strip():
            texts.append(text)
    return texts


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
NORMALIZE_CHARS = 200_000  # characters that are normalised in one call
_PUNCTUATION = string.punctuation.encode()
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Return a text in lower case, without punctuation and articles, with single spaces."""
    return " ".join(split_normalized(text))


def split_normalized(text: str) -> list[str]:
    if len(text) <= NORMALIZE_CHARS:
        return _normalize_words(text)
    known: dict[str, str] = {}  # each word once: the words of a reply of megabytes would take ten times its memory
    return [known.setdefault(word, word) for piece in _cut(text) for word in _normalize_words(piece)]


def _cut(text: str) -> Iterator[str]:
    """Yield a long text in pieces that end before a space, because one call for the whole would block all other
    threads."""
    start = 0
    while (end := text.find(" ", start + NORMALIZE_CHARS)) >= 0:
        yield text[start:end]
        start = end
    yield text[start:]


def _normalize_words(text: str) -> list[str]:
    plain = text.lower()
    if not plain.isascii():
        return _ARTICLES.sub(" ", plain.translate(_WITHOUT_PUNCTUATION)).split()
    plain = plain.encode().translate(None, _PUNCTUATION).decode()  # in a fifth of the time
    if plain.isprintable() or not _CONTROL.search(plain):  # words end at spaces only, so no search is needed
        return list(filterfalse(_ARTICLE_WORDS.__contains__, plain.split()))
    return _ARTICLES.sub(" ", plain).split()


_FEW_WORDS = 8  # up to this many words in a gold, counting each in the prediction is faster


def token_f1(prediction: list[str], gold: list[str]) -> tuple[float, float]:
    """Return F1 and recall of two bags of words."""
    common = 0
    if len(gold) <= _FEW_WORDS:
        for word in dict.fromkeys(gold):
            if times := prediction.count(word):
                common += min(times, gold.count(word))
    else:
        left: dict[str, int] = {}
        for word in gold:
            left[word] = left.get(word, 0) + 1
        for word in prediction:
            if left.get(word):
                left[word] -= 1
                common += 1
    if not common:
        return 0.0, 0.0
    precision, recall = common / len(prediction), common / len(gold)
    return 2 * precision * recall / (precision + recall), recall


_split_gold = lru_cache(maxsize=1024)(split_normalized)  # each system's answer is compared with the same gold


def compare_words(reply: str, golds: Sequence[Gold]) -> tuple[float, ...]:
    """Return F1, exact match, recall, and whether the reply contains the gold, each with the best of all golds."""
    words = split_normalized(reply)
    response = " ".join(words)
    best = _compare(golds[0], response, words)
    for gold in golds[1:]:
        best = tuple(map(max, best, _compare(gold, response, words)))
    return best


def _compare(gold: Gold, response: str, words: list[str]) -> tuple[float, ...]:
    parts = [_split_gold(part) for part in gold]
    whole = parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))
    exact = float(words == whole)
    if not whole:  # the gold was only articles and punctuation: judge equality alone
        return exact, exact, exact, exact
    f1, recall = token_f1(words, whole)
    return f1, exact, recall, float(all(" ".join(part) in response for part in parts))


def f1_score(prediction: str, reference: str) -> float:
    """Return the F1 of the words of two texts."""
    return token_f1(split_normalized(prediction), split_normalized(reference))[0]


def recall_score(prediction: str, reference: str) -> float:
    """Return the share of the reference's words that the prediction has."""
    return token_f1(split_normalized(prediction), split_normalized(reference))[1]


def exact_match(prediction: str, reference: str) -> float:
    """Return 1.0 when both texts are the same after normalisation, else 0.0."""
    return float(split_normalized(prediction) == split_normalized(reference))


_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|sf|it|tt|bb|cal)|boldsymbol|bm|operatorname|mbox|emph)\s*\{([^{}]*)\}"
)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}|\\boxed\s+(\S+)")
_ANSWER_TAG = re.compile(r"<(?:final[_ ]?)?answer>([^<]{0,2000})</(?:final[_ ]?)?answer>", re.IGNORECASE)
_HTML = re.compile(r"</?(?:b|strong|i|em|u|p|br|span|div|code|mark)\s*/?>", re.IGNORECASE)
_BOLD_LETTER = re.compile(r"(?:\*\*|__)[ \t]*[(\[]?([A-Z])(?:(?:[)\]]?[.:]?[ \t]*(?:\*\*|__))|(?=[).:\]]\s))")
_MATH_SPACE = re.compile(r"\\[,; ]")
_MATH = re.compile(r"\\[()\[\]]|\$+|\\!|\\(?=%)|(?<=\d)\{(?=,\})|(?<=\d\{,)\}")
_EMPHASIS = re.compile(r"\*+|`+|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)|(?m:^[ \t]*(?:#{1,6}|>)[ \t]+)")
_QUOTES = str.maketrans("’‘“”′、「」『』【】", '\'\'""\',""""[]')
_CHECKBOX = re.compile(r"^([ \t]*[-*+•][ \t]+)\[(?:([xX✓✔])| )\](?=[ \t])", re.MULTILINE)


def remove_markup(text: str) -> str:
    """Remove Markdown, HTML and LaTeX from a text; a letter in bold is marked: «B»."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    text = _CHECKBOX.sub(lambda box: box[1] + ("✅" if box[2] else "❌"), text)
    latex = "\\" in text
    for _ in range(3 if latex else 0):  # wrappers can be nested: \mathbf{\text{B}}
        text, changed = _WRAPPER.subn(r"\1", text)
        if not changed:
            break
    if latex:
        text = _BOXED.sub(lambda box: f" answer: {(box[1] or box[2] or '').strip()} ", text)
    if "</" in text:
        text = _ANSWER_TAG.sub(lambda tag: f" answer: {tag[1].strip()} \n", _HTML.sub(" ", text))
    text = _BOLD_LETTER.sub(r"«\1»", text)
    if latex or "$" in text or "{" in text:
        text = _MATH.sub("", _MATH_SPACE.sub(" ", text))
    return _EMPHASIS.sub("", text)


_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')»]|$)|\n")
MAX_SENTENCE_CHARS = 400


def cut_sentence_around(text: str, start: int, end: int) -> str:
    """Cut out the sentence or line around `text[start:end]`, at most 400 characters to each side."""
    begin = max(0, start - MAX_SENTENCE_CHARS)
    for stop in _SENTENCE_END.finditer(text, begin, start):
        begin = stop.end()
    after = _SENTENCE_END.search(text, end, end + MAX_SENTENCE_CHARS)
    return text[begin : after.end() if after else end + MAX_SENTENCE_CHARS]
