"""From what is typed after --dataset to examples."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench import evaluate, register_dataset
from context_bench.datasets.files import parse_mapping
from context_bench.datasets.open import Choices, open_datasets
from context_bench.errors import DataError, UnknownName, UsageError


def numbers(n: int = 3, start: int = 0, seed: int = 0) -> Iterator[dict[str, Any]]:
    """A loader of one's own."""
    for number in range(start, start + n):
        yield {"id": number, "context": f"seed {seed}"}


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> str:
    from context_bench.registry import registry

    monkeypatch.setattr(registry, "_registered", {kind: dict(own) for kind, own in registry._registered.items()})
    register_dataset("test-numbers", numbers)
    return "test-numbers"


def rows(*texts: str, seed: int | None = 0, limit: int | None = None) -> list[dict[str, Any]]:
    datasets = open_datasets(texts, Choices(seed, limit))
    datasets.check()
    return list(datasets)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps({"id": number, "context": ""}) + "\n" for number in range(4)))
    return path


def test_a_file_of_a_kind_that_is_not_read_is_not_taken_for_a_name(file: Path) -> None:
    other = file.rename(file.with_name("mine.jsonl.bz2"))
    with pytest.raises(DataError, match=r"mine\.jsonl\.bz2: unknown kind of file; use \.jsonl.* plain or as \.gz"):
        rows(str(other))
    other.unlink()
    with pytest.raises(UnknownName):
        rows(str(other))
    with pytest.raises(DataError, match=r"mine\.jsonl\.gz: no such file"):
        rows(str(file.with_name("mine.jsonl.gz")))


def test_a_name_with_parameters_is_the_tag(own: str) -> None:
    got = rows(f"{own}:n=2,start=5")
    assert [(row["id"], row["dataset"]) for row in got] == [(5, f"{own}:n=2,start=5"), (6, f"{own}:n=2,start=5")]


def test_the_seed_reaches_the_loader_unless_it_is_named(own: str) -> None:
    assert rows(f"{own}:n=1", seed=7)[0]["context"] == "seed 7"
    assert rows(f"{own}:n=1,seed=9", seed=7)[0]["context"] == "seed 9"


def test_several_datasets_follow_each_other_each_cut_to_the_limit(own: str, file: Path) -> None:
    datasets = open_datasets([f"{own}:n=5", str(file)], Choices(0, 3))
    assert datasets.tags == [f"{own}:n=5", "mine"]
    datasets.check()
    assert [row["id"] for row in datasets] == [0, 1, 2, 0, 1, 2]
    assert len(datasets) == 6


def test_a_sweep_is_one_dataset(own: str) -> None:
    got = rows(f"{own}:start=0|10,n=2")
    assert [row["id"] for row in got] == [0, 1, 10, 11]
    assert {row["dataset"] for row in got} == {f"{own}:start=0|10,n=2"}


def test_an_endless_loader_is_read_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    from context_bench.registry import registry

    monkeypatch.setattr(registry, "_registered", {kind: dict(own) for kind, own in registry._registered.items()})
    register_dataset("test-endless", lambda: ({"id": number, "context": ""} for number in iter(int, 1)))
    datasets = open_datasets(["test-endless"], Choices(0, 2))
    assert len(list(islice(datasets, 5))) == 2


@pytest.mark.parametrize("how", ["{file}:numbers:n=2", "{file}:LIST", "{file}:numbers"])
def test_code_of_ones_own(tmp_path: Path, how: str) -> None:
    code = tmp_path / "mine.py"
    code.write_text(
        "def numbers(n=1):\n    return [{'id': i, 'context': ''} for i in range(n)]\n"
        "LIST = [{'id': 'x', 'context': ''}]\n"
    )
    text = how.format(file=code)
    assert rows(text)[0]["dataset"] == text


def test_two_files_of_one_name_are_told_apart(tmp_path: Path, file: Path) -> None:
    (tmp_path / "sub").mkdir()
    other = tmp_path / "sub" / "mine.jsonl"
    other.write_bytes(file.read_bytes())
    datasets = open_datasets([str(file), str(other)])
    assert datasets.tags == [str(file), str(other)]


