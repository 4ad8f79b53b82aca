"""Results by a field of their examples: columns of a frame, parts with intervals, slices of table and page."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import EvalResult, Store, evaluate
from context_bench.compare.groups import read_field, split_rows
from context_bench.errors import UsageError
from context_bench.results import EvalRow

LANGUAGES = ("de", "en", "fr")
DATA = [
    {
        "id": number,
        "context": f"Box {number} holds {number * 7} keys.",
        "question": "How many keys?",
        "answer": str(number * 7),
        "meta": {"lang": LANGUAGES[number % 3], "hops": number % 2, "tags": ["a"]},
    }
    for number in range(24)
]


def only_english(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": example["answer"] if example["meta"]["lang"] == "en" else "no idea"}


def everything(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": example["answer"]}


@pytest.fixture(scope="module")
def result() -> EvalResult:
    return evaluate([everything, only_english], DATA, progress=False)


def test_fields_of_meta_are_columns(result: EvalResult) -> None:
    pytest.importorskip("pandas")
    frame = result.to_dataframe()
    assert set(frame["meta.lang"]) == set(LANGUAGES)
    assert list(frame[frame.system == "everything"]["meta.hops"]) == [number % 2 for number in range(24)]


def test_fields_of_meta_are_columns_of_parquet(result: EvalResult, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    result.to_parquet(tmp_path / "rows.parquet")
    first = parquet.read_table(tmp_path / "rows.parquet").to_pylist()[0]
    assert (first["meta.lang"], first["meta.hops"], first["meta.tags"]) == ("de", 0, '["a"]')


def test_each_group_is_a_result_with_intervals(result: EvalResult) -> None:
    groups = result.group_by("meta.lang")
    assert list(groups) == ["de", "en", "fr"]
    assert groups["en"].summary["only_english"]["mean_score"] == 1
    assert groups["de"].summary["only_english"]["mean_score"] == 0
    assert groups["de"].summary["only_english"]["num_examples"] == 8
    assert "mean_score" in groups["de"].intervals["only_english"]
    assert groups["de"].compare() is not None
    assert result.summary["only_english"]["mean_score"] == pytest.approx(1 / 3)


def test_groups_are_shown_as_a_table_and_a_frame(result: EvalResult) -> None:
    groups = result.group_by("meta.lang")
    head, *lines = groups.list_lines()
    assert head == ["score by meta.lang", "n", "everything", "only_english"]
    assert [line[:2] for line in lines] == [["de", "8"], ["en", "8"], ["fr", "8"]]
    assert lines[1][3].startswith("1.000")
    assert lines[0][3].startswith("0.000")
    assert repr(groups).startswith("| score by meta.lang |")
    pytest.importorskip("pandas")
    frame = groups.to_dataframe()
    assert list(frame["meta.lang"]) == ["de", "de", "en", "en", "fr", "fr"]
    assert {"mean_score", "mean_score:low", "mean_score:high"} <= set(frame.columns)


def test_any_field_of_a_row_groups(result: EvalResult) -> None:
    assert list(result.group_by("meta.hops")) == [0, 1]
    assert list(result.group_by("metadata.output")) == ["response"]
    assert list(result.group_by("dataset")) == [""]
    assert list(result.group_by("meta.tags")) == ['["a"]']
    with pytest.raises(UsageError, match=r"'meta\.language': did you mean meta\.lang\? There are meta\.hops, meta"):
        result.group_by("meta.language")
    with pytest.raises(UsageError, match=r"no row has the field 'lang': did you mean meta\.lang\?"):
        result.group_by("lang")
    with pytest.raises(UsageError, match=r"no row has the field 'nothing': there are meta\.hops"):
        result.group_by("nothing")


def test_numbers_then_texts_then_rows_without_the_field() -> None:
    rows = [EvalRow("a", number, {}, 1, 1) for number in range(5)]
    for row, value in zip(rows, ("x", 10, 9, None, "b")):
        row.meta = {} if value is None else {"at": value}
    assert list(split_rows(rows, "meta.at")) == [9, 10, "b", "x", None]
    assert read_field(rows[0], "meta.at.deeper") is None


def test_many_values_are_cut_off() -> None:
    rows = [EvalRow("a", number, {"score": 1.0}, 1, 1) for number in range(50)]
    lines = EvalResult(rows, {"a": {}}).group_by("example_id").list_lines()
    assert len(lines) == 42
    assert lines[-1][0] == "and 10 more"


def test_meta_is_no_part_of_a_row_as_it_is_written_and_compared(result: EvalResult) -> None:
    row, other = (EvalRow("a", 1, {}, 1, 1) for _ in range(2))
    row.meta = {"lang": "en"}
    assert row == other
    assert "meta" not in row.as_dict()
    assert pickle.loads(pickle.dumps(row)).meta == {"lang": "en"}
    other.meta = "no mapping"
    assert other.meta == {}


def test_json_keeps_the_short_values_of_meta() -> None:
    meta = {"lang": "de", "hops": 2, "share": 0.5, "hard": True, "text": "x" * 101, "tags": ["a"], "none": None}
    row = EvalRow("a", 1, {"score": 1.0}, 1, 1)
    row.meta = meta
    kept = {"lang": "de", "hops": 2, "share": 0.5, "hard": True}
    (written,) = json.loads(EvalResult([row], {"a": {}}).to_json())["rows"]
    assert written == {**row.as_dict(), "meta": kept}
    (sliced,) = json.loads(EvalResult([row], {"a": {}}, config={"slices": ["meta.text"]}).to_json())["rows"]
    assert sliced["meta"] == {**kept, "text": "x" * 101}
    bare = EvalRow("a", 1, {}, 1, 1)
    assert "meta" not in json.loads(EvalResult([bare], {"a": {}}).to_json())["rows"][0]


def test_a_result_from_json_is_grouped_as_the_one_it_was(result: EvalResult, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(result.to_json())
    loaded = EvalResult.load(tmp_path / "r.json")
    assert repr(loaded.group_by("meta.lang")) == repr(result.group_by("meta.lang"))
    assert list(loaded.group_by("meta.hops")) == [0, 1]
    with pytest.raises(UsageError, match=r"no row has the field 'meta.tags'"):
        loaded.group_by("meta.tags")
    for row in loaded.rows:
        row.meta = {}
    with pytest.raises(
        UsageError, match=r"'meta.lang': from meta, JSON keeps only numbers and texts of up to 100 char"
    ):
        loaded.group_by("meta.lang")


def test_a_run_from_a_store_has_meta_also_where_it_was_reused(tmp_path: Path) -> None:
    for _ in range(2):
        result = evaluate("passthrough", DATA, progress=False, cache_dir=tmp_path)
        assert list(result.group_by("meta.lang")) == list(LANGUAGES)
    assert result.config["reused"] == 24
    with Store(tmp_path, readonly=True) as store:
        assert list(store.load().group_by("meta.lang")) == list(LANGUAGES)


RUN = ("--system", "passthrough", "--system", "bm25", "--dataset", "data.jsonl", "--quiet")


def test_slices_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in DATA))
    done = called(*RUN, "--slice", "meta.lang", "--slice", "meta.none", "--report", "page.html", cwd=tmp_path)
    assert re.search(r"\| score by meta.lang +\| +n \| +passthrough", done.stdout)
    assert "--slice meta.none: no row has the field 'meta.none'" in done.stdout
    assert "Score by meta.lang" in (tmp_path / "page.html").read_text()
    assert "score by meta.lang" in called("runs", "show", "last", cwd=tmp_path).stdout
    assert "score by meta.hops" in called("runs", "show", "last", "--slice", "meta.hops", cwd=tmp_path).stdout
    assert called("runs", "export", "last", "--out", "r.json", cwd=tmp_path).returncode == 0
    assert list(EvalResult.load(tmp_path / "r.json").group_by("meta.lang")) == list(LANGUAGES)
    for run in ("last", "r.json"):
        assert called("report", run, "--slice", "meta.lang", "--out", "p.html", cwd=tmp_path).returncode == 0
        assert "Score by meta.lang" in (tmp_path / "p.html").read_text()


def test_slices_need_rows(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in DATA))
    done = called(*RUN, "--slice", "meta.lang", "--no-rows", cwd=tmp_path)
    assert done.returncode == 2
    assert "--slice needs rows: remove --no-rows" in done.stderr
