"""Scores by the rules of their authors: BIG-Bench Hard, HotpotQA, DROP, TruthfulQA."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from context_bench.evaluators.assignment import find_best_assignment
from context_bench.evaluators.choice import MultipleChoiceAccuracy
from context_bench.evaluators.choice.option_reading import read_choice
from context_bench.evaluators.rouge import rouge_l, tokenize
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, is_blank, normalize_answer, response_text, token_f1

_LETTER = re.compile(r"\(([A-Z])\)")
_OPTION = re.compile(r"(?m)^\(([A-Z])\)[ \t]*(.*)$")
_STATED = re.compile(r"(?i)\banswer(?:\W{0,3}\s+is\b|\s*[*_]*:)[\s*_:]*|\\boxed\{")
_SENTENCE_END = re.compile(r"\.(?=\s)|\n")
MAX_ANSWER_CHARS = 200
_AROUND = " \t\r\n*_`\"'“”‘’$"


class BBHScore:
    """Scores `bbh_accuracy`: 1.0 if the text after "the answer is" is the target of the task.

    A target such as (B) is read as a choice among the options that the task lists. All other targets must be met
    word for word; only case, spaces, marks around the answer and a final full stop are ignored.
    """

    name = "bbh"
    version = 3
    needs_answer = True
    score_fields = ("bbh_accuracy",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = [" ".join(gold) for gold in gold_answers(original)]
        if not golds:
            return Scores(reason="no target")
        reply = response_text(processed)
        letters = [found[1] for gold in golds if (found := _LETTER.fullmatch(gold.strip()))]
        if letters:
            chosen = _read_letter(reply, str(original.get("question") or original.get("context") or ""), letters[0])
            return Scores({"bbh_accuracy": float(chosen in letters)}, details={"answer": chosen})
        said = find_stated_answer(reply)
        right = _fold_case(said) in map(_fold_case, golds)
        return Scores({"bbh_accuracy": float(right)}, details={"answer": said[:MAX_ANSWER_CHARS]})


def _read_letter(reply: str, task: str, correct: str) -> str | None:
    """Read the letter that the reply chooses among the options of the task."""
    options = dict(_OPTION.findall(task))
    letters = ascii_uppercase[: max(len(options), ascii_uppercase.index(correct) + 1)]
    texts = [options[letter] for letter in letters] if [*options] == [*letters] else []
    return read_choice(reply, letters, texts)


def find_stated_answer(reply: str) -> str:
    """Return the text after the last "the answer is" up to the end of the sentence, else the last line."""
    text = reply.strip()
    stated = list(_STATED.finditer(text))
    if stated and (said := _trim(_SENTENCE_END.split(text[stated[-1].end() :].lstrip(), maxsplit=1)[0])):
        return said.partition("}")[0] if stated[-1][0].endswith("{") else said
    return _trim(text.rpartition("\n")[2])


def _trim(text: str) -> str:
    return text.strip(_AROUND).removesuffix(".").strip(_AROUND)


def _fold_case(text: str) -> str:
    return " ".join(text.casefold().split())


_VERDICTS = frozenset({"yes", "no", "noanswer"})


class HotpotScore:
    """Scores `hotpot_em` and `hotpot_f1`, each the best over the accepted answers.

    HotpotQA and 2WikiMultihopQA use SQuAD's measures, but a yes, no or noanswer must match exactly: shared words score
    nothing.
    """

    name = "hotpot"
    version = 3
    score_fields = ("hotpot_em", "hotpot_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = [normalize_answer(" ".join(gold)) for gold in gold_answers(original)]
        if not golds:
            return Scores(reason="no gold answer")
        if is_blank(processed):
            return dict.fromkeys(self.score_fields, 0.0)
        response = normalize_answer(response_text(processed))
        f1 = max(_compute_f1(response, gold) for gold in golds)
        return Scores({"hotpot_em": float(response in golds), "hotpot_f1": f1})


def _compute_f1(response: str, gold: str) -> float:
    if response == gold:
        return 1.0
    return 0.0 if _VERDICTS & {response, gold} else token_f1(response.split(), gold.split())[0]


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def normalize_span(text: str) -> str:
    """Write a span in lower case, without articles or punctuation outside numbers; each number becomes a float."""
    return " ".join(" ".join(map(_normalize_token, re.split("[ -]", text.lower()))).split())


def _normalize_token(token: str) -> str:
    if not _is_number(token):
        token = token.translate(_WITHOUT_PUNCTUATION)
    if _is_number(token):
        token = str(float(token))
    return _ARTICLES.sub(" ", token)


def _compute_pair_f1(predicted: set[str], gold: set[str]) -> float:
    numbers = {word for word in gold if _is_number(word)}
    if numbers and not numbers & predicted:
        return 0.0
    common = len(predicted & gold)
    precision = common / len(predicted) if predicted else 1.0
    recall = common / len(gold) if gold else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def drop_em_f1(prediction: Sequence[str], gold: Sequence[str]) -> tuple[float, float]:
    """Return exact match and F1 of predicted and gold spans; both are given before normalisation."""
    predicted, wanted = [normalize_span(span) for span in prediction], [normalize_span(span) for span in gold]
    exact = float(set(predicted) == set(wanted) and len(predicted) == len(wanted))
    table = [[_compute_pair_f1(set(given.split()), set(span.split())) for given in predicted] for span in wanted]
    total = sum(table[row][column] for row, column in find_best_assignment(table))
    # Rounded as numpy does it, which is not how Python rounds 0.225.
    return exact, round(total / max(len(predicted), len(wanted)) * 100) / 100


class DropScore:
    """Scores `drop_em` and `drop_f1`, each the best over the accepted answers; a gold is a tuple of spans.

    A response that is a text is one span, as in the official evaluation: nothing is cut at commas or at "and".
    A system that returns a list of texts predicts several. F1 is rounded to two digits for each example.
    """

    name = "drop"
    version = 3
    score_fields = ("drop_em", "drop_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = gold_answers(original)
        if not golds:
            return Scores(reason="no gold answer")
        if is_blank(processed):
            return dict.fromkeys(self.score_fields, 0.0)
        response = processed.get("response")
        if isinstance(response, list | tuple):
            prediction = [str(span) for span in response]
        else:
            prediction = [response_text(processed)]
        pairs = [drop_em_f1(prediction, gold) for gold in golds]
        return Scores({"drop_em": max(em for em, _ in pairs), "drop_f1": max(f1 for _, f1 in pairs)})


class TruthfulQAScore:
    """Scores `truthfulqa_score`: whether a reply is nearer to a true answer than to any false answer.

    The authors' main score is the verdict of a model that was trained to judge truth; this is their overlap score. With
    `choices`: MC1, 1.0 when the reply chooses the true option. Without `choices`: 1.0 when ROUGE-L with the nearest of
    the accepted answers is above ROUGE-L with the nearest of `meta.incorrect`; the details contain both.
    """

    name = "truthfulqa"
    version = 2
    score_fields = ("truthfulqa_score",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        if original.get("choices"):
            chosen = MultipleChoiceAccuracy().score(original, processed)
            own = chosen if isinstance(chosen, Scores) else Scores(chosen)
            return Scores(zip(self.score_fields, chosen.values()), reason=own.reason, details=own.details)
        true = [" ".join(gold) for gold in gold_answers(original)]
        meta = original.get("meta")
        false = meta.get("incorrect") if isinstance(meta, Mapping) else None
        if not true or not false:
            return Scores(reason="no true and false answers to compare with")
        said = tokenize(response_text(processed))
        nearest = {"true": _score_nearest(said, true), "false": _score_nearest(said, false)}
        return Scores({"truthfulqa_score": float(nearest["true"] > nearest["false"])}, details=nearest)


def _score_nearest(said: list[str], answers: list[str]) -> float:
    return max(rouge_l(said, tokenize(str(answer))).f1 for answer in answers)
