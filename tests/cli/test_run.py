"""Run files: every flag as a key, mistakes in one sentence, and a record that tells no secret."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from command import called
from context_bench import set_tokenizer
from context_bench.cli import main
from context_bench.cli.commands import run_parser
from context_bench.compare.plans import Lock, write_lock
from servers import Server, chunk, completion, free_port, message, stream

KEY = "sk-test-0123456789abcdef"


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a text as a run file, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    rows = [{"id": n, "context": f"The value of {n} is v{n}.", "question": "?", "answer": f"v{n}"} for n in range(3)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def call(text: str | bytes, *flags: str) -> Done:
        data = text.encode() if isinstance(text, str) else text
        (tmp_path / "bench.toml").write_bytes(data)
        code = main(["run", "bench.toml", *flags])
        set_tokenizer(None)
        return Done(code, *capsys.readouterr())

    return call


BASE = 'system = ["passthrough"]\ndataset = ["data.jsonl"]\noutput = "json"\nno-store = true\n'


def test_a_run(run: Run) -> None:
    done = run(BASE)
    assert done.code == 0, done.err
    assert list(json.loads(done.out)["summary"]) == ["passthrough"]


def test_underscores_do_as_well(run: Run) -> None:
    done = run('system = "passthrough"\ndataset = "data.jsonl"\nmax_examples = 2\noutput = "json"\nno_store = true\n')
    assert len(json.loads(done.out)["rows"]) == 2


def test_a_list_repeats_its_flag_in_order(run: Run) -> None:
    done = run(
        'system = ["closed-book", "passthrough"]\ndataset = ["data.jsonl", "kv:length=300,n=1"]\noutput = "json"'
    )
    document = json.loads(done.out)
    assert list(document["summary"]) == ["closed-book", "passthrough"]
    assert list(document["config"]["datasets"]) == ["data", "kv:length=300,n=1"]


def test_false_sets_nothing(run: Run) -> None:
    assert json.loads(run(BASE + "quiet = false\ndry-run = false\n").out)["rows"]


def test_flags_after_the_file_are_added_and_win(run: Run) -> None:
    done = run(BASE + "max-examples = 1\n", "--system", "closed-book", "--max-examples", "2", "--output", "json")
    document = json.loads(done.out)
    assert list(document["summary"]) == ["passthrough", "closed-book"]
    assert len(document["rows"]) == 4


# Every flag has its key


VALUES: dict[str, Any] = {
    "proxy": ["{url}"],
    "name": ["mine"],
    "system": ["truncate:ratio=0.5"],
    "reader": "{url}",
    "dataset": ["data.jsonl"],
    "max-examples": 2,
    "sample": "first",
    "plan": "plan.json",
    "baseline": "mine",
    "margin": 0.05,
    "data-dir": ".",
    "revision": "main",
    "map": "question=question",
    "evaluator": ["plugin.py:Always"],
    "metric": ["official-score"],
    "import": ["plugin.py"],
    "model": "m-1",
    "api": "openai",
    "api-key-env": "MY_KEY",
    "header": ["X-Mode: fast", "X-Other: a=b: c"],
    "extra-body": {"top_p": 0.5, "nested": {"a": [1, 2]}},
    "system-prompt": "Be -- brief,\n=please.",
    "temperature": 0.5,
    "max-tokens": 50,
    "stream": True,
    "timeout": 9.5,
    "max-retries": 1,
    "judge-url": "{url}",
    "judge-model": "m-2",
    "judge-key-env": "MY_KEY",
    "unsafe-code": True,
    "score-field": "contains",
    "threshold": 0.25,
    "keep-reasoning": True,
    "repeats": 2,
    "aa": False,
    "stop-when-decided": False,
    "fixed-groups": True,
    "tokenizer": "o200k_base",
    "seed": 3,
    "max-workers": 1,
    "max-connections": 2,
    "max-rpm": 60000,
    "max-tpm": 9_000_000,
    "max-errors": "50%",
    "prices": "prices.toml",
    "max-cost": 100.0,
    "max-total-tokens": 1_000_000,
    "no-preflight": True,
    "engine": "local",
    "cache-dir": "store",
    "resume": True,
    "fresh": False,
    "cache-tag": "v1",
    "no-store": False,
    "no-rows": False,
    "output": "json",
    "out": "report.json",
    "wide": True,
    "slice": ["dataset"],
    "volume": "70k/day",
    "no-merge-seeds": True,
    "dry-run": False,
    "fail-if": ["error_rate > 0.9"],
    "junit": "gate.xml",
    "report": "page.html",
    "plots": "pictures",
    "summary": "gate.md",
    "accept-blind": True,
    "quiet": True,
    "verbose": False,
    "pdb": False,
}


PLUGIN = """
class Always:
    name = "always"
    score_fields = ("always",)

    def score(self, original, processed):
        return {"always": 1.0}
