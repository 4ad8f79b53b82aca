"""Question answering: from a record in the source's schema to an example, its prompt and its score."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.example_check import ExampleCheck
from context_bench.datasets.public import load
from context_bench.datasets.public.adapters import Where, qa
from context_bench.errors import DataError
from context_bench.registry import registry
from context_bench.systems.prompts import build_messages

HOTPOT = {
    "id": "h1",
    "question": "Which river passes the town where Ada Krull was born?",
    "answer": "the Mura",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": {"title": ["Ada Krull", "Lendau"], "sent_id": [0, 1]},
    "context": {
        "title": ["Ada Krull", "Lendau", "Mura (comics)"],
        "sentences": [
            ["Ada Krull was born in Lendau.", " She kept bees."],
            ["Lendau is a town.", " The Mura passes it."],
            ["Mura is a comic."],
        ],
    },
}


def _pairs(record: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The authors' own layout of a HotpotQA record."""
    facts, context = record["supporting_facts"], record["context"]
    return {
        "_id": record["id"],
        **{key: record[key] for key in ("question", "answer", "type")},
        "supporting_facts": [list(pair) for pair in zip(facts["title"], facts["sent_id"])],
        "context": [list(pair) for pair in zip(context["title"], context["sentences"])],
        **more,
    }


TRIVIA_ANSWER = {
    "aliases": ["The Mura", "Mur"],
    "normalized_aliases": ["mura", "mur"],
    "matched_wiki_entity_name": "",
    "normalized_matched_wiki_entity_name": "",
    "normalized_value": "mura",
    "type": "WikipediaEntity",
    "value": "Mura",
}
QASPER_ANSWERS = [
    {
        "unanswerable": False,
        "extractive_spans": ["two rivers", "a lake"],
        "yes_no": None,
        "free_form_answer": "",
        "evidence": ["We use two rivers and a lake. It was dry."],
        "highlighted_evidence": ["We use two rivers and a lake."],
    },
    {
        "unanswerable": False,
        "extractive_spans": [],
        "yes_no": False,
        "free_form_answer": "waters",
        "evidence": ["FLOAT SELECTED: Table 1"],
        "highlighted_evidence": ["FLOAT SELECTED: Table 1"],
    },
]
QASPER = {
    "id": "p1",
    "title": "On Rivers",
    "abstract": "We look at rivers.",
    "full_text": {
        "section_name": ["Data", None],
        "paragraphs": [["We use two rivers and a lake. It was dry."], ["End."]],
    },
    "qas": {
        "question": ["What is used?"],
        "question_id": ["p1q1"],
        "answers": [{"answer": QASPER_ANSWERS, "annotation_id": ["a", "b"], "worker_id": ["c", "d"]}],
    },
    "figures_and_tables": {"caption": [], "file": []},
}
QASPER_FILE = {
    **QASPER,
    "full_text": [
        {"section_name": "Data", "paragraphs": ["We use two rivers and a lake. It was dry."]},
        {"section_name": None, "paragraphs": ["End."]},
    ],
    "qas": [
        {
            "question": "What is used?",
            "question_id": "p1q1",
            "answers": [{"answer": answer, "annotation_id": "a", "worker_id": "b"} for answer in QASPER_ANSWERS],
        }
    ],
    "figures_and_tables": [],
}
SQUAD = {
    "id": "s1",
    "title": "Lendau",
    "context": "Lendau lies on the Mura.",
    "question": "Where does Lendau lie?",
    "answers": {"text": ["the Mura", "on the Mura"], "answer_start": [15, 12]},
}
SQUAD_FILE = {
    **SQUAD,
    "answers": [{"text": "the Mura", "answer_start": 15}, {"text": "on the Mura", "answer_start": 12}],
}
MUSIQUE = {
    "id": "2hop__12_34",
    "paragraphs": [
        {"idx": 0, "title": "Ada", "paragraph_text": "Ada was born in Lendau.", "is_supporting": True},
        {"idx": 1, "title": "Bo", "paragraph_text": "Bo was not.", "is_supporting": False},
        {"idx": 2, "title": "Lendau", "paragraph_text": "Lendau lies on the Mura.", "is_supporting": True},
    ],
    "question": "On which river was Ada born?",
    "question_decomposition": [{"id": 1, "question": "?", "answer": "Lendau", "paragraph_support_idx": 0}],
    "answer": "Mura",
    "answer_aliases": ["Mur"],
    "answerable": True,
}
NARRATIVE = {
    "document": {
        "id": "d1",
        "kind": "gutenberg",
        "url": "",
        "file_size": 1,
        "word_count": 1,
        "start": "",
        "end": "",
        "summary": {"text": "A short tale.", "tokens": [], "url": "", "title": "Tale"},
        "text": "A long tale.",
    },
    "question": {"text": "Who tells it?", "tokens": []},
    "answers": [{"text": "The miller", "tokens": []}, {"text": "an old miller", "tokens": []}],
}
TRIVIA = {
    "question": "Which river passes Lendau?",
    "question_id": "tc_1",
    "question_source": "http://example.org",
    "entity_pages": {"doc_source": [""], "filename": [""], "title": ["Lendau"], "wiki_context": ["On the Mura."]},
    "search_results": {
        "description": [""],
        "filename": [""],
        "rank": [0],
        "title": [""],
        "url": [""],
        "search_context": ["Found: Mura."],
    },
    "answer": TRIVIA_ANSWER,
}
FRAMES = {
    "Prompt": "Which of the two towns is older?",
    "Answer": "Lendau",
    **{f"wikipedia_link_{number}": "" for number in range(1, 11)},
    "wikipedia_link_11+": "",
    "reasoning_types": "Numerical reasoning | Temporal reasoning",
    "wiki_links": "['https://a.example', 'https://b.example']",
}
NQ_ORACLE = {
    "question": "which river passes lendau",
    "answers": ["Mura", "the Mur"],
    "ctxs": [{"title": "Lendau", "text": "It lies on the Mura.", "hasanswer": True, "isgold": True}],
    "nq_annotated_gold": {},
}

