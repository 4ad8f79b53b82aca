"""Runs on public data where CONTEXT_BENCH_DATA holds it. Of their texts only digests are recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpus.bench import DATA, Absent, Bench, recorded_run

DATASETS = (
    *(
        "bbh:boolean_expressions",
        "bbh:word_sorting",
        "bbh:causal_judgement",
        "bbh:date_understanding",
        "bfcl",
        "bfcl:parallel",
        "gsm8k",
        "hotpotqa",
        "ifeval",
        "mgsm",
        "mt-bench",
    ),
    *("natural-questions", "qmsum", "truthfulqa"),
)
SYSTEMS = ("passthrough", "truncate:ratio=0.5", "bm25:ratio=0.3", "parts.py:know", "parts.py:know_less")


def digest(value: Any) -> str:
    """A digest that no placeholder replaces."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return "sha256-" + "-".join(
        hashlib.sha256(text.encode()).hexdigest()[start : start + 8] for start in range(0, 64, 8)
    )


def shorten(document: dict[str, Any]) -> dict[str, Any]:
    """Keep the numbers of a result, and digests of all that may hold a text of the data."""
    rows = []
    for row in document.pop("rows"):
        known = {key: row.get(key) for key in ("system", "scores", "input_tokens", "output_tokens", "dataset")}
        texts = {key: value for key, value in row.items() if key not in (*known, "latency", "metadata")}
        rows.append({**known, "texts": digest(texts)})
    config = document.pop("config")
    kept = {
        key: config.get(key)
        for key in ("datasets", "samples", "gold", "evaluators", "score_field", "primary", "returns")
    }
    return {**document, "timing": sorted(document["timing"]), "config": kept, "rows": rows}


def _need(name: str) -> None:
    if not DATA or not (Path(DATA) / name.partition(":")[0]).is_dir():
        raise Absent(f"CONTEXT_BENCH_DATA has no {name}")


def _run_public(name: str) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        from context_bench.registry import load_dataset

        _need(name)
        head, _, config = name.partition(":")
        options = {"config": config} if config else {}
        bench.keep("examples", [digest(each) for each in load_dataset(head, data_dir=DATA, n=20, **options)])
        named = [part for system in SYSTEMS for part in ("--system", system)]
        base = ("--dataset", name, "--data-dir", DATA, "-n", "6", "--no-store", "--output", "json", "--quiet")
        for more in ((), ("--sample", "random", "--seed", "5")):
            code, out, err = bench.call(*named, *base, *more)
            bench.keep(
                " ".join((name, *more)),
                {"code": code, "out": shorten(json.loads(out)), "err": digest(err) if err else ""},
            )

    return run


for _name in DATASETS:
    recorded_run(f"public: {_name}")(_run_public(_name))


@recorded_run("public: code")
def _(bench: Bench) -> None:
    from context_bench.registry import load_dataset

    for name in ("humaneval", "mbpp"):
        _need(name)
        bench.keep(name, [digest(each) for each in load_dataset(name, data_dir=DATA, n=20)])


@recorded_run("public: memory on locomo")
def _(bench: Bench) -> None:
    _need("locomo")
    named = [part for system in ("naive", "bm25", "last:n=20", "closed-book") for part in ("--system", system)]
    base = ("--dataset", "locomo", "--data-dir", DATA, "-n", "1", "--budget", "500", "--answers", "reader")
    code, out, err = bench.call("memory", *named, *base, "--no-store", "--output", "json", "--quiet")
    bench.keep("locomo", {"code": code, "out": shorten(json.loads(out)), "err": digest(err) if err else ""})


@recorded_run("public: chat logs")
def _(bench: Bench) -> None:
    _need("traffic")
    for path in sorted((Path(DATA) / "traffic").rglob("*.jsonl"))[:8]:
        code, out, err = bench.call("datasets", "import", str(path))
        err = err.replace(DATA.rstrip("/"), "<data>")  # before the digest, which must not depend on the machine
        bench.keep(path.name, {"code": code, "out": digest(out), "err": err if len(err) < 200 else digest(err)})