"""


def toml(value: Any) -> str:
    """A value as TOML writes it: like JSON, but for the tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def answering(request: Any) -> Any:
    if not request.json.get("stream"):
        return completion("1")
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}}\n\n'
    return stream(chunk("v1"), chunk(None, "stop"), usage, b"data: [DONE]\n\n")


TAP_FLAGS = {"tap", "tap-forward", "relay", "tap-model", "tap-host", "tap-reply"}
TAP_FLAGS |= {"start", "start-dir", "sweep", "vendor", "controls"}
RAY_FLAGS = {"ray-address", "system-resources"}
"""They need a cluster: tests/core/ray."""
TOYS = Path(__file__).parent.parent / "toy_proxies.py"


def test_a_tap_by_a_file(run: Run) -> None:
    command = f"{sys.executable} {TOYS} passes --port {{port}} --upstream {{tap}}"
    done = run(
        f"start = [{json.dumps(command)}]\ntap = '127.0.0.1:{free_port()}'\ntap-reply = 'echo'\n"
        "controls = true\ntap-host = ['tap.internal']\n"
        "name = ['toy']\ndataset = ['data.jsonl']\noutput = 'json'\n"
    )
    assert done.code == 0, done.err
    summary = json.loads(done.out)["summary"]
    assert list(summary) == ["toy", "floor", "ceiling", "direct"]
    assert summary["toy"]["prompt_savings"] == 0.0
    assert summary["toy"]["untouched_share"] == 1.0


def test_every_flag_of_a_run_by_a_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_parser().flags.keys() == VALUES.keys() | TAP_FLAGS | RAY_FLAGS, "a new flag wants a value here"
    monkeypatch.setenv("MY_KEY", KEY)
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "prices.toml").write_text("[m-1]\ninput = 1\noutput = 2\n[m-2]\ninput = 1\noutput = 2\n")
    write_lock(Lock("mean_score", "score", 0.05, "a", 9, ("a", "b"), ("data",)), tmp_path / "plan.json")
    with Server(answering) as server:
        text = "".join(f"{key} = {toml(value)}\n" for key, value in VALUES.items()).replace("{url}", server.url)
        done = run(text)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("context-bench: gate: truncate:ratio=0.5: Passed: error_rate is ")
    assert done.err.count("\n") == 1
    asked = [chat for chat in server.chats if chat.json["model"] == "m-1"]
    assert len(asked) == 2 * 2 * 2  # systems, examples, repeats
    body = asked[0].json
    assert (body["temperature"], body["max_tokens"], body["top_p"]) == (0.5, 50, 0.5)
    assert body["nested"] == {"a": [1, 2]}
    assert body["stream"] is True
    assert body["messages"][0]["content"].startswith("Be -- brief,\n=please.")
    assert asked[0].headers["x-mode"] == "fast"
    assert asked[0].headers["x-other"] == "a=b: c"
    assert asked[0].headers["authorization"] == f"Bearer {KEY}"
    report = (tmp_path / "report.json").read_text()
    config = json.loads(report)["config"]
    assert list(json.loads(report)["summary"]) == ["mine", "truncate:ratio=0.5"]
    assert (config["seed"], config["repeats"], config["tokenizer"], config["cache_tag"]) == (3, 2, "o200k_base", "v1")
    assert config["score_field"] == "contains"
    assert (tmp_path / "store").exists()
    assert (tmp_path / "pictures" / "pareto.svg").exists()
    assert KEY not in report


def test_anthropics_api(run: Run) -> None:
    with Server(message("v1")) as server:
        done = run(f'proxy = "{server.url}"\napi = "anthropic"\ndataset = "data.jsonl"\noutput = "json"\n')
    assert done.code == 0, done.err
    assert server.last["model"] == "claude-haiku-4-5"
    assert json.loads(done.out)["config"]["model"] == "claude-haiku-4-5"


# Mistakes: one sentence, exit code 2, nothing on stdout


