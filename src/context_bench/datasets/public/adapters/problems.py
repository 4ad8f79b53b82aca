"""Problems with an answer that can be compared, and instructions for checkers or a judge.

Answers to problems are numbers, formulas, spans of a passage, or BIG-Bench Hard's forms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from context_bench.datasets.public.adapters import Where, make_example
from context_bench.types import Example

Record = Mapping[str, Any]

_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*")
_BBH_ANSWER = 'Think step by step and end with "The answer is" and then'
_BBH_FORMS = {
    "boolean_expressions": "True or False",
    **dict.fromkeys(("causal_judgement", "navigate", "web_of_lies"), "Yes or No"),
    "sports_understanding": "yes or no",
    "formal_fallacies": "valid or invalid",
    **dict.fromkeys(("multistep_arithmetic_two", "object_counting"), "the number"),
    "dyck_languages": "the missing brackets, separated by spaces",
    "word_sorting": "the sorted words, separated by spaces",
}


def gsm8k(record: Record, where: Where) -> Iterator[Example]:
    """Return a word problem; the gold is the text after the last `####` of the solution."""
    _, marks, final = record["answer"].rpartition("####")
    if not marks:
        raise ValueError("'answer' has no line that starts with ####")
    yield _make_numeric(f"gsm8k-{where.index}", record["question"], final, reference=record["answer"])


def mgsm(record: Record, where: Where) -> Iterator[Example]:
    """One language of eleven; the number may come as text with commas."""
    identity = f"mgsm-{where.config}-{where.index}"
    yield _make_numeric(identity, record["question"], str(record["answer_number"]), meta={"language": where.config})


def _make_numeric(identity: str, question: str, number: str, **more: Any) -> Example:
    answer = number.replace(",", "").strip()
    return make_example(identity, "", question, [answer], **more)


def mgsm_tsv(paths: list[Path]) -> Iterator[Record]:
    """Read the authors' tables: a question and a number on each line, without a header or quotes."""
    for path in paths:
        with path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                question, tab, number = line.rstrip("\r\n").rpartition("\t")
                if tab:
                    yield {"question": question, "answer_number": number}


def math(record: Record, where: Where) -> Iterator[Example]:
    """MATH, whose gold is the last box of the solution, and MATH-500, which states it."""
    solution = record["solution"]
    stated = record["answer"] if where.name == "math-500" else last_boxed(solution)
    if not stated:
        raise ValueError(r"'solution' has no \boxed{} answer")
    subject = record["subject"] if where.name == "math-500" else record["type"]
    identity = record["unique_id"] if where.name == "math-500" else f"math-{where.config}-{where.index}"
    meta = {"subject": subject, "level": str(record["level"]).removeprefix("Level ")}
    yield make_example(identity, "", record["problem"], [stated], reference=solution, meta=meta)


def last_boxed(solution: str) -> str:
    r"""The content of the last `\boxed{}` or `\fbox{}`, braces matched; also of `\boxed 5`. Empty without one."""
    boxes = list(_BOX.finditer(solution))
    if not boxes:
        return ""
    start = boxes[-1].end()
    if solution[start : start + 1] != "{":
        return re.split(r"[\s$]", solution[start:], maxsplit=1)[0].rstrip(".,")
    depth = 0
    for place in range(start, len(solution)):
        if solution[place] in "{}" and solution[place - 1] != "\\":
            depth += 1 if solution[place] == "{" else -1
            if not depth:
                return solution[start + 1 : place].strip()
    return ""


def drop(record: Record, where: Where) -> Iterator[Example]:
    """Every annotator's answer counts; an answer is a tuple of spans, all of which must be given."""
    if "answers_spans" in record:  # this list has all annotators' spans: each is an answer
        golds = [[span] for span in record["answers_spans"]["spans"]]
    else:
        given = [record["answer"], *_read_rows(record["validated_answers"] or [])]
        golds = [gold for gold in map(_drop_gold, given) if gold]
    answers = [list(gold) for gold in dict.fromkeys(map(tuple, golds))]
    if not answers:
        raise ValueError("'answer' has neither a number nor spans nor a date")
    yield {
        "id": record["query_id"],
        "context": record["passage"],
        "question": record["question"],
        "answer": ", ".join(answers[0]),
        "answers": answers,
        "meta": {"section_id": record["section_id"]},
    }


