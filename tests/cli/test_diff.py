"""`context-bench diff`: the original and what the model got, for every kind of system, in marks or in colour."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command import called, environment
from context_bench import EvalResult, EvalRow
from context_bench.cli.diff_view import visible
from context_bench.store import Store
from context_bench.store.backend import RunInfo, StoredAnswer
from numbered import right, write
from servers import Server

CONTEXT = "Alice lives in Paris.\nBob lives in Rome.\nCarol lives in Oslo.\n"
EXAMPLE: dict[str, Any] = {
    "id": "q1",
    "context": CONTEXT,
    "question": "Where does Bob live?",
    "answer": "Rome",
    "evidence": ["Bob lives in Rome."],
    "dataset": "people",
}


def body(*messages: tuple[str, str], **fields: Any) -> str:
    return json.dumps({"messages": [{"role": role, "content": text} for role, text in messages], **fields})


def call(*messages: tuple[str, str], status: int = 200, **fields: Any) -> dict[str, Any]:
    return {"path": "/v1/chat/completions", "status": status, "body": body(*messages, **fields)}


def exchange(*calls: dict[str, Any], context: str = CONTEXT, **facts: Any) -> dict[str, Any]:
    return {"sent": body(("system", context), ("user", EXAMPLE["question"])), "calls": list(calls), **facts}


def keep(folder: Path, *rows: tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any]]) -> None:
    """Record a run: for each row its example, what the system returned, and facts of the row."""
    with Store(folder / ".context-bench") as store:
        run: RunInfo = store.start_run({"systems": {}, "metrics": [], "score_field": "score", "tokenizer": None})
        for place, (example, processed, facts) in enumerate(rows):
            values = {"system": "p", "example_id": example["id"], "scores": {}, "input_tokens": 0, "output_tokens": 0}
            row = EvalRow(**{**values, "dataset": example.get("dataset", ""), **facts})
            key = f"{place}".encode().ljust(16)
            kept = store.example_id(run, place, key)
            store.put_example(kept, key, example)
            answer = None
            if processed is not None:
                processed.setdefault("response", processed.get("context", ""))
                stored = StoredAnswer(processed, row.metadata, 0.0, "response")
                answer = store.put_answer(run, place, None, example, stored)
            store.put_row(run, place, None, kept, answer, row)
        store.end_run(run, "done", EvalResult([], {}))


def shown(folder: Path, *arguments: str) -> str:
    done = called("diff", "last", *arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


TAPPED = {"downstream_tokens": 100, "untouched": False}


def tapped(*exchanges: dict[str, Any], response: str = "Rome") -> dict[str, Any]:
    return {"response": response, "tapped": list(exchanges)}


# --- what is shown


def test_a_tapped_row(tmp_path: Path) -> None:
    cut = "Alice lives in Paris.\nCarol lives in Bergen.\n"
    processed = tapped(exchange(call(("system", cut), ("user", EXAMPLE["question"]))))
    facts = {"metadata": TAPPED, "upstream_tokens": 60, "scores": {"score": 0.0}, "response": "Rome"}
    keep(tmp_path, (EXAMPLE, processed, facts))
    assert shown(tmp_path, "q1") == (
        "── p on q1 of people ──\n"
        "tokens: 100 sent, 60 passed on, 40.0% saved\n"
        "evidence: lost, 1 of 1: ⟦Bob lives in Rome.⟧\n"
        "\n── request 1 of 1 ──\n"
        "\n── message 1 of 2: system ──\n"
        "Alice lives in Paris.\n[-⟦Bob lives in Rome.⟧\n-]Carol lives in[- Oslo-]{+ Bergen+}.\n"
        "\n── message 2 of 2: user ──\n"
        "Where does Bob live?\n"
        "\n── response ──\nRome\n"
        "\n── scores ──\nscore 0.000\n"
    )


def test_an_untouched_row(tmp_path: Path) -> None:
    sent = exchange()
    sent["calls"] = [{"path": "/v1/chat/completions", "status": 200, "body": sent["sent"]}]
    facts = {"metadata": {"downstream_tokens": 9, "untouched": True}, "upstream_tokens": 9}
    keep(tmp_path, (EXAMPLE, tapped(sent), facts))
    text = shown(tmp_path, "q1")
    assert "tokens: 9 sent, 9 passed on, 0.0% saved\nuntouched: the model got exactly the request" in text
    assert "evidence: survived, 1 of 1 (1 verbatim, 0 recoverable)\n" in text
    assert "⟦Bob lives in Rome.⟧" in text
    assert "[-" not in text
    assert "{+" not in text


def test_several_turns_and_calls(tmp_path: Path) -> None:
    summary = call(("user", "Sum it up: " + CONTEXT))
    asked = call(("system", "Bob: Rome."), ("user", EXAMPLE["question"]))
    other = {"path": "/v1/embeddings", "status": 200, "body": "{}"}
    failed = call(("system", "x"), status=0)
    processed = tapped(exchange(summary, asked, asked), exchange(other, failed), exchange(), exchange(unmatched=2))
    keep(tmp_path, (EXAMPLE, processed, {}))
    titles = re.findall("^── (request .*) ──$", shown(tmp_path, "q1"), re.MULTILINE)
    assert titles == [
        "request 1 of 4, call 1 of 3, status 200",
        "request 1 of 4, call 2 of 3, status 200",
        "request 1 of 4, call 3 of 3, status 200: same as call 2",
        "request 2 of 4, call 1 of 2, status 200: /v1/embeddings holds no messages",
        "request 2 of 4, call 2 of 2, not answered",
        "request 3 of 4: nothing was passed on",
        "request 4 of 4: its request at the tap is unknown",
    ]


def test_tools_that_a_proxy_puts_in(tmp_path: Path) -> None:
    more = call(("system", CONTEXT), ("user", EXAMPLE["question"]), tools=[{"name": "retrieve"}])
    keep(tmp_path, (EXAMPLE, tapped(exchange(more)), {}))
    assert '── tools ──\n{+{"name":"retrieve"}\n+}\n' in shown(tmp_path, "q1")


def test_a_compressor_in_this_process(tmp_path: Path) -> None:
    facts = {"metadata": {"output": "context"}, "input_tokens": 40, "output_tokens": 10}
    keep(tmp_path, (EXAMPLE, {"context": "Bob lives in Rome.\n"}, facts))
    text = shown(tmp_path, "q1")
    assert "tokens: 40 sent, 10 passed on, 75.0% saved\nevidence: survived" in text
    assert "── context ──\n[-Alice lives in Paris.\n-]⟦Bob lives in Rome.⟧\n[-Carol lives in Oslo.\n-]\n" in text
    assert "response" not in text, "it would be the context once more"


def test_a_compressor_with_a_reader(tmp_path: Path) -> None:
    facts = {"metadata": {"output": "context"}, "input_tokens": 40, "output_tokens": 15, "upstream_tokens": 20}
    keep(
        tmp_path,
        (EXAMPLE, {"context": "Bob lives in Rome.\n", "response": "In Rome"}, {**facts, "response": "In Rome"}),
    )
    text = shown(tmp_path, "q1")
    assert "tokens: 40 sent, 20 passed on, 50.0% saved" in text
    assert "── response ──\nIn Rome\n" in text


def test_a_system_that_changes_the_conversation(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "one two"}, {"role": "assistant", "content": "three"}]
    returned = {"context": "", "turns": [{"role": "user", "content": "one"}, turns[1]]}
    keep(tmp_path, ({"id": 1, "context": "", "turns": turns}, returned, {}))
    assert "── message 1 of 2: user ──\none[- two-]\n" in shown(tmp_path, "1")


@pytest.mark.parametrize(
    ("processed", "facts", "told"),
    [
        (
            {"response": "x"},
            {},
            "nothing to compare: the system returned an answer only; --tap shows the requests that it passes on",
        ),
        (None, {"error": "TimedOut: no answer"}, "nothing to compare: no answer is stored"),
    ],
)
def test_nothing_to_compare(tmp_path: Path, processed: Any, facts: dict[str, Any], told: str) -> None:
    keep(tmp_path, (EXAMPLE, processed, facts))
    text = shown(tmp_path, "q1")
    assert told in text
    assert ("── error ──\nTimedOut: no answer\n" in text) == bool(facts)
    if processed:
        assert "evidence: not known, the text that the model read is not known" in text


def test_long_stretches_are_folded_but_not_the_evidence(tmp_path: Path) -> None:
    lines = [f"line {number} says nothing" for number in range(200)]
    lines[100] = "the evidence is here"
    example = {**EXAMPLE, "context": "\n".join(lines), "evidence": ["the evidence is here"]}
    after = "\n".join(lines[:-1])
    keep(tmp_path, (example, {"context": after}, {}))
    folded = shown(tmp_path, "q1")
    assert len(folded) < 1000
    assert folded.count("tokens unchanged …") == 2
    assert "line 0 says nothing\nline 1 says nothing\n… 5" in folded
    assert "⟦the evidence is here⟧" in folded
    assert "[-\nline 199 says nothing-]" in folded
    full = shown(tmp_path, "q1", "--full")
    assert "unchanged" not in full
    assert all(line in full for line in lines)


def test_a_long_response_is_cut(tmp_path: Path) -> None:
    keep(tmp_path, (EXAMPLE, {"context": "c", "response": "r" * 5000}, {"response": "r" * 5000}))
    assert "r" * 2000 + "… 3,000 more characters\n" in shown(tmp_path, "q1")
    assert "r" * 5000 in shown(tmp_path, "q1", "--full")


# --- which rows


@pytest.fixture
def several(tmp_path: Path) -> Path:
    rows = [
        ({**EXAMPLE, "id": identity}, {"context": "x"}, {"system": system, "dataset": tag, "repeat": repeat})
        for system in ("one", "two")
        for tag in ("people", "needle:n=2")
        for identity in ("q1", 2)
        for repeat in (0, 1)
    ]
    keep(tmp_path, *rows)
    return tmp_path


def _names(text: str) -> list[str]:
    return re.findall("^── (.* on .*) ──$", text, re.MULTILINE)


def test_all_of_them_unless_one_is_chosen(several: Path) -> None:
    assert len(_names(shown(several, "q1"))) == 8
    assert len(_names(shown(several, "2", "--system", "two"))) == 4
    assert _names(shown(several, "q1", "--system", "one", "--dataset", "people")) == [
        "one on q1 of people",
        "one on q1 of people, repeat 1",
    ]
    chosen = shown(several, "2", "--dataset", "needle", "--repeat", "1", "--system", "two")
    assert _names(chosen) == ["two on 2 of needle:n=2, repeat 1"]
    assert len(_names(shown(several, "2", "--dataset", "needle:n=2"))) == 4


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("last", "q11"), "has no example 'q11': there are q1, 2"),
        (("last", "q1", "--system", "ones"), "has no system 'ones': there are one, two"),
        (("last", "q1", "--dataset", "peeple"), "has no dataset 'peeple': there are people, "),
        (("last", "q1", "--repeat", "7"), "has no repeat 7 of example 'q1'"),
        (("nonsense", "q1"), "there is no run 'nonsense'"),
        (("last", "q1", "--repeat", "-1"), "must be an integer of at least 0"),
        (("last", "q1", "--color", "red"), "red"),
        (("last", "q1", "--cache-dir", "elsewhere"), "elsewhere"),
    ],
)
def test_mistakes(several: Path, arguments: tuple[str, ...], told: str) -> None:
    done = called("diff", *arguments, cwd=several)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert told in line


def test_of_many_ids_a_few_are_listed(tmp_path: Path) -> None:
    keep(tmp_path, *(({**EXAMPLE, "id": f"example-{number}"}, {"context": "x"}, {}) for number in range(30)))
    done = called("diff", "last", "example-7x", cwd=tmp_path)
    assert "there are example-7, " in done.stderr
    assert "and 25 more" in done.stderr


# --- colours, and what must not act


def test_colours_only_when_they_are_wanted(tmp_path: Path) -> None:
    keep(tmp_path, (EXAMPLE, {"context": "Bob lives in Rome.\nNew.\n"}, {}))
    assert "\x1b" not in shown(tmp_path, "q1")
    colored = shown(tmp_path, "q1", "--color", "always")
    assert "\x1b[31;9mAlice lives in Paris.\x1b[0m\n" in colored
    assert "\x1b[1;4mBob lives in Rome.\x1b[0m\n" in colored
    assert "\x1b[32m" in colored
    assert "[-" not in colored
    assert "\x1b" not in shown(tmp_path, "q1", "--color", "always", "--no-color")


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of this kind is not there")
@pytest.mark.parametrize(("variables", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_on_a_terminal(tmp_path: Path, variables: dict[str, str], colored: bool) -> None:
    import pty

    keep(tmp_path, (EXAMPLE, {"context": "Bob"}, {}))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "context_bench", "diff", "last", "q1"]
    plain = {name: value for name, value in environment().items() if name != "NO_COLOR"}
    done = subprocess.run(
        command, cwd=tmp_path, stdout=theirs, env={**plain, "TERM": "xterm", **variables}, check=False
    )
    os.close(theirs)
    text = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert ("\x1b[31;9m" in text) == colored
    assert ("[-" in text) != colored


def test_nothing_in_a_text_acts_on_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\r\x08\x7f\x9b31m\u202e\u200b"
    example = {**EXAMPLE, "id": "e", "context": f"a{evil}b\tc\nd", "evidence": [f"x{evil}"]}
    facts = {
        "scores": {f"k{evil}": 1.0},
        "unscored": {"u": evil},
        "response": evil,
        "system": f"s{evil}",
        "error": evil,
    }
    keep(tmp_path, (example, {"context": f"z{evil}\n", "response": evil}, facts))
    for color in ("never", "always"):
        text = shown(tmp_path, "e", "--full", "--color", color)
        kept = re.sub("\x1b\\[[0-9;]*m", "", text) if color == "always" else text
        assert all(char.isprintable() or char in "\n\t" for char in kept)
    assert "b\tc" in text
    assert "␛[2J" in text


def test_visible() -> None:
    assert visible("a\tb\nc\u00a0d\x00\r\x1b\x85\u202e") == "a\tb\nc d␀␍␛ �"


# --- with the rest


def test_after_a_real_run(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", 1, 2, evidence=["Item 2"])
    with Server(right) as server:
        run = ("--proxy", server.url, "--name", "p", "--system", "truncate:ratio=0.5", "--dataset", "data.jsonl")
        assert called(*run, cwd=tmp_path).returncode == 0
    text = shown(tmp_path, "2")
    assert _names(text) == ["p on 2 of data", "truncate:ratio=0.5 on 2 of data"]
    assert "nothing to compare" in text.partition("truncate")[0]
    assert "evidence: survived" in text.partition("truncate")[2]
    assert "[-" in text.partition("truncate")[2]


def test_without_an_id_the_rows_are_listed(several: Path) -> None:
    done = called("diff", "last", cwd=several)
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.splitlines()
    assert first.split() == ["example", "system", "score", "saved", "evidence", "error"]
    assert {line.split()[0] for line in rows} == {"q1", "2"}
    assert {line.split()[1] for line in rows} == {"one", "two"}


def test_of_many_rows_the_first_are_listed_with_what_they_saved(tmp_path: Path) -> None:
    called("--dataset", "needle:n=21,length=200", "--system", "passthrough", "--system", "oracle", cwd=tmp_path)
    lines = shown(tmp_path).splitlines()
    assert len(lines) == 1 + 40 + 1
    assert lines[1].split()[1:] == ["passthrough", "1.000", "0.0%", "verbatim"]
    assert 80 < float(lines[2].split()[3].rstrip("%")) < 100
    assert lines[-1].startswith("… 2 more; select with --lost, --broken, --failed, --system or --dataset")
    assert len(shown(tmp_path, "--wide").splitlines()) == 1 + 42


def test_the_start_of_an_id_is_enough_where_it_is_the_only_one(several: Path) -> None:
    assert called("diff", "last", "q", cwd=several).stdout == called("diff", "last", "q1", cwd=several).stdout != ""


def test_the_start_of_several_ids_lists_them(tmp_path: Path) -> None:
    keep(tmp_path, *(({**EXAMPLE, "id": f"q{number}"}, {"context": "x"}, {}) for number in range(7)))
    done = called("diff", "last", "q", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "7 examples start with 'q': q0, q1, q2, q3, q4 and 2 more" in done.stderr


def test_the_start_of_several_runs_lists_them(tmp_path: Path) -> None:
    for _ in range(40):
        keep(tmp_path, (EXAMPLE, {"context": "x"}, {}))
    with Store(tmp_path / ".context-bench", readonly=True) as store:
        ids = [run.id for run in store.runs()]
    start = next(each[0] for each in ids if sum(other[0] == each[0] for other in ids) > 1)
    told = called("diff", start, cwd=tmp_path).stderr
    assert f"runs start with {start!r}: " in told
    assert any(each in told for each in ids)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A run in which bm25 loses the evidence of one example, breaks another, and fails on a third."""
    scores = {
        "passthrough": [{"score": 1.0}, {"score": 1.0}, {"score": 1.0}, {"score": 0.0}],
        "bm25": [
            {"score": 1.0, "evidence_survived": 0.0},
            {"score": 0.0, "evidence_survived": 1.0},
            {},
            {"score": 0.0},
        ],
    }
    rows = [
        (
            {**EXAMPLE, "id": f"q{place}"},
            {"context": "Bob lives in Rome.\n"},
            {"system": system, "scores": each, "error": "TimedOut: slow" if not each else None},
        )
        for system, all_scores in scores.items()
        for place, each in enumerate(all_scores)
    ]
    keep(tmp_path, *rows)
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "ids"),
    [
        (["--lost"], ["q0"]),
        (["--broken"], ["q1"]),
        (["--failed"], ["q2"]),
        (["--lost", "--failed"], ["q0", "q2"]),
        (["--failed", "--system", "passthrough"], []),
    ],
)
def test_only_what_was_lost_broken_or_failed(mixed: Path, flags: list[str], ids: list[str]) -> None:
    rows = json.loads(shown(mixed, *flags, "--output", "json"))
    assert [(row["example"], row["system"]) for row in rows] == [(each, "bm25") for each in ids]
    text = shown(mixed, *flags)
    if ids:
        assert [line.split()[0] for line in text.splitlines()[1:]] == ids
        assert _names(shown(mixed, ids[0], *flags)) == [f"bm25 on {ids[0]} of people"]
    else:
        assert text == "No example failed.\n"


