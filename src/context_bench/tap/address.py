"""Where a tap listens, `HOST:PORT` or `:PORT` for this machine alone, and where a proxy does."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from context_bench.errors import UsageError
from context_bench.http.secrets import is_loopback
from context_bench.text.masking import mask_text

__all__ = ["free_port", "is_open_to_others", "parse_listen", "port_of", "url_of"]

LOOPBACK = "127.0.0.1"
_FIRST_PORT = 20_000
_TRIES = 50
_choose = random.Random()  # apart from the seeds of a run: two runs with the same seed need two ports
_EVERYWHERE = {"0.0.0.0": LOOPBACK, "::": "::1"}


def parse_listen(text: str) -> tuple[str, int]:
    """Read the host and the port of `HOST:PORT`, `[IPV6]:PORT` or `:PORT`; port 0 is any free one."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or any(char in host for char in "/@ ?#"):
        raise UsageError(f"{text!r} is not an address to listen on: write :PORT or HOST:PORT, such as :9100")
    if len(port) > 5 or int(port) > 65535:
        raise UsageError(f"{text!r} is not an address to listen on: a port must be at most 65535")
    bare = host.removeprefix("[").removesuffix("]")
    if (":" in bare) != (host != bare):
        raise UsageError(
            f"{text!r} is not an address to listen on: an IPv6 address must stand in brackets, as in [::1]:9100"
        )
    # By name it may be two addresses, which with port 0 would get two ports.
    return LOOPBACK if bare in ("", "localhost") else bare, int(port)


def url_of(host: str, port: int) -> str:
    """Return the URL by which this machine reaches a server that listens there."""
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_open_to_others(host: str) -> bool:
    """Whether other machines may reach what listens on a host."""
    return host in _EVERYWHERE or not is_loopback(url_of(host, 1))


def free_port() -> int:
    """Find a port of loopback that nobody listens on now, and that nobody is likely to take before it is used.

    Ports that the kernel gives to outgoing connections are avoided: one of those is soon somebody else's.
    """
    for _ in range(_TRIES):
        port = _choose.randrange(_FIRST_PORT, _find_first_outgoing_port())
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _find_first_outgoing_port() -> int:
    """Return the first port that the kernel gives to outgoing connections, as Linux says it, else as IANA does."""
    with suppress(OSError, ValueError, IndexError):
        return max(int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]), _FIRST_PORT + 1)
    return 49_152


def port_of(url: str) -> int:
    """Return the port of a proxy's URL."""
    try:
        return urlsplit(url).port or 80
    except ValueError:
        raise UsageError(f"{mask_text(url)!r} is not the URL of a proxy: write http://HOST:PORT") from None
