"""Faulty toys, each of which breaks one relation, are found and named; honest ones break none."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import called, environment, shell
from context_bench.fuzz import Report, fuzz, read_case, replay
from context_bench.fuzz.relations import RELATIONS
from context_bench.fuzz.session import list_known
from context_bench.fuzz.targets import MemoryTarget, SystemTarget
from context_bench.systems.adapt import adapt
from servers import free_port
from toy_proxies import Toy, toy_proxy

SLOW = """
import pathlib, time

def slow(example):
    pathlib.Path("asked").touch()
    time.sleep(0.02)
    return example["context"]
"""
Change = Callable[[str], str]
FORMATS = ("json", "python", "table")  # what leaves out a line of JSON or code breaks these too
EVIDENCE = re.compile(r"reject|vault|Zelda")


def _fuzz_system(process: Any, sized: dict[float, Any] | None = None, n: int = 15) -> Report:
    made = {ratio: adapt(each) for ratio, each in (sized or {}).items()}
    target = SystemTarget(adapt(process), made)
    return asyncio.run(fuzz(target, list(RELATIONS.values()), n=n, seconds=20))


def _by_lines(keep: Callable[[list[str], int], bool]) -> Change:
    def change(text: str) -> str:
        lines = text.splitlines(keepends=True)
        return "".join(line for place, line in enumerate(lines) if keep(lines, place))

    return change


def _count_calls() -> Change:
    calls = iter(range(10**6))
    return lambda text: f"{text}\n(request {next(calls)})"


FAULTY: dict[str, Change] = {
    "order": _by_lines(lambda lines, place: not EVIDENCE.search(lines[place]) or len(lines[place - 1]) % 2 == 0),
    "position": _by_lines(lambda lines, place: place < len(lines) - 3),
    "padding": _by_lines(lambda lines, place: len(lines) < 36 or not EVIDENCE.search(lines[place])),
    "renaming": _by_lines(lambda lines, place: not re.search(r"[A-H][1-4]\d{3}-", lines[place])),
    "json-keys": _by_lines(lambda lines, place: '{"' not in lines[place] or '{"service"' in lines[place]),
    "layout": _by_lines(lambda lines, place: not lines[place].endswith(("\r\n", "  \n"))),
    "repeat": _count_calls(),
    "json": lambda text: text.rstrip("]\n"),
    "python": lambda text: text.replace("):", ")"),
    "table": lambda text: re.sub(r"(\| Goran .*\|) \S+ \|", r"\1", text),
    "literals": lambda text: text.replace("/srv/", "/").replace("https://", "").replace('"', "'"),
    "literals, all numbers": lambda text: re.sub(r"\d+", lambda found: str(int(found[0]) + 1), text),
    "layout, accents": _by_lines(lambda lines, place: not any(map(unicodedata.combining, lines[place]))),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_faulty_system_is_found_by_the_relation_that_it_breaks(fault: str) -> None:
    relation = fault.partition(",")[0]
    report = _fuzz_system(lambda example: FAULTY[fault](example["context"]))
    broken = {result.relation.id for result in report.broken}
    assert relation in broken
    if relation not in ("order", "position"):  # what depends on neighbours or places breaks several
        assert broken <= {relation, *FORMATS}
    finding = next(each for each in report.findings if each.relation == relation)
    assert len(finding.case.items) <= 24
    assert finding.diff()


def test_a_larger_budget_that_loses_more_is_found() -> None:
    def size(ratio: float) -> Change:
        return lambda text: text if ratio < 0.5 else _by_lines(lambda lines, at: not EVIDENCE.search(lines[at]))(text)

    sized = {ratio: (lambda example, ratio=ratio: size(ratio)(example["context"])) for ratio in (0.2, 0.8)}
    report = _fuzz_system(lambda example: example["context"], sized)
    assert [result.relation.id for result in report.broken] == ["budget"]


HONEST: dict[str, Change] = {
    "changes nothing": lambda text: text,
    "squeezes spaces": lambda text: re.sub(r" {2,}", " ", text),
    "drops what ends in a five": lambda text: text if text.lstrip()[:1] in "[|d" else _drop_fives(text),
}


def _drop_fives(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if EVIDENCE.search(line) or "5 ms" not in line)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_system_breaks_nothing(name: str) -> None:
    report = _fuzz_system(lambda example: HONEST[name](example["context"]))
    assert [result.relation.id for result in report.broken] == []
    assert report.results["position"].tried == 15


def test_a_system_that_forgets_at_random_is_judged_by_what_a_change_adds() -> None:
    import random

    source = random.Random(1)

    def forget(example: dict[str, Any]) -> str:
        text = str(example["context"])
        return text if source.random() < 0.6 else _by_lines(lambda lines, at: not EVIDENCE.search(lines[at]))(text)

    report = _fuzz_system(forget)
    broken = {result.relation.id for result in report.broken}
    assert "repeat" in broken
    assert broken <= {"repeat", *FORMATS}
    assert sum(result.excused for result in report.results.values()) > 10

    def cut(example: dict[str, Any]) -> str:
        return FAULTY["position"](forget(example))

    assert "position" in {result.relation.id for result in _fuzz_system(cut, n=50).broken}


@pytest.mark.parametrize("seed", range(5))
def test_a_system_that_seldom_forgets_at_random_breaks_nothing_but_its_own_repetition(seed: int) -> None:
    import random

    source = random.Random(seed)

    def forget(example: dict[str, Any]) -> str:
        text = str(example["context"])
        return text if source.random() < 0.97 else _by_lines(lambda lines, at: not EVIDENCE.search(lines[at]))(text)

    assert {result.relation.id for result in _fuzz_system(forget, n=50).broken} <= {"repeat", *FORMATS}


def test_what_a_system_declares_to_break_is_reported_and_not_counted() -> None:
    target = SystemTarget(adapt(lambda example: FAULTY["position"](example["context"])))
    chosen = [RELATIONS["position"], RELATIONS["repeat"]]
    report = asyncio.run(fuzz(target, chosen, n=10, seconds=20, declared=("position",)))
    assert report.results["position"].broken > 0
    assert report.broken == []


# --- memories


class Memory:
    """Finds facts by the words that they share with the question."""

    name = "toy"

    def __init__(self) -> None:
        self.facts: list[str] = []

    def reset(self) -> None:
        self.facts = []

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self.facts += [turn["content"] for turn in turns]

    def retrieve(self, question: str) -> list[dict[str, str]]:
        wanted = set(re.findall(r"\w+", question.lower()))
        found = sorted(self.facts, key=lambda fact: -len(wanted & set(re.findall(r"\w+", fact.lower()))))
        return [{"text": fact} for fact in found[:2]]

    def query(self, question: str) -> str:
        return self.retrieve(question)[0]["text"]

    def forget(self, request: dict[str, str]) -> None:
        self.facts = [fact for fact in self.facts if fact != request["what"]]


class KeepsTheLast(Memory):
    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self.facts = [*self.facts, *(turn["content"] for turn in turns)][-2:]


class DropsRepeats(Memory):
    def ingest(self, turns: list[dict[str, Any]]) -> None:
        for turn in turns:
            if turn["content"] in self.facts:
                self.facts.remove(turn["content"])
            else:
                self.facts.append(turn["content"])


class ForgetsWhenAsked(Memory):
    def retrieve(self, question: str) -> list[dict[str, str]]:
        found = super().retrieve(question)
        self.facts = [fact for fact in self.facts if fact != found[0]["text"]]
        return found


class KeepsTheFirst(Memory):
    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self.facts = [*self.facts, *(turn["content"] for turn in turns)][:5]


class NeverForgets(Memory):
    def forget(self, request: dict[str, str]) -> None:
        pass


class SurvivesReset(Memory):
    def reset(self) -> None:
        self.facts = self.facts[-6:]


@pytest.mark.parametrize(
    ("memory", "relation"),
    [
        (KeepsTheLast, "session-order"),
        (DropsRepeats, "repeated-ingest"),
        (ForgetsWhenAsked, "asking"),
        (KeepsTheFirst, "update"),
        (NeverForgets, "deletion"),
        (SurvivesReset, "reset"),
    ],
)
def test_a_faulty_memory_is_found_by_the_relation_that_it_breaks(memory: Any, relation: str) -> None:
    target = MemoryTarget(memory())
    report = asyncio.run(fuzz(target, list(list_known(target).values()), n=10, seconds=20))
    assert relation in {result.relation.id for result in report.broken}


def test_a_memory_that_forgets_at_random_is_judged_by_what_a_change_adds() -> None:
    import random

    source = random.Random(2)

    class ForgetsAtRandom(Memory):
        def ingest(self, turns: list[dict[str, Any]]) -> None:
            self.facts += [turn["content"] for turn in turns if source.random() < 0.8]

    class AndKeepsTheLast(ForgetsAtRandom):
        def ingest(self, turns: list[dict[str, Any]]) -> None:
            super().ingest(turns)
            self.facts = self.facts[-2:]

    found = []
    for memory in (ForgetsAtRandom(), AndKeepsTheLast()):
        target = MemoryTarget(memory)
        chosen = [list_known(target)[name] for name in ("session-order", "repeated-ingest", "asking")]
        report = asyncio.run(fuzz(target, chosen, n=30, seconds=20))
        found.append([result.relation.id for result in report.broken])
    assert found == [[], ["session-order"]]


def test_an_honest_memory_breaks_nothing() -> None:
    target = MemoryTarget(Memory())
    report = asyncio.run(fuzz(target, list(list_known(target).values()), n=10, seconds=20))
    assert report.broken == []
    assert all(result.tried == 10 for result in report.results.values())


# --- proxies, by the command


class CutsTheNewest(Toy):
    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        last = document["messages"][-1]
        if last["role"] == "user" and len(last["content"]) > 20:
            last["content"] = last["content"][:-8]
        return document


class DropsTheSystem(Toy):
    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        document["messages"] = [each for each in document["messages"] if each["role"] != "system"]
        return document


class DropsResults(Toy):
    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        messages = document["messages"]
        first = next((each for each in messages if each["role"] == "tool" and each["tool_call_id"] == "call_0"), None)
        document["messages"] = [each for each in messages if each is not first]
        return document


class SpeaksForTheUser(Toy):
    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        if len(document["messages"]) > 3:
            document["messages"][-1]["role"] = "assistant"
        return document


class CountsMessages(Toy):
    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        first = document["messages"][0]
        if first["role"] == "system":
            first["content"] += f" ({len(document['messages'])} messages so far)"
        return document


class Obeys(Toy):
    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        for message in document["messages"]:
            if message["role"] == "tool" and "Ignore all" in message["content"]:
                kept, _, order = message["content"].rpartition("\n")
                message["content"] = kept
                document["messages"].insert(0, {"role": "system", "content": order})
        return document


class Leaks(Toy):
    said = ""

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        before, self.said = self.said, str(document["messages"][-1]["content"])
        document["messages"].append({"role": "user", "content": f"Earlier: {before}"})
        return document


PROXIES: dict[str, Any] = {
    "newest-turn": CutsTheNewest,
    "system-text": DropsTheSystem,
    "pairs": DropsResults,
    "roles": SpeaksForTheUser,
    "prefix": CountsMessages,
    "orders": Obeys,
    "isolation": Leaks,
}


@pytest.mark.long
@pytest.mark.parametrize("relation", PROXIES)
def test_a_faulty_proxy_is_found_by_the_relation_that_it_breaks(relation: str, tmp_path: Path) -> None:
    port = free_port()
    with toy_proxy(PROXIES[relation], f"http://127.0.0.1:{port}") as url:
        place = ("--proxy", url, "--tap", f":{port}", "--quiet")
        done = shell("fuzz", *place, "-n", "3", "--output", "json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    found = {
        each["relation"]: each for each in json.loads(done.stdout)["relations"] if each["broken"] and each["counts"]
    }
    assert found[relation]["broken"] == found[relation]["tried"] == 3
    # an earlier message that changes breaks the prefix too, and text of the last conversation the repetition
    assert found.keys() <= {relation, "prefix", "repeat", *FORMATS}


def test_an_honest_proxy_breaks_nothing_and_a_saved_finding_is_tried_again(tmp_path: Path) -> None:
    saved = tmp_path / "faults.json"
    port = free_port()
    with toy_proxy("truncates", f"http://127.0.0.1:{port}") as url:
        place = ("--proxy", url, "--tap", f":{port}", "--quiet")
        found = shell("fuzz", *place, "-n", "4", "--relation", "position", "--out", str(saved), cwd=tmp_path)
        again = shell("fuzz", *place, "--replay", str(saved), cwd=tmp_path)
    assert (found.returncode, again.returncode) == (1, 1), found.stderr + again.stderr
    assert "still broken" in again.stdout
    port = free_port()
    with toy_proxy("passes", f"http://127.0.0.1:{port}") as url:
        place = ("--proxy", url, "--tap", f":{port}", "--quiet")
        honest = shell("fuzz", *place, "-n", "4", cwd=tmp_path)
        mended = shell("fuzz", *place, "--replay", str(saved), cwd=tmp_path)
    assert (honest.returncode, mended.returncode) == (0, 0), honest.stdout
    assert "nothing is broken" in honest.stdout
    assert "fixed" in mended.stdout


@pytest.mark.parametrize("api", ["anthropic", "responses"])
def test_other_apis_of_an_honest_proxy_break_nothing(api: str, tmp_path: Path) -> None:
    port = free_port()
    with toy_proxy("passes", f"http://127.0.0.1:{port}") as url:
        place = ("--proxy", url, "--tap", f":{port}", "--quiet", "--api", api)
        done = shell("fuzz", *place, "-n", "4", "--output", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr or done.stdout
    found = {each["relation"]: each for each in json.loads(done.stdout)["relations"]}
    assert {name for name, each in found.items() if not each["tried"]} == {"budget"}
    assert {name for name, each in found.items() if each["broken"]} == set()  # compressing again changes nothing either


# --- what fails, wrong input, and what is written


def test_a_system_that_fails_is_named_by_one_relation() -> None:
    """On an input that it cannot take, the other relations say nothing."""

    def fail_on_json(example: dict[str, Any]) -> str:
        if example["context"].startswith("["):
            raise ValueError("no JSON, please")
        return str(example["context"])

    report = _fuzz_system(fail_on_json)
    assert [result.relation.id for result in report.broken] == ["output"]
    assert "no JSON, please" in report.findings[0].reason
    assert report.results["json-keys"].tried == 0


def test_a_conversation_of_ones_own_is_tried_on_a_proxy(tmp_path: Path) -> None:
    data = tmp_path / "sessions.jsonl"
    turns = [
        {"role": "system", "content": "Be brief, Marvin."},
        {"role": "user", "content": "How are you today, then?"},
    ]
    data.write_text(json.dumps({"id": "s1", "turns": turns}), encoding="utf-8")
    port = free_port()
    with toy_proxy(DropsTheSystem, f"http://127.0.0.1:{port}") as url:
        place = ("--proxy", url, "--tap", f":{port}", "--quiet", "--dataset", str(data))
        done = shell("fuzz", *place, "-n", "3", "--relation", "system-text", "--output", "json", cwd=tmp_path)
    (result,) = json.loads(done.stdout)["relations"]
    assert any("Marvin" in finding["before"] for finding in result["findings"])
    refused = shell("fuzz", "--system", "passthrough", "--dataset", str(data), cwd=tmp_path)
    assert (refused.returncode, "nothing can be lost" in refused.stderr) == (2, True)


def test_documents_and_formats_of_ones_own_are_tried(tmp_path: Path) -> None:
    """Documents change places, and need no more than the evidence in them; a list of one's own stays JSON."""
    data = tmp_path / "own.jsonl"
    texts = [f"Town {n} has {n * 7 + 300} seats. Nothing else is of note there." for n in range(8)]
    documents = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    asked = {"question": "Seats of town 2?", "answer": "314"}
    listed = json.dumps([{"town": n, "seats": n * 7 + 300} for n in range(8)], indent=1)
    examples = [
        {
            "id": "d",
            "documents": documents,
            "context": "\n\n".join(texts),
            "evidence": [texts[2].split(".")[0]],
            **asked,
        },
        {"id": "j", "context": listed, **asked},
    ]
    data.write_text("".join(json.dumps(each) + "\n" for each in examples), encoding="utf-8")
    (tmp_path / "cut.py").write_text(
        "def cut(example):\n"
        "    if 'documents' in example and 'Town' in example['context']:\n"
        "        return '\\n\\n'.join(each['text'].partition('.')[0] + '.' for each in example['documents'][:6])\n"
        "    return example['context'].rstrip(']') if 'town' in example['context'] else example['context']\n"
    )
    done = called(
        *("fuzz", "--system", "cut.py:cut", "--dataset", "own.jsonl", "-n", "40", "--output", "json", "--quiet"),
        cwd=tmp_path,
    )
    found = {each["relation"]: each for each in json.loads(done.stdout)["relations"] if each["broken"]}
    assert set(found) == {"order", "position", "json"}, done.stdout
    assert {each["case"]["id"] for each in found["order"]["findings"]} == {"d"}
    assert {each["case"]["id"] for each in found["json"]["findings"]} == {"j"}


