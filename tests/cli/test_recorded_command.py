"""Keys in bodies, URLs and commands are nowhere: not on the screen, not in the store, not in what is read from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from command import shell
from context_bench.cli.recorded_command import mask_arguments, mask_run_file
from numbered import number_of, write
from servers import Reply, Request, Server, completion, free_port, raw, reply
from toy_proxies import toy_proxy

PATH = "p4thkey0123456789abcdef"
BODY = {
    "api_key": "sk-body-0123456789abcdef",
    "token": "tok-0123456789-plain",
    "bearer": "bearer-0123456789-plain",
    "options": {"x-api-key": "nested-0123456789-plain", "headers": {"Authorization": "Bearer deep-0123456789-plain"}},
}
SECRETS = [PATH, BODY["api_key"], BODY["token"], BODY["bearer"], "nested-0123456789-plain", "deep-0123456789-plain"]


def tells_all(request: Request) -> Reply:
    """Repeats the whole request, as an answer or as an error."""
    said = f"{request.path} {request.body.decode()}"
    if number_of(request) == 2:
        return reply(400, {"error": {"message": said}})
    if number_of(request) == 3:
        return raw(said.encode())
    return completion(f"c1 {said}")


def arguments_of(how: str, url: str, folder: Path) -> list[str]:
    """The arguments of a run with keys in its body and URL, as flags or in a run file."""
    if how == "flags":
        return ["--proxy", url, f"--extra-body={json.dumps(BODY)}"]
    options = BODY["options"]
    assert isinstance(options, dict)
    lines = [
        f'proxy = "{url}"',
        "[extra-body]",
        *(f'{name} = "{BODY[name]}"' for name in ("api_key", "token", "bearer")),
    ]
    nested = [f'x-api-key = "{options["x-api-key"]}"', 'headers = { Authorization = "Bearer deep-0123456789-plain" }']
    (folder / "bench").mkdir()
    (folder / "bench" / "bench.toml").write_text("\n".join([*lines, "[extra-body.options]", *nested]) + "\n")
    return ["run", str(folder / "bench" / "bench.toml")]


def assert_nowhere(folder: Path, *texts: str) -> None:
    for text in texts:
        assert [secret for secret in SECRETS if secret in text] == []
    files = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "bench"]
    assert any(path.suffix == ".db" for path in files)
    for path in files:
        assert [secret for secret in SECRETS if str(secret).encode() in path.read_bytes()] == [], path


@pytest.mark.long
@pytest.mark.parametrize("how", ["flags", "run file"])
def test_a_run(tmp_path: Path, how: str) -> None:
    write(tmp_path / "data.jsonl", 1, 2, 3)
    with Server(tells_all) as server:
        arguments = arguments_of(how, f"{server.url}/{PATH}", tmp_path)
        arguments += ["--name", "p", "--dataset", "data.jsonl", "--max-retries", "0", "--verbose"]
        planned = shell(*arguments, "--dry-run", cwd=tmp_path)
        assert planned.returncode == 0, planned.stderr
        done = shell(*arguments, cwd=tmp_path)
        assert (done.returncode, len(server.chats)) == (3, 3), done.stderr
        assert server.chats[0].path.startswith(f"/{PATH}/")
        assert server.chats[0].json["options"] == BODY["options"]
    dead = shell(*arguments, "--no-store", cwd=tmp_path)
    assert "is down" in dead.stdout + dead.stderr
    read = [shell("runs", action, "last", cwd=tmp_path).stdout for action in ("show", "export")]
    read.append(shell("runs", "export", "last", "--output", "json", cwd=tmp_path).stdout)
    read.append(shell("diff", "last", "1", cwd=tmp_path).stdout)
    assert "***" in read[2]
    for each in (planned, done, dead):
        assert_nowhere(tmp_path, each.stdout, each.stderr)
    assert_nowhere(tmp_path, *read)


def test_a_run_with_a_tap(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", 1, 2)
    port = free_port()
    with Server(tells_all) as server, toy_proxy("passes", f"http://127.0.0.1:{port}") as url:
        arguments = ["--proxy", url, f"--extra-body={json.dumps(BODY)}", "--name", "p", "--dataset", "data.jsonl"]
        arguments += ["--tap", f":{port}", "--tap-forward", f"{server.url}/{PATH}", "--max-retries", "0", "--verbose"]
        done = shell(*arguments, cwd=tmp_path)
        assert len(server.chats) == 2, done.stderr
        assert server.chats[0].path.startswith(f"/{PATH}/")
    exported = shell("runs", "export", "last", "--output", "json", cwd=tmp_path).stdout
    (row, failed) = json.loads(exported)["rows"]
    assert row["metadata"]["untouched"] is True, "what is masked is masked on both sides"
    assert row["upstream_tokens"] == row["metadata"]["downstream_tokens"]
    assert failed["error"]
    shown = shell("runs", "show", "last", cwd=tmp_path).stdout
    compared = shell("diff", "last", "1", cwd=tmp_path).stdout
    assert_nowhere(tmp_path, done.stdout, done.stderr, exported, shown, compared)


def test_a_proxy_that_fails_to_start_repeats_no_key_of_its_command(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", 1)
    (tmp_path / "proxy.py").write_text("import sys\nprint('cannot understand', sys.argv[1:])\nsys.exit(2)\n")
    start = (
        f"{sys.executable} proxy.py --api-key short1 --upstream http://u:pass9@h:1 ACCESS_TOKEN=tok-55 --port {{port}}"
    )
    done = shell("--start", start, "--tap-reply", "echo", "--dataset", "data.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot understand" in done.stderr
    broken = shell("--start", start + " 'x", "--tap-reply", "echo", "--dataset", "data.jsonl", cwd=tmp_path)
    missing = shell(
        "--start", "OPENAI_API_KEY=short1 proxy", "--tap-reply", "echo", "--dataset", "data.jsonl", cwd=tmp_path
    )
    unknown = shell("--api-key", "short1", cwd=tmp_path)
    assert broken.returncode == missing.returncode == unknown.returncode == 2
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*.db*"))
    for secret in ("short1", "pass9", "tok-55"):
        for each in (done, broken, missing, unknown):
            assert secret not in each.stderr
        assert secret.encode() not in kept


def test_a_body_that_is_broken_is_not_repeated_with_its_key(tmp_path: Path) -> None:
    done = shell("--proxy", "http://127.0.0.1:1", "--extra-body", '{"api_key": "short1"', cwd=tmp_path)
    assert done.returncode == 2
    assert "short1" not in done.stderr


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--header", "X-A: b"], ["--header", "X-A:***"]),
        (["--extra-body", '{"token": "abc", "n": 1}'], ["--extra-body", '{"token": "***", "n": 1}']),
        (["--extra-body", '{"token": "abc"'], ["--extra-body", "***"]),
        (["--tap-forward=https://h/sk-0123456789abcdef/v1"], ["--tap-forward=https://h/***/v1"]),
        (["--system", "mine.py:S:api_key=abc,n=2"], ["--system", "mine.py:S:api_key=***,n=2"]),
        (["-n", "3", "--seed", "7"], ["-n", "3", "--seed", "7"]),
        (["--system-prompt", "You answer in one word."], ["--system-prompt", "You answer in one word."]),
    ],
)
def test_a_command_line_as_it_is_kept(given: list[str], kept: list[str]) -> None:
    assert mask_arguments(given) == kept


def test_a_run_file_as_it_is_kept() -> None:
    def kept(text: str, **values: Any) -> str | None:
        return mask_run_file(text, values)

    assert kept('start = "p --api-key abcd"', start="p --api-key abcd") == 'start = "p --api-key ***"'
    assert kept('extra-body = {token = "a\\u0062cd"}', **{"extra-body": {"token": "abcd"}}) is None
    assert kept('seed = 3 # why: "three"', seed=3) == 'seed = 3 # why: "three"'


def test_the_tap_on_its_own_keeps_no_key_of_its_command(tmp_path: Path) -> None:
    """It is recorded as a run, with the server that it forwards to."""
    from context_bench.cli.tap import Log
    from context_bench.store import Store
    from context_bench.tap.forward import Forward

    url = f"http://127.0.0.1:1/{PATH}"
    log = Log(Store(tmp_path / "store"), shown=False)
    log.begin(["tap", "--forward", url], Forward(url).fingerprint)
    log.close()
    assert Forward(url).fingerprint != Forward(url.replace("p4th", "q4th")).fingerprint
    assert_nowhere(tmp_path)