WIKI2 = _pairs(HOTPOT, entity_ids="Q1_Q2", evidences=[["Ada Krull", "born in", "Lendau"]])

RECORDS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    # case: dataset, configuration, layout in the card, record
    "hotpotqa": ("hotpotqa", "distractor", "hub", HOTPOT),
    "hotpotqa, own file": ("hotpotqa", "distractor", "files", _pairs(HOTPOT, level="hard")),
    "2wikimultihopqa": ("2wikimultihopqa", "default", "files", WIKI2),
    "nq": (
        "natural-questions",
        "open",
        "hub",
        {"question": "which river passes lendau", "answer": ["Mura", "the Mur"]},
    ),
    "nq oracle": ("natural-questions", "oracle", "oracle", NQ_ORACLE),
    "musique": ("musique", "answerable", "hub", MUSIQUE),
    "narrativeqa": ("narrativeqa", "summary", "hub", NARRATIVE),
    "narrativeqa full": ("narrativeqa", "full", "hub", NARRATIVE),
    "triviaqa": ("triviaqa", "rc", "hub", TRIVIA),
    "triviaqa wikipedia": ("triviaqa", "rc.wikipedia", "hub", TRIVIA),
    "frames": ("frames", "default", "hub", FRAMES),
    "qasper": ("qasper", "default", "hub", QASPER),
    "qasper, own file": ("qasper", "default", "files", QASPER_FILE),
    "squad": ("squad", "default", "hub", SQUAD),
    "squad, own file": ("squad", "default", "files", SQUAD_FILE),
    "squad-v2": ("squad-v2", "default", "hub", SQUAD),
    "squad-v2, own file": ("squad-v2", "default", "files", {**SQUAD_FILE, "is_impossible": False}),
    "simpleqa": ("simpleqa", "default", "hub", {"metadata": "{}", "problem": "Who is it?", "answer": "Ada"}),
}
UNUSED = {
    "hotpotqa": {"id", "_id", "type", "level"},
    "2wikimultihopqa": {"_id", "type", "entity_ids", "evidences"},
    "natural-questions": {"nq_annotated_gold"},
    "musique": {"question_decomposition"},
    "frames": {f"wikipedia_link_{number}" for number in (*range(1, 11), "11+")},
    "qasper": {"figures_and_tables"},
    "squad-v2": {"is_impossible"},
}
"""Columns that no example needs, so that their absence does no harm."""


