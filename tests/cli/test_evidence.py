"""What a run says of evidence, from the command to table, JSON and CSV: pruned, rewritten, cut off, and never there."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from command import called
from servers import Request, Server, completion

NAMES = ("Mara Lind", "Olle Berg", "Ines Costa", "Kofi Mensah", "Yuki Sato", "Petra Novak")
SYSTEMS = '''
def prune(example):
    """Drops function words, as a token pruner does."""
    drop = {"the", "of", "was", "by", "in", "and", "it", "to"}
    return {"context": " ".join(word for word in example["context"].split() if word.lower() not in drop)}


def rewrite(example):
    """Says the same in words of its own."""
    name = example["answer"] if "answer" in example else example["context"].split(" by ")[1].split(" in ")[0]
    return {"context": f"Construction happened under {name}'s supervision a long while ago."}


def cut(example):
    return {"context": "The gate was painted green."}
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = []
    for number, name in enumerate(NAMES):
        span = f"The bridge of Elm was built by {name} in {1900 + number} and it belongs to the old mill."
        facts = {"context": f"{span} The gate was painted green.", "evidence": [span], "answer": name}
        rows.append({"id": number, "question": "Who made the crossing?", **facts})
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.py").write_text(SYSTEMS)
    return tmp_path


def read_name(request: Request) -> Any:
    """Answers as a reader would: with the name in what it was sent."""
    text = json.dumps(request.json)
    return completion(next((name for name in NAMES if name in text), "I do not know"))


def run(folder: Path, system: str, *flags: str) -> str:
    with Server(read_name) as server:
        done = called(
            *("--system", f"./mine.py:{system}", "--reader", server.url, "--model", "m", "--dataset", "data.jsonl"),
            *flags,
            cwd=folder,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def find_cells(text: str, title: str) -> dict[str, str]:
    lines = text.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith(f"| {title} "))
    first, second = ([cell.strip() for cell in lines[at].strip("|").split("|")] for at in (head, head + 2))
    return dict(zip(first, second))


@pytest.mark.parametrize(
    ("system", "shares", "said"),
    [
        (
            "prune",
            ("0.0%", "100.0%", "0.0%"),
            "./mine.py:prune is right in 6 of 6, although words of the evidence were dropped in 100.0% of "
            "the examples.",
        ),
        (
            "rewrite",
            ("0.0%", "0.0%", "100.0%"),
            "./mine.py:rewrite is right in 6 of 6, although evidence was lost in 100.0% of the examples "
            "(reworded evidence counts as lost).",
        ),
        (
            "cut",
            ("0.0%", "0.0%", "100.0%"),
            "./mine.py:cut is right in 0 of 6; evidence was lost in 100.0% of the examples.",
        ),
    ],
)
def test_the_conclusion_leads_with_the_answers_of_the_reader(
    folder: Path, system: str, shares: tuple[str, ...], said: str
) -> None:
    text = run(folder, system, "--wide")
    cells = find_cells(text, "evidence")
    assert tuple(cells[each] for each in ("verbatim", "recoverable", "lost")) == shares
    assert " ".join(text.split("\n\n")[-1].split()).startswith(said)


def test_one_name_has_one_meaning_in_json_and_csv(folder: Path) -> None:
    found = json.loads(run(folder, "prune", "--output", "json"))
    (values,) = found["summary"].values()
    keys = ("verbatim", "recoverable", "lost", "rewritten", "survival", "rows")
    assert [values[f"evidence_{key}"] for key in keys] == [0, 1, 0, 0, 1, 6]
    states = ("evidence_survived", "evidence_verbatim")
    assert [[row["scores"][each] for each in states] for row in found["rows"]] == [[1, 0]] * 6
    rows = list(csv.DictReader(io.StringIO(run(folder, "prune", "--output", "csv"))))
    assert [[float(row[each]) for each in states] for row in rows] == [[1, 0]] * 6


def test_golds_that_stand_in_no_context_are_counted_and_not_lost(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "data.jsonl").read_text().splitlines()]
    for row in rows:
        del row["evidence"]
    rows[0]["answer"], rows[1]["answer"] = "yes", "no"
    rows[1]["context"] += " There is no other."
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ("--system", "passthrough", "--score-field", "answer_in_context", "--dataset", "data.jsonl")
    text = called(*flags, cwd=folder).stdout
    cells = find_cells(text, "system")
    assert (cells["n"], cells["unscored"], cells["score"][:6]) == ("6", "2", "1.000*")
    assert "2 of 6 unscored: no gold answer occurs in the original context, so none can be lost." in text
    (values,) = json.loads(called(*flags, "--output", "json", cwd=folder).stdout)["summary"].values()
    assert (values["mean_score"], values["num_unscored"]) == (1.0, 2.0)
