from __future__ import annotations

import json
import shlex
import socket
import sys
from pathlib import Path

import pytest

from command import called, shell
from servers import Server, free_port
from toy_proxies import toy_proxy

TOYS = Path(__file__).parents[1] / "toy_proxies.py"
START = f"{shlex.quote(sys.executable)} {shlex.quote(str(TOYS))}"


def conformance(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    done = called("conformance", *arguments, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def test_a_proxy_that_runs_is_examined(tmp_path: Path) -> None:
    port = free_port()
    with toy_proxy("passes", f"http://127.0.0.1:{port}") as url:
        code, out, err = conformance("--proxy", f"{url}/v1", "--tap", f":{port}", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "✓ streaming stays streaming\n" in out
    assert "✗" not in out
    assert out.endswith("33 passed, 0 failed, 0 skipped\n")


def test_a_failed_check_is_exit_code_1_and_json_tells_all(tmp_path: Path) -> None:
    port = free_port()
    arguments = ["--tap", f":{port}", "--api", "anthropic", "--output", "json", "--out", "found.json"]
    with toy_proxy("strips", f"http://127.0.0.1:{port}") as url:
        code, out, _ = conformance("--proxy", url, *arguments, cwd=tmp_path)
    assert (code, out) == (1, "")
    document = json.loads((tmp_path / "found.json").read_text())
    assert (document["api"], document["failed"], document["skipped"]) == ("anthropic", 3, 1)
    (failed,) = [check for check in document["checks"] if check["name"] == "user and metadata passed"]
    assert failed["sent"] == {"metadata": {"user_id": "user-conformance"}}
    assert failed["arrived"] == {}


def test_a_proxy_is_started_and_stopped(tmp_path: Path) -> None:
    port = free_port()
    arguments = [
        "--start",
        f"{START} buffers --port {{port}} --upstream {{tap}}",
        "--proxy",
        f"http://127.0.0.1:{port}",
    ]
    checks = ["--check", "streaming-stays-streaming", "--check", "plain-reply-text-intact", "--timeout", "4"]
    done = shell("conformance", *arguments, *checks, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [
        "✓ plain reply text intact",
        "✗ streaming stays streaming  nothing arrived before the model had written its last piece",
    ]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "say which proxy: --proxy URL, --start COMMAND or --vendor NAME"),
        (["--proxy", "http://localhost:1"], "give a port, as in --tap :9100"),
        (["--start", "x", "--vendor", "y"], "--start and --vendor both start a proxy"),
        (["--proxy", "localhost", "--tap", ":0"], "'localhost' is no URL of a proxy"),
        (["--proxy", "http://localhost:1", "--tap", "9100"], "'9100' is no address to listen on"),
        (["--proxy", "http://localhost:1", "--tap", ":0", "--check", "x"], "unknown check 'x'"),
        (["--vendor", "nobody"], "unknown vendor 'nobody'"),
        (["--start", "no-such-program-at-all"], "no-such-program-at-all"),
        (["--proxy", "http://127.0.0.1:9", "--tap", ":0"], "no proxy answers at http://127.0.0.1:9"),
        (["--start", "x", "--proxy", "http://127.0.0.1:99999"], "99999"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(tmp_path: Path, arguments: list[str], problem: str) -> None:
    code, out, err = conformance(*arguments, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("context-bench: ")
    assert problem in err
    assert err.count("\n") == 1


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with Server() as server:
        code, _, err = conformance("--proxy", server.url, "--tap", f":{server.port}", cwd=tmp_path)
    assert code == 2
    assert f"port {server.port}" in err


def test_the_checks_are_listed(tmp_path: Path) -> None:
    code, out, _ = conformance("--list", cwd=tmp_path)
    assert code == 0
    assert len(out.splitlines()) == 33
    assert "concurrent requests not mixed up" in out
