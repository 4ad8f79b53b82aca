"""Inference, from records in the sources' own schemas to verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.errors import DataError, UsageError
from context_bench.types import Example
from public_cases import Case, load_case, needed_columns, primary, prompt_of, write_file

TEXT = "1. The Recipient keeps all secret. 2. The Recipient may tell its lawyers. 3. Norway's law rules."
SECRET, LAWYERS = (0, 34), (35, 73)
CONTRACT = {
    "documents": [
        {
            "id": 34,
            "file_name": "made.pdf",
            "text": TEXT,
            "spans": [SECRET, LAWYERS, (74, 96)],
            "annotation_sets": [
                {
                    "annotations": {
                        "nda-1": {"choice": "Entailment", "spans": [1]},
                        "nda-2": {"choice": "Contradiction", "spans": [0, 1]},
                        "nda-3": {"choice": "NotMentioned", "spans": []},
                    }
                }
            ],
            "document_type": "search-pdf",
            "url": "https://example.org",
        }
    ],
    "labels": {
        "nda-1": {"short_description": "Lawyers", "hypothesis": "Lawyers may be told."},
        "nda-2": {"short_description": "Nobody", "hypothesis": "Nobody may be told."},
        "nda-3": {"short_description": "Copies", "hypothesis": "Copies are to be burnt."},
    },
}
SCROLLS = {
    "id": "34_nda-3",
    "pid": "34_nda-3_0",
    "input": f"Copies are to be burnt.\n\n{TEXT}",
    "output": "Not mentioned",
}
CASE = Case(
    "contract-nli",
    SCROLLS,
    "Not mentioned",
    "Entailment",
    ("Copies are to be burnt.", "Norway's law rules.", "Answer with one label only"),
    frozenset({"id", "input", "output"}),
    file="validation.jsonl",
)

CORPUS = [
    {"doc_id": 11, "title": "Of mice", "abstract": ["Mice sleep.", "Mice eat oats.\n"], "structured": False},
    {"doc_id": 12, "title": "Of men", "abstract": ["Men do not sleep."], "structured": True},
]
CLAIMS = [
    {
        "id": 1,
        "claim": "Mice eat oats.",
        "evidence": {"11": [{"sentences": [1], "label": "SUPPORT"}, {"sentences": [0, 1], "label": "SUPPORT"}]},
        "cited_doc_ids": [11, 12],
    },
    {
        "id": 2,
        "claim": "Men sleep.",
        "evidence": {"12": [{"sentences": [0], "label": "CONTRADICT"}]},
        "cited_doc_ids": [12],
    },
    {"id": 3, "claim": "Mice sing.", "evidence": {}, "cited_doc_ids": [11]},
]


def _hub_row(claim: dict[str, Any], document: str, label: str, sentences: list[int]) -> dict[str, Any]:
    kept = {key: claim[key] for key in ("id", "claim", "cited_doc_ids")}
    return kept | {"evidence_doc_id": document, "evidence_label": label, "evidence_sentences": sentences}


HUB = [
    _hub_row(CLAIMS[0], "11", "SUPPORT", [1]),
    _hub_row(CLAIMS[0], "11", "SUPPORT", [0, 1]),
    _hub_row(CLAIMS[1], "12", "CONTRADICT", [0]),
    _hub_row(CLAIMS[2], "", "", []),
]


def test_a_row_of_scrolls(tmp_path: Path) -> None:
    assert {*SCROLLS} == {*catalog()["contract-nli"].columns["hub"]}
    (example,) = load_case(CASE, tmp_path)
    assert example["context"] == TEXT
    for text in CASE.asks:
        assert prompt_of(example).count(text) == 1
    assert primary("contract-nli", example, CASE.right) == 1.0
    assert primary("contract-nli", example, CASE.wrong) == 0.0
    assert needed_columns(CASE, tmp_path) == CASE.needs


@pytest.fixture
def contracts(tmp_path: Path) -> list[Example]:
    (tmp_path / "contract-nli").mkdir()
    (tmp_path / "contract-nli" / "dev.json").write_text(json.dumps(CONTRACT), encoding="utf-8")
    return list(load("contract-nli", data_dir=tmp_path))


def test_the_authors_file_gives_an_example_for_each_statement(contracts: list[Example]) -> None:
    assert {*CONTRACT} == {*catalog()["contract-nli"].columns["files"]}
    assert [each["id"] for each in contracts] == ["34-nda-1", "34-nda-2", "34-nda-3"]
    assert [each["answers"] for each in contracts] == [["Entailment"], ["Contradiction"], ["Not mentioned"]]
    assert {each["context"] for each in contracts} == {TEXT}
    assert "Lawyers may be told." in contracts[0]["question"]


def test_each_gold_label_is_right_for_its_own_statement_only(contracts: list[Example]) -> None:
    labels = ["Entailment", "Contradiction", "Not mentioned"]
    table = [[primary("contract-nli", each, label) for label in labels] for each in contracts]
    assert table == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_the_marked_spans_are_the_evidence(contracts: list[Example]) -> None:
    texts = [[span["text"] for span in each["evidence"]] for each in contracts]
    secret, lawyers = (TEXT[start:end] for start, end in (SECRET, LAWYERS))
    assert texts == [[lawyers], [secret, lawyers], []]
    assert all(TEXT[span["start"] : span["end"]] == span["text"] for each in contracts for span in each["evidence"])


@pytest.mark.parametrize("column", ["documents", "labels"])
def test_a_missing_column_of_the_authors_file_is_named(column: str, tmp_path: Path) -> None:
    (tmp_path / "contract-nli").mkdir()
    rest = {key: CONTRACT[key] for key in CONTRACT if key != column}
    (tmp_path / "contract-nli" / "dev.json").write_text(json.dumps(rest), encoding="utf-8")
    with pytest.raises(DataError, match=f"no column '{column}'"):
        list(load("contract-nli", data_dir=tmp_path))


@pytest.mark.parametrize(("output", "problem"), [("Perhaps", "unknown label 'Perhaps'"), (None, "withholds them")])
def test_a_label_that_is_none(output: str | None, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=problem):
        load_case(CASE, tmp_path, SCROLLS | {"output": output})


@pytest.fixture(params=["files", "hub"])
def claims(request: pytest.FixtureRequest, tmp_path: Path) -> list[Example]:
    """Both layouts; the hub's tables as a user may keep them."""
    folder = tmp_path / "scifact"
    if request.param == "files":
        write_file(folder / "claims_dev.jsonl", CLAIMS)
        write_file(folder / "corpus.jsonl", CORPUS)
    else:
        parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        for path, rows in (("claims/validation-0.parquet", HUB), ("corpus/train-0.parquet", CORPUS)):
            (folder / path).parent.mkdir(parents=True)
            parquet.write_table(pyarrow.Table.from_pylist(rows), folder / path)
    return list(load("scifact", data_dir=tmp_path))


