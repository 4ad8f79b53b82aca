"""Summaries, from records in the sources' own schemas to scores; real records where CONTEXT_BENCH_DATA has them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.datasets.public.raw_files import find_reader
from context_bench.errors import DataError
from context_bench.registry import registry
from public_cases import Case, load_case, needed_columns, primary, prompt_of, real, write_file

NEWS = {
    "document": "A bridge fell in Oslo. Nobody was hurt. ||||| The Oslo bridge was sixty years old. |||||",
    "summary": "– An old bridge in Oslo fell and hurt nobody.",
}
DIALOGUE = "#Person1#: Tea?\n#Person2#: Yes, with milk."
SUMMARIES = ["#Person2# wants tea with milk.", "#Person1# offers tea to #Person2#.", "They talk about a drink."]
ROW = {"id": "test_7_1", "dialogue": DIALOGUE, "summary": SUMMARIES[0], "topic": "tea"}
FILE = {"fname": "test_7", "dialogue": DIALOGUE} | {
    key: value
    for number, summary in enumerate(SUMMARIES, 1)
    for key, value in ((f"summary{number}", summary), (f"topic{number}", f"topic {number}"))
}
MEETING = {
    "topic_list": [{"topic": "Budget", "relevant_text_span": [["0", "2"]]}],
    "general_query_list": [{"query": "Summarize the meeting.", "answer": "They agreed on a budget of nine."}],
    "specific_query_list": [
        {"query": "What did Bo say?", "answer": "Bo wanted nine.", "relevant_text_span": [["1", "2"], ["2", "2"]]}
    ],
    "meeting_transcripts": [
        {"speaker": "Ann", "content": "How much ?"},
        {"speaker": "Bo", "content": "Nine . "},
        {"speaker": "Ann", "content": "Agreed ."},
    ],
}
SCROLLS = {
    "id": "q_1",
    "pid": "q_1_0",
    "input": "What did Bo say?\n\nAnn: How much ?\n\nBo: Nine .",
    "output": "Bo wanted nine.",
}
EPISODE = {"id": "fd_1", "pid": "fd_1_0", "input": "Kim: Run!\n\nLee: Why?", "output": "Kim tells Lee to run away."}
BANK = {"id": 3, "uid": "City_1", "summary": "A bill on bikes passes.", "transcript": "All in favour? Aye."}
REPORT = {"report": "The agency spent much on roads.", "summary": "Roads cost the agency a great deal."}


def _case(name: str, record: dict[str, Any], right: str, asks: str, needs: str, **more: Any) -> Case:
    return Case(name, record, right, "zebra", tuple(asks.split("|")), frozenset(needs.split("|")), **more)


CASES = [
    _case(
        "multi-news", NEWS, "An old bridge in Oslo fell and hurt nobody.", "Nobody was hurt|sixty", "document|summary"
    ),
    _case("dialogsum", ROW, SUMMARIES[0], "with milk|Answer with the summary only", "id|dialogue|summary|topic"),
    _case(
        "dialogsum",
        FILE,
        SUMMARIES[2],
        "with milk",
        "fname|dialogue|summary1|topic1|summary2|topic2|summary3|topic3",
        layout="files",
        file="dialogsum.test.jsonl",
        tells="fname",
    ),
    _case("qmsum", SCROLLS, "Bo wanted nine.", "What did Bo say?|Ann: How much ?|Bo: Nine .", "id|input|output"),
    _case(
        "summscreenfd",
        EPISODE,
        "Kim tells Lee to run away.",
        "Lee: Why?|recap of this",
        "id|input|output",
        file="validation.jsonl",
    ),
    _case("meetingbank", BANK, "A bill on bikes passes.", "All in favour?", "id|uid|summary|transcript"),
    _case(
        "govreport",
        REPORT,
        "Roads cost the agency a great deal.",
        "spent much on roads|summary of this",
        "report|summary",
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_record_has_the_columns_of_the_card(case: Case) -> None:
    assert {*case.record} == {*catalog()[case.name].columns[case.layout]}


def test_a_reference_scores_1_and_other_words_0(case: Case, tmp_path: Path) -> None:
    (example,) = load_case(case, tmp_path)
    prompt = prompt_of(example)
    for text in case.asks:
        assert prompt.count(text) == 1
    assert primary(case.name, example, case.right) == 1.0
    assert primary(case.name, example, case.wrong) == 0.0
    assert case.right not in prompt


def test_a_missing_column_is_named(case: Case, tmp_path: Path) -> None:
    assert needed_columns(case, tmp_path) == case.needs


def test_articles_stand_apart_without_their_mark(tmp_path: Path) -> None:
    (example,) = load_case(CASES[0], tmp_path)
    assert example["context"] == "A bridge fell in Oslo. Nobody was hurt.\n\nThe Oslo bridge was sixty years old."
    assert example["meta"] == {"n_docs": 2}
    (empty,) = load_case(CASES[0], tmp_path, NEWS | {"document": " ||||| "})
    assert (empty["context"], empty["meta"]["n_docs"]) == ("", 0)


def test_news_from_two_files_of_lines(tmp_path: Path) -> None:
    folder = tmp_path / "multi-news"
    folder.mkdir()
    (folder / "test.src.cleaned").write_text("One.NEWLINE_CHARTwo. ||||| Three.\nFour.\n", encoding="utf-8")
    (folder / "test.tgt").write_text("– Three things.\nFour things.\n", encoding="utf-8")
    first, second = load("multi-news", data_dir=tmp_path)
    assert (first["context"], first["answers"]) == ("One.\nTwo.\n\nThree.", ["Three things."])
    assert (second["context"], second["answers"], second["id"]) == ("Four.", ["Four things."], "multi-news-1")
    (folder / "test.tgt").write_text("– Three things.\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"shorter|longer"):
        list(load("multi-news", data_dir=tmp_path))


def test_three_rows_of_one_dialogue_are_one_example(tmp_path: Path) -> None:
    rows = [ROW | {"id": f"test_{n}_{k}", "summary": SUMMARIES[k - 1]} for n in (0, 10) for k in (1, 2, 3)]
    write_file(tmp_path / "dialogsum" / "test.csv", rows)
    first, second = load("dialogsum", data_dir=tmp_path)
    assert (first["id"], second["id"]) == ("test_0", "test_10")
    assert first["answers"] == second["answers"] == SUMMARIES
    assert [primary("dialogsum", first, text) for text in SUMMARIES] == [1.0, 1.0, 1.0]
    assert first["meta"]["topics"] == ["tea", "tea", "tea"]


def test_a_meeting_gives_an_example_for_each_query(tmp_path: Path) -> None:
    write_file(tmp_path / "qmsum" / "ALL_val.jsonl", [MEETING, MEETING])
    examples = list(load("qmsum", data_dir=tmp_path))
    assert {*MEETING} == {*catalog()["qmsum"].columns["files"]}
    assert [each["id"] for each in examples] == [
        f"qmsum-validation-{meeting}-{kind}-0" for meeting in (0, 1) for kind in ("general", "specific")
    ]
    general, specific = examples[:2]
    assert general["context"] == specific["context"] == "Ann: How much ?\nBo: Nine . \nAnn: Agreed ."
    assert (specific["question"], specific["answers"]) == ("What did Bo say?", ["Bo wanted nine."])
    assert general["evidence"] == []
    assert [span["text"] for span in specific["evidence"]] == ["Nine .", "Agreed ."]
    assert all(specific["context"][span["start"] : span["end"]] == span["text"] for span in specific["evidence"])
    assert primary("qmsum", specific, "Bo wanted nine.") == 1.0


@pytest.mark.parametrize("column", ["general_query_list", "specific_query_list", "meeting_transcripts"])
def test_a_missing_column_of_a_meeting_is_named(column: str, tmp_path: Path) -> None:
    write_file(tmp_path / "qmsum" / "ALL_val.jsonl", [{key: MEETING[key] for key in MEETING if key != column}])
    with pytest.raises(DataError, match=f"no column '{column}'"):
        list(load("qmsum", data_dir=tmp_path))


def test_rows_of_one_id_are_references_of_one_example(tmp_path: Path) -> None:
    rows = [EPISODE, EPISODE | {"id": "fd_2"}, EPISODE | {"pid": "fd_1_1", "output": "Lee does not know why."}]
    write_file(tmp_path / "summscreenfd" / "validation.jsonl", rows)
    first, second = load("summscreenfd", data_dir=tmp_path)
    assert first["answers"] == ["Kim tells Lee to run away.", "Lee does not know why."]
    assert second["id"] == "fd_2"
    assert first["context"] == "Kim: Run!\n\nLee: Why?"


def test_the_query_ends_at_the_first_blank_line(tmp_path: Path) -> None:
    (example,) = load_case(CASES[3], tmp_path)
    assert (example["question"], example["context"]) == ("What did Bo say?", "Ann: How much ?\n\nBo: Nine .")
    with pytest.raises(DataError, match="no blank line between query and document"):
        load_case(CASES[3], tmp_path, SCROLLS | {"input": "What did Bo say?"})


def test_answers_that_are_kept_back_are_no_gold(tmp_path: Path) -> None:
    for output in (None, ""):
        (example,) = load_case(CASES[3], tmp_path, SCROLLS | {"output": output})
        assert example["answers"] == []
        assert primary("qmsum", example, "anything") is None


def test_real_qmsum() -> None:
    examples = list(load("qmsum", data_dir=real("qmsum", "ALL_val.jsonl")))
    assert len(examples) == len({each["id"] for each in examples}) == 272
    assert len({each["context"] for each in examples}) == 35
    kinds = [each["meta"]["kind"] for each in examples]
    assert (kinds.count("general"), kinds.count("specific")) == (35, 237)
    judge = registry.get("evaluator", "summarization-quality")()
    for each in examples:
        assert judge.score(each, {"response": each["answer"]})["rouge_l_f1"] == 1.0
        assert bool(each["evidence"]) is (each["meta"]["kind"] == "specific")
        assert all(each["context"][span["start"] : span["end"]] == span["text"] for span in each["evidence"])


@pytest.mark.parametrize(
    ("name", "file", "rows", "kept"),
    [
        ("dialogsum", "test.csv", [ROW, ROW | {"id": "test_7_2"}], "default/test.jsonl"),
        ("summscreenfd", "validation.jsonl", [EPISODE, EPISODE | {"output": "More."}], "default/validation.jsonl"),
    ],
)
def test_what_a_reader_put_together_can_be_kept(
    name: str, file: str, rows: list[dict[str, Any]], kept: str, tmp_path: Path
) -> None:
    write_file(tmp_path / "raw" / name / file, rows)
    reader = find_reader(catalog()[name].config().reader)
    write_file(tmp_path / "kept" / name / kept, list(reader([tmp_path / "raw" / name / file])))  # type: ignore[misc]
    raw, fetched = (list(load(name, data_dir=tmp_path / folder)) for folder in ("raw", "kept"))
    assert raw == fetched
    assert len(raw[0]["answers"]) == 2


@pytest.mark.parametrize(
    ("name", "member", "row"),
    [("qmsum", "qmsum", SCROLLS), ("summscreenfd", "summ_screen_fd", EPISODE)],
)
def test_the_archive_of_scrolls_as_it_is_fetched(name: str, member: str, row: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with zipfile.ZipFile(tmp_path / name / f"{member}.zip", "w") as archive:
        archive.writestr(f"{member}/train.jsonl", "not read")
        archive.writestr(f"{member}/validation.jsonl", json.dumps(row) + "\n" + json.dumps(row | {"output": "Other."}))
    (example,) = load(name, data_dir=tmp_path)
    assert example["answers"] == [row["output"], "Other."]
