"""The corpus: named runs of what a user can reach, each small and the same every time.

Only what is public is used: the command line, `evaluate()`, `evaluate_memory()`, the registry and the metrics and
evaluators that it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpus.bench import Bench, recorded_run
from servers import Reply, Request, Server, completion, free_port, message, reply, stream
from servers import chunk as piece
from toy_proxies import KINDS, toy_proxy

JSON = ("--output", "json", "--quiet")
SYNTHETIC = {
    "needle": "needle:length=400,n=5",
    "kv": "kv:length=400,n=5",
    "json-logs": "json-logs:length=600,n=5",
    "json-logs-kind": "json-logs:length=600,n=4,kind=logs",
    "multi-needle": "multi-needle:length=600,n=4",
    "aggregate": "aggregate:length=400,n=4",
    "tracking": "tracking:length=400,n=4",
    "rerank": "rerank:n=4",
}
SYSTEMS = (
    "passthrough",
    "closed-book",
    "oracle",
    "minify",
    "truncate:ratio=0.5",
    "truncate:budget=60,keep=tail",
    "truncate:ratio=0.4,keep=middle",
    "random-drop:ratio=0.5,seed=3",
    "random-drop:budget=100",
    "bm25:ratio=0.3",
    "bm25:budget=80,k1=1.2,b=0.5",
)
COMMANDS = (
    *("run", "memory", "plan", "report", "plot", "view", "runs", "compare", "diff", "score", "judge-check", "tap"),
    *("conformance", "local", "datasets", "systems", "evaluators", "metrics", "prices", "reporters", "demo"),
    "completion",
)


def flags(name: str, values: tuple[str, ...]) -> list[str]:
    """Repeat a flag for each value."""
    return [part for value in values for part in (f"--{name}", value)]


def systems(*names: str) -> list[str]:
    return flags("system", names)


# What the program says of itself.


@recorded_run("help of the program")
def _(bench: Bench) -> None:
    for arguments in ((), ("--help",), ("--help-all",), ("--version",)):
        bench.run(*arguments)


@recorded_run("help of the commands")
def _(bench: Bench) -> None:
    for command in COMMANDS:
        bench.run(command, "--help")
    for command in ("list", "show", "export", "requests", "rm"):
        bench.run("runs", command, "--help")
    for command in ("show", "fetch", "import"):
        bench.run("datasets", command, "--help")


@recorded_run("lists")
def _(bench: Bench) -> None:
    for command in ("datasets", "systems", "evaluators", "metrics", "reporters"):
        bench.run(command)
    bench.run("datasets", "--wide")
    bench.run("datasets", "--markdown")
    bench.run("conformance", "--list")
    for dataset in ("needle", "hotpotqa", "gsm8k", "bbh", "longbench", "mrcr", "bfcl", "humaneval", "contract-nli"):
        bench.run("datasets", "show", dataset)
    bench.run("datasets", "show", "rerank", "--full")


@recorded_run("prices")
def _(bench: Bench) -> None:
    bench.run("prices", "gpt-4o-mini")
    bench.run("prices", "claude-haiku-4-5", "--output", "json")
    bench.run("prices", "no-such-model")
    bench.write(
        "prices.toml", '["mine"]\ninput = 1.5\ncached_input = 0.5\noutput = 3\n\n[default]\ninput = 1\noutput = 2\n'
    )
    bench.run("prices", "--prices", "prices.toml", "--output", "json")
    bench.run("prices", "mine", "--prices", "prices.toml")


@recorded_run("completion")
def _(bench: Bench) -> None:
    for shell in ("bash", "zsh", "fish"):
        bench.run("completion", shell)


# Systems on generated data.


def _run_dataset(reference: str) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        bench.run(*systems(*SYSTEMS), "--dataset", reference, "--no-store", *JSON)

    return run


for _name, _reference in SYNTHETIC.items():
    recorded_run(f"systems on {_name}")(_run_dataset(_reference))


@recorded_run("systems of a user")
def _(bench: Bench) -> None:
    own = ("first_half", "know", "know_less", "fail_often", "answer_nothing", "Telling")
    names = systems("passthrough", *(f"parts.py:{name}" for name in own))
    bench.run(*names, "--dataset", "needle:length=400,n=12", "--no-store", *JSON)
    bench.run(*names, "--dataset", "needle:length=400,n=12", "--no-store", "--keep-reasoning", "--threshold", "0.5")
    bench.run(*systems("passthrough", "bm25", "parts.py:reverse"), "--dataset", "rerank:n=6", "--score-field", "ndcg")
    bench.run(*systems("parts.py:fail_always", "passthrough"), "--dataset", "kv:length=400,n=4", *JSON)


@recorded_run("parts of a user")
def _(bench: Bench) -> None:
    base = (*systems("passthrough", "parts.py:know"), "--dataset", "needle:length=400,n=6", "--no-store")
    bench.run(*base, "--metric", "parts.py:Longest", "--evaluator", "parts.py:Polite", *JSON)
    bench.run(*base, "--metric", "parts.py:Longest", "--score-field", "f1")
    bench.run(*base, "--evaluator", "parts.py:Polite", "--score-field", "polite", "--output", "csv")


@recorded_run("a program as a system")
def _(bench: Bench) -> None:
    command = "command:name=loud,timeout=30,python3 program.py"
    bench.run(*systems("passthrough", command), "--dataset", "needle:length=400,n=4", "--no-store", *JSON)
    bench.run(*systems("command:name=gone,false"), "--dataset", "needle:length=400,n=2", "--no-store", "--quiet")


@recorded_run("several datasets")
def _(bench: Bench) -> None:
    data = flags("dataset", ("needle:length=400,n=8", "kv:length=400,n=6", "json-logs:length=600,n=4"))
    names = systems("passthrough", "closed-book", "minify", "truncate:ratio=0.5", "bm25:ratio=0.3")
    bench.run(*names, *data, "--no-store", *JSON, rows=False)
    bench.run(*names, *data, "--no-store", "--seed", "7", "--baseline", "minify", "--margin", "0.1")
    bench.run(*systems("truncate:ratio=0.5", "bm25:ratio=0.3"), *data, "--no-store", "-n", "3", "--sample", "first")


@recorded_run("many examples")
def _(bench: Bench) -> None:
    names = systems("passthrough", "minify", "truncate:ratio=0.5", "bm25:ratio=0.3", "random-drop:ratio=0.5")
    bench.run(*names, "--dataset", "needle:length=300,n=160", "--no-store", *JSON, rows=False)
    bench.run(*names, "--dataset", "needle:length=300,n=160", "--no-store")
    bench.run(*names, "--dataset", "needle:length=300,n=160", "--no-store", "--fixed-groups", "--margin", "0.1")


@recorded_run("files of a user")
def _(bench: Bench) -> None:
    lines = [
        {"id": f"e{number}", "context": f"In town {number} lives Ann{number}. It rains. The code is {number * 7}.",
         "question": "What is the code?", "answer": str(number * 7), "meta": {"group": f"g{number % 3}"},
         "category": "odd" if number % 2 else "even"}
        for number in range(12)
    ]  # fmt: skip
    bench.write("mine.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    bench.write("mine.json", json.dumps(lines[:5]))
    bench.write("mine.csv", "id,prompt,gold,context\n1,Who?,Ann,Ann is here.\n2,Who?,Bob,=Bob is there.\n")
    names = systems("passthrough", "truncate:ratio=0.5", "parts.py:know", "bm25:ratio=0.5")
    bench.run(*names, "--dataset", "mine.jsonl", "--no-store", *JSON)
    bench.run(*names, "--dataset", "mine.jsonl", "--no-store", "-n", "4", "--sample", "stratified", *JSON, rows=False)
    bench.run(*names, "--dataset", "mine.jsonl", "--no-store", "-n", "4", "--sample", "random", "--seed", "2")
    bench.run(*names, "--dataset", "mine.json", "--no-store", "--tokenizer", "o200k_base", "--output", "csv")
    bench.run(*names, "--dataset", "mine.csv", "--map", "question=prompt,answer=gold", "--no-store", *JSON)
    bench.write("chat.jsonl", json.dumps({"id": "c1", "turns": [{"role": "user", "content": "Hello there, my code is 5."}, {"role": "assistant", "content": "Noted."}, {"role": "user", "content": "What is my code?"}], "answer": "5"}) + "\n")  # fmt: skip
    bench.run(*names, "--dataset", "chat.jsonl", "--no-store", *JSON)
    bench.write("none.jsonl", json.dumps({"id": 1, "context": "Nothing is asked here at all."}) + "\n")
    bench.run(*systems("passthrough", "truncate:ratio=0.5"), "--dataset", "none.jsonl", "--no-store")
    bench.run(*names, "--dataset", "mine.jsonl", "--dry-run")
    bench.write("log.jsonl", json.dumps({"messages": [{"role": "user", "content": "Hi, who are you?"}, {"role": "assistant", "content": "A model."}]}) + "\n")  # fmt: skip
    bench.run("datasets", "import", "log.jsonl", "--answers", "--out", "imported.jsonl")
    bench.run("datasets", "show", "mine.jsonl")


@recorded_run("a run file")
def _(bench: Bench) -> None:
    bench.write("bench.toml", 'system = ["passthrough", "bm25:ratio=0.3"]\ndataset = ["needle:length=400,n=4"]\nquiet = true\nthreshold = 0.6\nno-store = true\n')  # fmt: skip
    bench.run("run", "bench.toml", "--output", "json")
    bench.run("run", "bench.toml", "--margin", "0.05", "--system", "minify")
    bench.write("wrong.toml", 'system = ["passthrough"]\ndatasets = "needle"\n')
    bench.run("run", "wrong.toml")
    bench.write("wrong.toml", "system = [")
    bench.run("run", "wrong.toml")
    bench.run("run", "missing.toml")


# What comes out.


@recorded_run("forms of output")
def _(bench: Bench) -> None:
    base = (
        *systems("passthrough", "minify", "bm25:ratio=0.3", "parts.py:fail_often"),
        "--dataset",
        "json-logs:length=600,n=6",
    )
    for form in ("table", "json", "csv"):
        bench.run(*base, "--no-store", "--output", form, "--wide")
    for name in ("result.json", "result.csv", "result.md", "result.html"):
        bench.run(*base, "--no-store", "--quiet", "--out", name)
        bench.file(name)
    bench.run(*base, "--no-store", "--quiet", "--no-rows", "--output", "json")
    bench.run(*base, "--quiet", "--no-rows", "--output", "json")
    bench.run(*base, "--no-store", "--out", "result.txt")
    bench.run(*base, "--no-store", "--output", "csv", "--out", "result.json")
    bench.run(*base, "--no-store", "--report", "page.html", "--verbose")
    bench.file("page.html")


@recorded_run("curves")
def _(bench: Bench) -> None:
    base = (
        *systems("passthrough", "bm25:ratio=0.1|0.3|0.6", "truncate:ratio=0.3|0.6"),
        "--dataset",
        "needle:length=400,n=24",
    )
    bench.run(*base, *JSON, rows=False)
    bench.run("runs", "show", "last")
    bench.run("plot", "last", "--kind", "curve")
    bench.run("plot", "last")
    bench.run("plot", "last", "--kind", "pareto")
    bench.run("report", "last", "--out", "curves.html")
    bench.file("curves.html")
    bench.run(*base, "--no-store", "--margin", "0.2")
    sweep = systems("truncate:ratio=0.3|0.6,keep=head|tail", "random-drop:ratio=0.2|0.7,seed=1")
    bench.run(
        *sweep, "--dataset", "kv:length=300,n=8", "--dataset", "needle:length=300,n=8", "--no-store", *JSON, rows=False
    )


@recorded_run("curves in Python")
def _(bench: Bench) -> None:
    from context_bench import evaluate

    result = evaluate(["passthrough", "bm25:ratio=0.1|0.3|0.5"], "needle:length=400,n=20", progress=False)
    bench.keep("curves", [repr(curve) for curve in result.curves(margin=0.05)])
    bench.keep("compared", repr(result.compare(baseline="bm25:ratio=0.1", metric="pass_rate", margin=0.05)))
    bench.keep("filtered", json.loads(result.filter(system="passthrough").to_json()))
    bench.keep("frame", json.loads(result.to_dataframe().drop(columns="latency").to_json(orient="split")))


# The store.


@recorded_run("the store")
def _(bench: Bench) -> None:
    names = systems("passthrough", "bm25:ratio=0.3", "parts.py:know", "parts.py:fail_often")
    base = (*names, "--dataset", "needle:length=400,n=8")
    bench.run(*base, "--cache-dir", "store", "-n", "4", *JSON, rows=False)
    bench.run(*base, "--cache-dir", "store", *JSON)
    bench.run(*base, "--cache-dir", "store", *JSON, rows=False)
    bench.run(*base, "--cache-dir", "store", "--fresh", *JSON, rows=False)
    bench.run(*base, "--cache-dir", "store", "--cache-tag", "two", *JSON, rows=False)
    at = ("--cache-dir", "store")
    bench.run("runs", "list", *at)
    bench.run("runs", *at)
    bench.run("runs", "show", "last", *at)
    bench.run("runs", "show", "last~1", *at)
    for form in ("json", "csv", "table"):
        bench.run("runs", "export", "last", "--output", form, *at)
    bench.run("score", "last", "--threshold", "0.9", *at, "--quiet")
    bench.run("score", "last", "--evaluator", "rouge-suite", "--score-field", "rouge_1_f1", *at, *JSON)
    bench.run("score", "last~1", "--metric", "parts.py:Longest", "--keep-reasoning", *at, "--quiet")
    bench.run("report", "last", "last~1", "--out", "two.html", *at)
    bench.file("two.html")
    bench.run("runs", "rm", "last", *at)
    bench.run("runs", "list", *at)
    bench.run("runs", "show", "nothing", *at)
    bench.run("runs", "requests", "last", *at)
    bench.run("runs", "list", "--cache-dir", "elsewhere")


@recorded_run("resume")
def _(bench: Bench) -> None:
    base = (*systems("passthrough", "parts.py:fail_often"), "--dataset", "kv:length=400,n=6")
    bench.run(*base, "--quiet")
    bench.run(*base, "--resume", *JSON)
    bench.run(*base, "--system", "minify", "--resume", *JSON, rows=False)
    bench.run("runs", "show", "last")


@recorded_run("diff")
def _(bench: Bench) -> None:
    bench.run(
        *systems("passthrough", "bm25:ratio=0.3", "minify", "parts.py:know"),
        "--dataset",
        "json-logs:length=600,n=3",
        "--quiet",
    )
    out = bench.call("diff", "last")[1]
    bench.keep("listed", out)
    name = json.loads(bench.call("runs", "export", "last", "--output", "json")[1])["rows"][0]["example_id"]
    bench.run("diff", "last", str(name))
    bench.run("diff", "last", str(name), "--system", "bm25:ratio=0.3", "--full", "--no-color")
    bench.run("diff", "last", str(name), "--system", "minify", "--color", "always")
    bench.run("diff", "last", "none-such")


# Comparisons, gates, plans.


def _two_runs(bench: Bench) -> None:
    base = ("--dataset", "needle:length=400,n=40", "--quiet")
    bench.run(*systems("passthrough", "truncate:ratio=0.7", "bm25:ratio=0.5"), *base, "--out", "old.json")
    bench.run(*systems("passthrough", "truncate:ratio=0.5", "bm25:ratio=0.3"), *base, "--out", "new.json")


@recorded_run("compare")
def _(bench: Bench) -> None:
    _two_runs(bench)
    for arguments in (
        ("last~1", "last"),
        ("last",),
        ("old.json", "new.json"),
        ("last~1@bm25:ratio=0.5", "last@bm25:ratio=0.3"),
        ("last~1@truncate:ratio=0.7", "last@truncate:ratio=0.5", "--list", "20"),
        ("last", "--baseline", "truncate:ratio=0.5", "--margin", "0.1", "--fixed-groups"),
        ("old.json", "new.json", "--map-system", "truncate:ratio=0.7=truncate:ratio=0.5", "--allow-missing"),
        ("old.json", "new.json", "old.json"),
        ("last", "missing.json"),
    ):
        bench.run("compare", *arguments)
        bench.run("compare", *arguments, "--output", "json")
    bench.run("compare", "last~1", "last", "--out", "compared.md")
    bench.file("compared.md")
    bench.run(
        "compare",
        "old.json",
        "new.json",
        "--fail-if",
        "score drops 0.02",
        "--junit",
        "gate.xml",
        "--summary",
        "gate.md",
    )
    bench.file("gate.xml")
    bench.file("gate.md")
    bench.run("compare", "old.json@passthrough", "new.json@passthrough", "--fail-if", "verdict is worse")


GATES = (
    ("score drops 0.02",),
    ("score drops 0.2",),
    ("compression_ratio < 0.05",),
    ("compression_ratio < 0.9",),
    ("error_rate > 0.01",),
    ("error_rate > 0.2",),
    ("verdict is worse",),
    ("verdict is not equivalent",),
    ("pass_rate <= 0.5", "mean_output_tokens rises 5"),
    ("cost_of_pass > 100", "score drops 0.5"),
    ("error_rate > 1",),
    ("scoer drops 0.02",),
    ("prompt_savings < 0.3",),
    ("score falls",),
)


@recorded_run("gates")
def _(bench: Bench) -> None:
    base = (
        *systems("passthrough", "minify", "truncate:ratio=0.5"),
        "--dataset",
        "json-logs:length=300,n=150",
        "--no-store",
        "--quiet",
    )
    for conditions in GATES:
        bench.run(
            *base, *flags("fail-if", conditions), "--junit", "gate.xml", "--summary", "gate.md", "--out", "r.json"
        )
    bench.run(*base, *flags("fail-if", ("score drops 0.02", "compression_ratio < 0.01")), "--junit", "gate.xml", "--summary", "gate.md", "--out", "r.json")  # fmt: skip
    bench.file("gate.xml")
    bench.file("gate.md")
    few = (*systems("passthrough", "minify"), "--dataset", "needle:length=300,n=5", "--no-store", "--quiet")
    bench.run(*few, "--fail-if", "score drops 0.02")
    bench.run(
        *systems("passthrough", "minify", "closed-book"),
        "--dataset",
        "needle:length=300,n=5",
        "--no-store",
        "--fail-if",
        "score drops 0.9",
    )
    several = (*few, "--dataset", "kv:length=300,n=5")
    bench.run(*several, "--fail-if", "pass_rate@needle:length=300,n=5 < 0.5", "--fail-if", "score drops 0.9")


@recorded_run("plans")
def _(bench: Bench) -> None:
    for arguments in (("--discordant", "0.1"), ("--spread", "0.3"), ("--spread", "0.4", "--power", "0.9", "-n", "500")):
        bench.run("plan", *arguments)
        bench.run("plan", *arguments, "--output", "json")
    bench.run("plan")
    bench.run("plan", "--spread", "0")
    base = (*systems("passthrough", "bm25:ratio=0.3", "truncate:ratio=0.5"), "--dataset", "needle:length=300,n=30")
    bench.run(*base, "--quiet")
    bench.run("plan", "last", "--difference", "0.05", "--margin", "0.02")
    bench.run("plan", "last", "--output", "json")
    bench.run("plan", "last", "-n", "30", "--lock", "plan.json")
    bench.file("plan.json")
    bench.run(*base, "--plan", "plan.json", "--quiet")
    bench.run(*base, "-n", "20", "--margin", "0.1", "--plan", "plan.json", *JSON, rows=False)
    bench.run("plan", "last", "-n", "30", "--lock", "plan.json")


# How a run goes on and ends.


@recorded_run("interim looks")
def _(bench: Bench) -> None:
    names = systems("passthrough", "minify", "truncate:ratio=0.5", "bm25:ratio=0.3", "parts.py:fail_often")
    base = (*names, "--dataset", "json-logs:length=300,n=200", "--stop-when-decided", "--no-store")
    bench.run(*base, *JSON, rows=False)
    bench.run(*base, "--margin", "0.05", "--seed", "3")


@recorded_run("repeats")
def _(bench: Bench) -> None:
    names = systems("passthrough", "random-drop:ratio=0.5", "parts.py:know")
    base = (*names, "--dataset", "needle:length=400,n=6", "--no-store")
    bench.run(*base, "--repeats", "3", *JSON)
    bench.run(*base, "--repeats", "2")
    bench.run(*base, "--aa", *JSON, rows=False)
    bench.run(*base, "--aa")


@recorded_run("limits")
def _(bench: Bench) -> None:
    names = systems("parts.py:fail_often", "parts.py:fail_always", "passthrough")
    base = (*names, "--dataset", "kv:length=300,n=20", "--no-store", "--max-workers", "1")
    bench.run(*base, "--max-errors", "2", *JSON, rows=False)
    bench.run(*base, "--max-errors", "50%", "--quiet")
    bench.run(*base, "--quiet")
    bench.run(
        *systems("parts.py:Telling"),
        "--dataset",
        "kv:length=300,n=20",
        "--no-store",
        "--max-total-tokens",
        "600",
        *JSON,
    )
    bench.write("prices.toml", '["gpt-4o-mini"]\ninput = 1000\noutput = 2000\n')
    priced = (
        *systems("parts.py:Telling", "passthrough"),
        "--dataset",
        "kv:length=300,n=20",
        "--no-store",
        "--prices",
        "prices.toml",
    )
    bench.run(*priced, "--max-cost", "1", *JSON, rows=False)
    bench.run(*priced)


WRONG = (
    ("--system", "passthruogh", "--dataset", "needle"),
    ("--system", "passthrough", "--dataset", "nedle"),
    ("--system", "passthrough"),
    ("--dataset", "needle"),
    ("--system", "passthrough", "--dataset", "missing.jsonl"),
    ("--system", "passthrough", "--dataset", "broken.jsonl"),
    ("--system", "passthrough", "--dataset", "noid.jsonl"),
    ("--system", "truncate", "--dataset", "needle:n=2"),
    ("--system", "truncate:ratio=2", "--dataset", "needle:n=2"),
    ("--system", "truncate:ratio=0.5,budget=4", "--dataset", "needle:n=2"),
    ("--system", "bm25:rato=0.5", "--dataset", "needle:n=2"),
    ("--system", "parts.py:nothing", "--dataset", "needle:n=2"),
    ("--system", "missing.py:thing", "--dataset", "needle:n=2"),
    ("--system", "passthrough", "--dataset", "needle:n=-2"),
    ("--system", "passthrough", "--dataset", "needle:lenght=2"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--evaluator", "f2"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--metric", "meen-score"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--output", "jsno"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--threshold", "seven"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--margin", "-1"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--baseline", "minify"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--max-workers", "0"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--tokenizer", "nope"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--no-such-flag"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--fail-if", "score drops lots"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--repeats", "0"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--score-field", "nothing"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--cache-dir", "d", "--no-store"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--resume", "--fresh"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--plan", "missing.json"),
    ("--system", "passthrough", "--dataset", "needle:n=2", "--max-errors", "many"),
    ("--system", "passthrough", "--system", "passthrough", "--dataset", "needle:n=2", "--dry-run"),
    ("--proxy", "localhost", "--dataset", "needle:n=2"),
    ("--proxy", "http://127.0.0.1:1", "--name", "a", "--name", "b", "--dataset", "needle:n=2"),
    ("--proxy", "http://127.0.0.1:1", "--extra-body", "{", "--dataset", "needle:n=2"),
    ("--proxy", "http://127.0.0.1:1", "--header", "nothing", "--dataset", "needle:n=2"),
    ("--proxy", "http://127.0.0.1:1", "--api", "gemini", "--dataset", "needle:n=2"),
    ("--proxy", "http://127.0.0.1:1", "--tap-reply", "extract", "--dataset", "needle:n=2"),
    ("--proxy", "http://127.0.0.1:1", "--tap", ":0", "--dataset", "needle:n=2"),
    ("--proxy", "http://127.0.0.1:1", "--api-key-env", "NO_SUCH_KEY", "--dataset", "needle:n=2"),
    ("--start", "true", "--dataset", "needle:n=2"),
    ("--vendor", "nobody", "--dataset", "needle:n=2"),
    ("--system", "passthrough", "--dataset", "hotpotqa", "--data-dir", "nowhere"),
    ("--system", "passthrough", "--dataset", "bbh:nothing", "--data-dir", "nowhere"),
    ("rnu", "x"),
    ("memory", "--system", "naive"),
    ("memory", "--system", "navie", "--dataset", "synthetic-memory"),
    ("memory", "--system", "naive", "--dataset", "synthetic-memory:length=10"),
    ("memory", "--system", "naive", "--dataset", "synthetic-memory:length=4000", "--granularity", "word"),
    ("memory", "--system", "naive", "--dataset", "synthetic-memory:length=4000", "--budget", "-4"),
    ("compare",),
    ("compare", "last"),
    ("diff", "last"),
    ("report", "missing.json"),
    ("plot", "broken.json"),
    ("score", "last"),
    ("datasets", "show", "hotpot"),
    ("datasets", "fetch", "nothing", "--to", "d"),
    ("datasets", "import", "missing.jsonl"),
    ("conformance", "--proxy", "http://127.0.0.1:1"),
    ("conformance", "--proxy", "http://127.0.0.1:1", "--tap", ":0", "--check", "nothing"),
    ("tap",),
    ("tap", "--reply", "nothing"),
    ("completion", "tcsh"),
)


@recorded_run("wrong input")
def _(bench: Bench) -> None:
    bench.write("broken.jsonl", '{"id": 1, "context": "a"}\n{"id": 2,\n')
    bench.write("noid.jsonl", '{"context": "a"}\n{"id": 2}\n')
    bench.write("broken.json", '{"rows": 5}')
    for arguments in WRONG:
        bench.run(*arguments)


# Servers.


def tell(request: Request) -> Reply:
    """A model that finds the needle: it gives the last sentence that shares a long word with the question."""
    document = request.json
    texts = [str(each.get("content") or "") for each in document["messages"]]
    texts = [str(document.get("system") or ""), *texts]
    words = set(re.findall(r"\w{4,}", texts[-1].lower()))
    sentences = [each for each in re.split(r"(?<=[.!?\n])\s", " ".join(texts[:-1])) if each.strip()]
    found = max(sentences, key=lambda each: len(words & set(re.findall(r"\w{4,}", each.lower()))), default="nothing")
    usage = {"prompt_tokens": sum(len(each.split()) for each in texts), "completion_tokens": len(found.split())}
    usage["total_tokens"] = sum(usage.values())
    if request.path.endswith("/messages"):
        return message(found, {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]})
    if document.get("stream"):
        counts = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
        return stream(piece(found[:5]), piece(found[5:]), piece(finish="stop"), counts, b"data: [DONE]\n\n")
    return completion(found, usage)


ONE = ("--max-workers", "1", "--no-store")


@recorded_run("a proxy")
def _(bench: Bench) -> None:
    with Server(tell) as server:
        base = ("--proxy", server.url, "--name", "mine", "--dataset", "needle:length=400,n=4", *ONE)
        bench.run(*base, "--model", "gpt-4o-mini", *JSON)
        bench.run(*base, *systems("passthrough", "truncate:ratio=0.5"))
        bench.run(*base, "--stream", "--model", "gpt-4o-mini", *JSON)
        bench.run(*base, "--api", "anthropic", "--temperature", "none", "--max-tokens", "50", *JSON)
        bench.run(
            *base,
            "--system-prompt",
            "Be brief.",
            "--header",
            "X-Mine: 5",
            "--extra-body",
            '{"top_p": 0.5}',
            "--max-retries",
            "0",
        )
        bench.run(*base, "--dry-run", "--model", "gpt-4o-mini")
        bench.run(*base, "--max-total-tokens", "700", *JSON)
        asked = [(each.path, each.json) for each in server.chats]
    bench.keep("asked", asked)


@recorded_run("a proxy with a store")
def _(bench: Bench) -> None:
    with Server(tell) as server:
        base = ("--proxy", server.url, "--name", "mine", "--dataset", "kv:length=400,n=4", "--max-workers", "1")
        bench.run(*base, "--cache-dir", "store", "-n", "2", *JSON, rows=False)
        bench.run(*base, "--cache-dir", "store", *JSON)
        bench.run(*base, "--cache-dir", "store", "--repeats", "2", *JSON, rows=False)
        bench.keep("asked", len(server.chats))
    bench.run("runs", "show", "last", "--cache-dir", "store")
    bench.run("diff", "last", "--cache-dir", "store")


@recorded_run("a proxy that fails")
def _(bench: Bench) -> None:
    wrong: dict[str, Any] = {"error": {"message": "the key is wrong", "type": "auth"}}
    scripts: dict[str, list[Any]] = {
        "key": [reply(401, wrong)],
        "once": [reply(500, wrong), tell],
        "server": [tell, reply(500, {"error": {"message": "boom"}})],
        "text": [reply(200, {"choices": []})],
        "strange": [reply(200, [1, 2])],
        "empty": [completion(None)],
    }
    for name, script in scripts.items():
        with Server(*script) as server:
            base = ("--proxy", server.url, "--name", name, "--dataset", "needle:length=300,n=3", *ONE)
            bench.run(*base, "--max-retries", "1" if name == "once" else "0", *JSON)
            if name in ("key", "server"):
                bench.run(*base, "--max-retries", "0", "--no-preflight")
                bench.run(*base, "--max-retries", "0")
    gone = ("--proxy", "http://127.0.0.1:9", "--name", "gone")
    bench.run(*gone, "--dataset", "needle:length=300,n=2", "--max-retries", "0", *ONE)


@recorded_run("a reader and controls")
def _(bench: Bench) -> None:
    with Server(tell) as server:
        base = ("--reader", server.url, "--dataset", "needle:length=400,n=4", "--model", "gpt-4o-mini", *ONE)
        bench.run(*base, *systems("passthrough", "truncate:ratio=0.5", "bm25:ratio=0.3"), *JSON)
        bench.run(*base, *systems("passthrough", "closed-book", "bm25:ratio=0.3"))
        bench.run("--proxy", server.url, "--name", "mine", "--dataset", "kv:length=400,n=4", "--controls", *ONE)


@recorded_run("a judge")
def _(bench: Bench) -> None:
    with Server(completion("Rating: 4", {"prompt_tokens": 50, "completion_tokens": 3, "total_tokens": 53})) as judge:
        base = (*systems("passthrough", "parts.py:know"), "--dataset", "needle:length=300,n=3")
        bench.run(*base, "--judge-url", judge.url, "--judge-model", "gpt-4o-mini", "--max-workers", "1", *JSON)
        bench.run("score", "last", "--judge-url", judge.url, "--judge-model", "other", "--quiet")
        bench.run("judge-check", "--judge-url", judge.url, "--max-workers", "1", "--quiet")
        bench.keep("asked", judge.chats[0].json)


# Behind a tap.


def _run_toy(kind: str, api: str) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        port = free_port()
        with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
            base = ("--proxy", url, "--name", "toy", "--api", api, "--tap", f":{port}", "--max-workers", "1")
            bench.run(*base, "--tap-reply", "extract", "--dataset", "needle:length=500,n=3", "--no-store", *JSON)

    return run


for _kind in KINDS:
    for _api in ("openai", "anthropic"):
        recorded_run(f"tap: {_kind}, {_api}")(_run_toy(_kind, _api))


@recorded_run("tap: table, store, stream, diff")
def _(bench: Bench) -> None:
    port = free_port()
    with toy_proxy("truncates", f"http://127.0.0.1:{port}") as url, Server(tell) as model:
        base = ("--proxy", url, "--name", "toy", "--tap", f":{port}", "--max-workers", "1", "--model", "gpt-4o-mini")
        data = ("--dataset", "json-logs:length=500,n=4")
        bench.run(*base, "--tap-forward", model.url, *data, "--controls", "--report", "page.html")
        bench.file("page.html")
        bench.run("runs", "show", "last")
        bench.run("diff", "last")
        bench.run(*base, "--tap-forward", model.url, *data, "--stream", *JSON)
        bench.run(*base, "--tap-forward", model.url, *data, "--resume", *JSON, rows=False)
        bench.run(*base, "--tap-reply", "text:five", *data, *JSON, rows=False)
        bench.run(*base, "--tap-reply", "echo", *data, "--quiet")
    out = bench.call("runs", "export", "last~1", "--output", "json")[1]
    bench.run("diff", "last~1", str(json.loads(out)["rows"][0]["example_id"]))


@recorded_run("tap: turns of a conversation")
def _(bench: Bench) -> None:
    turns = [{"role": "user", "content": f"Question {number}: what is {number} and {number}?"} for number in range(3)]
    bench.write(
        "turns.jsonl",
        "".join(json.dumps({"id": str(n), "turns": turns[: n + 1], "answer": "4"}) + "\n" for n in range(3)),
    )
    for kind in ("passes", "rewrites"):
        port = free_port()
        with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
            base = ("--proxy", url, "--name", kind, "--tap", f":{port}", "--max-workers", "1")
            bench.run(*base, "--tap-reply", "echo", "--dataset", "turns.jsonl", "--no-store", *JSON)


@recorded_run("tap: a proxy that is started and swept")
def _(bench: Bench) -> None:
    program = Path(__file__).parent.parent / "toy_proxies.py"
    start = f"python3 {program} {{kind}} --port {{port}} --upstream {{tap}}"
    import sys

    start = start.replace("python3", sys.executable)
    arguments = ("--start", start, "--sweep", "kind=passes|truncates", "--name", "toy", "--tap-reply", "extract")
    bench.run(*arguments, "--dataset", "needle:length=400,n=6", *ONE, *JSON, rows=False)


@recorded_run("conformance")
def _(bench: Bench) -> None:
    checks = flags("check", ("plain reply text intact", "settings passed", "user and metadata passed", "key passed", "error 429 relayed", "tools reach upstream"))  # fmt: skip
    for kind in ("passes", "strips", "truncates", "injects"):
        for api in ("openai", "anthropic"):
            port = free_port()
            with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
                base = ("conformance", "--proxy", url, "--tap", f":{port}", "--api", api, "--quiet", *checks)
                bench.run(*base, *(("--output", "json") if api == "openai" else ()))


# Memory.

MEMORIES = ("naive", "oracle", "closed-book", "bm25", "bm25:k1=1.2,b=0.5", "last:n=5", "last")


@recorded_run("memory")
def _(bench: Bench) -> None:
    base = ("memory", *systems(*MEMORIES), "--dataset", "synthetic-memory:length=4000", "-n", "2", "--no-store")
    bench.run(*base, "--quiet")
    bench.run(*base, *JSON)


@recorded_run("memory: other ways")
def _(bench: Bench) -> None:
    base = (
        "memory",
        *systems("naive", "bm25", "last:n=5"),
        "--dataset",
        "synthetic-memory:length=4000,seed=4",
        "-n",
        "2",
    )
    bench.run(*base, "--granularity", "session,turn", "--budget", "200,1000", "--answers", "reader", *JSON, rows=False)
    bench.run(*base, "--top-k", "3", "--budget", "300", "--margin", "0.1", "--baseline", "bm25[budget=300]")
    bench.run(*base, "--budget", "300", "--resume", *JSON, rows=False)
    bench.run(*base, "--budget", "300", "--report", "memory.html", "--quiet", "--fixed-groups")
    bench.file("memory.html")
    bench.run("runs", "list")
    bench.run("runs", "show", "last")
    bench.run("compare", "last", "--fail-if", "score drops 0.1")
    bench.run("diff", "last")
    bench.run("score", "last", "--threshold", "0.5", "--quiet")


@recorded_run("memory: a reader and a tap")
def _(bench: Bench) -> None:
    with Server(tell) as server:
        base = (
            "memory",
            "--dataset",
            "synthetic-memory:length=4000",
            "-n",
            "1",
            "--no-store",
            "--max-workers",
            "1",
            "--budget",
            "500",
        )
        bench.run(*base, *systems("naive", "bm25"), "--reader", server.url, *JSON)
        bench.run(
            *base, *systems("naive", "summary"), "--tap-reply", "extract", "--flush-quiet", "0.2", *JSON, rows=False
        )
