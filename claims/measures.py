"""Measures the published claims in this folder; each function gets the folder with the records of public datasets.

A function returns what was measured for all claims that name it: results of runs, or values by the id of the claim.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from math import log
from pathlib import Path
from typing import Any

from context_bench import EvalResult, evaluate
from context_bench.claims.bundle import write_bundle
from context_bench.cli.demo import DATASETS, SYSTEMS
from context_bench.datasets.open import Choices, open_datasets
from context_bench.errors import UsageError
from context_bench.metrics import default_metrics
from context_bench.processes.started_proxy import find_program
from context_bench.store import Store
from context_bench.systems import Command
from context_bench.systems.adapt import build_systems

HERE = Path(__file__).parent
BM25_K1, BM25_B = 1.5, 0.75


def find_data(data: Path | None, name: str) -> Path:
    if data is None or not (data / name).is_dir():
        raise UsageError(f"the records of {name} are not here: --data DIR, or CONTEXT_BENCH_DATA")
    return data / name


def hash_files(folder: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# --- kompact's table: 1,431 records of the function-calling leaderboard


class FunctionNames:
    """Whether the needle, or all functions that the gold calls, are named in what is sent on."""

    name = "function-names"
    version = 1
    score_fields = ("needle_kept", "gold_kept")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        about, context = original["meta"], processed["context"]
        scores = {"needle_kept": float(about["needle"] in context)}
        if about["golds"]:
            scores["gold_kept"] = float(all(name in context for name in about["golds"]))
        return scores


class Half:
    """Keeps the first half of the characters."""

    name = "half of the characters"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"context": example["context"][: len(example["context"]) // 2]}


class JsonDumps:
    """Writes JSON without spaces."""

    name = "json without spaces"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"context": json.dumps(json.loads(example["context"]), separators=(",", ":"))}


def make_example(
    name: str, record: dict[str, Any], functions: list[Any], golds: list[str], needle: str
) -> dict[str, Any]:
    """Make an example as the published benchmark does: the question is no part of what is counted before."""
    turns = record["question"][0] if isinstance(record["question"][0], list) else record["question"]
    about = {"question": "\n".join(turn["content"] for turn in turns), "needle": needle, "golds": golds}
    return {"id": name, "context": json.dumps(functions, indent=2), "answer": needle, "meta": about}


def read_functions(data: Path | None) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    """Read the records whose context is a list of functions: as examples, by their ids, and the hash of the data."""
    folder = find_data(data, "bfcl-live")
    golds = {
        each["id"]: each["ground_truth"] for path in folder.glob("possible_answer/*.json") for each in read_lines(path)
    }
    examples, records = [], {}
    for path in sorted(folder.glob("*.json")):
        for record in read_lines(path):
            gold = golds.get(record["id"])
            named = sorted({name for each in gold for name in each}) if gold and isinstance(gold[0], dict) else []
            records[f"{path.stem} {record['id']}"] = record, named
            examples.append(
                make_example(
                    f"{path.stem} {record['id']}", record, record["function"], named, record["function"][0]["name"]
                )
            )
    return examples, records, hash_files(folder, folder.glob("**/*.json"))


def run_functions(examples: list[dict[str, Any]], systems: list[Any], store: Path | None = None) -> EvalResult:
    return evaluate(
        ["passthrough", *systems],
        examples,
        evaluators=[FunctionNames()],
        score_field="needle_kept",
        cache_dir=store,
        progress=False,
    )


def measure_cuts(data: Path | None) -> dict[str, Any]:
    """Measure truncation and JSON without spaces."""
    examples, _, digest = read_functions(data)
    return {"result": run_functions(examples, [JsonDumps(), Half()]), "data": digest}


def open_kompact() -> Command:
    """Open kompact as a library, in the environment of its own that `make vendors` makes."""
    program = find_program("python", home="kompact")
    if program is None:
        raise UsageError("kompact is not installed (make vendors)")
    return Command(f"{program} {HERE / 'run_kompact.py'}", name="kompact")


def find_version() -> str:
    """Ask for the version of kompact that is installed."""
    program = str(find_program("python", home="kompact"))
    asked = [program, "-c", "from importlib.metadata import version; print(version('kompact'))"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def measure_kompact(data: Path | None, store: Path | None = None) -> dict[str, Any]:
    """Measure kompact on all records."""
    examples, _, digest = read_functions(data)
    result = run_functions(examples, [open_kompact()], store)
    return {"result": result, "data": digest, "version": find_version()}


def measure_moved(data: Path | None, store: Path | None = None) -> dict[str, Any]:
    """Measure kompact on records with at least three functions, the gold function moved to the first or last place."""
    _, records, digest = read_functions(data)
    chosen = [
        (name, record, golds)
        for name, (record, golds) in records.items()
        if "live_multiple" in name and len(golds) == 1 and len(record["function"]) >= 3
    ]
    examples = []
    for name, record, golds in chosen:
        (gold,) = [each for each in record["function"] if each["name"] == golds[0]][:1] or [None]
        others = [each for each in record["function"] if each is not gold]
        if gold is not None:
            for place, functions in (("first", [gold, *others]), ("last", [*others, gold])):
                examples.append({**make_example(name, record, functions, golds, golds[0]), "dataset": place})
    result = run_functions(examples, [open_kompact()], store)
    return {"result": result, "data": digest, "version": find_version()}


# --- tokbench's ledger


def measure_tokbench(data: Path | None) -> dict[str, Any]:
    """Sum the billed input tokens of transcripts, and those that headroom says it removed."""
    folder = find_data(data, "traffic/tokbench")
    by_response: dict[tuple[str, str], int] = {}
    for path in sorted(folder.glob("c0-T-fix-claude-r1/**/*.jsonl")):
        for record in read_lines(path):
            message = record.get("message") or {}
            if record.get("type") == "assistant" and message.get("usage"):
                usage = message["usage"]
                kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
                by_response[message["id"], str(record.get("requestId"))] = sum(usage.get(kind, 0) for kind in kinds)
    billed = 0
    for path in folder.glob("a0c-T-fix-r1/transcripts/*/*.json"):
        usage = json.loads(path.read_text("utf-8")).get("usage", {})
        billed += sum(usage.get(kind, 0) for kind in ("input", "cacheRead", "cacheWrite"))
    stats = json.loads((folder / "a2-T-fix-r2/headroom-stats.json").read_text("utf-8"))["summary"]["compression"]
    removed, before = stats["total_tokens_removed"], stats["total_tokens_before_with_cli_filtering"]
    return {
        "tokbench-claude-code": {"value": sum(by_response.values()), "n": len(by_response)},
        "tokbench-a0c": {"value": billed, "n": 1},
        "tokbench-headroom": {"value": 100 * removed / before, "n": 1},
    }


# --- retrieval by session on LoCoMo, plain BM25


def split_words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def rank(question: str, documents: list[Counter[str]]) -> list[int]:
    """Rank documents for a question, the best first."""
    lengths = [sum(each.values()) for each in documents]
    mean = sum(lengths) / len(lengths)
    scores = [0.0] * len(documents)
    for word in set(split_words(question)):
        holding = sum(word in each for each in documents)
        weight = log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
        for place, words in enumerate(documents):
            count = words[word]
            scores[place] += (
                weight * count * (BM25_K1 + 1) / (count + BM25_K1 * (1 - BM25_B + BM25_B * lengths[place] / mean))
            )
    return sorted(range(len(documents)), key=lambda place: -scores[place])


def measure_locomo(data: Path | None) -> dict[str, Any]:
    """Measure how often any, or all, sessions with evidence are among the first k."""
    folder = find_data(data, "locomo")
    found: Counter[str] = Counter()
    for sample in json.loads((folder / "locomo10.json").read_text("utf-8")):
        sessions = {key: turns for key, turns in sample["conversation"].items() if re.fullmatch(r"session_\d+", key)}
        names = [key.removeprefix("session_") for key in sessions]
        texts = [" ".join(f"{turn['speaker']} {turn['text']}" for turn in turns) for turns in sessions.values()]
        documents = [Counter(split_words(text)) for text in texts]
        for each in sample["qa"]:
            wanted = {number for text in each["evidence"] for number in re.findall(r"D:?(\d+):\d+", text)} & {*names}
            if wanted:
                order = [names[place] for place in rank(each["question"], documents)]
                found["n"] += 1
                for k in (1, 5, 10):
                    found[f"any@{k}"] += bool(wanted & {*order[:k]})
                    found[f"all@{k}"] += wanted <= {*order[:k]}
    shares = {key: {"value": 100 * count / found["n"], "n": found["n"]} for key, count in found.items() if key != "n"}
    return {f"locomo-bm25-{key.replace('@', '-')}": value for key, value in shares.items()}


# --- our own README and tutorial


def measure_picture(data: Path | None) -> dict[str, Any]:  # noqa: ARG001 - the data is generated
    """Measure the system that the picture of the README is about, on its datasets."""
    datasets = [f"{name}:length=4000,n=40" for name in ("needle", "multi-needle", "kv", "json-logs")]
    return {"result": evaluate(["passthrough", "bm25:ratio=0.02"], datasets, progress=False)}


def measure_demo(data: Path | None) -> dict[str, Any]:  # noqa: ARG001 - the data is generated
    """Measure the seven systems of `context-bench demo`."""
    systems = [system for text in SYSTEMS for system in build_systems(text, seed=0)]
    metrics = default_metrics(datasets=len(DATASETS), systems=len(systems))
    return {"result": evaluate(systems, open_datasets(DATASETS, Choices(seed=0)), metrics=metrics, progress=False)}


def record() -> None:
    """Measure kompact again, and keep the runs as private bundles."""
    data = Path(os.environ["CONTEXT_BENCH_DATA"])
    for name, work in (("kompact", measure_kompact), ("kompact-moved", measure_moved)):
        with tempfile.TemporaryDirectory() as folder:
            work(data, Path(folder))
            with Store(folder, readonly=True, create=False) as store:
                write_bundle(store, store.run("last"), HERE / f"{name}.ctxb", private=True)


if __name__ == "__main__":
    record()
