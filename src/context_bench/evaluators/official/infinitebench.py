"""InfiniteBench's own scorer for each of its tasks, chosen by `meta.task`.

For the two tasks with options (En.MC, Code.Debug) the chosen letter is read as in multiple choice. The
published script takes the first character of the reply where it can, and so reads "Answer: C" as A.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from context_bench.evaluators.multiple_choice import MultipleChoiceAccuracy
from context_bench.evaluators.official.longbench import chinese_f1, qa_f1, task_of
from context_bench.evaluators.rouge import rouge_lsum
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

__all__ = ["InfiniteBenchScore"]

_CHARACTER = re.compile(r"\S")
_STOPS = re.compile(r"[\n:\"'.,?!{}]")


def _match_first_integer(response: str, gold: str) -> float:
    number = re.search(r"[0-9]+", response)
    return float(number is not None and number[0] == gold)


def _find_among_words(response: str, gold: str) -> float:
    return float(gold in _STOPS.sub(" ", response).split())


def _find_among_names(response: str, gold: str) -> float:
    return float(gold in (word.upper() for word in _STOPS.sub(" ", response).split()))


def _match_last_word(response: str, gold: str) -> float:
    words = re.sub(r"[\n.`'\":]", " ", response).split()
    try:
        return float(bool(words) and int(words[-1]) == int(gold))
    except ValueError:
        return 0.0


def _match_first_number(response: str, gold: str) -> float:
    number = re.search(r"\d+\.\d+|\d+", response)
    try:
        return float(number is not None and float(number[0]) == float(gold))
    except ValueError:
        return 0.0


def _score_prefix(response: str, wanted: Sequence[str]) -> float:
    """Return the share of a list of numbers that is right from its start on."""
    right = 0
    for given, number in zip(re.findall(r"[0-9]+", response), wanted):
        if int(given) != _read_integer(number):
            break
        right += 1
    return right / len(wanted)


def _read_integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


RULES: dict[str, Callable[[str, str], float]] = {
    "passkey": _match_first_integer,
    "number_string": _match_first_integer,
    "kv_retrieval": _find_among_words,
    "longdialogue_qa_eng": _find_among_names,
    "longbook_qa_eng": qa_f1,
    "longbook_qa_chn": lambda response, gold: chinese_f1(response, gold, _CHARACTER),
    "longbook_sum_eng": lambda response, gold: rouge_lsum(response, gold).f1,
    "code_run": _match_last_word,
    "math_find": _match_first_number,
}
_WITH_OPTIONS = ("longbook_choice_eng", "code_debug")


class InfiniteBenchScore:
    """Scores `infinitebench_score` by the rule of the example's task, the best over its answers.

    The English tasks may be spelled `_en` or `_eng`. The answer of math_calc is the whole list of numbers.
    Reasoning in think tags is left out.
    """

    name = "infinitebench"
    version = 2
    score_fields = ("infinitebench_score",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Apply the rule of the task to each accepted answer."""
        task = re.sub(r"_en$", "_eng", task_of(original).lower())
        if task in _WITH_OPTIONS:
            return _score_choice(original, processed)
        if task not in RULES and task != "math_calc":
            return Scores(reason=f"{task!r} is not a task of InfiniteBench: set meta.task")
        golds = gold_answers(original)
        if not golds:
            return Scores(reason="no gold answer")
        response = response_text(processed)
        if task == "math_calc":
            value = _score_prefix(response, [part for gold in golds for part in gold])
        else:
            value = max(RULES[task](response, " ".join(gold)) for gold in golds)
        return Scores({"infinitebench_score": value})


def _score_choice(original: dict[str, Any], processed: dict[str, Any]) -> Scores:
    scores = MultipleChoiceAccuracy().score(original, processed)
    return Scores(
        {"infinitebench_score": scores["mc_accuracy"]} if scores else {},
        reason=scores.reason if isinstance(scores, Scores) else None,
        details=scores.details if isinstance(scores, Scores) else None,
    )
