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
    assert out.endswith("33 passed, 0 failed, 2 skipped\n")


def test_a_failed_check_is_exit_code_1_and_json_tells_all(tmp_path: Path) -> None:
    port = free_port()
    arguments = ["--tap", f":{port}", "--api", "anthropic", "--out", "found.json"]
    with toy_proxy("strips", f"http://127.0.0.1:{port}") as url:
        code, out, _ = conformance("--proxy", url, *arguments, cwd=tmp_path)
    assert (code, out) == (1, "")
    document = json.loads((tmp_path / "found.json").read_text())
    assert (document["api"], document["failed"], document["skipped"]) == ("anthropic", 3, 3)
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


def install(cwd: Path, name: str, kind: str) -> None:
    """A vendor's program with its command line, which is a toy proxy."""
    program = cwd / ".vendors" / name / "bin" / name
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {START} {kind} --port "$5" --upstream "$7"\n')
    program.chmod(0o755)


CHECKS = ("--check", "plain-reply-text-intact", "--check", "user-and-metadata-passed")


def test_two_vendors_are_both_examined(tmp_path: Path) -> None:
    install(tmp_path, "kompact", "strips")
    install(tmp_path, "headroom", "passes")
    vendors = ("--vendor", "kompact", "--vendor", "headroom", *CHECKS)
    code, out, _ = conformance(*vendors, cwd=tmp_path)
    assert code == 1
    ends = [line for line in out.splitlines() if "passed," in line]
    assert ends == [
        "kompact (unknown version) (openai): 1 passed, 1 failed, 0 skipped",
        "headroom (unknown version) (openai): 2 passed, 0 failed, 0 skipped",
    ]
    _, out, _ = conformance(*vendors, "--output", "json", cwd=tmp_path)
    assert [(each["proxy"].split()[0], each["failed"]) for each in json.loads(out)] == [("kompact", 1), ("headroom", 0)]
    code, out, _ = conformance("--vendor", "headroom", *CHECKS, "--output", "json", cwd=tmp_path)
    assert (code, json.loads(out)["passed"]) == (0, 2)


def test_a_vendor_that_does_not_start_does_not_hide_the_other(tmp_path: Path) -> None:
    install(tmp_path, "kompact", "no-such-toy")
    install(tmp_path, "headroom", "passes")
    code, out, err = conformance("--vendor", "kompact", "--vendor", "headroom", *CHECKS, cwd=tmp_path)
    assert code == 2
    assert out.endswith("headroom (unknown version) (openai): 2 passed, 0 failed, 0 skipped\n")
    assert "kompact ended with exit code" in err


def test_a_vendors_own_error_is_shown(tmp_path: Path) -> None:
    program = tmp_path / ".vendors" / "kompact" / "bin" / "kompact"
    program.parent.mkdir(parents=True)
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import sys\nfrom http.server import BaseHTTPRequestHandler, HTTPServer\n"
        "class Handler(BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(502)\n"
        "        self.end_headers()\n"
        "        told = self.headers.get('X-Kompact-Disable', 'nothing')\n"
        "        self.wfile.write(b'the vocabulary is missing, and told: ' + told.encode())\n"
        "    do_POST = do_GET\n"
        "HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n"
    )
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {broken} "$5"\n')
    program.chmod(0o755)
    code, out, err = conformance("--vendor", "kompact", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "answered with status 502 (the vocabulary is missing, and told: none), and nothing reached the tap" in err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "no proxy given: pass --proxy URL, --start COMMAND or --vendor NAME"),
        (["--proxy", "http://localhost:1"], "pass a port, as in --tap :9100"),
        (["--start", "x", "--vendor", "y"], "--start and --vendor both start a proxy"),
        (["--proxy", "http://localhost:1", "--vendor", "y", "--vendor", "z"], "remove it with several --vendor"),
        (["--proxy", "localhost", "--tap", ":0"], "'localhost' is not the URL of a server: write http://localhost"),
        (["--proxy", "http://localhost:1", "--tap", "9100"], "'9100' is not an address to listen on"),
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
    assert len(out.splitlines()) == 35
    assert "concurrent requests not mixed up" in out


def test_a_gateway_that_is_routed_by_headers(tmp_path: Path) -> None:
    (tmp_path / "gateway.py").write_text(
        f"import sys\nsys.path.insert(0, {str(TOYS.parent)!r})\n"
        "import toy_proxies\n\n"
        "class Routed(toy_proxies.Toy):\n"
        "    def headers(self, headers):\n"
        "        self.upstream = headers.pop('X-Upstream')\n"
        "        return headers\n\n"
        "toy_proxies.KINDS['routed'] = Routed\n"
        "toy_proxies._program()\n"
    )
    start = f"{shlex.quote(sys.executable)} {tmp_path}/gateway.py routed --port {{port}} --upstream http://127.0.0.1:9"
    headers = ["--header", "X-Upstream:{tap}", "--api", "responses", "--check", "plain-reply-text-intact"]
    done = shell("conformance", "--start", start, *headers, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "✓ plain reply text intact")
    code, _, err = conformance("--start", start, "--header", "nonsense", cwd=tmp_path)
    assert (code, "--header must be NAME:VALUE" in err) == (2, True)
