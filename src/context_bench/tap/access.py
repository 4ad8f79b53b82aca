"""Who may talk to a tap: programs, not web pages.

A page in a browser of this machine could send requests to loopback, and by a name of its own that resolves to
127.0.0.1 (DNS rebinding) even read the answers. Browsers tell of pages by `Origin` and `Sec-Fetch-Site`, and by the
name in `Host`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping

__all__ = ["find_refusal"]

_FROM_PAGES = {"cross-site", "same-site", "same-origin"}


def find_refusal(headers: Mapping[str, str], own: str, names: Collection[str]) -> str | None:
    """Find why a request gets no answer; None when it may have one.

    Args:
        headers: Of the request, looked up in any case.
        own: The host that the tap listens on.
        names: Further names by which the tap may be called, in lower case.
    """
    if "Origin" in headers or headers.get("Sec-Fetch-Site", "").lower() in _FROM_PAGES:
        return "the tap answers programs, not web pages: this request has an Origin"
    host = _bare_host(headers.get("Host", ""))
    if not host or host == own.lower() or host in names or _is_local(host):
        return None
    return f"the tap does not answer to the name {host!r}: add --tap-host {host} if a program is to reach it so"


def _bare_host(text: str) -> str:
    """Return the name or address of a Host header, without its port."""
    text = text.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
