"""Addresses of taps (`HOST:PORT`, or `:PORT` for this machine alone) and of proxies."""

from __future__ import annotations

import os
import random
import socket
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from context_bench.errors import UsageError
from context_bench.http.secrets import is_loopback
from context_bench.text.masking import mask_text

LOOPBACK = "127.0.0.1"
_FIRST_PORT = 20_000
_MAX_TRIES = 50
_choose = random.Random()  # not the seed of a run: two runs with the same seed need two ports
_found: set[int] = set()
_EVERYWHERE = {"0.0.0.0": LOOPBACK, "::": "::1"}


def parse_listen(text: str) -> tuple[str, int]:
    """Read the host and the port of `HOST:PORT`, `[IPV6]:PORT` or `:PORT`; port 0 picks a free one."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or any(char in host for char in "/@ ?#"):
        raise UsageError(f"{text!r} is not an address to listen on: write :PORT or HOST:PORT, such as :9100")
    if len(port) > 5 or int(port) > 65535:
        raise UsageError(f"{text!r} is not an address to listen on: a port must be at most 65535")
    bare = host.removeprefix("[").removesuffix("]")
    if (":" in bare) != (host != bare):
        raise UsageError(f"{text!r} is not an address to listen on: put an IPv6 address in brackets, as in [::1]:9100")
    # A name may have two addresses, which would get different ports with port 0.
    return LOOPBACK if bare in ("", "localhost") else bare, int(port)


def url_of(host: str, port: int) -> str:
    """Return the URL of a listening server for clients on this machine."""
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_open_to_others(host: str) -> bool:
    """Whether other machines can reach a server that listens on a host."""
    return host in _EVERYWHERE or not is_loopback(url_of(host, 1))


def free_port() -> int:
    """Find a free loopback port that no other program is likely to take before we use it.

    Skip the kernel's ports for outgoing connections, which are soon reused. Also skip ports that another process of
    this user has reserved, because its server may be about to start.
    """
    for _ in range(_MAX_TRIES):
        port = _choose.randrange(_FIRST_PORT, _find_first_outgoing_port())
        if port in _found or not _reserve(port):
            continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            _found.add(port)
            return port
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _reserve(port: int) -> bool:
    """Lock the byte of a port in a file shared by the user's processes; return False if another process has it.

    The lock ends with the process. On systems without such locks, every port is allowed.
    """
    try:
        import fcntl

        file = _open_reservations()
    except (ImportError, AttributeError, OSError):  # Windows, or a folder that is not writable
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _open_reservations() -> int:
    """Open the file of reservations once per process: closing it would release all of them."""
    name = Path(tempfile.gettempdir(), f"context-bench-{os.getuid()}.ports")
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _find_first_outgoing_port() -> int:
    """Return the first port of the kernel's range for outgoing connections: Linux's setting, else IANA's."""
    with suppress(OSError, ValueError, IndexError):
        return max(int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]), _FIRST_PORT + 1)
    return 49_152


def port_of(url: str) -> int:
    """Return the port of a proxy's URL."""
    try:
        return urlsplit(url).port or 80
    except ValueError:
        raise UsageError(f"{mask_text(url)!r} is not the URL of a proxy: write http://HOST:PORT") from None
