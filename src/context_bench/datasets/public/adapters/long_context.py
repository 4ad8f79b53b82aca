"""Long contexts: LongBench, InfiniteBench, BABILong and MRCR. The question and its form depend on the task. For some
tasks the authors keep the question in the prompt, so here the adapter adds it.
"""

from __future__ import annotations

import json
import random
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from context_bench.datasets.public.adapters import Page, Where, make_example, make_span, read_either
from context_bench.types import Example
from context_bench.utils.tokens import DEFAULT_ENCODING, get_tokenizer


class Wording(NamedTuple):
    """The text before the record's own question (if it has one), and the form that the answer should have."""

    ask: str
    form: str


_BRIEF = Wording("", "Answer with the shortest phrase that answers the question, with no explanation.")
_BRIEF_ZH = Wording("", "请用尽量少的字直接回答，不要解释。")
_SUMMARY = "Answer with the summary only, on one page."
_LINE = Wording("Write the next line of this code.", "Answer with that line only, without a code fence or comment.")

LONGBENCH: dict[str, Wording] = {
    **dict.fromkeys(("narrativeqa", "multifieldqa_en", "hotpotqa", "2wikimqa", "musique"), _BRIEF),
    "qasper": Wording(
        "",
        'Answer in as few words as you can: "yes" or "no" where that is asked, "unanswerable" where the article '
        "does not say. No explanation.",
    ),
    "multifieldqa_zh": _BRIEF_ZH,
    "dureader": Wording("", "请根据文章简要回答，不要输出其他内容。"),
    "gov_report": Wording("Write a summary of this government report.", _SUMMARY),
    "qmsum": Wording("", "Answer in one paragraph."),
    "multi_news": Wording("Write a summary of all these news articles.", _SUMMARY),
    "vcsum": Wording("请总结这份会议记录。", "只输出总结。"),
    "trec": Wording(
        "The context shows questions with their types. What is the type of the one below?",
        "Answer with the type only, written as in the context.",
    ),
    "triviaqa": Wording(
        "Answer the question on the passage below. The context shows how others were answered.",
        "Answer with the answer only, on one line.",
    ),
    "samsum": Wording(
        "Summarize the dialogue below. The context shows how others were summarized.",
        "Answer with the summary only, on one line.",
    ),
    "lsht": Wording("判断下面这条新闻的类别，文中给出了一些例子。", "只输出类别名称。"),
    "passage_count": Wording(
        "Some paragraphs of the context may be repeated. How many different ones are there?",
        "Answer with the number only.",
    ),
    "passage_retrieval_en": Wording(
        "Below is a summary of one of the paragraphs. Which paragraph is it?", 'Answer in the form "Paragraph 1".'
    ),
    "passage_retrieval_zh": Wording("下面是其中一个段落的摘要。它出自哪个段落？", "只输出段落编号，例如“段落1”。"),
    "lcc": _LINE,
    "repobench-p": _LINE,
}

_NUMBER = "Answer with the number only."

INFINITEBENCH: dict[str, Wording] = {
    "passkey": Wording("", _NUMBER),
    "number_string": Wording("", _NUMBER),
    "kv_retrieval": Wording("", "Answer with the value only."),
    "longbook_sum_eng": Wording("Write a summary of this book.", "Answer with the summary only."),
    "longbook_qa_eng": Wording("", "Answer in as few words as you can, with no explanation."),
    "longbook_choice_eng": Wording("", "Answer with the letter of the right option only."),
    "longdialogue_qa_eng": Wording(
        "In this script one name was replaced by $$MASK$$ wherever it stood. Whose name is it?",
        "Answer with the name only.",
    ),
    "longbook_qa_chn": _BRIEF_ZH,
    "code_debug": Wording(
        "Exactly one function of this project was given an obvious error. Which one?",
        "Answer with the letter of the right option only.",
    ),
    "code_run": Wording("", "Answer with the number that is returned, and nothing else."),
    "math_find": Wording("", _NUMBER),
    "math_calc": Wording(
        "Work out the expression from left to right, and note the value after each number.",
        "Answer with the list of all these values only, the first number included.",
    ),
}
_WITH_OPTIONS = ("longbook_choice_eng", "code_debug")


def _join_question(wording: Wording, question: str) -> str:
    return "\n\n".join(part for part in (wording.ask, question) if part.strip())


