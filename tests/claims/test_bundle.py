"""Bundles: every kind of run goes round, changed bundles are found, and hostile files do no harm."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_logs import write_session
from banks import each_case
from command import called
from context_bench import evaluate
from context_bench.claims.bundle import Window
from context_bench.systems import OpenAIProxy, WithReader
from context_bench.tap.address import free_port
from numbered import number_of, numbered, right, write
from servers import Server, reply
from toy_proxies import toy_proxy

DATA = ("--dataset", "json-logs:length=800,n=2", "--dataset", "needle:length=800,n=2")
OWN = """
class Vowels:
    name = "vowels"
    version = 1

    def score(self, original, processed):
        return {"vowels": 0.5}
"""


def bench(*words: str, cwd: Path, code: int = 0) -> str:
    done = called(*words, cwd=cwd)
    assert done.returncode == code, done.stderr
    return done.stdout


def bundle(cwd: Path, *words: str, name: str = "run.ctxb") -> Path:
    bench("runs", "bundle", "last", "--out", name, *words, cwd=cwd)
    return cwd / name


def verify(path: Path, *words: str, cwd: Path) -> tuple[int, dict[str, Any]]:
    done = called("runs", "verify", str(path), "--output", "json", *words, cwd=cwd)
    return done.returncode, json.loads(done.stdout) if done.stdout else {"refused": done.stderr}


# --- runs that go round


def run_reader(cwd: Path) -> None:
    systems = ("--system", "passthrough", "--system", "truncate:ratio=0.5", "--system", "bm25:ratio=0.3")
    bench(*systems, "--tap-reply", "extract", *DATA, "--repeats", "2", "--quiet", cwd=cwd)


def run_contexts(cwd: Path) -> None:
    bench("--system", "passthrough", "--system", "minify", "--system", "closed-book", *DATA, "--quiet", cwd=cwd)


def run_tap(cwd: Path) -> None:
    port = free_port()
    with toy_proxy("truncates", f"http://127.0.0.1:{port}") as url:
        tap = ("--tap", f":{port}", "--tap-reply", "extract", "--controls")
        bench("--proxy", url, "--name", "cuts", *tap, *DATA, "--quiet", cwd=cwd)


def run_memory(cwd: Path) -> None:
    systems = ("--system", "naive", "--system", "bm25", "--system", "closed-book")
    bench(
        "memory",
        *systems,
        "--dataset",
        "synthetic-memory:length=4000",
        "-n",
        "1",
        "--types",
        "single_hop,forget",
        "--quiet",
        cwd=cwd,
    )


def run_agent(cwd: Path) -> None:
    systems = ("--system", "passthrough", "--system", "truncate-tool-results:tokens=100")
    bench(*systems, "--tap-reply", "extract", "--dataset", "agent-trace:n=4", "--controls", "--quiet", cwd=cwd)


def run_errors(cwd: Path) -> None:
    write(cwd / "data.jsonl", 1, 2, 3)
    broken = reply(400, {"error": {"message": "no"}})
    with Server(lambda request: broken if number_of(request) == 2 else right(request)) as server:
        bench("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--quiet", cwd=cwd, code=3)
    bench("score", "last", "--quiet", cwd=cwd)


def run_failing_tap(cwd: Path) -> None:
    write(cwd / "data.jsonl", 1, 2, 3)
    port, broken = free_port(), reply(400, {"error": {"message": "no"}})
    with (
        Server(lambda request: broken if number_of(request) == 2 else right(request)) as server,
        toy_proxy("passes", f"http://127.0.0.1:{port}") as url,
    ):
        tap = ("--tap", f":{port}", "--tap-forward", server.url)
        bench("--proxy", url, "--name", "p", *tap, "--dataset", "data.jsonl", "--quiet", cwd=cwd, code=3)


def run_looks(cwd: Path) -> None:
    data = ("--dataset", "needle:length=300,n=150", "--dataset", "json-logs:length=300,n=50")
    systems = ("--system", "passthrough", "--system", "truncate:ratio=0.5", "--system", "minify")
    bench(*systems, *data, "--stop-when-decided", "--quiet", cwd=cwd)


def run_replay(cwd: Path) -> None:
    (cwd / "sessions").mkdir()
    for session in range(3):
        write_session(cwd / "sessions", session, 6, {4: 1})
    arms = ("--system", "clear-tool-results:last=1", "--system", "truncate:ratio=0.3")
    bench("replay", "sessions", *arms, "--quiet", cwd=cwd)


def run_own_evaluator(cwd: Path) -> None:
    (cwd / "own.py").write_text(OWN)
    bench("--system", "minify", "--evaluator", "own.py:Vowels", "--dataset", "kv:n=3", "--quiet", cwd=cwd)


RUNS = (
    *(run_reader, run_contexts, run_tap, run_failing_tap, run_memory, run_errors, run_agent, run_looks, run_replay),
)


@pytest.mark.parametrize("run", RUNS)
def test_a_run_goes_round(run: Callable[[Path], None], tmp_path: Path) -> None:
    """Bundled, moved away from its store and its data, every number is computed again."""
    (tmp_path / "made").mkdir()
    (tmp_path / "away").mkdir()
    run(tmp_path / "made")
    first = bundle(tmp_path / "made").read_bytes()
    assert bundle(tmp_path / "made", name="again.ctxb").read_bytes() == first
    moved = tmp_path / "away" / "it.ctxb"
    moved.write_bytes(first)
    shutil.rmtree(tmp_path / "made")
    code, found = verify(moved, cwd=tmp_path / "away")
    assert (code, found["differs"], found["missing"]) == (0, [], {})
    made = ("replayed requests",) if run is run_replay else ("scores", "token counts")
    assert min(found["recomputed"][each] for each in ("numbers of the summary", *made)) > 0
    assert ("interim looks" in found["recomputed"]) == (run is run_looks)
    assert json.loads(read_parts(moved)["run.json"])["config"]["command"]


def test_a_replay_whose_sessions_are_gone_says_so(tmp_path: Path) -> None:
    run_replay(tmp_path)
    shutil.rmtree(tmp_path / "sessions")
    code, found = verify(bundle(tmp_path), cwd=tmp_path)
    assert (code, found["missing"]) == (
        4,
        {"measurements of a replay: the bundle does not have the recorded session": 6},
    )


def test_what_cannot_be_recomputed_is_said(tmp_path: Path) -> None:
    run_own_evaluator(tmp_path)
    code, found = verify(bundle(tmp_path), cwd=tmp_path)
    assert (code, found["missing"]) == (4, {"scores: the evaluator 'vowels' is unknown here": 3})


# --- private bundles and signatures


def test_a_private_bundle_has_no_text_and_takes_it_from_the_data(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(4))
    bench("--system", "passthrough", "--system", "truncate:ratio=0.5", "--dataset", "data.jsonl", cwd=tmp_path)
    private = bundle(tmp_path, "--private")
    texts = b"".join(read_parts(private).values())
    assert b"has the code" not in texts
    assert b"code of item" not in texts
    (tmp_path / "data").mkdir()
    code, found = verify(private, cwd=tmp_path)
    assert code == 4
    assert [each for each in found["missing"] if "withheld" in each]
    (tmp_path / "data.jsonl").rename(tmp_path / "data" / "data.jsonl")
    code, found = verify(private, "--data", "data", cwd=tmp_path)
    assert found["recomputed"]["examples found in the data"] == 4
    assert list(found["missing"]) == ["withheld replies, with their scores and counts"]
    bundle(tmp_path, name="data/whole.ctxb")
    assert verify(private, "--data", "data", cwd=tmp_path)[0] == 0
    write(tmp_path / "data" / "data.jsonl", *range(10, 14))
    (tmp_path / "data" / "whole.ctxb").unlink()
    code, found = verify(private, "--data", "data", cwd=tmp_path)
    assert (code, found["differs"]) == (1, ["4 examples of the bundle not found in data.jsonl"])


def run_mapped(cwd: Path) -> None:
    """Columns with other names, and two systems with equal replies and unequal times."""
    lines = [json.loads(line) for line in Path(write(cwd / "data.jsonl", 1, 2)).read_text().splitlines()]
    (cwd / "data.jsonl").write_text("".join(json.dumps({**each, "gold": each.pop("answer")}) + "\n" for each in lines))
    with Server(right) as server:
        servers = ("--proxy", server.url, "--name", "p", "--proxy", server.url, "--name", "q")
        bench(*servers, "--dataset", "data.jsonl", "--map", "answer=gold", "--repeats", "2", "--quiet", cwd=cwd)


def run_more(cwd: Path) -> None:
    bench("--system", "minify", "--dataset", "needle:length=300", "-n", "60", "--quiet", cwd=cwd)


@pytest.mark.parametrize("run", [run_memory, run_agent, run_mapped, run_more])
@pytest.mark.long
def test_the_data_and_a_whole_bundle_complete_a_private_one(run: Callable[[Path], None], tmp_path: Path) -> None:
    run(tmp_path)
    private = bundle(tmp_path, "--private", name="private.ctxb")
    (tmp_path / "data").mkdir()
    bundle(tmp_path, name="data/whole.ctxb")
    if run is run_mapped:
        (tmp_path / "data.jsonl").rename(tmp_path / "data" / "data.jsonl")
    code, found = verify(private, "--data", "data", cwd=tmp_path)
    assert (code, found["differs"], found["missing"]) == (0, [], {})
    assert found["recomputed"]["examples found in the data"] > 0


def test_another_prompt_of_a_reader_in_python_is_no_difference(tmp_path: Path) -> None:
    """The record has no command line, and so no prompt: the tokens sent are not recomputed."""
    with Server(right) as server:
        reader = WithReader(lambda example: example["context"], OpenAIProxy(server.url, system_prompt="Be brief."), "r")
        evaluate([reader], numbered(1, 2), cache_dir=str(tmp_path / ".context-bench"), progress=False)
    code, found = verify(bundle(tmp_path), cwd=tmp_path)
    assert (code, found["differs"], list(found["missing"].values())) == (4, [], [2])


def list_strings(value: Any) -> set[str]:
    if isinstance(value, dict | list):
        return set().union(*map(list_strings, value.values() if isinstance(value, dict) else value))
    return {value} if isinstance(value, str) else set()


@pytest.mark.parametrize("run", [run_memory, run_agent])
def test_no_word_of_the_texts_stays_in_the_metadata(run: Callable[[Path], None], tmp_path: Path) -> None:
    """Not the numbers that a memory still holds, and not the evidence that was lost."""
    run(tmp_path)
    whole, private = (read_parts(bundle(tmp_path, *flags)) for flags in ((), ("--private",)))
    told, kept = (
        {each for line in parts["rows.jsonl"].splitlines() for each in list_strings(json.loads(line)["metadata"])}
        for parts in (whole, private)
    )
    texts = whole["examples.jsonl"].decode()
    words = {each for each in told if re.search(r"\d{4}", each) and each in texts}
    assert words
    assert words & kept == set()
    code, found = verify(write_zip(tmp_path / "moved.ctxb", list(private.items())), cwd=tmp_path)
    assert (code, found["differs"]) == (4, [])


def test_a_signature_names_its_key(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for name in ("ours", "theirs"):
        key = Ed25519PrivateKey.generate()
        pem = (forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
        (tmp_path / f"{name}.pem").write_bytes(key.private_bytes(*pem))
        public = (forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / f"{name}.pub").write_bytes(key.public_key().public_bytes(*public))
    run_contexts(tmp_path)
    signed = bundle(tmp_path, "--sign", "ours.pem")
    assert verify(signed, "--signed-by", "ours.pub", cwd=tmp_path)[1]["signature"] == "signed by ours.pub"
    code, found = verify(signed, "--signed-by", "theirs.pub", cwd=tmp_path)
    assert (code, found["signature"]) == (1, "not validly signed by theirs.pub")
    assert verify(bundle(tmp_path, name="plain.ctxb"), "--signed-by", "ours.pub", cwd=tmp_path)[1]["differs"] == [
        "the bundle is not signed"
    ]
    parts = read_parts(signed)
    prices = json.loads(parts["run.json"]) | {"created": "2020-01-01T00:00:00+0000"}
    parts["run.json"] = json.dumps(prices).encode()
    changed = write_zip(tmp_path / "changed.ctxb", list(reseal(parts).items()))
    code, found = verify(changed, "--signed-by", "ours.pub", cwd=tmp_path)
    assert (code, found["differs"]) == (1, ["signature.json: not a signature of this bundle"])


# --- tampering: a bundle is made once, and changed many times


def read_parts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def write_zip(path: Path, entries: Sequence[tuple[str, bytes]]) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.filterwarnings("ignore", message="Duplicate name")
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return path


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def reseal(parts: dict[str, bytes]) -> dict[str, bytes]:
    """Give the parts a manifest that fits them, as somebody would who knows the format."""
    manifest = json.loads(parts["manifest.json"])
    del manifest["root"]
    for each in manifest["parts"]:
        content = parts[each["name"]]
        each |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest["root"] = hashlib.sha256(canonical(manifest)).hexdigest()
    return {**parts, "manifest.json": canonical(manifest)}


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sealed")
    bench(
        *("--system", "passthrough", "--system", "truncate:ratio=0.5", "--system", "bm25:ratio=0.5"),
        *("--tap-reply", "extract", "--dataset", "needle:length=800,n=4", "--quiet"),
        cwd=folder,
    )
    return bundle(folder)


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("looked")
    run_looks(folder)
    return bundle(folder)


def flip(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


NAMES = ("run.json", "environment.json", "examples.jsonl", "answers.jsonl", "rows.jsonl", "manifest.json")


def test_what_is_not_sealed_again_is_found(sealed: Path, tmp_path: Path) -> None:
    parts = read_parts(sealed)
    order = list(parts.items())
    changed: dict[str, list[tuple[str, bytes]]] = {f"a byte of {name}": [] for name in NAMES}
    for name in NAMES:
        changed[f"a byte of {name}"] = [(each, flip(text) if each == name else text) for each, text in order]
    changed |= {f"{name} removed": [each for each in order if each[0] != name] for name in NAMES}
    changed["a part added"] = [*order, ("more.json", b"{}")]
    changed["a part doubled"] = [*order, order[4]]
    changed["parts in another order"] = [order[1], order[0], *order[2:]]
    changed["a space in the manifest"] = [*order[:-1], ("manifest.json", order[-1][1] + b" ")]
    changed["a line added"] = [(each, text + b"{}\n" if each == "requests.jsonl" else text) for each, text in order]
    missed = []
    for kind, entries in changed.items():
        code, _ = verify(write_zip(tmp_path / "changed.ctxb", entries), cwd=tmp_path)
        if code != (2 if "manifest" in kind and code != 1 else 1):
            missed.append((kind, code))
    assert missed == []


def edit_lines(name: str, edit: Callable[[list[Any]], object]) -> Callable[[dict[str, bytes]], None]:
    def change(parts: dict[str, bytes]) -> None:
        lines = [json.loads(line) for line in parts[name].splitlines()]
        edit(lines)
        parts[name] = "".join(json.dumps(line) + "\n" for line in lines).encode()

    return change


def edit_run(edit: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, bytes]], None]:
    def change(parts: dict[str, bytes]) -> None:
        run = json.loads(parts["run.json"])
        edit(run)
        parts["run.json"] = json.dumps(run).encode()

    return change


def set_at(place: Any, *path: Any, value: Any) -> None:
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value


def drop_row(parts: dict[str, bytes]) -> None:
    for name in ("rows.jsonl", "answers.jsonl"):
        edit_lines(name, lambda lines: lines.pop(1))(parts)


def double_under_another_id(parts: dict[str, bytes]) -> None:
    """The same example counts twice: as the text of its id, and as it is."""
    edit_lines("rows.jsonl", lambda rows: rows.append({**rows[-1], "example_id": [rows[-1]["example_id"]]}))(parts)
    edit_lines("answers.jsonl", lambda answers: answers.append(answers[-1]))(parts)
    edit_run(lambda run: set_at(run, "rows", value=13))(parts)


def count_another_twice(parts: dict[str, bytes]) -> None:
    """The last example is left out for one system, and its first one counts again in its place."""
    edit_lines("rows.jsonl", lambda rows: rows.append({**rows[2], "repeat": 1, "new": False} if rows.pop() else None))(
        parts
    )
    edit_lines("answers.jsonl", lambda answers: answers.append(answers[2] if answers.pop() else None))(parts)


def add_error(rows: list[Any]) -> None:
    set_at(rows, 1, "error", value="Timeout: late")
    set_at(rows, 1, "scores", value={})


def double_row(parts: dict[str, bytes]) -> None:
    for name in ("rows.jsonl", "answers.jsonl"):
        edit_lines(name, lambda lines: lines.append(lines[-1]))(parts)


CUT = "truncate:ratio=0.5"
SEALED_AGAIN: dict[str, Callable[[dict[str, bytes]], None]] = {
    "a score": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "scores", "f1", value=0.123)),
    "the primary score": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "scores", "score", value=0.5)),
    "input tokens": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "input_tokens", value=1)),
    "output tokens": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "output_tokens", value=1)),
    "upstream tokens": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "upstream_tokens", value=1)),
    "the cost of a row": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "metadata", "cost_usd", value=0.1)),
    "what cuts would keep": edit_lines(
        "rows.jsonl", lambda rows: set_at(rows, 1, "metadata", "matched_controls", "tail", value=[0.9])
    ),
    "a latency": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "latency", value=9.0)),
    "an error": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "error", value="Timeout: late")),
    "a name": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "system", value="passthrough")),
    "a wrong answer as an error": edit_lines("rows.jsonl", add_error),
    "a row of another dataset": edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, "dataset", value="kv")),
    "an example twice": double_under_another_id,
    "an example in the place of another": count_another_twice,
    "a row removed": drop_row,
    "a row doubled": double_row,
    "rows without answers": edit_lines("answers.jsonl", lambda answers: set_at(answers, 1, value=None)),
    "a gold answer": edit_lines("examples.jsonl", lambda found: set_at(found, 0, "answer", value="42")),
    "an example removed": edit_lines("examples.jsonl", lambda found: found.pop()),
    "a mean": edit_run(lambda run: set_at(run, "summary", CUT, "mean_score", value=0.99)),
    "savings": edit_run(lambda run: set_at(run, "summary", CUT, "compression_ratio", value=0.9)),
    "a rank": edit_run(lambda run: set_at(run, "summary", CUT, "pareto_rank", value=7.0)),
    "a number added": edit_run(lambda run: run["summary"][CUT].update(extra=1.0)),
    "an interval": edit_run(lambda run: set_at(run, "intervals", CUT, "mean_score", "low", value=0.98)),
    "a verdict": edit_run(lambda run: set_at(run, "comparison", "verdicts", 0, "word", value="better")),
    "a p-value": edit_run(lambda run: set_at(run, "comparison", "verdicts", 0, "p_holm", value=1e-6)),
    "the number of rows": edit_run(lambda run: set_at(run, "rows", value=13)),
    "the hash of a dataset": edit_run(lambda run: run["datasets"][next(iter(run["datasets"]))].update(examples=9)),
    "the margin": edit_run(lambda run: set_at(run, "config", "margin", value=0.5)),
}  # fmt: skip


@each_case("kind", SEALED_AGAIN)
def test_what_is_sealed_again_is_found_by_recomputing(kind: str, sealed: Path, tmp_path: Path) -> None:
    parts = read_parts(sealed)
    SEALED_AGAIN[kind](parts)
    changed = write_zip(tmp_path / "changed.ctxb", list(reseal(parts).items()))
    code, found = verify(changed, cwd=tmp_path)
    assert code in ((1, 4) if kind == "a number added" else (1,)), found


def test_an_explanation_in_other_words_is_noted(sealed: Path, tmp_path: Path) -> None:
    """It is written from numbers that are compared, and another version may write it otherwise."""
    parts = read_parts(sealed)
    edit_run(lambda run: set_at(run, "comparison", "verdicts", 0, "reason", value="it is so"))(parts)
    code, found = verify(write_zip(tmp_path / "changed.ctxb", list(reseal(parts).items())), cwd=tmp_path)
    assert (code, found["differs"]) == (0, [])
    assert "different wording in 1 explanation, such as comparison.verdicts[0].reason: 'it is so'" in found["notes"][0]


def test_rows_that_are_left_out_are_found_though_all_else_agrees(sealed: Path, tmp_path: Path) -> None:
    parts = read_parts(sealed)
    drop_row(parts)
    edit_run(lambda run: set_at(run, "rows", value=11))(parts)
    changed = write_zip(tmp_path / "changed.ctxb", list(reseal(parts).items()))
    assert f"{CUT} has 3 rows instead of 4" in verify(changed, cwd=tmp_path)[1]["differs"]


def test_a_failed_row_has_no_score_and_costs_what_its_requests_say(tmp_path: Path) -> None:
    run_failing_tap(tmp_path)
    whole = read_parts(bundle(tmp_path))
    for path, value in ((("scores",), {"score": 1.0, "f1": 1.0}), (("upstream_tokens",), 7), (("input_tokens",), 7)):
        parts = dict(whole)
        edit_lines("rows.jsonl", lambda rows: set_at(rows, 1, *path, value=value))(parts)  # noqa: B023 - called here
        changed = write_zip(tmp_path / "changed.ctxb", list(reseal(parts).items()))
        found = verify(changed, cwd=tmp_path)[1]["differs"]
        assert any(each.startswith("p on data 2: ") for each in found), path


@pytest.mark.long
@each_case("name, change", [
    ("order", edit_lines("rows.jsonl", lambda rows: rows.reverse())),
    ("verdict", edit_run(lambda run: set_at(
        run, "config", "looks", "systems", "truncate:ratio=0.5", "verdict", "word", value="better"
    ))),
    ("number", edit_run(lambda run: set_at(
        run, "config", "looks", "systems", "truncate:ratio=0.5", "examples", value=41
    ))),
    ("seed", edit_run(lambda run: set_at(run, "config", "looks", "seed", value=1))),
])  # fmt: skip
def test_changed_looks_are_found(
    name: str, change: Callable[[dict[str, bytes]], None], looked: Path, tmp_path: Path
) -> None:
    parts = read_parts(looked)
    change(parts)
    changed = write_zip(tmp_path / "changed.ctxb", list(reseal(parts).items()))
    assert verify(changed, cwd=tmp_path)[0] == 1, name


def test_no_code_that_a_bundle_names_is_run(sealed: Path, tmp_path: Path) -> None:
    """A dataset of the command line that is a file of Python, a module, or elsewhere, is not opened."""
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')\ndef load():\n    return []\n")
    (tmp_path / "data").mkdir()
    for name in ("own.py:load", "own:load", str(tmp_path / "own.py:load"), "squad", f"squad:data_dir={tmp_path}"):
        parts = read_parts(sealed)
        edit_run(lambda run: set_at(run, "config", "command", value=["--dataset", name]))(parts)  # noqa: B023
        changed = write_zip(tmp_path / "changed.ctxb", list(reseal(parts).items()))
        code, found = verify(changed, "--data", "data", cwd=tmp_path)
        assert (code, [each for each in found["missing"] if each.startswith(f"data: {name}")]) != (0, []), name
        assert not (tmp_path / "was_run").exists(), name


def test_the_limit_of_recomputing_is_printed(sealed: Path, tmp_path: Path) -> None:
    """A price that is changed everywhere, or a version, is found by a signature only."""
    parts = read_parts(sealed)
    edit_run(lambda run: set_at(run, "config", "version", value="9.9"))(parts)
    changed = write_zip(tmp_path / "changed.ctxb", list(reseal(parts).items()))
    code, found = verify(changed, cwd=tmp_path)
    assert code == 0
    assert "prices, versions and settings are taken as recorded" in found["limits"]
    assert found["limits"] in bench("runs", "verify", str(changed), cwd=tmp_path)
    assert any("made by context-bench 9.9" in each for each in found["notes"])


# --- hostile files


def declare(path: Path, name: str, size: int) -> None:
    """Let the list of entries say that one of them has so many bytes."""
    content = bytearray(path.read_bytes())
    place = content.rfind(name.encode()) - 46
    content[place + 24 : place + 28] = struct.pack("<L", size)
    path.write_bytes(bytes(content))


def make_link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("rows.jsonl")
    entry.external_attr = 0o120777 << 16
    return entry


def write_hostile(kind: str, path: Path, sealed: Path) -> None:
    parts = list(read_parts(sealed).items())
    path.unlink(missing_ok=True)
    if kind in ("../evil.json", "/tmp/evil.json", "a\\..\\evil.json", "C:evil.json"):
        write_zip(path, [*parts, (kind, b"{}")])
    elif kind == "a link":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in parts:
                archive.writestr(make_link() if name == "rows.jsonl" else name, content)
    elif kind == "a folder":
        write_zip(path, [*parts, ("folder/", b"")])
    elif kind == "many entries":
        write_zip(path, [*parts, *((f"{number}.json", b"") for number in range(2000))])
    elif kind == "no zip":
        path.write_bytes(b"PK but not a zip")
    elif kind == "another zip":
        write_zip(path, [("a.txt", b"a")])
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "an overlap":
        write_zip(path, parts)
        overlapping = bytearray(path.read_bytes())
        entry = overlapping.rindex(b"PK\1\2")  # the last one, whose header is said to be the first
        struct.pack_into("<L", overlapping, entry + 42, 0)
        path.write_bytes(overlapping)
    elif kind == "a large manifest":
        write_zip(path, [*parts[:-1], ("manifest.json", b" " * (70 << 20))])
    else:
        write_zip(path, parts)
        declare(path, "rows.jsonl", 0xFFFF_FFFF if kind == "ten gigabytes" else 3_900_000_000)


HOSTILE = (
    *("../evil.json", "/tmp/evil.json", "a\\..\\evil.json", "C:evil.json", "a link", "a folder", "many entries"),
    *("no zip", "another zip", "a large manifest", "ten gigabytes", "a bomb", "a pipe", "an overlap"),
)


@each_case("kind", HOSTILE)
def test_a_hostile_file_is_refused(kind: str, sealed: Path, tmp_path: Path) -> None:
    path = tmp_path / "hostile.ctxb"
    write_hostile(kind, path, sealed)
    before = sorted(tmp_path.rglob("*"))
    tracemalloc.start()
    try:
        code, found = verify(path, cwd=tmp_path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (code, "not a bundle" in found["refused"]) == (2, True)
    assert most < 20e6
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/evil.json").exists()


def test_a_line_of_many_small_values_does_not_fill_the_memory(sealed: Path, tmp_path: Path) -> None:
    """Each empty list takes twenty times the memory of its three bytes."""
    parts = read_parts(sealed)
    parts["rows.jsonl"] = b"[" + b"[]," * (5 << 20) + b"[]]\n"
    path = write_zip(tmp_path / "wide.ctxb", list(reseal(parts).items()))
    code, found = verify(path, cwd=tmp_path)
    assert (code, found["differs"][-1]) == (1, "rows.jsonl: line 1 is not JSON")


def test_the_examples_in_memory_are_few_and_small() -> None:
    window = Window()
    for number in range(300):
        window.keep(number, "", 1)
    assert [*window] == [*range(44, 300)]
    for name in "abc":
        window.keep(name, "", 40 << 20)
    assert [*window] == ["c"]
    window.keep("c", "", 1)
    window.keep("d", "", 40 << 20)
    assert [*window] == ["c", "d"]


def test_a_line_without_an_end_does_not_fill_the_memory(sealed: Path, tmp_path: Path) -> None:
    parts = read_parts(sealed)
    parts["examples.jsonl"] = b"[" * (66 << 20)
    path = write_zip(tmp_path / "long.ctxb", list(reseal(parts).items()))
    code, found = verify(path, cwd=tmp_path)
    assert (code, "longer than" in found["differs"][0]) == (1, True)
