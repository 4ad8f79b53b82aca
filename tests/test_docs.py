"""The docs say what is: every command runs, every snippet works, every flag, name and parameter is there."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import context_bench.metrics
from context_bench import set_tokenizer
from context_bench.cli import main
from context_bench.cli.commands import COMMANDS, run_parser
from context_bench.pricing import Price, Prices, Tier, load_shipped_prices
from context_bench.registry import registry
from pages import ROOT, commands, fences, links, spans, table
from rows import make_row
from servers import Server, completion, message, response

PAGES = [f"docs/{name}.md" for name in ("systems", "command-line", "how-it-works", "scores", "datasets", "coming-from")]
EVERY_PAGE = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md") if not path.name.startswith("0")
)
"""All but the decisions, which have a file each and no other rule."""
MORE = ["CONTRIBUTING.md", *EVERY_PAGE]

STAND_INS = {"COMMAND": "runs", "list|show|export|rm": "list", "RUN": "last"}
"""What a page leaves to the reader."""

PROGRAM = """#!{python}
import json, sys
assert sys.argv[1:] == ["--fast"]
for line in sys.stdin:
    print(json.dumps({{"context": json.loads(line)["context"][:100]}}), flush=True)
"""

METRIC = """
class MyMetric:
    name = "my-metric"

    def __init__(self, k=1):
        self.k = k

    def compute(self, rows):
        return {"rows": float(len(rows))}


class MyReporter:
    name = "my-reporter"

    def render(self, result):
        return f"{len(result.rows)}\\n"
"""


@pytest.fixture
def server() -> Iterator[Server]:
    forms = {"/v1/messages": message, "/v1/responses": response}
    with Server(lambda request: forms.get(request.path, completion)("4")) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place with the files that the pages speak of."""
    rows = [{"id": n, "context": f"The value of {n} is v{n}.", "question": "?", "answer": f"v{n}"} for n in range(3)]
    rows = [{**row, "prompt": row["question"], "gold": row["answer"]} for row in rows]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "data.csv").write_text("prompt,gold\n1 + 1?,2\n2 + 2?,4\n")
    _write_records(tmp_path / "records")
    (tmp_path / "traffic.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "Why?"}]}) + "\n")
    (tmp_path / "my_file.py").write_text("\n\n".join(fences("CONTRIBUTING.md", "python")) + METRIC)
    (tmp_path / "my_reranker.py").write_text(fences("docs/systems.md", "python")[0])
    (tmp_path / "my_edit.py").write_text(fences("docs/agents.md", "python")[0])
    (tmp_path / "my-program").write_text(PROGRAM.format(python=sys.executable))
    (tmp_path / "my-program").chmod(0o755)
    return tmp_path


def _write_records(folder: Path) -> None:
    """Records of two public datasets, as their authors publish them."""
    (folder / "gsm8k").mkdir(parents=True)
    (folder / "hotpotqa").mkdir()
    sums = [{"question": f"What is {n} + 1?", "answer": f"#### {n + 1}"} for n in range(3)]
    (folder / "gsm8k" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sums))
    facts = {"supporting_facts": [["Paris", 0]], "context": [["Paris", ["Paris has 4 parts."]], ["Rome", ["A city."]]]}
    asked = {"question": "How many parts has Paris?", "answer": "4", "type": "bridge", "level": "easy"}
    rows = [{"_id": f"q{n}", **asked, **facts} for n in range(3)]
    (folder / "hotpotqa" / "hotpot_dev_distractor_v1.json").write_text(json.dumps(rows))