@each_case(
    ("text", "said"),
    [
        ("nedle", "did you mean needle"),
        ("no-such-thing-at-all", "no-such-thing-at-all"),
        ("missing.jsonl", "missing.jsonl: no such file"),
        ("needle:depht=0.5", "'depht'"),
        ("needle:length=abc", "length"),
        ("needle:length=-5", "length"),
        ("needle:n=-1", "n"),
        ("needle:n=many", "n"),
        ("needle:depth=2", "depth"),
        ("needle:5", "'5' is not key=value"),
        ("needle:n=1,n=2", "twice"),
        ("missing.py:loader", "missing.py: no such file"),
        ("json:nothing_there", "nothing_there"),
        (":", "dataset"),
        ("", "dataset"),
    ],
)
def test_a_mistake_is_an_error_before_anything_is_read(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_datasets([text], Choices(0))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_can_be_caught_as_such() -> None:
    with pytest.raises(UnknownName):
        open_datasets(["nedle"])


def test_one_dataset_twice_is_a_mistake(own: str, file: Path) -> None:
    for text in (own, str(file)):
        with pytest.raises(UsageError, match="twice"):
            open_datasets([text, text])


@pytest.mark.parametrize("returned", [None, 5, object()])
def test_a_loader_that_returns_no_examples(monkeypatch: pytest.MonkeyPatch, returned: Any) -> None:
    from context_bench.registry import registry

    monkeypatch.setattr(registry, "_registered", {kind: dict(own) for kind, own in registry._registered.items()})
    register_dataset("test-nothing", lambda: returned)
    with pytest.raises(DataError, match="test-nothing"):
        open_datasets(["test-nothing"])


def test_a_bad_file_is_found_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": 1, "context": ""}\n{"id": 1, "context": ""}\n')
    datasets = open_datasets([str(path)])
    with pytest.raises(DataError, match="line 2"):
        datasets.check()


# one's own names of fields, samples, and what is recorded of a source


def mapped(folder: Path, text: str, mapping: str, name: str = "m.jsonl") -> list[dict[str, Any]]:
    path = folder / name
    path.write_text(text)
    datasets = open_datasets([str(path)], Choices(mapping=parse_mapping(mapping)))
    datasets.check()
    return list(datasets)


def test_fields_by_the_names_that_they_have_in_a_file(tmp_path: Path) -> None:
    text = '{"prompt": "Who?", "gold": "Ada", "text": "Ada did it."}\n{"prompt": "When?", "gold": "1815", "text": ""}\n'
    assert mapped(tmp_path, text, "question=prompt,answer=gold,context=text") == [
        {"id": 1, "question": "Who?", "answer": "Ada", "context": "Ada did it.", "dataset": "m"},
        {"id": 2, "question": "When?", "answer": "1815", "context": "", "dataset": "m"},
    ]


def test_fields_that_are_not_mapped_stay(tmp_path: Path) -> None:
    (row,) = mapped(tmp_path, "id\tcontext\tgold\nx\ty\tz\n", "answer = gold", "m.tsv")
    assert row == {"id": "x", "context": "y", "answer": "z", "dataset": "m"}


def test_a_column_that_is_misspelt_in_a_mapping(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no 'promt' \(from --map question=promt\); did you mean prompt\? it has id"):
        mapped(tmp_path, '{"id": 1, "prompt": "Who?"}\n', "question=promt")


def test_a_mapped_field_that_a_record_lacks(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2: no 'gold' \(from --map answer=gold\); it has id"):
        mapped(tmp_path, '{"gold": 1}\n{"id": 1}\n', "answer=gold")


@pytest.mark.parametrize("mapping", ["question", "question=", "=prompt", "a=b,,c=d", "a=b,a=c", ""])
def test_a_mapping_that_says_nothing(mapping: str) -> None:
    with pytest.raises(UsageError, match="--map"):
        parse_mapping(mapping)


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ("contxt=text,answer=gold", "an example has no field 'contxt'; did you mean context"),
        ("awnser=gold", "an example has no field 'awnser'; did you mean answer"),
    ],
)
def test_a_field_that_is_misspelt_in_a_mapping(mapping: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_mapping(mapping)


def test_a_field_of_ones_own_in_a_mapping(tmp_path: Path) -> None:
    (row,) = mapped(tmp_path, '{"id": 1, "context": "c", "how hard": 3}\n', "difficulty=how hard")
    assert row["difficulty"] == 3


def test_a_file_that_is_not_there_and_the_one_that_is_meant(tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text("id,context\n1,a\n")
    with pytest.raises(DataError, match=r"question\.csv: no such file; did you mean questions\.csv\?"):
        open_datasets([str(tmp_path / "question.csv")])
    with pytest.raises(DataError, match=r"zzz\.csv: no such file$"):
        open_datasets([str(tmp_path / "zzz.csv")])


def test_a_directory_and_a_file_of_another_kind_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a directory without recorded sessions: pass a file in it"):
        open_datasets([str(tmp_path)])
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"notes\.txt: unknown kind of file; use \.jsonl"):
        open_datasets([str(tmp_path / "notes.txt")])


def test_a_dataset_is_not_hidden_by_a_directory_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needle").mkdir()
    monkeypatch.chdir(tmp_path)
    assert len(list(open_datasets(["needle"], Choices(limit=1)))) == 1


def test_a_mapping_without_a_file(own: str) -> None:
    with pytest.raises(UsageError, match="--map is for your own files"):
        open_datasets([own], Choices(mapping={"question": "prompt"}))


def test_a_sample_of_each_dataset(own: str, file: Path) -> None:
    def ids(seed: int) -> list[Any]:
        return [row["id"] for row in open_datasets([f"{own}:n=50", str(file)], Choices(seed, 3, "random"))]

    assert len(ids(0)) == 6
    assert ids(0) == ids(0) != ids(1)


def test_a_revision_is_for_public_datasets(own: str) -> None:
    with pytest.raises(UsageError, match="--revision is for public datasets"):
        open_datasets([own], Choices(revision="main"))


def test_the_facts_of_a_file_tell_its_versions_apart(own: str, file: Path) -> None:
    before = open_datasets([own, str(file)]).facts()
    assert list(before) == ["mine"]
    file.write_text('{"id": 1, "context": "new"}')
    assert open_datasets([str(file)]).facts() != before


def test_a_limit_tells_a_loader_with_a_number_of_its_own_how_many_to_make(own: str) -> None:
    assert [row["id"] for row in rows(own, limit=5)] == [0, 1, 2, 3, 4]  # 3 unless it is told
    assert len(rows(own)) == 3
    assert len(rows(f"{own}:n=2", limit=5)) == 2
    assert len(open_datasets([own], Choices(0, 5))) == 5
    assert [row["context"] for row in rows(f"{own}:seed=1|2", limit=3)] == ["seed 1", "seed 1", "seed 2"]


def test_a_random_sample_is_of_at_least_the_usual_number(own: str) -> None:
    def sample(limit: int) -> list[Any]:
        return [row["id"] for row in open_datasets([own], Choices(0, limit, "random"))]

    assert len(set(sample(2))) == 2
    assert {number for seed in range(20) for number in _sampled(own, seed)} == {0, 1, 2}
    assert sorted(sample(6)) == [0, 1, 2, 3, 4, 5]


def _sampled(own: str, seed: int) -> list[Any]:
    return [row["id"] for row in open_datasets([f"{own}:seed=0"], Choices(seed, 2, "random"))]


def test_max_examples_of_a_generated_dataset() -> None:
    result = evaluate("passthrough", "needle:length=200", max_examples=25, progress=False)
    assert len(result.rows) == 25
    assert len({row.example_id for row in result.rows}) == 25


def _read(*texts: str, limit: int | None = None, sample: str | None = None, seed: int = 0) -> tuple[list[Any], Any]:
    """The ids that are read, and how each tag's are said to have been chosen."""
    datasets = open_datasets(texts, Choices(seed, limit, sample))
    datasets.check()
    read = list(datasets)
    return [row["id"] for row in read], datasets.name_samples(Counter(row["dataset"] for row in read))


def _write(path: Path, rows: int, **more: Any) -> str:
    path.write_text("".join(json.dumps({"id": n, "context": "c", **more}) + "\n" for n in range(rows)))
    return str(path)


def test_a_file_is_drawn_from_unless_the_first_are_asked_for(tmp_path: Path) -> None:
    file = _write(tmp_path / "mine.jsonl", 100)
    drawn, told = _read(file, limit=10)
    assert len(set(drawn)) == 10
    assert drawn != list(range(10))
    assert told == {"mine": "random"}
    assert _read(file, limit=10, seed=1)[0] != drawn
    assert _read(file, limit=10, sample="random")[0] == drawn
    assert _read(file, limit=10, sample="first") == (list(range(10)), {"mine": "first"})
    assert _read(file) == (list(range(100)), {"mine": "all"})
    assert _read(file, limit=100) == (list(range(100)), {"mine": "all"})


def test_the_tags_in_a_file_are_told_of(tmp_path: Path) -> None:
    assert _read(_write(tmp_path / "mine.jsonl", 20, dataset="theirs"), limit=5)[1] == {"theirs": "random"}


def test_generated_data_is_a_random_draw_whatever_is_asked_for() -> None:
    first, told = _read("needle:length=200", limit=3)
    assert told == {"needle:length=200": "random"}
    assert first == _read("needle:length=200", limit=3, sample="first")[0]
    assert _read("needle:length=200,n=2")[1] == {"needle:length=200,n=2": "random"}
    assert len(_read("needle:length=200,n=50", limit=3)[0]) == 3


def test_a_stream_is_not_read_to_its_end_unasked(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(
        "import itertools\ndef rows():\n    return ({'id': n, 'context': 'c'} for n in itertools.count())\n"
    )
    text = f"{tmp_path / 'endless.py'}:rows"
    assert _read(text, limit=4) == ([0, 1, 2, 3], {text: "first"})


def test_a_folder_of_public_records_is_at_hand(tmp_path: Path) -> None:
    (tmp_path / "gsm8k").mkdir()
    rows = [{"question": f"How many is {n}?", "answer": f"It is.\n#### {n}"} for n in range(30)]
    (tmp_path / "gsm8k" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    datasets = open_datasets(["gsm8k"], Choices(0, 5, None, data_dir=str(tmp_path)))
    read = [row["id"] for row in datasets]
    whole = [row["id"] for row in open_datasets(["gsm8k"], Choices(data_dir=str(tmp_path)))]
    assert len(whole) == 30
    assert set(read) < set(whole)
    assert read != whole[:5]
    assert datasets.name_samples({"gsm8k": 5}) == {"gsm8k": "random"}


def test_python_takes_the_first_as_it_always_has(tmp_path: Path) -> None:
    file = _write(tmp_path / "mine.jsonl", 20)
    result = evaluate("passthrough", file, max_examples=3, progress=False)
    assert [row.example_id for row in result.rows] == [0, 1, 2]
    assert result.config["samples"] == {"mine": "first"}
    rows = [{"id": n, "context": "c", "dataset": "mine"} for n in range(5)]
    assert evaluate("passthrough", rows, max_examples=3, progress=False).config["samples"] == {"mine": "first"}
    assert evaluate("passthrough", rows, progress=False).config["samples"] == {"mine": "all"}
    assert evaluate("passthrough", {"a": rows}, progress=False).config["samples"] == {"a": "all"}
    generated = evaluate("passthrough", "needle:length=200", max_examples=2, progress=False)
    assert generated.config["samples"] == {"needle:length=200": "random"}