def test_lost_is_found_where_no_evaluator_looked_for_evidence(tmp_path: Path) -> None:
    keep(tmp_path, (EXAMPLE, {"context": "x"}, {}), ({**EXAMPLE, "id": "q2"}, {"context": CONTEXT}, {}))
    assert [(row["example"], row["evidence"]) for row in json.loads(shown(tmp_path, "--lost", "--output", "json"))] == [
        ("q1", "lost")
    ]


def test_broken_needs_a_baseline(tmp_path: Path) -> None:
    keep(tmp_path, (EXAMPLE, {"context": "x"}, {}))
    done = called("diff", "last", "--broken", cwd=tmp_path)
    assert done.returncode == 2
    assert "--broken needs a baseline" in done.stderr


def test_json_holds_both_texts(mixed: Path) -> None:
    after = "Carol lives in Oslo.\nBob lives in Rome.\n"
    keep(mixed, (EXAMPLE, {"context": after}, {"scores": {"score": 1.0}}))
    (row,) = json.loads(shown(mixed, "q1", "--output", "json"))
    assert (row["example"], row["system"], row["score"], row["evidence"]) == ("q1", "p", 1.0, "verbatim")
    ((part,),) = (comparison["parts"] for comparison in row["comparisons"])
    assert "".join(each["text"] for each in part["segments"]) == CONTEXT
    assert "".join(each["new"] for each in part["segments"]) == after
    assert {each["kind"] for each in part["segments"]} == {"kept", "dropped", "moved"}
    marked = [(each["kind"], each["text"], each["new"]) for each in part["segments"] if each["evidence"]]
    assert marked == [("moved", "Bob lives in Rome.", ""), ("moved", "", "Bob lives in Rome.")]


def test_moved_text_is_shown_as_moved(tmp_path: Path) -> None:
    keep(tmp_path, (EXAMPLE, {"context": "Carol lives in Oslo.\nAlice lives in Paris.\nBob lives in Rome.\n"}, {}))
    text = shown(tmp_path, "q1")
    assert "{~Carol lives in Oslo.\n~}Alice lives in Paris.\n⟦Bob lives in Rome.⟧\n[~Carol lives in Oslo.\n~]" in text
    assert "\x1b[36mCarol" in shown(tmp_path, "q1", "--color", "always")