@pytest.fixture
def call(
    folder: Path,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Any]:
    """Run a command line in that place: it must succeed; what it prints is returned."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("CONTEXT_BENCH_DATA", str(folder / "records"))

    def run(*arguments: str) -> str:
        code = main([argument.replace("http://localhost:7878", server.url) for argument in arguments])
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    yield run
    set_tokenizer(None)


def _written(command: str) -> list[str]:
    for placeholder, stand_in in STAND_INS.items():
        command = command.replace(placeholder, stand_in)
    words = shlex.split(command)[1:]
    return [*words, "-n", "2"] if "--dataset" in words else words


SHOWN = [
    pytest.param(page, command, marks=pytest.mark.long if command == "context-bench demo" else ())
    for page in ["CONTRIBUTING.md", *PAGES]
    for command in commands(page)
]


@pytest.mark.parametrize(("page", "command"), SHOWN)
def test_every_command_runs(call: Any, folder: Path, server: Server, page: str, command: str) -> None:
    call("--system", "passthrough", "--dataset", "data.jsonl", "--quiet")  # so that there is a recorded run
    (folder / "bench.toml").write_text(_run_file(server))
    out, written = call(*_written(command)), folder / "result.json"
    assert written.exists() if "--out result.json" in command else out.strip()


def test_the_snippet_for_those_who_come_from_another_tool(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (code,) = fences("docs/coming-from.md", "python")
    exec(compile(code.replace("http://localhost:7878", server.url), "coming-from.md", "exec"), {})
    score, _, table = capsys.readouterr().out.partition("\n")
    assert float(score) == 0.0  # the server says 4, the gold is v0
    assert table.startswith("| system")


def test_every_import_of_another_tool_that_is_said_to_work_does() -> None:
    lines = [span for span in spans("docs/coming-from.md") if span.startswith("from context_bench")]
    assert len(lines) >= 5
    for line in lines:
        exec(compile(line, "coming-from.md", "exec"), {})


KINDS = ("dataset", "memory_dataset", "system", "memory_system", "evaluator", "metric", "reporter")


@pytest.mark.parametrize("page", ["README.md", *MORE])
def test_no_page_says_of_a_part_that_it_is_not_here(page: str) -> None:
    parts = {*COMMANDS, "HTML", *(name for kind in KINDS for name in registry.list(kind))}
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if re.search(r"\bnot (here|yet|there|supported)\b", line):
            named = {word for span in re.findall(r"`([^`]+)`|(HTML)", line) for word in " ".join(span).split()}
            assert not named & parts, line


def _run_file(server: Server) -> str:
    text = fences("docs/command-line.md", "toml")[0]
    return text.replace("http://localhost:7878", server.url).replace("n=50", "n=2")


def test_the_run_file(call: Any, folder: Path, server: Server) -> None:
    text = _run_file(server)
    (folder / "bench.toml").write_text(text)
    document = json.loads(call("run", "bench.toml", "--output", "json"))
    assert list(document["summary"]) == ["my-proxy", "passthrough", "bm25:ratio=0.3"]
    assert document["config"]["max_workers"] == 16
    assert document["config"]["run_file"] == text


def test_the_prices(folder: Path) -> None:
    (folder / "prices.toml").write_text(fences("docs/command-line.md", "toml")[1])
    assert Prices.from_file(folder / "prices.toml").of("gpt-4o-mini") == Price(0.15, 0.60, 0.075)


def _is_placeholder(word: str) -> bool:
    return re.fullmatch(r"[A-Z|:=%.,]+", word) is not None


PIECES = sorted(
    {
        span
        for page in ["CONTRIBUTING.md", *PAGES]
        for span in spans(page)
        if re.match(r"--(?!fail-if)\w[\w-]* \S", span)
    }
)


@pytest.mark.parametrize("piece", [each for each in PIECES if not any(map(_is_placeholder, shlex.split(each)))])
def test_every_flag_that_is_shown_with_a_value_works(call: Any, piece: str) -> None:
    assert call(
        *shlex.split(piece), "--system", "minify", "--proxy", "http://localhost:7878", "--dataset", "data.jsonl"
    )


@pytest.mark.parametrize("page", ["README.md", *MORE])
def test_every_flag_that_is_named_is_there(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    known = {f"--{name}" for name in run_parser().flags} | {"--help", "--help-all", "--version"}
    for command in COMMANDS:
        if command != "run":
            main([command, "--help"])
            known |= set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    ours = [span for span in spans(page) if span.startswith(("--", "context-bench "))]
    named = {word for span in ours for word in re.findall(r"(?<![\w-])--[a-z][a-z-]+", span.partition("command:")[0])}
    assert named - known == set()


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", *MORE])
def test_every_link_leads_somewhere(page: str) -> None:
    broken = [target for target in links(page) if not (ROOT / page).parent.joinpath(target).exists()]
    assert broken == []


GENERATED = {f"docs/{name}.md" for name in ("numbers", "options", "datasets-catalog", "claims", "api/index")}
"""Reference tables that are made from declarations: one page each, so that a reader can search them."""


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", *EVERY_PAGE])
def test_a_page_is_short_and_its_prose_is_wrapped(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert page in GENERATED or len(text.split()) <= 1500, "split the page"
    prose = re.sub(r"^```.*?^ *```|^<!-- \w+:start -->.*?:end -->", "", text, flags=re.DOTALL | re.MULTILINE)
    long = [
        line
        for line in prose.splitlines()
        if len(re.sub(r"`[^`]+`", "", line)) > 100 and not line.startswith(("|", "#", "![", "- `context_bench."))
    ]
    assert long == [], "wrap prose at 100 columns"


def test_the_changelog_is_short() -> None:
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_decisions_are_numbered_without_a_gap() -> None:
    names = sorted(path.name for path in (ROOT / "docs/decisions").glob("0*.md"))
    assert [int(name.partition("-")[0]) for name in names] == list(range(1, len(names) + 1))


def test_the_index_has_every_page() -> None:
    listed = {f"docs/{target}" for target in links("docs/index.md") if not target.startswith("../")}
    assert listed == set(EVERY_PAGE) - {"docs/index.md"}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_target_of_make_is_there(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    lines = [line for code in fences(page, "sh") for line in code.splitlines()] + spans(page)
    targets = {match for line in lines for match in re.findall(r"^make ([a-z-]+)", line)}
    assert targets
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
    scripts = {match for line in lines for match in re.findall(r"^bash (\S+)", line)}
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


# Names, parameters and keys


def _names(cell: str) -> set[str]:
    return {name.partition("=")[0] for name in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize(("kind", "page"), [("system", "docs/systems.md"), ("dataset", "docs/datasets.md")])
def test_the_parameters_in_the_tables_are_those_that_are_taken(kind: str, page: str) -> None:
    rows = table(page, "name")
    assert len(rows) >= 7
    for name, parameters, _ in rows:
        taken = set(inspect.signature(registry.get(kind, name.strip("`"))).parameters)
        assert _names(parameters) == taken, name


def test_the_policies_in_the_table_have_the_defaults_that_are_shown() -> None:
    rows = table("docs/agents.md", "policy")
    assert len(rows) == 5
    for name, cell, _ in rows:
        taken = inspect.signature(registry.get("system", name.strip("`"))).parameters
        shown = dict(part.partition("=")[::2] for part in re.findall(r"`([^`]+)`", cell))
        assert {key: value or str(taken[key].default) for key, value in shown.items()} == {
            key: str(each.default) for key, each in taken.items()
        }


def test_the_choices_in_the_table_are_taken() -> None:
    (cell,) = [parameters for name, parameters, _ in table("docs/systems.md", "name") if name == "`truncate`"]
    (choices,) = re.findall(r"keep=([^`]+)", cell)
    for choice in choices.replace("\\", "").split("|"):
        registry.get("system", "truncate")(ratio=0.5, keep=choice)


CACHED = {"prompt_tokens": 9, "cached_tokens": 3}


def test_every_metric_of_money_gives_the_keys_in_its_table() -> None:
    facts = {"cost_usd": 0.1, "judge_cost_usd": 0.1, "embedding_usage": [{}], "embedding_cost_usd": 0.1}
    facts |= {"timed_out_attempts": 1, "timed_out_cost_usd": 0.1}
    facts |= {"uncached_cost_usd": 0.1, "cache_adjusted_cost_usd": 0.1}
    facts |= {"upstream_calls": 1, "billed_prompt_tokens": 9, "billed_usage": [{"model": "other", **CACHED}]}
    unknown = make_row(metadata={"least_cost_usd": 0.1, "most_cost_usd": 0.2})
    rows = table("docs/prices.md", "metric of money")
    assert [name for name, _, _ in rows] == ["DollarCost", "BilledRatio"]
    for name, cell, _ in rows:
        given = getattr(context_bench.metrics, name)().compute(
            [make_row(1.0, upstream_tokens=5, metadata=facts), unknown]
        )
        assert set(re.findall(r"`([^`]+)`", cell)) == set(given)


def test_the_price_file_that_is_shown_is_read(tmp_path: Path) -> None:
    (shown,) = fences("docs/prices.md", "toml")
    (tmp_path / "prices.toml").write_text(shown)
    above = Tier(200_000, Price(6.0, 22.5, 0.6))
    shipped = dict(load_shipped_prices())
    assert dict(Prices.from_file(tmp_path / "prices.toml")) == shipped | {
        "my-model": Price(3.0, 15.0, 0.3, 3.75, 6.0, (above,), 2048),
        "default": Price(1.0, 2.0),
    }


def test_the_dollars_that_are_worked_by_hand() -> None:
    text = (ROOT / "docs/prices.md").read_text()
    price = load_shipped_prices().of("gpt-4o")
    assert price is not None
    cost = price.cost({"prompt_tokens": 1_000, "cached_tokens": 600, "completion_tokens": 200})
    rows = [make_row(score, metadata={"cost_usd": cost}) for score in (1.0, 1.0, 0.0)]
    found = context_bench.metrics.DollarCost().compute(rows)
    for key, value in found.items():
        assert re.search(rf"`{key}` (is )?{value:.10g}[,.]", text.replace("\n", " ")), (key, value)
    assert len(found) == 3


def test_every_score_that_is_explained_is_emitted() -> None:
    emitted: set[str] = set()
    for name in registry.list("evaluator"):
        emitted |= set(registry.get("evaluator", name).score_fields)
    text = (ROOT / "docs/scores.md").read_text()
    explained = {
        key for group in re.findall(r"^- \*\*([a-z0-9_, ]+)\*\*", text, re.MULTILINE) for key in group.split(", ")
    }
    assert len(explained) > 5
    assert {"recall_at_k" if re.fullmatch(r"recall_at_\d+", key) else key for key in emitted} >= explained


def test_the_exit_codes_are_those_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help-all"])
    told = re.findall(r"(\d+) +[a-z]", capsys.readouterr().out.rpartition("exit codes:")[2])
    text = (ROOT / "docs/command-line.md").read_text().rpartition("## Exit codes")[2]
    assert re.findall(r"\b(\d+)\s+[a-z]", text) == told == ["0", "1", "2", "3", "4", "130"]


# What CONTRIBUTING shows


def test_the_parts_of_contributing_do_what_they_say(folder: Path) -> None:
    namespace: dict[str, Any] = {}
    for code in fences("CONTRIBUTING.md", "python"):
        exec(compile(code, "CONTRIBUTING.md", "exec"), namespace)
    lines = "\n".join(map(str, range(50)))
    assert namespace["FirstLines"](2).process({"id": 1, "context": lines}) == {"context": "0\n1"}
    assert len(list(namespace["tickets"](3))) == 3
    judge = namespace["KeepsNumbers"]()
    assert judge.score({"context": "a 1 b 2"}, {"response": "2 c"}) == {"numbers_kept": 0.5}
    assert judge.score({"context": "none"}, {"response": ""}) == {}


@pytest.mark.parametrize("word", ["noise floor", "sweep", "plan", "gate", "look", "cluster", "margin", "verdict"])
def test_the_glossary_explains_the_words_of_statistics(word: str) -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    assert len(re.findall(rf"^\| {word} \| \S.{{30,}} \|$", text, flags=re.MULTILINE)) == 1


def test_the_reference_has_text_before_it_is_built() -> None:
    page = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^- `(context_bench\.[\w.]+)`: (.+)$", page, re.MULTILINE))
    names = re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)
    assert list(told) == names, "python tools/api_page.py"
    assert len(names) > 100