def longbench(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """One of LongBench's tasks; those of LongBench-E are worded like the tasks of the same name."""
    wording = LONGBENCH[where.config.removesuffix("_e")]
    answers = record["answers"]
    meta = {"task": where.config, "length": record["length"], "language": record["language"]}
    if record["all_classes"]:
        meta["all_classes"] = list(record["all_classes"])
    question = _join_question(wording, read_either(record, "input", "question"))
    yield make_example(record["_id"], record["context"], question, answers, instruction=wording.form, meta=meta)


def infinitebench(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """One of InfiniteBench's tasks."""
    wording = INFINITEBENCH[where.config]
    given = record["answer"]
    answers = [str(each) for each in (given if isinstance(given, list) else [given])]
    identity, question = f"{where.config}-{record['id']}", _join_question(wording, record["input"])
    meta = {"task": where.config}
    example = make_example(identity, record["context"], question, answers, instruction=wording.form, meta=meta)
    if where.config in _WITH_OPTIONS:
        # The second answer of some records is the letter; the option itself is always the first.
        place = list(record["options"]).index(answers[0])
        example |= {"answers": answers[:1], "choices": list(record["options"]), "correct_letter": "ABCD"[place]}
    elif where.config == "math_calc":  # one answer with many parts, not many answers
        example |= {"answer": ", ".join(answers), "answers": [answers]}
    yield example


def babilong(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a task of bAbI whose sentences are scattered over a book."""
    length, task = where.config.split("-")
    identity, meta = f"babilong-{where.config}-{where.index}", {"task": task, "length": length}
    yield make_example(identity, record["input"], record["question"], [record["target"]], meta=meta)


def mrcr(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Ask for one of several similar replies in a long conversation: its last message is the question, the rest the
    context."""
    *history, last = json.loads(record["prompt"])
    prefix, answer = record["random_string_to_prepend"], record["answer"]
    page, places = Page(), []
    for message in history:
        page.add_paragraph(f"{message['role'].capitalize()}: ")
        place = page.add(message["content"])
        if message["content"] == answer.removeprefix(prefix):
            places.append(place)
    context = str(page)
    evidence = [make_span(context, *place) for place in places]
    meta = {"prefix": prefix, "n_needles": record["n_needles"]}
    yield make_example(f"mrcr-{where.index}", context, last["content"], [answer], evidence=evidence, meta=meta)


DEPTHS = 26
_SEED = 42
_COT = "Think step by step, then give the final answer alone on the last line."
_CHARACTER = "{CHAR}"


def nolima_books(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """Each book with the needles of the one set among the files."""
    sets = [path for path in paths if path.suffix == ".json"]
    if len(sets) != 1:
        raise ValueError(f"there must be one set of needles (got {len(sets)})")
    needles = json.loads(sets[0].read_text(encoding="utf-8"))
    for path in paths:
        if path.suffix == ".txt":
            yield {"book": path.stem, "text": path.read_text(encoding="utf-8"), "needles": needles}


class _Window(NamedTuple):
    """The lines at the start of a book, with the number of tokens up to the end of each."""

    lines: tuple[str, ...]
    ends: tuple[int, ...]

    def boundary(self, depth: float) -> int:
        """Return the line before which a needle at this depth is inserted."""
        return bisect_left((0, *self.ends), depth * self.ends[-1]) if self.ends else 0


@lru_cache(maxsize=4)
def _cut_window(text: str, tokens: int) -> _Window:
    """Cut as many whole lines as fit."""
    count = get_tokenizer(DEFAULT_ENCODING)
    lines: list[str] = []
    total = 0
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        total += count(line)
        if total > tokens:
            break
        lines.append(line)
    if not lines:
        raise ValueError(f"the first line of the book is longer than {tokens} tokens")
    return _Window(tuple(lines), tuple(accumulate(map(count, lines))))


def nolima(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Every needle, question, test and depth in one book."""
    needle_set, _, length = where.config.rpartition("-")
    tokens = int(length[:-1]) * 1000 if length.endswith("k") else int(length)
    window = _cut_window(record["text"], tokens)
    for needle in record["needles"]:
        for kind, question in needle["questions"].items():
            for test, given in needle["tests"].items():
                case = _Case(needle, kind, question, test, given)
                seed = _SEED + int(needle["id"][:4]) + where.index
                names = _draw_characters(needle["character_set"], seed)
                for step, name in enumerate(names):
                    example = case.example(window, step / (DEPTHS - 1), name)
                    example["id"] = f"{where.config}-{record['book']}-{example['id']}-{step}"
                    example["meta"] |= {"length": length, "book": record["book"]}
                    if needle_set == "cot":
                        example["instruction"] = _COT
                        example["meta"]["metric"] = "lastline_contains"
                    yield example


def _draw_characters(names: Sequence[str], seed: int) -> list[str]:
    """Draw the character of the needle, one for each depth."""
    draw = random.Random(seed).random  # the sequence of random() is the same on every version of Python
    return [names[int(draw() * len(names))] if names else "" for _ in range(DEPTHS)]


class _Case(NamedTuple):
    """One question about one needle, with the words that fill the blanks of both."""

    needle: Mapping[str, Any]
    kind: str
    question: str
    test: str
    given: Mapping[str, Any]

    def example(self, window: _Window, depth: float, name: str) -> Example:
        sentence = self._fill_template(self.needle["needle"], name).strip()
        place = window.boundary(depth)
        before = "".join(window.lines[:place])
        before += "\n" if before and not before.endswith("\n") else ""
        answers = [name] if _CHARACTER in self.needle["needle"] else list(self.given["gold_answers"])
        context = f"{before}{sentence}\n{''.join(window.lines[place:])}"
        evidence = [{"start": len(before), "end": len(before) + len(sentence), "text": sentence}]
        identity, question = f"{self.needle['id']}-{self.kind}-{self.test}", self._fill_template(self.question, name)
        meta = {"kind": self.kind, "depth": depth}
        return make_example(identity, context, question, answers, evidence=evidence, meta=meta)

    def _fill_template(self, template: str, name: str) -> str:
        for number, argument in enumerate(self.given["input_args"], 1):
            template = template.replace(f"{{{number}}}", argument)
        return template.replace(_CHARACTER, name)