def test_a_json_array_of_ones_own_is_varied_object_by_object() -> None:
    records = [{"town": n, "seats": n * 7 + 300} for n in range(8)]
    example = {"id": "j", "context": json.dumps(records, indent=1), "question": "Seats of town 2?", "answer": "314"}
    case = read_case(example)
    assert case is not None
    assert (case.kind, len(case.items), case.evidence, case.spans) == ("json", 8, (2,), ["314"])
    assert json.loads(case.reorder([2, 0]).text) == [records[2], records[0]]
    in_lines = read_case({**example, "evidence": ['"town": 2,\n  "seats": 314']})  # no object on one line has this text
    assert in_lines is None or in_lines.kind != "json"


def test_ctrl_c_ends_it_with_130(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    command = [
        sys.executable,
        "-m",
        "context_bench",
        "fuzz",
        "--system",
        "slow.py:slow",
        "--seconds",
        "600",
        "-n",
        "9999",
    ]
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), **pipes) as process:
        try:
            while process.poll() is None and not (tmp_path / "asked").exists():
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()
        assert process.stderr is not None
        assert process.stderr.read().splitlines()[-1] == "context-bench: interrupted"


def test_findings_are_written_as_a_page_and_as_commands_that_work(tmp_path: Path) -> None:
    page, saved = tmp_path / "fuzz.html", tmp_path / "faults.json"
    command = ("--system", "truncate:ratio=0.5", "-n", "4", "--quiet", "--relation", "position")
    done = shell("fuzz", *command, "--report", str(page), "--out", str(saved), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    again = done.stdout.partition("again: ")[2].splitlines()[0]
    assert again == "context-bench fuzz --system truncate:ratio=0.5 -n 4 --quiet --relation position"
    text = page.read_text(encoding="utf-8")
    assert "truncate:ratio=0.5: broken: position" in text
    assert again in text
    share = next(line.split("|")[4].strip() for line in done.stdout.splitlines() if line.startswith("| position"))
    assert share in text
    replayed = shell("fuzz", "--system", "passthrough", "--replay", str(saved), "--output", "junit", cwd=tmp_path)
    assert (replayed.returncode, replayed.stdout.count("<testcase"), "<failure" in replayed.stdout) == (
        0,
        len(json.loads(saved.read_text())["relations"][0]["findings"]),
        False,
    )


def test_a_finding_whose_evidence_is_now_lost_at_once_is_not_fixed() -> None:
    chosen = [RELATIONS["position"]]
    target = SystemTarget(adapt(lambda example: FAULTY["position"](example["context"])))
    found = asyncio.run(fuzz(target, chosen, n=5)).findings
    assert found
    worse = SystemTarget(adapt(lambda example: ""))
    assert {each.reason for _, each in asyncio.run(replay(worse, found)) if each} == {
        "the evidence is lost before any change"
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--system", "nofile.py:X"), "nofile.py: no such file"),
        (("--system", "passthrough", "-n", "0"), "-n must be an integer of at least 1"),
        (("--system", "passthrough", "--replay", "none.json"), "none.json: No such file"),
        (("--system", "passthrough", "--replay", "empty.json"), "the file has no findings"),
        (("--system", "passthrough", "--out", "no/where.json"), "cannot write to --out no/where.json"),
        (("--proxy", "http://127.0.0.1:9", "--tap", ":0"), "no proxy answers at"),
        (("--system", "passthrough", "--relation", "nope"), "unknown relation 'nope'"),
    ],
)
def test_wrong_input_is_one_sentence_before_anything_is_tried(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.json").write_text('{"relations": []}')
    done = called("fuzz", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "tried" not in done.stdout
    assert "Traceback" not in done.stderr
