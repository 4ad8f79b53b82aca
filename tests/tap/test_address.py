"""Where a tap listens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from command import environment
from context_bench.errors import UsageError
from context_bench.tap import address
from context_bench.tap.address import free_port, is_open_to_others, parse_listen, url_of


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9100", ("127.0.0.1", 9100)),
        (":0", ("127.0.0.1", 0)),
        ("localhost:80", ("127.0.0.1", 80)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
        ("box.lan:9100", ("box.lan", 9100)),
        ("[::1]:9100", ("::1", 9100)),
        (" :9100 ", ("127.0.0.1", 9100)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_listen(text) == address


@pytest.mark.parametrize(
    "text",
    [
        *("", "9100", "localhost", ":", ":x", ":-1", ":+1", ":65536", ":99999999999", ":9１00", "::1:9100", "[::1]"),
        *("[a]:1", "http://localhost:9100", "a b:1", "u@h:1", ":9100/v1"),
    ],
)
def test_what_is_none_is_told_in_one_sentence(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_listen(text)
    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9100"),
        ("0.0.0.0", "http://127.0.0.1:9100"),
        ("::", "http://[::1]:9100"),
        ("::1", "http://[::1]:9100"),
        ("10.0.0.7", "http://10.0.0.7:9100"),
    ],
)
def test_the_url_is_what_this_machine_can_reach(host: str, url: str) -> None:
    assert url_of(host, 9100) == url


@pytest.mark.parametrize(
    ("host", "is_open"),
    [("127.0.0.1", False), ("127.1.2.3", False), ("::1", False), ("0.0.0.0", True), ("::", True), ("10.0.0.7", True)],
)
def test_only_loopback_keeps_others_out(host: str, is_open: bool) -> None:
    assert is_open_to_others(host) is is_open


def test_a_free_port_is_none_that_the_kernel_gives_to_outgoing_connections() -> None:
    ports = [free_port() for _ in range(200)]
    kernel = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(kernel.read_text().split()[0]) if kernel.exists() else 49_152
    assert all(1_024 < port < first for port in ports)
    assert len(set(ports)) == 200


FEW_PORTS = """
import random, sys
from context_bench.tap import address
count, *ports = map(int, sys.argv[1:])
address._choose = type("Few", (), {"randrange": lambda *_: random.choice(ports)})()
print(*(address.free_port() for _ in range(count)), flush=True)
input()
"""


def test_two_processes_are_not_given_the_same_port(tmp_path: Path) -> None:
    """Of three ports the second process is given the one that the first has left."""
    ports = [free_port() for _ in range(3)]
    command, env = [sys.executable, "-c", FEW_PORTS], environment(TMPDIR=str(tmp_path))
    words = [str(port) for port in ports]
    with subprocess.Popen([*command, "2", *words], stdin=PIPE, stdout=PIPE, text=True, env=env) as first:
        assert first.stdout is not None
        taken = {int(word) for word in first.stdout.readline().split()}
        second = subprocess.run(
            [*command, "1", *words], input="\n", capture_output=True, text=True, check=True, env=env
        )
        first.communicate("\n")
    assert len(taken) == 2
    assert taken | {int(second.stdout)} == set(ports)


def test_a_file_that_cannot_be_opened_keeps_nobody_from_a_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "missing"))
    address._open_reservations.cache_clear()
    assert free_port() > 0
    address._open_reservations.cache_clear()