def test_claims_are_joined_with_what_they_cite(claims: list[Example]) -> None:
    assert [each["id"] for each in claims] == [1, 2, 3]
    assert claims[0]["context"] == "Of mice\nMice sleep. Mice eat oats. \n\nOf men\nMen do not sleep."
    assert claims[1]["context"] == "Of men\nMen do not sleep."
    assert [each["meta"]["gold_docs"] for each in claims] == [["11"], ["12"], []]


def test_a_claim_without_evidence_is_not_supported(claims: list[Example]) -> None:
    assert [each["answers"] for each in claims] == [["SUPPORT"], ["CONTRADICT"], ["NOT_ENOUGH_INFO"]]
    labels = ["SUPPORT", "CONTRADICT", "NOT_ENOUGH_INFO"]
    table = [[primary("scifact", each, label) for label in labels] for each in claims]
    assert table == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def test_sentences_are_the_evidence_each_once(claims: list[Example]) -> None:
    texts = [[span["text"] for span in each["evidence"]] for each in claims]
    assert texts == [["Mice sleep.", "Mice eat oats."], ["Men do not sleep."], []]
    assert all(
        each["context"][span["start"] : span["end"]] == span["text"] for each in claims for span in each["evidence"]
    )
    prompt = prompt_of(claims[1])
    assert all(prompt.count(text) == 1 for text in ('"Men sleep."', "Men do not sleep.", "NOT_ENOUGH_INFO"))


def test_schemas_of_scifact() -> None:
    columns = catalog()["scifact"].columns
    assert {*CLAIMS[0]} == {*columns["files"]}
    assert {*HUB[0]} == {*columns["hub"]}
    assert {*CORPUS[0]} == {*columns["corpus"]}


@pytest.mark.parametrize("column", ["id", "claim", "evidence", "cited_doc_ids", "doc_id", "title", "abstract"])
def test_a_missing_column_of_scifact_is_named(column: str, tmp_path: Path) -> None:
    for path, rows in (("claims_dev.jsonl", CLAIMS), ("corpus.jsonl", CORPUS)):
        write_file(tmp_path / "scifact" / path, [{key: row[key] for key in row if key != column} for row in rows])
    with pytest.raises(DataError, match=f"no column '{column}'"):
        list(load("scifact", data_dir=tmp_path))


def test_a_document_that_is_not_there(tmp_path: Path) -> None:
    write_file(tmp_path / "scifact" / "claims_dev.jsonl", CLAIMS)
    write_file(tmp_path / "scifact" / "corpus.jsonl", CORPUS[1:])
    with pytest.raises(DataError, match="claim 1 cites document 11, which is not in the corpus"):
        list(load("scifact", data_dir=tmp_path))


def test_two_abstracts_may_disagree(tmp_path: Path) -> None:
    both = {"11": [{"sentences": [0], "label": "SUPPORT"}], "12": [{"sentences": [0], "label": "CONTRADICT"}]}
    write_file(tmp_path / "scifact" / "claims_dev.jsonl", [CLAIMS[0] | {"evidence": both}])
    write_file(tmp_path / "scifact" / "corpus.jsonl", CORPUS)
    (example,) = load("scifact", data_dir=tmp_path)
    assert example["answers"] == ["SUPPORT", "CONTRADICT"]


def test_without_the_files_the_way_to_get_them_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTEXT_BENCH_DATA", raising=False)
    with pytest.raises(UsageError, match="not on the hub: put its files under DIR/scifact/"):
        load("scifact")
    assert "data.tar.gz" in catalog()["scifact"].note
