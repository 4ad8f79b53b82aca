"""Scores of long-context benchmarks by the rules of their authors: LongBench, InfiniteBench, MRCR, NoLiMa."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from rapidfuzz import fuzz

from context_bench.evaluators.choice import MultipleChoiceAccuracy
from context_bench.evaluators.rouge import lcs_rows, rouge_lsum
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, normalize_answer, response_text, token_f1

Rule = Callable[[str, str, Sequence[str]], float]

_CHINESE_PUNCTUATION = (
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、"
    "〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏"
)
_DROPPED = str.maketrans("", "", string.punctuation + _CHINESE_PUNCTUATION + string.whitespace + "\u3000\u00a0")
_CHINESE_TOKEN = re.compile(r"[A-Za-z0-9]+|\S")


def qa_f1(prediction: str, gold: str) -> float:
    """Return the F1 of the words that two answers share, after SQuAD's normalisation."""
    return token_f1(normalize_answer(prediction).split(), normalize_answer(gold).split())[0]


def chinese_f1(prediction: str, gold: str, tokens: re.Pattern[str] = _CHINESE_TOKEN) -> float:
    """Return the F1 of the characters that two answers share, without punctuation."""
    texts = [tokens.findall(text.lower()) for text in (prediction, gold)]
    return token_f1(*([kept for token in text if (kept := token.translate(_DROPPED))] for text in texts))[0]


def rouge_l_sets(prediction: str, gold: str) -> float:
    """Return ROUGE-L as in the PyPI package `rouge`: sentences end at full stops, each distinct word counts once."""
    sentences = [[" ".join(part.split()).split(" ") for part in text.split(".") if part] for text in (prediction, gold)]
    predicted, wanted = sentences
    if not predicted or not wanted:
        return 0.0
    hits = {word for line in wanted for other in predicted for word in _find_common_words(line, other)}
    precision = len(hits) / len({word for line in predicted for word in line})
    recall = len(hits) / len({word for line in wanted for word in line})
    return 2 * precision * recall / (precision + recall + 1e-8)


def _find_common_words(reference: Sequence[str], prediction: Sequence[str]) -> set[str]:
    """Return the words of one longest common subsequence; a tie drops a word of the prediction, as in `rouge`."""
    rows, found = lcs_rows(reference, prediction), set()
    i, j = len(reference), len(prediction)
    while i and j:
        if reference[i - 1] == prediction[j - 1]:
            found.add(reference[i - 1])
            i, j = i - 1, j - 1
        elif rows[i - 1] >> (j - 1) & 1:
            i -= 1
        else:
            j -= 1
    return found


def _space_tokens(text: str) -> str:
    return " ".join(_CHINESE_TOKEN.findall(text))


def _score_numbers(prediction: str, wanted: str) -> float:
    numbers = re.findall(r"\d+", prediction)
    return numbers.count(wanted) / len(numbers) if numbers else 0.0


def _make_retrieval_rule(pattern: str) -> Rule:
    def rule(prediction: str, gold: str, classes: Sequence[str]) -> float:  # noqa: ARG001
        wanted = re.search(pattern, gold)
        return _score_numbers(prediction, wanted[1]) if wanted else 0.0

    return rule


def _score_classes(prediction: str, gold: str, classes: Sequence[str]) -> float:
    found = [name for name in classes if name in prediction]
    place = 0
    while place < len(found):  # the published loop passes over the name after one that it drops; so do we
        if found[place] in gold and found[place] != gold:
            del found[place]
        place += 1
    return 1 / len(found) if gold in found else 0.0


def _score_code(prediction: str, gold: str) -> float:
    lines = prediction.lstrip("\n").split("\n")
    first = next((line for line in lines if not any(mark in line for mark in ("`", "#", "//"))), "")
    return round(fuzz.ratio(first, gold)) / 100


def _make_plain_rule(rule: Callable[[str, str], float]) -> Rule:
    return lambda prediction, gold, classes: rule(prediction, gold)  # noqa: ARG005