def _drop_gold(answer: Mapping[str, Any]) -> list[str]:
    number = str(answer.get("number") or "").strip()
    spans = [str(span) for span in answer.get("spans") or [] if str(span).strip()]
    date = answer.get("date") or {}
    written = " ".join(str(date[key]).strip() for key in ("day", "month", "year") if str(date.get(key) or "").strip())
    return [number] if number else spans or ([written] if written else [])


def _read_rows(table: Sequence[Any] | Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a list of records, also from one record of lists at any depth."""
    if not isinstance(table, Mapping):
        return list(table)
    columns = {key: _read_rows(value) if isinstance(value, Mapping) else value for key, value in table.items()}
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def drop_files(paths: list[Path]) -> Iterator[Record]:
    """Return the authors' files: one object of passages, each with its questions; not all were validated."""
    for path in paths:
        for section, passage in json.loads(path.read_text(encoding="utf-8")).items():
            for pair in passage["qa_pairs"]:
                yield {"section_id": section, "passage": passage["passage"], "validated_answers": [], **pair}


def bbh(record: Record, where: Where) -> Iterator[Example]:
    """Return a problem of one of 27 tasks; the input contains all of it, including options."""
    task, target = where.config, record["target"].strip()
    form = _BBH_FORMS.get(task, "the letter of the option in brackets")
    yield {
        "id": f"bbh-{task}-{where.index}",
        "context": "",
        "question": record["input"],
        "answer": target,
        "answers": [target],
        "instruction": f"{_BBH_ANSWER} {form}.",
        "meta": {"task": task},
    }


def bbh_files(paths: list[Path]) -> Iterator[Record]:
    """Read the authors' files: a list of a task's examples, next to a canary."""
    for path in paths:
        yield from json.loads(path.read_text(encoding="utf-8"))["examples"]


_WITH_REFERENCE = {"math", "reasoning", "coding"}
"""The categories whose answers can be right or wrong: MT-Bench's judge is shown a reference for these alone."""

_TEMPERATURE = {"writing": 0.7, "roleplay": 0.7, "stem": 0.1, "humanities": 0.1}


def ifeval(record: Record, where: Where) -> Iterator[Example]:
    """Return a prompt with its instructions; the hub pads their arguments with nulls, which mean absent."""
    arguments = [{key: value for key, value in each.items() if value is not None} for each in record["kwargs"]]
    yield {
        "id": record["key"],
        "context": "",
        "question": record["prompt"],
        "instruction_id_list": list(record["instruction_id_list"]),
        "kwargs": arguments,
        "meta": {"weight": len(arguments)},  # instruction-level accuracy counts instructions, not prompts
    }


def alpaca_eval(record: Record, where: Where) -> Iterator[Example]:
    """Return a prompt with the baseline's answer, which replies are compared with; it is not a gold answer."""
    yield {
        "id": f"alpaca-eval-{where.index}",
        "context": "",
        "question": record["instruction"],
        "reference": record["output"],
        "meta": {"source": record["dataset"], "baseline": record["generator"]},
    }


def mt_bench(record: Record, where: Where) -> Iterator[Example]:
    """Two user messages, the second asked after the first is answered; the columns of three layouts."""
    prompts = "prompt" in record or "prompt_id" in record
    messages = record["prompt" if prompts else "turns"]
    category = record["category"]
    example: Example = {
        "id": record["prompt_id" if prompts else "question_id"],
        "context": "",
        "turns": [{"role": "user", "content": message} for message in messages],
        "meta": {"category": category, "temperature": _TEMPERATURE.get(category, 0.0)},
    }
    references = [text or "" for text in record["reference"] or ()]
    if category in _WITH_REFERENCE and any(text.strip() for text in references):
        example["reference"] = references
        example["answers"] = [references]  # one answer in two parts, one for each turn
    yield example


def mt_bench_files(paths: list[Path]) -> Iterator[Record]:
    """Return the authors' questions, with GPT-4's answers as references if their file exists."""
    questions: list[dict[str, Any]] = []
    answers: dict[Any, list[str]] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if "choices" in record:
                answers[record["question_id"]] = record["choices"][0]["turns"]
            else:
                questions.append(record)
    for question in questions:
        own = question.get("reference")
        yield {**question, "reference": answers.get(question.get("question_id"), own)}