def loaded(folder: Path, case: str, record: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The examples of a record as the loader makes them, from a file in the usual place."""
    name, config, _, known = RECORDS[case]
    path = folder / name / config / f"{catalog()[name].config(config).split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(known if record is None else record) + "\n")
    return list(load(name, config, data_dir=folder))


def scores(example: dict[str, Any], response: str) -> dict[str, float]:
    """What the evaluators of the dataset say of a response."""
    processed = {**example, "response": response}
    names = catalog()[example["dataset"]].evaluators
    judged = [registry.get("evaluator", name)().score(example, processed) for name in names]
    return {key: value for each in judged for key, value in each.items()}


@pytest.mark.parametrize("case", RECORDS)
def test_a_record_in_the_schema_of_the_card_becomes_a_question_with_its_answers(case: str, tmp_path: Path) -> None:
    name, _, layout, record = RECORDS[case]
    card = catalog()[name]
    assert sorted(record) == sorted(card.columns[layout])
    (example,) = loaded(tmp_path, case)
    ExampleCheck()(example, case)
    prompt = "\n".join(str(message["content"]) for message in build_messages(example))
    assert example["question"] in prompt
    assert example["context"] in prompt
    assert prompt.endswith(example["instruction"])
    for answer in example["answers"]:
        assert scores(example, answer)[card.primary] == 1.0
    assert scores(example, "seventeen green bottles")[card.primary] == 0.0
    assert scores(example, "")[card.primary] == 0.0
    for span in example.get("evidence", []):
        assert example["context"][span["start"] : span["end"]] == span["text"]
    assert bool(example.get("evidence")) == bool(card.evidence)


@pytest.mark.parametrize("case", RECORDS)
def test_a_missing_column_is_named(case: str, tmp_path: Path) -> None:
    name, config, _, record = RECORDS[case]
    for column in set(record) - UNUSED.get(name, set()):
        broken = {key: value for key, value in record.items() if key != column} | {f"{column}_v2": record[column]}
        with pytest.raises(DataError) as caught:
            loaded(tmp_path, case, broken)
        assert str(caught.value).startswith(f"{name}:{config}: ")
        assert f"record 1: no column {column!r}" in str(caught.value)


def test_both_layouts_give_the_same(tmp_path: Path) -> None:
    for name in ("hotpotqa", "qasper", "squad"):
        assert loaded(tmp_path / "hub", name) == loaded(tmp_path / "own", f"{name}, own file")


def test_hotpotqa_marks_the_supporting_sentences(tmp_path: Path) -> None:
    (example,) = loaded(tmp_path, "hotpotqa")
    assert example["context"] == (
        "Ada Krull\nAda Krull was born in Lendau. She kept bees.\n\n"
        "Lendau\nLendau is a town. The Mura passes it.\n\nMura (comics)\nMura is a comic."
    )
    assert [span["text"] for span in example["evidence"]] == ["Ada Krull was born in Lendau.", "The Mura passes it."]


def test_hotpotqa_counts_the_facts_that_the_context_lacks() -> None:
    record = {**HOTPOT, "supporting_facts": {"title": ["Ada Krull", "Lendau", "Gone"], "sent_id": [0, 9, 0]}}
    (example,) = qa.hotpotqa(record, Where("fullwiki", "validation", 0, "hotpotqa"))
    assert (example["meta"]["supporting_facts"], example["meta"]["supporting_facts_found"]) == (3, 1)


def test_a_yes_is_right_or_wrong(tmp_path: Path) -> None:
    (example,) = loaded(tmp_path, "hotpotqa", {**HOTPOT, "answer": "yes"})
    assert scores(example, "Yes.")["hotpot_f1"] == 1.0
    assert scores(example, "yes and no")["hotpot_f1"] == 0.0


def test_the_context_of_each_configuration(tmp_path: Path) -> None:
    wanted = {
        "nq": "",
        "nq oracle": "Lendau\nIt lies on the Mura.",
        "narrativeqa": "A short tale.",
        "narrativeqa full": "A long tale.",
        "triviaqa": "On the Mura.\n\nFound: Mura.",
        "triviaqa wikipedia": "On the Mura.",
        "qasper": "On Rivers\n\nWe look at rivers.\n\nData\n\nWe use two rivers and a lake. It was dry.\n\nEnd.",
    }
    assert {case: loaded(tmp_path / case, case)[0]["context"] for case in wanted} == wanted


def test_all_accepted_answers_are_kept(tmp_path: Path) -> None:
    wanted = {
        "nq": ["Mura", "the Mur"],
        "musique": ["Mura", "Mur"],
        "narrativeqa": ["The miller", "an old miller"],
        "triviaqa": ["Mura", "The Mura", "Mur", "mura", "mur"],
        "qasper": ["two rivers, a lake", "waters"],
        "squad": ["the Mura", "on the Mura"],
    }
    assert {case: loaded(tmp_path / case, case)[0]["answers"] for case in wanted} == wanted


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"unanswerable": True}, "Unanswerable"),
        ({}, "two rivers, a lake"),
        ({"extractive_spans": [], "free_form_answer": "waters", "yes_no": False}, "waters"),
        ({"extractive_spans": [], "yes_no": True}, "Yes"),
        ({"extractive_spans": [], "yes_no": False}, "No"),
        ({"extractive_spans": [], "yes_no": None}, None),
    ],
)
def test_what_a_qasper_annotator_answered(change: dict[str, Any], wanted: str | None) -> None:
    assert qa._read_qasper_answer({**QASPER_ANSWERS[0], **change}) == wanted


def test_qasper_evidence_is_the_first_that_stands_in_the_text() -> None:
    first, second = QASPER_ANSWERS
    context = "A. We use two rivers and a lake. It was dry."
    assert qa._find_qasper_evidence([second, first], context) == [{"start": 3, "end": 32, "text": context[3:32]}]
    assert qa._find_qasper_evidence([second], context) == []


@pytest.mark.parametrize("case", ["squad-v2", "musique"])
def test_a_question_without_an_answer_asks_for_the_word(case: str, tmp_path: Path) -> None:
    _, _, _, record = RECORDS[case]
    if case == "musique":
        record = {**record, "answerable": False}
        (example,) = qa.musique(record, Where("full", "validation", 0, "musique"))
        example["dataset"] = "musique"
        assert example["id"] != record["id"]
    else:
        (example,) = loaded(tmp_path, case, {**record, "answers": {"text": [], "answer_start": []}})
    assert example["answers"] == ["unanswerable"]
    assert '"unanswerable"' in example["instruction"]
    assert scores(example, "Unanswerable.")["f1"] == 1.0
    assert scores(example, "the Mura")["f1"] == 0.0


def test_the_authors_own_files_of_squad_and_qasper(tmp_path: Path) -> None:
    paragraph = {
        "context": SQUAD["context"],
        "qas": [{key: SQUAD_FILE[key] for key in ("id", "question", "answers")}],
    }
    files = {
        "squad/dev-v1.1.json": {"version": "1.1", "data": [{"title": "Lendau", "paragraphs": [paragraph]}]},
        "qasper/qasper-dev-v0.3.json": {"p1": {key: value for key, value in QASPER_FILE.items() if key != "id"}},
    }
    for path, content in files.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(json.dumps(content))
    for name in ("squad", "qasper"):
        assert list(load(name, data_dir=tmp_path)) == loaded(tmp_path / "hub", name)


def test_frames_reads_its_lists(tmp_path: Path) -> None:
    (example,) = loaded(tmp_path, "frames")
    assert example["meta"]["links"] == ["https://a.example", "https://b.example"]
    assert example["meta"]["reasoning_types"] == ["Numerical reasoning", "Temporal reasoning"]
    (example,) = loaded(tmp_path, "frames", {**FRAMES, "wiki_links": "[broken"})
    assert example["meta"]["links"] == []


# Real records


@pytest.fixture
def data() -> Path:
    folder = os.environ.get("CONTEXT_BENCH_DATA")
    if not folder:
        pytest.skip("CONTEXT_BENCH_DATA does not say where real records are")
    return Path(folder)


@pytest.mark.parametrize(
    ("name", "config", "count"),
    [("hotpotqa", None, 100), ("natural-questions", None, 3610), ("natural-questions", "oracle", 2655)],
)
def test_real_records_map_and_every_gold_scores(data: Path, name: str, config: str | None, count: int) -> None:
    examples = list(load(name, config, data_dir=data))
    assert len(examples) == count
    check, primary = ExampleCheck(), catalog()[name].primary
    for place, example in enumerate(examples):
        check(example, f"record {place}")
        for answer in example["answers"]:
            assert scores(example, answer)[primary] == 1.0, example["id"]


def test_real_hotpotqa_has_all_its_evidence(data: Path) -> None:
    examples = list(load("hotpotqa", data_dir=data))
    found = Counter(
        example["meta"]["supporting_facts_found"] == example["meta"]["supporting_facts"] for example in examples
    )
    assert found == {True: 100}
    assert all(example["evidence"] for example in examples)