_QA, _ROUGE, _CODE = _make_plain_rule(qa_f1), _make_plain_rule(rouge_l_sets), _make_plain_rule(_score_code)
_ROUGE_ZH = _make_plain_rule(lambda prediction, gold: rouge_l_sets(_space_tokens(prediction), _space_tokens(gold)))

LONGBENCH_RULES: dict[str, Rule] = {
    **dict.fromkeys(("narrativeqa", "qasper", "multifieldqa_en", "hotpotqa", "2wikimqa", "musique", "triviaqa"), _QA),
    "multifieldqa_zh": _make_plain_rule(chinese_f1),
    **dict.fromkeys(("gov_report", "qmsum", "multi_news", "samsum"), _ROUGE),
    **dict.fromkeys(("dureader", "vcsum"), _ROUGE_ZH),
    **dict.fromkeys(("trec", "lsht"), _score_classes),
    "passage_retrieval_en": _make_retrieval_rule(r"Paragraph (\d+)"),
    "passage_retrieval_zh": _make_retrieval_rule(r"段落(\d+)"),
    "passage_count": _make_plain_rule(_score_numbers),
    **dict.fromkeys(("lcc", "repobench-p"), _CODE),
}
_FIRST_LINE_ONLY = ("trec", "triviaqa", "samsum", "lsht")


def task_of(example: Mapping[str, Any]) -> str:
    """Return the task that an example belongs to: `meta.task`, or what follows the colon of its dataset tag."""
    meta = example.get("meta")
    task = meta.get("task") if isinstance(meta, Mapping) else None
    return str(task or str(example.get("dataset") or "").partition(":")[2])


