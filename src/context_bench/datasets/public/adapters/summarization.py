"""Summaries: of news, dialogues, meetings, television episodes and reports; of a meeting also what a query asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from context_bench.datasets.public.adapters import Page, Place, Span, Where, make_span, read_rows
from context_bench.types import Example

_BETWEEN_ARTICLES = "|||||"
_REFERENCES = ("1", "2", "3")


def _make_example(identity: str | int, context: str, question: str, answers: Sequence[str]) -> Example:
    return {
        "id": identity,
        "context": context,
        "question": question,
        "answer": answers[0] if answers else "",
        "answers": list(answers),
    }


def multi_news_lines(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """The authors' two text files, line by line: articles (`.src`) and summaries (`.tgt`)."""
    source, target = (_find_one(paths, kind) for kind in (".src", ".tgt"))
    with source.open(encoding="utf-8", newline="\n") as articles, target.open(encoding="utf-8", newline="\n") as texts:
        for document, summary in zip(articles, texts, strict=True):
            yield {"document": document.replace("NEWLINE_CHAR", "\n").strip(), "summary": summary.strip()}


def _find_one(paths: Sequence[Path], kind: str) -> Path:
    for path in paths:
        if kind in path.suffixes:
            return path
    raise ValueError(f"no file with {kind} in its name")


def multi_news(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """News articles on one event."""
    parts = record["document"].split(_BETWEEN_ARTICLES)
    articles = [article.strip() for article in parts if article.strip()]
    summary = record["summary"].strip().removeprefix("–").strip()
    question = "Write a summary of what these news articles report."
    example = _make_example(f"multi-news-{where.index}", "\n\n".join(articles), question, [summary])
    yield {**example, "meta": {"n_docs": len(articles)}}


def dialogsum_rows(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """One record for each dialogue: the hub's test rows `test_0_1` to `test_0_3` are three summaries of one."""
    dialogues: dict[str, dict[str, Any]] = {}
    for row in read_rows(paths[:1]):  # of copies in several layouts the first
        if not {"id", "summary", "topic"} <= row.keys():  # the authors' layout, or for the adapter to complain of
            yield row
            continue
        identity = re.sub(r"^(test_\d+)_\d+$", r"\1", row["id"])
        known = dialogues.setdefault(identity, {**row, "id": identity, "summary": [], "topic": []})
        for column in ("summary", "topic"):
            known[column].append(row[column])
    yield from dialogues.values()


def dialogsum(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """A dialogue of daily life, with all its reference summaries."""
    if "fname" in record:
        identity = record["fname"]
        summaries, topics = _read_column(record, "summary"), _read_column(record, "topic")
    else:
        identity = record["id"]
        summaries, topics = _make_list(record["summary"]), _make_list(record["topic"])
    question = "Write a summary of this dialogue, in the third person."
    yield {**_make_example(identity, record["dialogue"], question, summaries), "meta": {"topics": topics}}


def _read_column(record: Mapping[str, Any], column: str) -> list[str]:
    """A column of the authors' files: one, or three in the test set."""
    return [record[column]] if column in record else [record[column + number] for number in _REFERENCES]


def _make_list(value: Any) -> list[str]:
    return list(value) if isinstance(value, list) else [value]


def qmsum(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """A meeting and a query about it; a record of the authors' file is a meeting with all its queries."""
    if "meeting_transcripts" in record or "general_query_list" in record:
        yield from _read_meeting(record, where)
        return
    query, transcript = split_input(record)
    yield _make_example(record["id"], transcript, query, list_outputs(record))


def _read_meeting(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    page, turns = Page(), []
    for turn in record["meeting_transcripts"]:
        page.add_paragraph(f"{turn['speaker']}: ", gap="\n")
        turns.append(page.add(turn["content"]))
    transcript = str(page)
    for kind in ("general", "specific"):
        for number, query in enumerate(record[f"{kind}_query_list"]):
            identity = f"qmsum-{where.config}-{where.index}-{kind}-{number}"
            example = _make_example(identity, transcript, query["query"], [query["answer"]])
            evidence = _find_relevant(query["relevant_text_span"], turns, transcript) if kind == "specific" else []
            yield {**example, "evidence": evidence, "meta": {"kind": kind, "meeting": f"{where.config}-{where.index}"}}


def _find_relevant(ranges: Sequence[Sequence[str]], turns: Sequence[Place], transcript: str) -> list[Span]:
    """The turns that a query is about, each a span of its own; the ranges include their ends."""
    chosen = {number for first, last in ranges for number in range(int(first), int(last) + 1)}
    spans = [make_span(transcript, *turns[number]) for number in sorted(chosen) if number < len(turns)]
    return [each for each in spans if each["text"]]


def summscreenfd(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """The transcript of a television episode, with all its recaps."""
    question = "Write a recap of this television episode."
    yield _make_example(record["id"], record["input"], question, list_outputs(record))


def meetingbank(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """A segment of a city council's meeting."""
    question = "Write a summary of this part of a city council's meeting, as for its minutes."
    example = _make_example(record["id"], record["transcript"], question, [record["summary"]])
    yield {**example, "meta": {"uid": record["uid"]}}


def govreport(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """A long report of a government agency."""
    question = "Write a summary of this report, of about 550 words."
    yield _make_example(f"govreport-{where.index}", record["report"], question, [record["summary"]])


# --- SCROLLS: rows with the same id are further references for one example. Where there is a query, it comes before
# the document in `input`.


def merge_rows(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield one record for each id, its `output` a list; records without an id (the authors' own layout) as they are.

    Of several files, which are copies of one another, the first is read.
    """
    merged_rows: dict[Any, dict[str, Any]] = {}
    for row in read_rows(paths[:1]):
        if "id" not in row or "output" not in row:
            yield row
        elif row["id"] in merged_rows:
            merged_rows[row["id"]]["output"].append(row["output"])
        else:
            merged_rows[row["id"]] = {**row, "output": [row["output"]]}
    yield from merged_rows.values()


def split_input(record: Mapping[str, Any]) -> tuple[str, str]:
    """Split `input` into its two parts."""
    query, blank, document = record["input"].partition("\n\n")
    if not blank:
        raise ValueError("no blank line between query and document in 'input'")
    return query.strip(), document


def list_outputs(record: Mapping[str, Any]) -> list[str]:
    """List all references; the test split, whose answers are kept back, has none."""
    given = record["output"]
    return [text for text in (given if isinstance(given, list) else [given]) if text]
