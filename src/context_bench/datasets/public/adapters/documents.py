"""Tasks on a document: summaries of news, dialogues, meetings, television episodes and reports, and inference.

Inference asks whether a text entails a statement, contradicts it, or says nothing about it. Evidence is kept as spans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from context_bench.datasets.public.adapters import Page, Place, Span, Where, make_example, make_span, read_rows
from context_bench.types import Example

_BETWEEN_ARTICLES = "|||||"
_REFERENCES = ("1", "2", "3")


def multi_news_lines(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """Return the authors' two text files, line by line: articles (`.src`) and summaries (`.tgt`)."""
    source, target = (next((path for path in paths if kind in path.suffixes), None) for kind in (".src", ".tgt"))
    if source is None or target is None:
        raise ValueError(f"no file with {'.src' if source is None else '.tgt'} in its name")
    with source.open(encoding="utf-8", newline="\n") as articles, target.open(encoding="utf-8", newline="\n") as texts:
        for document, summary in zip(articles, texts, strict=True):
            yield {"document": document.replace("NEWLINE_CHAR", "\n").strip(), "summary": summary.strip()}


def multi_news(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """News articles on one event."""
    parts = record["document"].split(_BETWEEN_ARTICLES)
    articles = [article.strip() for article in parts if article.strip()]
    summary = record["summary"].strip().removeprefix("–").strip()
    question = "Write a summary of what these news articles report."
    meta = {"n_docs": len(articles)}
    yield make_example(f"multi-news-{where.index}", "\n\n".join(articles), question, [summary], meta=meta)


def dialogsum_rows(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield one record per dialogue: the hub's test rows `test_0_1` to `test_0_3` are summaries of the same one."""
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
    """Return a dialogue of daily life, with all its reference summaries."""
    if "fname" in record:
        identity = record["fname"]
        summaries, topics = _read_column(record, "summary"), _read_column(record, "topic")
    else:
        identity = record["id"]
        summaries, topics = _make_list(record["summary"]), _make_list(record["topic"])
    question = "Write a summary of this dialogue, in the third person."
    yield make_example(identity, record["dialogue"], question, summaries, meta={"topics": topics})


def _read_column(record: Mapping[str, Any], column: str) -> list[str]:
    """Return a column of the authors' files: one, or three in the test set."""
    return [record[column]] if column in record else [record[column + number] for number in _REFERENCES]


def _make_list(value: Any) -> list[str]:
    return list(value) if isinstance(value, list) else [value]


def qmsum(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a meeting and a query about it; a record of the authors' file is a meeting with all its queries."""
    if "meeting_transcripts" in record or "general_query_list" in record:
        yield from _read_meeting(record, where)
        return
    query, transcript = split_input(record)
    yield make_example(record["id"], transcript, query, list_outputs(record))


def _read_meeting(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    page, turns = Page(), []
    for turn in record["meeting_transcripts"]:
        page.add_paragraph(f"{turn['speaker']}: ", gap="\n")
        turns.append(page.add(turn["content"]))
    transcript = str(page)
    for kind in ("general", "specific"):
        for number, query in enumerate(record[f"{kind}_query_list"]):
            identity = f"qmsum-{where.config}-{where.index}-{kind}-{number}"
            evidence = _find_relevant(query["relevant_text_span"], turns, transcript) if kind == "specific" else []
            meta = {"kind": kind, "meeting": f"{where.config}-{where.index}"}
            answers = [query["answer"]]
            yield make_example(identity, transcript, query["query"], answers, evidence=evidence, meta=meta)


def _find_relevant(ranges: Sequence[Sequence[str]], turns: Sequence[Place], transcript: str) -> list[Span]:
    """Return the turns that a query is about, each as a separate span; ranges include their ends."""
    chosen = {number for first, last in ranges for number in range(int(first), int(last) + 1)}
    spans = [make_span(transcript, *turns[number]) for number in sorted(chosen) if number < len(turns)]
    return [each for each in spans if each["text"]]


def summscreenfd(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return the transcript of a television episode, with all its recaps."""
    question = "Write a recap of this television episode."
    yield make_example(record["id"], record["input"], question, list_outputs(record))


def meetingbank(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a segment of a city council's meeting."""
    question = "Write a summary of this part of a city council's meeting, as for its minutes."
    meta = {"uid": record["uid"]}
    yield make_example(record["id"], record["transcript"], question, [record["summary"]], meta=meta)


def govreport(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a long report of a government agency."""
    question = "Write a summary of this report, of about 550 words."
    yield make_example(f"govreport-{where.index}", record["report"], question, [record["summary"]])


# --- SCROLLS: rows with the same id are further references for one example. Where there is a query, it comes before
# the document in `input`.


def merge_rows(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield one record for each id, its `output` a list; records without an id (the authors' own layout) unchanged. If
    there are several files, they are copies, and the first is read.
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
    query, blank, document = record["input"].partition("\n\n")
    if not blank:
        raise ValueError("no blank line between query and document in 'input'")
    return query.strip(), document


def list_outputs(record: Mapping[str, Any]) -> list[str]:
    """List all references; the test split has none, because its answers are withheld."""
    given = record["output"]
    return [text for text in (given if isinstance(given, list) else [given]) if text]


_CONTRACT_LABELS = {"entailment": "Entailment", "contradiction": "Contradiction", "notmentioned": "Not mentioned"}
_SCIFACT_LABELS = ("SUPPORT", "CONTRADICT")
NO_EVIDENCE = "NOT_ENOUGH_INFO"


def contract_nli(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """Return a contract and a statement on it; the authors' file is one record with all contracts."""
    if "documents" in record or "labels" in record:
        for document in record["documents"]:
            yield from _read_contract(document, record["labels"])
        return
    hypothesis, contract = split_input(record)
    labels = [_read_contract_label(label) for label in list_outputs(record)]
    if not labels:
        raise ValueError("no label; the test split of SCROLLS withholds them")
    yield _make_inference(record["id"], contract, hypothesis, labels)


def _read_contract(document: Mapping[str, Any], hypotheses: Mapping[str, Any]) -> Iterator[Example]:
    text = document["text"]
    for key, annotation in document["annotation_sets"][0]["annotations"].items():
        identity, hypothesis = f"{document['id']}-{key}", hypotheses[key]["hypothesis"]
        example = _make_inference(identity, text, hypothesis, [_read_contract_label(annotation["choice"])])
        spans = [make_span(text, *document["spans"][number]) for number in annotation["spans"]]
        yield {**example, "evidence": spans, "meta": {"hypothesis": key, "document": document["id"]}}


def _make_inference(identity: str | int, context: str, hypothesis: str, labels: list[str]) -> Example:
    question = f'Does the contract entail this statement, contradict it, or not mention it?\n\n"{hypothesis}"'
    return make_example(identity, context, question, labels)


def _read_contract_label(label: str) -> str:
    known = _CONTRACT_LABELS.get(label.replace(" ", "").lower())
    if known is None:
        raise ValueError(f"unknown label {label!r}")
    return known


def scifact_claims(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """Return the claims, each with the abstracts that it cites: claims and corpus are separate files.

    The hub has a row for each piece of evidence; here they are put together, in the authors' layout.
    """
    rows = list(read_rows({path.name: path for path in reversed(paths)}.values()))  # of copies the first
    corpus = {str(row["doc_id"]): row for row in rows if "abstract" in row or "title" in row}
    claims: dict[int, dict[str, Any]] = {}
    for row in rows:
        if "abstract" in row or "title" in row:
            continue
        new = {key: row[key] for key in ("id", "claim", "cited_doc_ids")}
        claim = claims.setdefault(row["id"], {**new, "evidence": {}})
        for document, pieces in _read_evidence(row).items():
            claim["evidence"].setdefault(document, []).extend(pieces)
        cited = [str(number) for number in row["cited_doc_ids"]]
        for number in cited:
            if number not in corpus:
                raise ValueError(f"claim {row['id']} cites document {number}, which is not in the corpus")
        claim["documents"] = [corpus[number] for number in cited]
    yield from claims.values()


def _read_evidence(row: Mapping[str, Any]) -> Mapping[str, list[Mapping[str, Any]]]:
    if "evidence_doc_id" not in row and "evidence_label" not in row:
        found: Mapping[str, list[Mapping[str, Any]]] = row["evidence"]
        return found
    piece = {"sentences": row["evidence_sentences"], "label": row["evidence_label"]}
    return {str(row["evidence_doc_id"]): [piece]} if row["evidence_doc_id"] else {}


def scifact(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """A scientific claim and the abstracts that it cites; one without evidence is neither supported nor refuted."""
    page, sentences = Page(), {}
    for document in record["documents"]:
        page.add_paragraph(f"{document['title']}\n")
        sentences[str(document["doc_id"])] = [page.add(text.strip() + " ") for text in document["abstract"]]
    context = str(page).rstrip()
    pieces = [(document, piece) for document, found in record["evidence"].items() for piece in found]
    labels = list(dict.fromkeys(piece["label"] for _, piece in pieces))
    if unknown := [label for label in labels if label not in _SCIFACT_LABELS]:
        raise ValueError(f"unknown label {unknown[0]!r}")
    question = f'Do these abstracts support this claim, or contradict it?\n\n"{record["claim"]}"'
    chosen = {sentences[document][number] for document, piece in pieces for number in piece["sentences"]}
    evidence = [make_span(context, *place) for place in sorted(chosen)]
    meta = {"gold_docs": list(record["evidence"])}
    yield make_example(record["id"], context, question, labels or [NO_EVIDENCE], evidence=evidence, meta=meta)