class LongBenchScore:
    """Scores `longbench_score` by the rule of the example's task, the best over its answers.

    Tasks of LongBench-E (`hotpotqa_e`) follow the rules of the tasks of the same name. Classification needs the list of
    classes in `meta.all_classes`. Reasoning in think tags is left out.

    There are two differences from the published script, to avoid the packages that it needs. Chinese text is cut into
    characters (and runs of Latin letters and digits) instead of jieba's words, so Chinese scores are comparable between
    systems but not with published ones. Edit similarity is the Levenshtein ratio, as in the script with
    python-Levenshtein installed. If the script's ROUGE-L gives up on long sentences and scores 0, the true value is
    used here.
    """

    name = "longbench"
    version = 2
    score_fields = ("longbench_score",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        task = task_of(original).lower().removesuffix("_e")
        rule = LONGBENCH_RULES.get(task)
        golds = [" ".join(gold) for gold in gold_answers(original)]
        meta = original.get("meta")
        classes = (meta.get("all_classes") if isinstance(meta, Mapping) else None) or original.get("all_classes") or ()
        if rule is None:
            return Scores(reason=f"{task!r} is not a task of LongBench: set meta.task")
        if not golds:
            return Scores(reason="no gold answer")
        if rule is _score_classes and not classes:
            return Scores(reason="no meta.all_classes")
        response = response_text(processed)
        if task in _FIRST_LINE_ONLY:
            response = response.lstrip("\n").split("\n")[0]
        return Scores({"longbench_score": max(rule(response, gold, classes) for gold in golds)})


_CHARACTER = re.compile(r"\S")
_STOPS = re.compile(r"[\n:\"'.,?!{}]")


def _match_first_integer(response: str, gold: str) -> float:
    number = re.search(r"[0-9]+", response)
    return float(number is not None and number[0] == gold)


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
    """Return the share of a list of numbers before the first wrong number."""
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


INFINITEBENCH_RULES: dict[str, Callable[[str, str], float]] = {
    "passkey": _match_first_integer,
    "number_string": _match_first_integer,
    "kv_retrieval": lambda response, gold: float(gold in _STOPS.sub(" ", response).split()),
    "longdialogue_qa_eng": lambda response, gold: float(
        gold in (word.upper() for word in _STOPS.sub(" ", response).split())
    ),
    "longbook_qa_eng": qa_f1,
    "longbook_qa_chn": lambda response, gold: chinese_f1(response, gold, _CHARACTER),
    "longbook_sum_eng": lambda response, gold: rouge_lsum(response, gold).f1,
    "code_run": _match_last_word,
    "math_find": _match_first_number,
}
_WITH_OPTIONS = ("longbook_choice_eng", "code_debug")


class InfiniteBenchScore:
    """Scores `infinitebench_score` by the rule of the example's task, the best over its answers.

    The English tasks may be spelled `_en` or `_eng`. The answer of math_calc is the whole list of numbers. Reasoning in
    think tags is left out. For the two tasks with options (En.MC, Code.Debug) the chosen letter is read as in multiple
    choice. The published script prefers the first character of the reply, so it reads "Answer: C" as A.
    """

    name = "infinitebench"
    version = 2
    score_fields = ("infinitebench_score",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        task = re.sub(r"_en$", "_eng", task_of(original).lower())
        if task in _WITH_OPTIONS:
            return _score_choice(original, processed)
        if task not in INFINITEBENCH_RULES and task != "math_calc":
            return Scores(reason=f"{task!r} is not a task of InfiniteBench: set meta.task")
        golds = gold_answers(original)
        if not golds:
            return Scores(reason="no gold answer")
        response = response_text(processed)
        if task == "math_calc":
            value = _score_prefix(response, [part for gold in golds for part in gold])
        else:
            value = max(INFINITEBENCH_RULES[task](response, " ".join(gold)) for gold in golds)
        return Scores({"infinitebench_score": value})


def _score_choice(original: dict[str, Any], processed: dict[str, Any]) -> Scores:
    scores = MultipleChoiceAccuracy().score(original, processed)
    return Scores(
        {"infinitebench_score": scores["mc_accuracy"]} if scores else {},
        reason=scores.reason if isinstance(scores, Scores) else None,
        details=scores.details if isinstance(scores, Scores) else None,
    )


class MRCRScore:
    """Scores `mrcr_score`: the ratio of Python's SequenceMatcher, or 0 unless the reply begins with `meta.prefix`."""

    name = "mrcr"
    version = 2
    score_fields = ("mrcr_score",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = [" ".join(gold) for gold in gold_answers(original)]
        meta = original.get("meta")
        prefix = meta.get("prefix") if isinstance(meta, Mapping) else None
        if not golds:
            return Scores(reason="no gold answer")
        if not prefix:
            return Scores(reason="no meta.prefix")
        response = response_text(processed)
        if not response.startswith(prefix):
            return Scores({"mrcr_score": 0.0})
        given = response.removeprefix(prefix)
        ratios = (SequenceMatcher(None, given, gold.removeprefix(prefix)).ratio() for gold in golds)
        return Scores({"mrcr_score": max(ratios)})


NOLIMA_RULES = ("contains", "EM", "lastline_contains", "lastline_EM")


class NoLiMaScore:
    """Scores `nolima_score` by the published rule in `meta.metric`: `contains` unless another is named.

    Case matters. `EM` requires that the whole reply is an answer; the `lastline_` rules, for chains of thought, read
    only the last line.
    """

    name = "nolima"
    version = 2
    score_fields = ("nolima_score",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = [" ".join(gold) for gold in gold_answers(original)]
        meta = original.get("meta")
        rule = str(meta.get("metric") or NOLIMA_RULES[0]) if isinstance(meta, Mapping) else NOLIMA_RULES[0]
        if not golds:
            return Scores(reason="no gold answer")
        if rule not in NOLIMA_RULES:
            return Scores(reason=f"meta.metric must be one of {', '.join(NOLIMA_RULES)} (got {rule!r})")
        response = response_text(processed).strip()
        if rule.startswith("lastline_"):
            response = response.split("\n")[-1]
        found = response in golds if rule.endswith("EM") else any(gold in response for gold in golds)
        return Scores({"nolima_score": float(found)})