MISTAKES: list[tuple[str | bytes, str]] = [
    ("", "no system"),
    ("system = [", "bench.toml: broken TOML"),
    ("system passthrough", "bench.toml: broken TOML"),
    ("system = 'a'\nsystem = 'b'", "bench.toml: broken TOML"),
    (b"system = '\xff'", "bench.toml: broken TOML"),
    ("systems = ['passthrough']", "bench.toml: unknown key 'systems': did you mean system"),
    ("max-worker = 3", "bench.toml: unknown key 'max-worker': did you mean max-workers"),
    ("n = 3", "bench.toml: unknown key 'n': the key of -n is max-examples"),
    ("zzzzzz = 3", "bench.toml: unknown key 'zzzzzz': docs/options.md lists all keys"),
    ("help = true", "unknown key 'help'"),
    ("version = true", "unknown key 'version'"),
    ('"--quiet" = true', "unknown key '--quiet'"),
    ('"" = true', "unknown key ''"),
    ("quiet = 'yes'", "bench.toml: quiet must be true or false (got 'yes')"),
    ("quiet = 1", "quiet must be true or false"),
    ("quiet = [true]", "quiet must be true or false"),
    ("max-workers = true", "max-workers must be one text or number (got True)"),
    ("max-workers = [1]", "max-workers must be one text or number (got [1])"),
    ("max-workers = 'many'", "--max-workers"),
    ("max-workers = 0", "--max-workers"),
    ("max-workers = 2.5", "--max-workers"),
    ("seed = 2024-01-01", "seed must be one text or number"),
    ("system = [1, ['x']]", "system must be a text or a list of texts (got ['x'])"),
    ("system = [{name = 'x'}]", "system must be a text or a list of texts"),
    ("system = true", "system must be a text or a list of texts (got True)"),
    ("[system]\nname = 'x'", "system must be a text or a list of texts"),
    ("[[dataset]]\nname = 'x'", "dataset must be a text or a list of texts"),
    ("extra-body = 5\nproxy = 'http://localhost:1'\ndataset = 'data.jsonl'", "--extra-body"),
    ("extra-body = '{'\nproxy = 'http://localhost:1'\ndataset = 'data.jsonl'", "--extra-body"),
    ("header = 'no colon'\nproxy = 'http://localhost:1'\ndataset = 'data.jsonl'", "NAME:VALUE"),
    ("threshold = nan", "--threshold"),
    ("api = 'cohere'", "cohere"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[str(text) or "nothing" for text, _ in MISTAKES])
def test_a_mistake_is_one_sentence(run: Run, text: str | bytes, said: str) -> None:
    done = run(text)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("context-bench: ")
    assert done.err.count("\n") == 1
    assert said in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "FILE.toml"),
        (["missing.toml"], "missing.toml: cannot be read"),
        (["."], "cannot be read"),
        (["--quiet"], "FILE.toml"),
        (["--max-workers", "4", "bench.toml"], "FILE.toml"),
    ],
)
def test_a_file_that_is_none(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


def test_dates_in_the_extra_body_are_texts(run: Run) -> None:
    with Server() as server:
        done = run(f'proxy = "{server.url}"\ndataset = "data.jsonl"\nextra-body = {{when = 2024-01-02}}\n')
    assert done.code == 0, done.err
    assert server.last["when"] == "2024-01-02"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    assert "FILE.toml" in capsys.readouterr().out


# What is recorded


def test_the_file_is_saved_with_the_run(run: Run) -> None:
    text = "# why we did it\n" + BASE.replace("no-store = true\n", "")
    config = json.loads(run(text, "--seed", "5").out)["config"]
    assert config["run_file"] == text
    assert config["command"] == ["--system=passthrough", "--dataset=data.jsonl", "--output=json", "--seed", "5"]
    assert json.loads(run(text).out)["config"]["run"] != config["run"]


@pytest.mark.parametrize(
    "line",
    [
        f'header = ["X-Mode: fast", "Authorization: Bearer {KEY}"]',
        f"header = 'Authorization: Bearer {KEY}'",
        f'header = [\n  "Authorization: Bearer {KEY}",  # the old one: Authorization: Bearer {KEY}\n]',
        f'header = ["Authorization: Bearer \\u0073{KEY[1:]}"]',
        f'"header" = """Authorization: Bearer {KEY}"""',
    ],
)
def test_a_header_in_a_file_is_never_kept(run: Run, tmp_path: Path, line: str) -> None:
    with Server(completion("v1")) as server:
        done = run(f'proxy = "{server.url}"\ndataset = "data.jsonl"\noutput = "json"\nverbose = true\n{line}\n')
    assert done.code == 0, done.err
    assert server.chats[0].headers["authorization"] == f"Bearer {KEY}"
    kept = b"".join(path.read_bytes() for path in (tmp_path / ".context-bench").iterdir())
    for text in (done.out, done.err, kept.decode("latin-1")):
        assert KEY not in text
        assert KEY[1:] not in text


def test_examples_without_a_context_are_said_to_have_nothing_to_compress(tmp_path: Path) -> None:
    (tmp_path / "gsm8k").mkdir()
    lines = [json.dumps({"question": f"{n} + 1?", "answer": f"It is {n + 1}.\n#### {n + 1}"}) for n in range(3)]
    (tmp_path / "gsm8k" / "test.jsonl").write_text("\n".join(lines))
    systems = ("--system", "bm25:ratio=0.3|0.5", "--system", "passthrough")
    done = called(*systems, "--dataset", "gsm8k", "--data-dir", ".", cwd=tmp_path)
    assert done.returncode == 3, done.stderr  # nothing could be scored
    assert "nothing was compressed: do these examples have a context?" in " ".join(done.stdout.split())
    assert "not worse than" not in done.stdout
