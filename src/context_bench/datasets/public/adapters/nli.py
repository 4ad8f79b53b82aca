"""Inference: does a text entail a statement, contradict it, or say nothing of it? Evidence is kept as spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from context_bench.datasets.public.adapters import Page, Place, Span, Where, make_span, read_rows
from context_bench.datasets.public.adapters.summarization import list_outputs, split_input
from context_bench.types import Example

_CONTRACT_LABELS = {"entailment": "Entailment", "contradiction": "Contradiction", "notmentioned": "Not mentioned"}
_SCIFACT_LABELS = ("SUPPORT", "CONTRADICT")
NO_EVIDENCE = "NOT_ENOUGH_INFO"


def contract_nli(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """A contract and a statement on it; the authors' file is one record with all contracts."""
    if "documents" in record or "labels" in record:
        for document in record["documents"]:
            yield from _read_contract(document, record["labels"])
        return
    hypothesis, contract = split_input(record)
    labels = [_read_contract_label(label) for label in list_outputs(record)]
    if not labels:
        raise ValueError("no label; the test split of SCROLLS keeps them back")
    yield _make_example(record["id"], contract, hypothesis, labels)


def _read_contract(document: Mapping[str, Any], hypotheses: Mapping[str, Any]) -> Iterator[Example]:
    text = document["text"]
    for key, annotation in document["annotation_sets"][0]["annotations"].items():
        identity, hypothesis = f"{document['id']}-{key}", hypotheses[key]["hypothesis"]
        example = _make_example(identity, text, hypothesis, [_read_contract_label(annotation["choice"])])
        spans = [make_span(text, *document["spans"][number]) for number in annotation["spans"]]
        yield {**example, "evidence": spans, "meta": {"hypothesis": key, "document": document["id"]}}


def _make_example(identity: str | int, context: str, hypothesis: str, labels: list[str]) -> Example:
    question = f'Does the contract entail this statement, contradict it, or not mention it?\n\n"{hypothesis}"'
    return {"id": identity, "context": context, "question": question, "answer": labels[0], "answers": labels}


def _read_contract_label(label: str) -> str:
    known = _CONTRACT_LABELS.get(label.replace(" ", "").lower())
    if known is None:
        raise ValueError(f"unknown label {label!r}")
    return known


def scifact_claims(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """The claims, each with the abstracts that it cites: claims and corpus are files of their own.

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
        claim["documents"] = [_find_cited(corpus, str(number), row["id"]) for number in row["cited_doc_ids"]]
    yield from claims.values()


def _read_evidence(row: Mapping[str, Any]) -> Mapping[str, list[Mapping[str, Any]]]:
    if "evidence_doc_id" not in row and "evidence_label" not in row:
        found: Mapping[str, list[Mapping[str, Any]]] = row["evidence"]
        return found
    piece = {"sentences": row["evidence_sentences"], "label": row["evidence_label"]}
    return {str(row["evidence_doc_id"]): [piece]} if row["evidence_doc_id"] else {}


def _find_cited(corpus: Mapping[str, Mapping[str, Any]], number: str, claim: int) -> Mapping[str, Any]:
    if number not in corpus:
        raise ValueError(f"claim {claim} cites document {number}, which is not in the corpus")
    return corpus[number]


def scifact(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """A scientific claim and the abstracts that it cites; one without evidence is neither supported nor refuted."""
    page, sentences = Page(), {}
    for document in record["documents"]:
        page.add_paragraph(f"{document['title']}\n")
        sentences[str(document["doc_id"])] = [page.add(text.strip() + " ") for text in document["abstract"]]
    context = str(page).rstrip()
    labels = list(
        dict.fromkeys(_check_label(piece["label"]) for pieces in record["evidence"].values() for piece in pieces)
    )
    labels = labels or [NO_EVIDENCE]
    yield {
        "id": record["id"],
        "context": context,
        "question": f'Do these abstracts support this claim, or contradict it?\n\n"{record["claim"]}"',
        "answer": labels[0],
        "answers": labels,
        "evidence": _find_sentences(record["evidence"], sentences, context),
        "meta": {"gold_docs": list(record["evidence"])},
    }


def _check_label(label: str) -> str:
    if label not in _SCIFACT_LABELS:
        raise ValueError(f"unknown label {label!r}")
    return label


def _find_sentences(evidence: Mapping[str, Any], places: Mapping[str, list[Place]], context: str) -> list[Span]:
    chosen = {
        places[document][number]
        for document, pieces in evidence.items()
        for piece in pieces
        for number in piece["sentences"]
    }
    return [make_span(context, *place) for place in sorted(chosen)]
