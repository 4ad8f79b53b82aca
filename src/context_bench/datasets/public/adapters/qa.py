"""Question answering: one question, every accepted answer, and the passages with the answer if the source has them.

Evidence is kept as spans of the context that is built here, so that its survival can be measured.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from context_bench.datasets.public.adapters import Page, Span, Where, make_documents, make_example, make_span
from context_bench.types import Example

UNANSWERABLE = "unanswerable"


def _drop_repeats(texts: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text and text.strip()))


def _read_pairs(value: Any, first: str, second: str) -> list[tuple[Any, Any]]:
    """Read pairs from a dict of two lists (the hub), or from a list of pairs (the authors' file)."""
    if isinstance(value, Mapping):
        return list(zip(value[first], value[second]))
    return [(one, other) for one, other in value]


def hotpotqa(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Ten paragraphs, two of which are needed; also the layout of 2WikiMultihopQA."""
    facts = set(_read_pairs(record["supporting_facts"], "title", "sent_id"))
    page, places, paragraphs = Page(), [], []
    for title, sentences in _read_pairs(record["context"], "title", "sentences"):
        start, _ = page.add_paragraph(f"{title}\n")
        for number, sentence in enumerate(sentences):
            place = page.add(sentence)
            if (title, number) in facts:
                places.append(place)
        paragraphs.append((title, start, len(page)))
    context = str(page)
    meta = {key: record[key] for key in ("type", "level") if key in record}
    # A retrieved context, or a wrong sentence number in the source, may leave some out.
    meta |= {"supporting_facts": len(facts), "supporting_facts_found": len(places)}
    identity = record.get("id") or record.get("_id") or f"{where.name}-{where.config}-{where.index}"
    evidence = [span for span in (make_span(context, *place) for place in places) if span["text"]]
    more = {"evidence": evidence, **make_documents(context, paragraphs, evidence), "meta": meta}
    yield make_example(identity, context, record["question"], [record["answer"]], **more)


def natural_questions(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a search query with short answers; with the gold passage in the configuration `oracle`."""
    page = Page()
    if where.config == "oracle":
        for passage in record["ctxs"]:
            page.add_paragraph(f"{passage['title']}\n{passage['text']}")
        answers = record["answers"]
    else:
        answers = record["answer"]
    identity = f"{where.name}-{where.config}-{where.index}"
    yield make_example(identity, str(page), record["question"], _drop_repeats(answers)) | {"answer": answers[0]}


def musique(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Twenty paragraphs and a question of two to four hops; the full set has unanswerable twins."""
    page, places, paragraphs = Page(), [], []
    for paragraph in record["paragraphs"]:
        start, _ = page.add_paragraph(f"{paragraph['title']}\n")
        place = page.add(paragraph["paragraph_text"])
        paragraphs.append((paragraph["title"], start, len(page)))
        if paragraph["is_supporting"]:
            places.append(place)
    context, answerable = str(page), record["answerable"]
    answers = [record["answer"], *record["answer_aliases"]] if answerable else [UNANSWERABLE]
    evidence = [make_span(context, *place) for place in places]
    yield {
        "id": record["id"] if answerable else f"{record['id']}-{UNANSWERABLE}",  # twins share the source's id
        "context": context,
        "question": record["question"],
        "answer": answers[0],
        "answers": _drop_repeats(answers),
        "evidence": evidence,
        **make_documents(context, paragraphs, evidence),
        "meta": {"hops": int(record["id"][0]), "answerable": answerable, "type": record["id"].partition("__")[0]},
    } | _may_be_unanswerable(where.config == "full")


def _may_be_unanswerable(possible: bool) -> Example:
    form = "Answer with the shortest phrase that answers the question, with no explanation."
    return {"instruction": f'{form} If the text does not answer it, write "{UNANSWERABLE}".'} if possible else {}


def narrativeqa(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a question about a story, read in its summary or in full."""
    document = record["document"]
    context = document["text"] if where.config == "full" else document["summary"]["text"]
    answers = _drop_repeats(answer["text"] for answer in record["answers"])
    meta = {"document": document["id"], "kind": document["kind"]}
    yield make_example(f"{document['id']}-{where.index}", context, record["question"]["text"], answers, meta=meta)


def triviaqa(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a trivia question with the pages that were found for it, and all aliases of its answer."""
    answer = record["answer"]
    pages = _read_column(record["entity_pages"], "wiki_context")
    found = _read_column(record["search_results"], "search_context")
    if where.config != "rc.wikipedia":
        pages += found
    # The joint configurations have a question once for the web and once for Wikipedia.
    identity = record["question_id"] if where.config.startswith("rc.w") else f"{record['question_id']}-{where.index}"
    yield {
        "id": identity,
        "context": "" if where.config.endswith("nocontext") else "\n\n".join(page for page in pages if page),
        "question": record["question"],
        "answer": answer["value"],
        "answers": _drop_repeats([answer["value"], *answer["aliases"], *answer["normalized_aliases"]]),
        "meta": {"source": record["question_source"]},
    }


def _read_column(value: Any, name: str) -> list[str]:
    """Read one column of a nested table, which is a dict of lists or a list of dicts."""
    return list(value[name]) if isinstance(value, Mapping) else [item[name] for item in value]


def frames(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a question over several Wikipedia pages; the file names the pages and holds no text of them."""
    reasoning = [name.strip() for name in str(record["reasoning_types"]).split("|")]
    meta = {"links": _parse_list(record["wiki_links"]), "reasoning_types": reasoning}
    yield make_example(f"{where.name}-{where.index}", "", record["Prompt"], [record["Answer"]], meta=meta)


def _parse_list(text: Any) -> list[Any]:
    try:
        value = ast.literal_eval(text) if isinstance(text, str) else text
    except (ValueError, SyntaxError):
        return []
    return list(value) if isinstance(value, (list, tuple)) else []


def qasper(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return the questions about one paper, each with the answers of all its annotators."""
    page = Page()
    for text in (record["title"], record["abstract"]):
        page.add_paragraph(text)
    for name, paragraphs in _read_sections(record["full_text"]):
        for text in (name, *paragraphs):
            if text and text.strip():
                page.add_paragraph(text)
    context = str(page)
    for question, identity, given in _read_questions(record["qas"]):
        answers = _drop_repeats(_read_qasper_answer(answer) for answer in given)
        evidence, meta = _find_qasper_evidence(given, context), {"paper": record["id"]}
        yield make_example(identity, context, question, answers, evidence=evidence, meta=meta)


def _read_sections(full_text: Any) -> list[tuple[str | None, list[str]]]:
    if isinstance(full_text, Mapping):
        return list(zip(full_text["section_name"], full_text["paragraphs"]))
    return [(section["section_name"], section["paragraphs"]) for section in full_text]


def _read_questions(qas: Any) -> Iterator[tuple[str, str, list[Mapping[str, Any]]]]:
    """Yield (question, id, answers): they are columns on the hub, and objects in the authors' files."""
    if isinstance(qas, Mapping):
        for question, identity, answers in zip(qas["question"], qas["question_id"], qas["answers"]):
            yield question, identity, list(answers["answer"])
    else:
        for item in qas:
            yield item["question"], item["question_id"], [each["answer"] for each in item["answers"]]


def _read_qasper_answer(answer: Mapping[str, Any]) -> str | None:
    if answer["unanswerable"]:
        return "Unanswerable"
    if answer["extractive_spans"]:
        return ", ".join(answer["extractive_spans"])
    if answer["free_form_answer"]:
        return str(answer["free_form_answer"])
    # Last, since copies turn the null of the other kinds into false.
    return None if answer["yes_no"] is None else "Yes" if answer["yes_no"] else "No"


def _find_qasper_evidence(answers: Sequence[Mapping[str, Any]], context: str) -> list[Span]:
    """Return the sentences, else the paragraphs, marked by the first annotator whose marks are in the text."""
    for answer in answers:
        for texts in (answer["highlighted_evidence"], answer["evidence"]):
            found = [(context.find(text), text) for text in _drop_repeats(texts)]
            spans = [make_span(context, start, start + len(text)) for start, text in found if start >= 0]
            if spans:
                return spans
    return []


def qasper_papers(paths: list[Path]) -> Iterator[Any]:
    """Return the authors' file: one object of papers by id."""
    for path in paths:
        for identity, paper in json.loads(path.read_text(encoding="utf-8")).items():
            yield {"id": identity, **paper}


def squad(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a question about one paragraph; in version 2 it may have no answer there."""
    given = record["answers"]
    found = _read_pairs(given, "text", "answer_start") if isinstance(given, Mapping) else _read_texts_and_starts(given)
    answers = _drop_repeats(text for text, _ in found) or [UNANSWERABLE]
    evidence = [make_span(record["context"], start, start + len(text)) for text, start in found[:1]]
    meta = {"title": record["title"], "answerable": bool(found)}
    more = {"evidence": evidence, "meta": meta, **_may_be_unanswerable(where.name == "squad-v2")}
    yield make_example(record["id"], record["context"], record["question"], answers, **more)


def _read_texts_and_starts(answers: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    return [(answer["text"], answer["answer_start"]) for answer in answers]


def squad_articles(paths: list[Path]) -> Iterator[Any]:
    """Return the authors' file: articles, their paragraphs, and the questions of each."""
    for path in paths:
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                for item in paragraph["qas"]:
                    yield {"title": article["title"], "context": paragraph["context"], **item}


def simpleqa(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a short factual question without any context."""
    yield {
        "id": f"{where.name}-{where.index}",
        "context": "",
        "question": record["problem"],
        "answer": record["answer"],
        "answers": [record["answer"]],
        "meta": {"metadata": record["metadata"]},
    }
