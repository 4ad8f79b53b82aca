"""Who may talk to a tap, over real sockets: programs by address, localhost or a name that was given."""

from __future__ import annotations

import asyncio
import http.client
import json
from pathlib import Path

import pytest

from command import shell
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap
from numbered import write
from servers import free_port
from toy_proxies import Toy, toy_proxy

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})


def asked(
    path: str = "/v1/chat/completions", method: str = "POST", hosts: tuple[str, ...] = (), **headers: str
) -> tuple[int, str]:
    """The status and the text that a tap answers a request with such headers."""

    def ask(port: int) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(
            method, path, BODY if method == "POST" else None, {"Content-Type": "application/json", **named}
        )
        answer = connection.getresponse()
        said = answer.status, answer.read().decode()
        connection.close()
        return said

    async def work() -> tuple[int, str]:
        tap = Tap(Scripted.from_text("text:secret answer"), hosts=hosts)
        await tap.start()
        try:
            return await asyncio.to_thread(ask, tap.port)
        finally:
            await tap.stop()

    return asyncio.run(work())


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:9100", "localhost:9100", "LOCALHOST", "a.localhost", "[::1]:9100", "192.0.2.7"]
)
def test_an_address_and_localhost_are_answered(host: str) -> None:
    assert asked(Host=host)[0] == 200


@pytest.mark.filterwarnings("ignore:refused at the tap")
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9100", "localhost.evil.example", "127.0.0.1.evil.example", "1.2.3.4.5", "x"]
)
def test_another_name_is_refused_and_told_the_flag(host: str) -> None:
    for path in ("/v1/chat/completions", "/v1/messages", "/health", "/anything"):
        status, text = asked(path, Host=host)
        assert status == 403
        assert f"--tap-host {host.partition(':')[0]}" in json.loads(text)["error"]["message"]
        assert "secret answer" not in text


def test_a_name_that_was_given_is_answered() -> None:
    for host in ("host.docker.internal", "HOST.docker.internal:9100", "host.docker.internal."):
        assert asked(Host=host, hosts=("other", "Host.Docker.Internal"))[0] == 200


@pytest.mark.filterwarnings("ignore:refused at the tap")
@pytest.mark.parametrize(
    "header",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9100"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_a_web_page_gets_nothing(header: dict[str, str]) -> None:
    assert asked("/health", "GET")[0] == 200
    assert asked("/health", "GET", **header)[0] == 403
    status, text = asked(**header)
    assert (status, "secret answer" in text) == (403, False)
    assert "web pages" in text


def test_a_program_that_says_how_it_fetches_is_no_page() -> None:
    assert asked(Sec_Fetch_Mode="cors", Sec_Fetch_Site="none")[0] == 200


class Renames(Toy):
    """Calls its upstream by a name, as a proxy in a container does."""

    def headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {**headers, "Host": "tap.internal:9100"}


def test_the_note_of_a_run_names_the_flag(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", 1)
    port = free_port()
    with toy_proxy("passes", f"http://127.0.0.1:{port}") as url:
        run = ("--proxy", url, "--tap", f":{port}", "--tap-reply", "extract", "--dataset", "data.jsonl")
        assert shell(*run, "--no-store", cwd=tmp_path).returncode == 0
    with toy_proxy(Renames, f"http://127.0.0.1:{port}") as url:
        run = ("--proxy", url, "--tap", f":{port}", "--tap-reply", "extract", "--dataset", "data.jsonl")
        refused = shell(*run, "--no-store", cwd=tmp_path)
        allowed = shell(*run, "--no-store", "--tap-host", "tap.internal", cwd=tmp_path)
    assert refused.returncode == 3
    assert "refused at the tap" in refused.stderr
    assert "--tap-host tap.internal" in refused.stderr
    assert allowed.returncode == 0, allowed.stderr
