"""Multiple choice: options in the order in which they are shown, and the letter of the right one.

Where the source always puts the right option first (TruthfulQA, GPQA) the order is drawn from the record
itself. A record without its answer (a hidden test split) is an error, never a guess.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from context_bench.datasets.public.adapters import Where, permutation
from context_bench.types import Example

Record = Mapping[str, Any]

_PLACES = {letter: place for place, letter in enumerate(ascii_uppercase)}
_LETTER_ONLY = "Answer with the letter of the correct option only."
_NO_COMMENT = "I have no comment."
_MARK = re.compile(r"\s*\[(?:header|title|step|substeps)\]\s*")


def _make_choice(identity: str | int, question: str, options: Sequence[str], right: int, **more: Any) -> Example:
    """Return a multiple-choice example; `right` is the place of the correct option."""
    if not 0 <= right < len(options) <= len(ascii_uppercase):
        raise ValueError(f"the right option is number {right + 1} of {len(options)}: there is no such letter")
    return {
        "id": identity,
        "context": "",
        "question": question,
        "choices": list(options),
        "correct_letter": ascii_uppercase[right],
        "answer": options[right],
        **more,
    }


def _place(label: Any, column: str, first: int = 0) -> int:
    try:
        return int(label) - first
    except (TypeError, ValueError):
        raise _explain_hidden(label, column) from None


def _place_of(letter: Any, column: str) -> int:
    if letter not in _PLACES:
        raise _explain_hidden(letter, column)
    return _PLACES[letter]


def _explain_hidden(label: Any, column: str) -> ValueError:
    return ValueError(f"{column!r} is {label!r}: a split without its answers?")


def mmlu(record: Record, where: Where) -> Iterator[Example]:
    """`answer` is a number from 0."""
    meta = {"subject": record["subject"]}
    right = _place(record["answer"], "answer")
    yield _make_choice(f"mmlu-{where.index}", record["question"], record["choices"], right, meta=meta)


def mmlu_csv(paths: list[Path]) -> Iterator[Record]:
    """Return the authors' files, one for each subject: question, four options and a letter, without a header."""
    for path in paths:
        subject = re.sub(r"_(?:test|val|dev)$", "", path.stem)
        with path.open(encoding="utf-8", newline="") as source:
            for question, *choices, letter in csv.reader(source):
                answer = _place_of(letter.strip(), "the last column")
                yield {"question": question, "subject": subject, "choices": choices, "answer": answer}


def mmlu_pro(record: Record, where: Where) -> Iterator[Example]:
    """Three to ten options."""
    right = _place_of(record["answer"], "answer")
    meta = {"category": record["category"], "source": record["src"]}
    yield _make_choice(record["question_id"], record["question"], record["options"], right, meta=meta)


def arc_challenge(record: Record, where: Where) -> Iterator[Example]:
    """Read either layout; labels may be letters or numbers, and are replaced by letters."""
    question = record["question"]
    given = question["choices"] if isinstance(question, Mapping) else record["choices"]
    if isinstance(given, Mapping):
        texts, labels = list(given["text"]), list(given["label"])
    else:
        texts, labels = [each["text"] for each in given], [each["label"] for each in given]
    stem = question["stem"] if isinstance(question, Mapping) else question
    key = record["answerKey"]
    if key not in labels:
        raise ValueError(f"'answerKey' is {key!r}, and the labels are {', '.join(map(str, labels))}")
    yield _make_choice(record["id"], stem, texts, labels.index(key), meta={"label": key})


def truthfulqa(record: Record, where: Where) -> Iterator[Example]:
    """`multiple_choice`: MC1, in an order drawn from the question; `generation`: all true answers."""
    identity = f"truthfulqa-{where.index}"
    if where.config == "multiple_choice":
        yield _make_truthful_choice(identity, record)
    else:
        yield _make_truthful_answer(identity, record)


