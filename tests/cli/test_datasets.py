"""`context-bench datasets`: one dataset up close, traffic as a dataset, the page of all datasets, and runs on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.cli import main

ROOT = Path(__file__).parents[2]
RECORDS = [
    {
        "_id": f"q{number}",
        "question": "Which river passes Lendau?",
        "answer": "Mura",
        "type": "bridge" if number % 2 else "comparison",
        "level": "hard",
        "supporting_facts": [["Lendau", 1]],
        "context": [["Lendau", ["A town. ", f" The Mura passes it {number}."]], ["Bo", ["Bo sings. " * 300]]],
    }
    for number in range(8)
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "hotpotqa").mkdir()
    (tmp_path / "hotpotqa" / "hotpot_dev_distractor_v1.json").write_text(json.dumps(RECORDS))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(each) for each in arguments])
    got = capsys.readouterr()
    return code, got.out, got.err


def test_show_gives_facts_an_example_and_its_prompt(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    code, out, err = run(capsys, "datasets", "show", "hotpotqa", "--data-dir", data)
    assert (code, err) == (0, "")
    facts, _, rest = out.partition("\nthe first example:\n")
    example, _, prompt = rest.partition("\nits prompt:\n")
    assert "CC BY-SA 4.0" in facts
    assert "hub hotpotqa/hotpot_qa (fullwiki)" in facts
    shown = json.loads(example)
    assert shown["id"] == "q0"
    assert "characters ...]" in shown["context"]
    messages = json.loads(prompt)["messages"]
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[1]["content"].startswith("Which river passes Lendau?\n\nAnswer with the shortest phrase")


def test_show_in_full(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    _, out, _ = run(capsys, "datasets", "show", "hotpotqa:distractor", "--data-dir", data, "--full")
    assert "Bo sings. " * 300 in out


def test_show_of_generated_data(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "datasets", "show", "needle:length=200,n=1")
    assert code == 0
    assert json.loads(out.partition("its prompt:\n")[2])["messages"]


def test_show_gives_the_facts_where_there_is_no_example(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    code, out, err = run(capsys, "datasets", "show", "hotpotqa:fullwiki", "--data-dir", data)
    assert code == 0
    assert out.startswith("dataset")
    assert "no example: " in err
    assert "hotpot_dev_fullwiki*.json" in err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("show", "hotpotqa:fulwiki"), "hotpotqa has no configuration 'fulwiki'; it has fullwiki, distractor"),
        (("show", "hotpot"), "unknown dataset 'hotpot': did you mean hotpotqa"),
        (("fetch", "needle", "--to", "x"), "unknown public dataset 'needle'"),
        (("fetch", "2wikimultihopqa", "--to", "x"), "is not on the hub"),
        (("fetch", "hotpotqa"), "--to"),
        (("import", "no.jsonl"), "no.jsonl: no such file"),
    ],
)
def test_a_mistake_is_one_sentence(
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, "datasets", *arguments)
    assert code == 2
    assert problem in err
    assert err.count("\n") == 1


def test_traffic_becomes_a_dataset_that_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    request = {"model": "m", "messages": [{"role": "system", "content": "A log."}, {"role": "user", "content": "Why?"}]}
    reply = {"choices": [{"message": {"content": "A log."}}]}
    lines = [{"request": request, "response": reply}, {"input": "an embedding"}]
    Path("traffic.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, err = run(capsys, "datasets", "import", "traffic.jsonl", "--out", "mine.jsonl", "--answers")
    assert (code, out) == (0, "")
    assert err == "context-bench: wrote mine.jsonl\ncontext-bench: 1 example, 1 line left out (no request to a model)\n"
    code, out, _ = run(
        capsys, "--system", "passthrough", "--dataset", "mine.jsonl", "--output", "json", "--no-store", "--quiet"
    )
    assert code == 0
    assert json.loads(out)["summary"]["passthrough"]["mean_score"] == 1.0


def test_traffic_without_a_chat(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"input": "x"}\n')
    code, out, err = run(capsys, "datasets", "import", tmp_path / "log.jsonl")
    assert (code, out) == (2, "")
    assert "log.jsonl: unknown format of recorded traffic" in err


def result(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = run(capsys, *arguments, "--output", "json", "--no-store", "--quiet")
    assert code == 0, err
    return dict(json.loads(out))


def test_a_run_records_its_source_and_its_sample(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    flags = ("--system", "oracle", "--dataset", "hotpotqa", "--data-dir", data, "-n", 4, "--sample", "stratified")
    got = result(capsys, *flags, "--score-field", "evidence_recall")
    assert got["summary"]["oracle"]["mean_score"] == 1.0
    assert list(got["config"]["sources"]["hotpotqa"]["files"]) == ["hotpot_dev_distractor_v1.json"]
    assert got["config"]["sample"] == "stratified"
    kinds = [int(row["example_id"][1:]) % 2 for row in got["rows"]]
    assert sorted(kinds) == [0, 0, 1, 1]


def test_the_folder_by_the_environment(
    capsys: pytest.CaptureFixture[str], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_DATA", str(data))
    got = result(capsys, "--system", "closed-book", "--dataset", "hotpotqa", "--score-field", "evidence_recall")
    assert got["summary"]["closed-book"]["mean_score"] == 0.0


def test_fields_of_ones_own_file_by_their_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("text,prompt,gold\nThe Mura.,Which river?,Mura\n")
    mapping = "context=text,question=prompt,answer=gold"
    got = result(capsys, "--system", "passthrough", "--dataset", tmp_path / "mine.csv", "--map", mapping)
    assert got["rows"][0]["scores"]["answer_in_context"] == 1.0


def test_the_page_of_all_datasets_is_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "datasets", "--markdown")
    assert code == 0
    page = ROOT / "docs" / "datasets-catalog.md"
    assert page.read_text(encoding="utf-8") == out, "context-bench datasets --markdown > docs/datasets-catalog.md"