def _make_truthful_choice(identity: str, record: Record) -> Example:
    targets = record["mc1_targets"]
    if "labels" in targets and isinstance(targets["labels"], Sequence):
        choices, labels = list(targets["choices"]), list(targets["labels"])
    else:
        choices, labels = list(targets), list(targets.values())
    order = permutation(record["question"], len(choices))
    options, right = [choices[place] for place in order], order.index(labels.index(1))
    return _make_choice(identity, record["question"], options, right, instruction=_LETTER_ONLY)


def _make_truthful_answer(identity: str, record: Record) -> Example:
    """Read the hub's columns, or those of the authors' table, where one cell holds all answers of a kind."""
    if "Question" in record:
        columns = ("Question", "Type", "Category", "Best Answer", "Correct Answers", "Incorrect Answers")
        cells = {column.lower().replace(" ", "_"): record[column] for column in columns}
        record = {key: _split_cell(cell) if key.endswith("answers") else cell for key, cell in cells.items()}
    true = [record["best_answer"], *record["correct_answers"], _NO_COMMENT]
    return {
        "id": identity,
        "context": "",
        "question": record["question"],
        "answer": record["best_answer"],
        "answers": list(dict.fromkeys(true)),
        "meta": {key: record[key] for key in ("category", "type")} | {"incorrect": list(record["incorrect_answers"])},
    }


def _split_cell(cell: str) -> list[str]:
    return [item for part in cell.split(";") if (item := part.strip())]


def gpqa(record: Record, where: Where) -> Iterator[Example]:
    """Return a record whose right answer has its own column; the order is drawn from the record's id."""
    columns = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
    texts = [record[column].strip() for column in columns]
    order = permutation(record["Record ID"], len(texts))
    # By place and not by text: two options may read alike.
    options, right = [texts[place] for place in order], order.index(0)
    meta = {"domain": record["High-level domain"], "subdomain": record["Subdomain"]}
    yield _make_choice(record["Record ID"], record["Question"].strip(), options, right, meta=meta)


def hellaswag(record: Record, where: Where) -> Iterator[Example]:
    """Return four endings of a text, without the marks of WikiHow's layout."""
    question = f"{record['activity_label']}: {_remove_marks(record['ctx'])}"
    endings = [_remove_marks(ending) for ending in record["endings"]]
    meta = {"source_id": record["source_id"], "split_type": record["split_type"]}
    # `ind` repeats across sources.
    yield _make_choice(f"hellaswag-{where.index}", question, endings, _place(record["label"], "label"), meta=meta)


def _remove_marks(text: str) -> str:
    return " ".join(_MARK.sub(" ", text).split())


def winogrande(record: Record, where: Where) -> Iterator[Example]:
    """Two fillers for the blank of a sentence."""
    options = [record["option1"], record["option2"]]
    right = _place(record["answer"], "answer", first=1)
    yield _make_choice(f"winogrande-{where.index}", record["sentence"], options, right)


def quality(record: Record, where: Where) -> Iterator[Example]:
    """Return a question about a long article; the authors' files hold all questions of an article together."""
    for item in record.get("questions", [record]):
        meta = {"title": record["title"], "article_id": record["article_id"], "difficult": bool(item["difficult"])}
        right = _place(item["gold_label"], "gold_label", first=1)
        identity, context = item["question_unique_id"], record["article"]
        yield _make_choice(identity, item["question"], item["options"], right, meta=meta) | {"context": context}


def quality_lines(paths: list[Path]) -> Iterator[Record]:
    """Return the authors' files: one article a line, in files whose names do not say so."""
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def longbench_v2(record: Record, where: Where) -> Iterator[Example]:
    """Four options in a fixed order, in four columns or in a list."""
    options = record["choices"] if "choices" in record else [record[f"choice_{letter}"] for letter in "ABCD"]
    meta = {key: record[key] for key in ("domain", "sub_domain", "difficulty", "length")}
    right = _place_of(record["answer"], "answer")
    yield _make_choice(record["_id"], record["question"], options, right, meta=meta) | {"context": record["context"]}
